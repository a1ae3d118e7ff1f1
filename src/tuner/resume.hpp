// SPDX-License-Identifier: Apache-2.0
#pragma once
// Restores a core from a journal: from its first record on, or from the newest snapshot and the records after it.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ranktune/study/algorithm.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner {

/// The core of the study in `directory`, whose algorithms are among `algorithms`. `records`: those after the snapshot,
/// or all of them, encoded one after the other. Null if the snapshot cannot be used (it is of another version, or its
/// digest differs): then read the records from the first one on. Also null without a snapshot and records. Throws
/// base::FormatError for records that contradict each other.
[[nodiscard]] std::unique_ptr<Tuner> resumed(const std::string& directory, const study::Algorithms& algorithms,
                                             const std::optional<study::Snapshot>& snapshot,
                                             std::span<const std::byte> records);

/// Whether this version writes such snapshots: only then their digests can be compared.
[[nodiscard]] bool is_of_this_version(const study::Snapshot& snapshot);

/// Builds a core from the records of a journal, one by one.
class Regrown {
  public:
    /// `directory` of the study, for messages and paths; its algorithms are among `algorithms`.
    explicit Regrown(std::string directory, study::Algorithms algorithms, std::unique_ptr<Tuner> snapshot = nullptr)
        : directory_(std::move(directory)), algorithms_(std::move(algorithms)), tuner_(std::move(snapshot)) {}
    /// Without a snapshot, the first record creates the study. Throws base::FormatError for records that contradict
    /// each other.
    void apply(const study::Record& record);
    [[nodiscard]] bool begun() const { return tuner_ != nullptr; }
    /// With all records so far. Requires begun().
    [[nodiscard]] const Tuner& tuner() const { return *tuner_; }
    /// Null before the first record.
    [[nodiscard]] std::unique_ptr<Tuner> take() { return std::move(tuner_); }

  private:
    std::string directory_;
    study::Algorithms algorithms_;
    std::unique_ptr<Tuner> tuner_;
};

} // namespace ranktune::tuner
