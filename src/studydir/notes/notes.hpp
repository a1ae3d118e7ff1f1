// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notes and tags of trials, for people: the file `notes` of a study directory, beside the journal, so that anyone who
// may write there can add some at any time, also when the study is over; and what trials say of themselves. They decide
// nothing.

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "storage/file_system.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::studydir {

/// A note, or a tag that is put on or taken off.
struct Note {
    std::string time; ///< RFC 3339
    std::string who;  ///< "ada@login1", or `trial_itself`
    base::TrialId trial;
    std::string text = {}; ///< empty: a tag
    std::string tag = {};
    bool off = false; ///< the tag is taken off
};

/// `who` of what a trial says by itself.
inline constexpr const char* trial_itself = "trial";
inline constexpr std::size_t longest_note = 2000; ///< bytes
inline constexpr std::size_t longest_tag = 64;

/// What a trial says of itself by a name: "NAME: TEXT"; of a name with ": " in it, colons have backslashes. Only the
/// text, if the name is `note` and the text does not read as another.
struct SaidValue {
    std::string name;
    std::string text;
};
[[nodiscard]] std::string note_text(const SaidValue& value);
[[nodiscard]] SaidValue said_value(const std::string& note);

class Notes {
  public:
    /// What there is; none for a study without the file. Lines that cannot be read are left out: they were cut off, or
    /// come from a later version. Throws base::IoError.
    [[nodiscard]] static Notes read(storage::FileSystem& files, const StudyDirectory& directory);

    /// In the order of the file. A trial that says the same again, as after a crash, says it once.
    [[nodiscard]] const std::vector<Note>& of(base::TrialId trial) const;
    /// Sorted.
    [[nodiscard]] std::vector<std::string> tags(base::TrialId trial) const;

  private:
    void add(storage::FileSystem& files, const std::string& path);

    std::map<base::TrialId, std::vector<Note>> by_trial_;
    std::map<base::TrialId, std::set<std::string>> said_; ///< by trials themselves
};

/// Appends to `file` (StudyDirectory::notes_file, notes_of_host) with one write, and syncs. Throws base::UsageError for
/// a text or tag that is empty or too long, or a tag with other characters than letters, digits, `_`, `-`, `.`, `:` and
/// `/`; base::IoError.
void append_note(const std::string& file, const Note& note, bool sync = true);

} // namespace ranktune::studydir
