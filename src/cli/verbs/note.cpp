// SPDX-License-Identifier: Apache-2.0
// note: what people want to remember of a trial.

#include <iostream>

#include <fmt/format.h>

#include "cli/verbs/verbs.hpp"
#include "process/environment.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "report/screens/text.hpp"
#include "report/view/load.hpp"
#include "studydir/log_file.hpp"
#include "studydir/notes/notes.hpp"

namespace ranktune::cli {

int note(const NoteArguments& arguments) {
    auto& files = storage::posix_file_system();
    const report::LoadedStudy study = report::load_state(files, arguments.directory);
    const base::TrialId trial = report::trial_named(study.tuner->state(), arguments.trial, arguments.directory);
    const studydir::StudyDirectory directory{arguments.directory};
    const studydir::Note blank{studydir::wall_time_now(), process::user_at_host(), trial};
    const auto add = [&](const std::string& text, const std::string& tag, bool off) {
        studydir::Note note = blank;
        note.text = text;
        note.tag = tag;
        note.off = off;
        studydir::append_note(directory.notes_file(), note);
    };
    if (!arguments.text.empty()) add(arguments.text, "", false);
    for (const std::string& tag : arguments.tags) add("", tag, false);
    for (const std::string& tag : arguments.untag) add("", tag, true);

    const studydir::Notes notes = studydir::Notes::read(files, directory);
    const auto tags = notes.tags(trial);
    if (!tags.empty()) std::cout << fmt::format("trial #{}: {}\n", trial.value(), base::join(tags));
    bool any = !tags.empty();
    for (const studydir::Note& each : notes.of(trial)) {
        if (each.text.empty()) continue;
        any = true;
        std::cout << fmt::format("trial #{}  {}  {}  {}\n", trial.value(), each.time, report::printable(each.who),
                                 report::printable(each.text));
    }
    if (!any)
        std::cout << fmt::format("trial #{} has no notes: ranktune note {} {} \"TEXT\", or --tag NAME\n", trial.value(),
                                 study::shell_text({arguments.directory}), trial.value());
    return 0;
}

} // namespace ranktune::cli
