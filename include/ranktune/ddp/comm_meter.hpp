// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommMeter: what the gradients of a trial cost, as metrics.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/ddp/gradient_reducer.hpp"

namespace ranktune::ddp {

/// Measures the steps of one reducer on this rank. Times depend on the machine and are never the same twice: a trial
/// whose reports must be reproducible leaves them out.
class CommMeter {
  public:
    /// Reads the clock in every step of `reducer` from now on.
    void watch(GradientReducer& reducer);
    /// Call after every finish() that reduced.
    void after_step(const GradientReducer& reducer);
    /// Since the last call. Waits for the sums on a GPU, and throws as GradientReducer::finish then.
    /// - `comm/exposed_ms`: mean time of a step in which this rank, or the compute stream of its GPU, only waited for
    ///   reductions, in ms
    /// - `comm/GBps`: 1e9 bytes sent per second in which a reduction was in flight; 0 when there was none
    /// - `comm/MB`: 1e6 bytes sent in all steps, as GradientReducer::Traffic counts them
    [[nodiscard]] std::vector<std::pair<std::string, double>> take(const GradientReducer& reducer);
    /// The same of a trial on one rank, which has no reducer: zeros.
    [[nodiscard]] static std::vector<std::pair<std::string, double>> of_one_rank();

  private:
    GradientReducer::Timing taken_; ///< of earlier calls
    std::uint64_t steps_ = 0;
    std::uint64_t bytes_in_steps_ = 0;
    std::uint64_t last_bytes_ = 0; ///< at the end of the last step
    std::uint64_t taken_bytes_ = 0;
};

} // namespace ranktune::ddp
