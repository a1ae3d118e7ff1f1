// SPDX-License-Identifier: Apache-2.0
#pragma once
// A directory that goes with its object, and a journal in it.

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranktune/base/log.hpp"
#include "storage/journal.hpp"

namespace ranktune::report::testing {

class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "ranktune-report-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a temporary directory");
        path_ = name;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_;
};

/// Writes `records` with the writer that a head uses, and closes it.
inline void write_journal(const std::string& directory, const std::vector<study::Record>& records) {
    base::NullLog log;
    storage::JournalOptions options;
    options.directory = directory;
    options.uuid = "11112222-3333-4444-8555-666677778888";
    storage::Journal journal(storage::posix_file_system(), options, log);
    if (!records.empty()) journal.append(records);
    journal.close();
}

} // namespace ranktune::report::testing
