// SPDX-License-Identifier: Apache-2.0
#pragma once
// A core from a journal: from its first record on, or from the newest snapshot and the records behind it.

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ranktune/study/algorithm.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::tuner {

/// Of the study in `directory`, whose algorithms are among `algorithms`; `records` are those behind the snapshot, or
/// all, encoded one after the other. Null when the snapshot cannot be used (another version took it, or its digest
/// differs), so that the records have to be read from the first one on, or when there is neither. Throws
/// base::FormatError for records that cannot follow each other.
[[nodiscard]] std::unique_ptr<Tuner> resumed(const std::string& directory, const study::Algorithms& algorithms,
                                             const std::optional<study::Snapshot>& snapshot,
                                             std::span<const std::byte> records);

/// Whether this version takes such snapshots: only then their digests can be compared.
[[nodiscard]] bool is_of_this_version(const study::Snapshot& snapshot);

/// A core that grows from the records of a journal, read from the first one on.
class Regrown {
  public:
    /// `directory` of the study, for messages and paths; its algorithms are among `algorithms`.
    explicit Regrown(std::string directory, study::Algorithms algorithms, std::unique_ptr<Tuner> snapshot = nullptr)
        : directory_(std::move(directory)), algorithms_(std::move(algorithms)), tuner_(std::move(snapshot)) {}
    /// Without a snapshot, the first record creates the study. Throws base::FormatError for records that cannot follow
    /// each other.
    void apply(const study::Record& record);
    [[nodiscard]] bool begun() const { return tuner_ != nullptr; }
    /// Null before the first record.
    [[nodiscard]] std::unique_ptr<Tuner> take() { return std::move(tuner_); }

  private:
    std::string directory_;
    study::Algorithms algorithms_;
    std::unique_ptr<Tuner> tuner_;
};

} // namespace ranktune::tuner
