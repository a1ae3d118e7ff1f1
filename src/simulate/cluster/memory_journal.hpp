// SPDX-License-Identifier: Apache-2.0
#pragma once
// MemoryJournal: keeps appended records in encoded form and decodes them for replay.

#include <cstdint>
#include <memory>
#include <vector>

#include "ranktune/study/codec.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::simulate {

class MemoryJournal final : public study::RecordSink {
  public:
    void append(const std::vector<study::Record>& records) override {
        for (const study::Record& record : records) study::encode(record, bytes_);
        count_ += records.size();
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }

    /// A new core to which every record was applied.
    [[nodiscard]] std::unique_ptr<tuner::Tuner> replay(const study::StudySpec& spec) const {
        auto tuner = std::make_unique<tuner::Tuner>(spec);
        for_each([&tuner](const study::Record& record) { tuner->apply(record); });
        return tuner;
    }

    template <class Visit>
    void for_each(Visit visit) const {
        study::Decoder in(bytes_);
        while (!in.empty()) visit(study::decode_record(in));
    }

  private:
    study::Bytes bytes_;
    std::uint64_t count_ = 0;
};

} // namespace ranktune::simulate
