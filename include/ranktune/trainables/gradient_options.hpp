// SPDX-License-Identifier: Apache-2.0
#pragma once
// The options by which a study file says how the gradients of a trainable are reduced: the same ones in every trainable
// that has them.

#include <cstddef>
#include <string>
#include <vector>

#include "ranktune/ddp/compression.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/trainable_info.hpp"

namespace ranktune::trainables {

/// What the options say.
struct GradientChoice {
    ddp::Compression compression;
    std::size_t accumulate = 1;   ///< parts in which a rank computes its share of a batch
    double clip_norm = 0.0;       ///< largest norm of the gradient; 0: any
    bool metrics = false;         ///< report comm/exposed_ms, comm/GBps, comm/MB (ddp::CommMeter)
    std::size_t bucket_bytes = 0; ///< limit of a bucket of gradients; 0: buckets_of decides
};

/// Limits of the buckets of gradients in bytes; first: of the first one, 0: as the others.
struct BucketBytes {
    std::size_t limit = 0;
    std::size_t first = 0;
};
/// `choice.bucket_bytes`, else 25 MiB on a GPU and `on_cores` elsewhere. On a GPU the first bucket has 1 MiB, as in
/// PyTorch: it is sent while most gradients are still to come.
[[nodiscard]] BucketBytes buckets_of(const GradientChoice& choice, bool on_gpu, std::size_t on_cores);

/// The options: append them to TrainableInfo::options.
[[nodiscard]] std::vector<study::OptionInfo> gradient_options();
/// The metrics that `comm_metrics` adds: append them to TrainableInfo::metrics, if it names any.
[[nodiscard]] std::vector<std::string> gradient_metrics();
/// Reads them. Throws base::UsageError, which names the trainable, the option and what it accepts.
[[nodiscard]] GradientChoice gradient_choice(const space::Configuration& configuration, const std::string& trainable);

} // namespace ranktune::trainables
