// SPDX-License-Identifier: Apache-2.0
#include "drivers/head/journal_place.hpp"

namespace ranktune::drivers {

std::string trouble_with_place(const storage::FileSystem& files, const storage::Journal& journal,
                               const std::string& study_directory) {
    const std::string path = journal.displaced();
    if (path.empty()) return {};
    if (!files.identity(study_directory))
        return "the study directory '" + study_directory +
               "' was removed or moved away while the study ran; nothing is written there any more. If it was moved, "
               "move it back: it has every record, and the same command goes on. If it is gone, restore it from a "
               "backup, or the same command begins a new study";
    return "'" + path +
           "', which this run writes, was removed, moved or replaced while the study ran. If it was moved, move it "
           "back: it has every record, and the same command goes on. If it is gone, restore the folder 'journal' from "
           "a backup, or begin again with --fresh";
}

} // namespace ranktune::drivers
