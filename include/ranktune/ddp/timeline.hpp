// SPDX-License-Identifier: Apache-2.0
#pragma once
// Timeline: what a rank computed and what it sent, and when: to see how much communication was hidden.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace ranktune::ddp {

/// When a piece of work began and ended, in seconds of the timeline's clock.
struct Span {
    std::string name;
    double begin = 0.0;
    double end = 0.0;
};

/// Collects spans of one rank in three lanes. Not thread-safe. A reduction's end is only noticed when the caller tests
/// it, so its span may be longer than the transfer, never shorter.
class Timeline {
  public:
    /// `clock` gives seconds, never decreasing. At most `capacity` spans are kept per lane; later ones are dropped.
    explicit Timeline(std::function<double()> clock, std::size_t capacity = 100'000);

    [[nodiscard]] double now() const { return clock_(); }
    void computed(std::string name, double begin, double end) { add(compute_, std::move(name), begin, end); }
    void reduced(std::string name, double begin, double end) { add(reductions_, std::move(name), begin, end); }
    void waited(std::string name, double begin, double end) { add(waits_, std::move(name), begin, end); }

    [[nodiscard]] const std::vector<Span>& compute() const { return compute_; }
    [[nodiscard]] const std::vector<Span>& reductions() const { return reductions_; }
    [[nodiscard]] const std::vector<Span>& waits() const { return waits_; }

    struct Summary {
        double in_flight_s = 0.0; ///< time with at least one reduction in flight
        double waited_s = 0.0;    ///< time in which the rank only waited for reductions
        /// Share of the communication that was overlapped by computation: 1 - waited / in flight; 1 without
        /// communication.
        [[nodiscard]] double hidden() const;
    };
    [[nodiscard]] Summary summary() const;

    /// The spans as a JSON document in Chrome's trace-event form (chrome://tracing, ui.perfetto.dev), rank as process.
    [[nodiscard]] std::string chrome_trace(int rank) const;

  private:
    void add(std::vector<Span>& lane, std::string name, double begin, double end);

    std::function<double()> clock_;
    std::size_t capacity_;
    std::vector<Span> compute_;
    std::vector<Span> reductions_;
    std::vector<Span> waits_;
};

} // namespace ranktune::ddp
