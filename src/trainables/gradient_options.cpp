// SPDX-License-Identifier: Apache-2.0
#include "ranktune/trainables/gradient_options.hpp"

#include <utility>

#include "trainables/options.hpp"

namespace ranktune::trainables {

std::vector<study::OptionInfo> gradient_options() {
    using Kind = study::OptionInfo::Kind;
    std::vector<study::OptionInfo> all{
        {"compression",
         Kind::string,
         false,
         "how gradients travel between ranks (none)",
         {"none", "fp16", "bf16", "bf16_nccl", "powersgd", "topk"}},
        {"compression_rank", Kind::integer, false, "powersgd: rank of the approximations (2)", {}, 1.0, 1024.0},
        {"compression_density", Kind::number, false, "topk: share of the numbers that travel (0.01)", {}, 1e-6, 1.0},
        {"accumulate",
         Kind::integer,
         false,
         "parts in which a rank computes its share of a batch, one after the other: less memory (1)",
         {},
         1.0,
         65536.0},
        {"bucket_mb",
         Kind::number,
         false,
         "MiB of gradients that are summed at a time (25 on GPUs, after a first 1; on cores mlp: 1, torch: 4)",
         {},
         0.001,
         512.0},
        {"clip_norm", Kind::number, false, "largest 2-norm of the gradient; 0: any (0)", {}, 0.0, {}},
        {"comm_metrics", Kind::boolean, false, "reports comm/exposed_ms, comm/GBps and comm/MB (false)"},
    };
    for (study::OptionInfo& option : all) option.may_change = true;
    return all;
}

BucketBytes buckets_of(const GradientChoice& choice, bool on_gpu, std::size_t on_cores) {
    constexpr std::size_t mib = std::size_t{1} << 20U;
    const std::size_t standard = on_gpu ? 25 * mib : on_cores;
    return {choice.bucket_bytes > 0 ? choice.bucket_bytes : standard, on_gpu ? mib : 0};
}

std::vector<std::string> gradient_metrics() { return {"comm/exposed_ms", "comm/GBps", "comm/MB"}; }

GradientChoice gradient_choice(const space::Configuration& configuration, const std::string& trainable) {
    study::TrainableInfo info;
    info.name = trainable;
    info.options = gradient_options();
    const Options options(configuration, info);
    GradientChoice choice;
    const std::string kind = options.text("compression", "none");
    for (const auto& [name, value] : {std::pair{"fp16", ddp::Compression::Kind::fp16},
                                      {"bf16", ddp::Compression::Kind::bf16},
                                      {"bf16_nccl", ddp::Compression::Kind::bf16_nccl},
                                      {"powersgd", ddp::Compression::Kind::powersgd},
                                      {"topk", ddp::Compression::Kind::topk}})
        if (kind == name) choice.compression.kind = value;
    choice.compression.rank = static_cast<std::size_t>(options.integer("compression_rank", 2));
    choice.compression.density = options.number("compression_density", 0.01);
    choice.accumulate = static_cast<std::size_t>(options.integer("accumulate", 1));
    choice.clip_norm = options.number("clip_norm", 0.0);
    choice.metrics = options.flag("comm_metrics", false);
    choice.bucket_bytes = static_cast<std::size_t>(options.number("bucket_mb", 0.0) * (1 << 20));
    return choice;
}

} // namespace ranktune::trainables
