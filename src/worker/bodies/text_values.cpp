// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/text_values.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "studydir/log_file.hpp"
#include "studydir/notes/notes.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::worker {

std::string TextValues::keep(const std::vector<std::pair<std::string, std::string>>& texts, base::TrialId trial,
                             const study::Objective& objective, const ProgramSetting& setting) {
    constexpr std::size_t most = 1000;
    std::string trouble;
    for (const auto& [name, text] : texts) {
        for (const study::Goal& goal : objective.goals())
            if (goal.metric == name)
                throw base::FormatError("the metric '" + name + "' of a report is a text, not a number: '" +
                                        text.substr(0, 60) + "'");
        if (text.empty() || newest_[name] == text || count_ == most) continue;
        newest_[name] = text;
        if (++count_ == most) trouble = "no more texts of reports are kept: there are " + std::to_string(most);
        studydir::Note said{studydir::wall_time_now(), studydir::trial_itself, trial};
        said.text = studydir::note_text({name, text});
        if (said.text.size() > studydir::longest_note) {
            said.text.resize(studydir::longest_note);
            trouble =
                "the text '" + name + "' is cut: it has more than " + std::to_string(studydir::longest_note) + " bytes";
        }
        try {
            const studydir::StudyDirectory directory{setting.directory};
            studydir::append_note(directory.notes_of_host(setting.host), said, false);
        } catch (const base::IoError& error) {
            trouble = std::string("a text of a report is lost: ") + error.what();
        }
    }
    return trouble;
}

} // namespace ranktune::worker
