// SPDX-License-Identifier: Apache-2.0
#pragma once
// Observer: what the head shows. The loop calls it; screens and logs implement it. It may read everything and change
// nothing.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/study/command.hpp"
#include "ranktune/study/record.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::head {

/// Copies of [data] on the nodes, in bytes of all.
struct CopyFigures {
    std::uint32_t nodes = 0; ///< on which this start makes copies
    std::uint64_t bytes = 0;
    std::uint64_t copied = 0;
    std::uint64_t read = 0; ///< from the originals; the rest came from other nodes
};

/// Figures of the running head that are not part of the study's state.
struct HeadFigures {
    double elapsed_s = 0.0; ///< of this incarnation
    double head_cpu_s = 0.0;
    double training_s = 0.0; ///< rank-seconds in user code
    double starting_s = 0.0; ///< rank-seconds from the start command to the first sign of training
    double idle_s = 0.0;     ///< rank-seconds without a trial
    double data_s = 0.0;     ///< rank-seconds of training that waited for data
    std::uint64_t stale_messages = 0;
    std::uint64_t iterations_before = 0;  ///< trained by earlier starts
    std::uint64_t checkpoints_missed = 0; ///< checkpoints that could not be written while trials trained on
    std::string checkpoint_error;         ///< of the last one missed
    std::uint64_t fallbacks = 0;          ///< damaged checkpoints whose trials went back to the one before
    CopyFigures copies;
};

/// Whether [after] begins: its command may read the results.
[[nodiscard]] inline bool begins_after(const std::vector<study::Record>& records) {
    return std::ranges::any_of(records, [](const study::Record& record) {
        const auto* started = std::get_if<study::SideStarted>(&record);
        return started != nullptr && started->task.kind == study::SideTask::Kind::after;
    });
}

/// One may stand before another, to which it passes everything on.
class Observer {
  public:
    /// `next` may be null, and outlives this object.
    explicit Observer(Observer* next = nullptr) : next_(next) {}
    virtual ~Observer() = default;
    /// After every batch of written records, in order.
    virtual void on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                            const HeadFigures& figures) {
        if (next_ != nullptr) next_->on_records(tuner, records, figures);
    }
    /// About twice a second, and once after the end.
    virtual void on_tick(const tuner::Tuner& tuner, const HeadFigures& figures) {
        if (next_ != nullptr) next_->on_tick(tuner, figures);
    }

  private:
    Observer* next_;
};

} // namespace ranktune::head
