// SPDX-License-Identifier: Apache-2.0
#pragma once
// SampleStream: a rank's share of the batches of a file, as tensors.

#include <cstdint>
#include <optional>

#include "ranktune/data/loader.hpp"
#include "ranktune/libtorch/module_trainable.hpp"

namespace ranktune::libtorch {

class SampleStream {
  public:
    struct Share {
        Samples samples;         ///< on the host, until the next call; undefined without samples
        std::size_t count = 0;   ///< of this rank
        std::uint64_t whole = 0; ///< of all ranks
    };
    /// `what` outlives it, and has a source. Throws base::UsageError.
    SampleStream(const Streamed& what, data::LoaderOptions loading, data::Position from);
    /// nullopt once at the end of each epoch. Throws what source or map threw.
    [[nodiscard]] std::optional<Share> next();
    [[nodiscard]] data::Position position() const { return loader_.position(); }
    /// Seconds in `next` since the last call.
    [[nodiscard]] double take_waited();

  private:
    const Streamed& what_;
    data::Loader loader_;
    std::optional<data::Batch> batch_; ///< whose memory the tensors share
    double told_ = 0.0;                ///< seconds
};

/// The options of a rank's loader. `batch`: of all ranks.
[[nodiscard]] data::LoaderOptions loading_for(const trainables::TrialContext& context, data::LoaderOptions loading,
                                              std::size_t batch, bool drop_last);

} // namespace ranktune::libtorch
