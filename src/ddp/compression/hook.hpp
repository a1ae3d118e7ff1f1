// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hook: how the buckets of a reducer travel in another form than as they are.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ddp/collective.hpp"
#include "ranktune/ddp/compression.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"

namespace ranktune::ddp {

/// What a hook works on.
struct HookInput {
    BucketPlan plan;
    std::span<const Matrix> matrices; ///< per tensor; may be empty
    /// Addresses on a device are not for the host.
    std::vector<std::span<float>> buckets;
    std::size_t ranks = 1;
    Compression compression;
};

/// State of the training that a hook keeps: per tensor, or of a tensor.
struct HookState {
    std::string name;
    base::Buffer values; ///< float32
    bool error = false;  ///< differs between ranks until it is settled
};

/// Compresses on hosts. A bucket has one or two operations. All memory is allocated by the constructor: nothing in a
/// step can fail on one rank alone. Used by one reducer, which keeps it alive (to the exit) while operations are
/// pending.
class Hook {
  public:
    virtual ~Hook() = default;
    /// Appends the operations of a step, in the order in which they are started: the first of every bucket, then the
    /// second of every bucket, if there are any.
    virtual void announce(StepPlan& step) const = 0;
    /// Bucket b is full: encodes it and starts its first operation. The bucket may be overwritten afterwards.
    [[nodiscard]] virtual std::unique_ptr<Pending> start(Collective& collective, std::size_t b) = 0;
    /// The first operation of bucket b is complete: starts the second; null: there is none.
    [[nodiscard]] virtual std::unique_ptr<Pending> go_on(Collective& collective, std::size_t b) = 0;
    /// All operations of bucket b are complete: writes the sums to the bucket.
    virtual void decode(std::size_t b) = 0;
    /// Empty without error feedback.
    [[nodiscard]] virtual std::vector<HookState> state() { return {}; }
};

/// topk: how many of `size` numbers travel.
[[nodiscard]] std::size_t kept_numbers(const Compression& compression, std::size_t size);

/// Null for Compression::Kind::none.
[[nodiscard]] std::shared_ptr<Hook> make_hook(HookInput input);
[[nodiscard]] std::shared_ptr<Hook> make_half_hook(HookInput input);
[[nodiscard]] std::shared_ptr<Hook> make_power_hook(HookInput input);
[[nodiscard]] std::shared_ptr<Hook> make_top_hook(HookInput input);

} // namespace ranktune::ddp
