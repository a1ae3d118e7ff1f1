// SPDX-License-Identifier: Apache-2.0
#include "libtorch/precision.hpp"

#include <string>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>

#include "libtorch/version.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::libtorch {

namespace {

namespace autocast = at::autocast;

// LibTorch 2.4 made one function of those for CUDA and for cores.
#if RANKTUNE_LIBTORCH_AT_LEAST(2, 4)
bool is_enabled(::torch::DeviceType where) { return autocast::is_autocast_enabled(where); }
void enable(::torch::DeviceType where, bool on) { autocast::set_autocast_enabled(where, on); }
::torch::Dtype type_of(::torch::DeviceType where) { return autocast::get_autocast_dtype(where); }
void set_type(::torch::DeviceType where, ::torch::Dtype type) { autocast::set_autocast_dtype(where, type); }
#else
bool is_enabled(::torch::DeviceType where) {
    return where == ::torch::kCPU ? autocast::is_cpu_enabled() : autocast::is_enabled();
}
void enable(::torch::DeviceType where, bool on) {
    where == ::torch::kCPU ? autocast::set_cpu_enabled(on) : autocast::set_enabled(on);
}
::torch::Dtype type_of(::torch::DeviceType where) {
    return where == ::torch::kCPU ? autocast::get_autocast_cpu_dtype() : autocast::get_autocast_gpu_dtype();
}
void set_type(::torch::DeviceType where, ::torch::Dtype type) {
    where == ::torch::kCPU ? autocast::set_autocast_cpu_dtype(type) : autocast::set_autocast_gpu_dtype(type);
}
#endif

struct Float32Products {
    std::string matrices; ///< LibTorch's words: highest (fp32), high (tf32), medium
    bool convolutions;    ///< whether cuDNN may use tf32
};

Float32Products current_products() {
    const auto matrices = at::globalContext().float32MatmulPrecision();
    return {matrices == at::Float32MatmulPrecision::HIGHEST ? "highest"
            : matrices == at::Float32MatmulPrecision::HIGH  ? "high"
                                                            : "medium",
            at::globalContext().allowTF32CuDNN()};
}

} // namespace

Precision precision_of(const trainables::TrialContext& context) {
    const auto* const value = context.configuration().find("precision");
    if (value == nullptr) return Precision::of_libtorch;
    const std::string name = value->is_string() ? value->as_string() : std::string();
    if (name == "fp32") return Precision::fp32;
    if (name == "tf32") return Precision::tf32;
    if (name == "bf16") return Precision::bf16;
    throw base::UsageError(R"(torch.precision must be "fp32", "tf32" or "bf16")");
}

void set_float32_products(Precision precision) {
    static const Float32Products of_libtorch = current_products(); // when the first trial asks
    const bool tf32 = precision == Precision::tf32;
    const bool chosen = tf32 || precision == Precision::fp32;
    const Float32Products products = chosen ? Float32Products{tf32 ? "high" : "highest", tf32} : of_libtorch;
    at::globalContext().setFloat32MatmulPrecision(products.matrices);
    at::globalContext().setAllowTF32CuDNN(products.convolutions);
}

Autocast::Autocast(Precision precision, ::torch::DeviceType where) : on_(precision == Precision::bf16), where_(where) {
    if (!on_) return;
    before_ = is_enabled(where_);
    type_before_ = type_of(where_);
    set_type(where_, ::torch::kBFloat16);
    enable(where_, true);
    autocast::increment_nesting();
}

Autocast::~Autocast() {
    if (!on_) return;
    // Parameters that were converted are kept for the next use; after a step of the optimizer they would be old.
    if (autocast::decrement_nesting() == 0) autocast::clear_cache();
    enable(where_, before_);
    set_type(where_, type_before_);
}

} // namespace ranktune::libtorch
