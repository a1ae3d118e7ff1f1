// SPDX-License-Identifier: Apache-2.0
#pragma once
// SampleStream: a rank's share of the batches of a file, as tensors.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "ranktune/data/loader.hpp"
#include "ranktune/libtorch/module_trainable.hpp"

namespace ranktune::libtorch {

class SampleStream {
  public:
    struct Share {
        Samples samples;         ///< where the rank computes, until the next call; undefined without samples
        std::size_t count = 0;   ///< of this rank
        std::uint64_t whole = 0; ///< of all ranks
    };
    /// `what` outlives it, and has a source. Throws base::UsageError.
    SampleStream(const Streamed& what, data::LoaderOptions loading, data::Position from, const Where& where);
    ~SampleStream();
    /// nullopt once at the end of each epoch. Throws what source or map threw.
    [[nodiscard]] std::optional<Share> next();
    /// On a GPU the next share travels there while the rank computes on this one. Whoever calls it does so for every
    /// share that is to follow: Streamed::samples may draw numbers, and always draws them here.
    void look_ahead() {
        if (uploads_) ahead_ = read();
    }
    /// Where the share of the next call begins.
    [[nodiscard]] data::Position position() const { return position_; }
    /// What `next` waited for since the last call; uploads are `other`.
    [[nodiscard]] data::LoadTime take_waited();

  private:
    /// What a call of `next` returns.
    struct Turn {
        std::optional<data::Batch> batch; ///< whose memory the samples share on the host
        Share share;
        data::Position after;
        std::exception_ptr error;
    };
    /// The uploads of one rank.
    class Uploads;

    [[nodiscard]] Turn read();

    const Streamed& what_;
    std::unique_ptr<Uploads> uploads_; ///< null on the host
    data::Loader loader_;
    data::Position position_;
    Turn now_;
    std::optional<Turn> ahead_;
};

/// The options of a rank's loader. `batch`: of all ranks.
[[nodiscard]] data::LoaderOptions loading_for(const trainables::TrialContext& context, data::LoaderOptions loading,
                                              std::size_t batch, bool drop_last);

} // namespace ranktune::libtorch
