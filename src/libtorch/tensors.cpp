// SPDX-License-Identifier: Apache-2.0
#include "libtorch/tensors.hpp"

#include "ranktune/base/error.hpp"

namespace ranktune::libtorch {

namespace {

study::TensorInfo info_of(const Named& named) {
    study::TensorInfo info{named.name, dtype_of(named.tensor, named.name), {}, study::Layout::replicated};
    for (const std::int64_t extent : named.tensor.sizes()) info.shape.push_back(static_cast<std::uint64_t>(extent));
    return info;
}

} // namespace

base::DType dtype_of(const ::torch::Tensor& tensor, const std::string& name) {
    using base::DType;
    switch (tensor.scalar_type()) {
        case ::torch::kFloat32:
            return DType::float32;
        case ::torch::kFloat64:
            return DType::float64;
        case ::torch::kFloat16:
            return DType::float16;
        case ::torch::kBFloat16:
            return DType::bfloat16;
        case ::torch::kInt32:
            return DType::int32;
        case ::torch::kInt64:
            return DType::int64;
        case ::torch::kUInt8:
        case ::torch::kBool:
            return DType::uint8;
        default:
            throw base::UsageError("the tensor '" + name + "' is of the type " +
                                   ::torch::toString(tensor.scalar_type()) +
                                   ", which checkpoints do not have; they have float16, bfloat16, float32, float64, "
                                   "int32, int64, uint8 and bool");
    }
}

::torch::ScalarType scalar_type(base::DType type) {
    using base::DType;
    switch (type) {
        case DType::float64:
            return ::torch::kFloat64;
        case DType::float16:
            return ::torch::kFloat16;
        case DType::bfloat16:
            return ::torch::kBFloat16;
        case DType::int32:
            return ::torch::kInt32;
        case DType::int64:
            return ::torch::kInt64;
        case DType::uint8:
            return ::torch::kUInt8;
        default:
            return ::torch::kFloat32;
    }
}

::torch::Tensor on_host(const ::torch::Tensor& tensor) { return tensor.detach().to(::torch::kCPU).contiguous(); }

::torch::Tensor moved_to(const ::torch::Device& device, const ::torch::Tensor& tensor) {
    if (!device.is_cuda() || !tensor.device().is_cpu()) return tensor.to(device, true);
    const ::torch::Tensor pinned =
        tensor.is_contiguous() ? tensor.pin_memory() // itself, if it is pinned
                               : ::torch::empty(tensor.sizes(), tensor.options().pinned_memory(true)).copy_(tensor);
    return pinned.to(device, true);
}

base::Buffer buffer_of(const ::torch::Tensor& tensor, const std::string& name, const base::Place& place) {
    return {tensor.data_ptr(), static_cast<std::size_t>(tensor.numel()), dtype_of(tensor, name), place};
}

void put(study::StateSink& sink, const Named& named) {
    const ::torch::Tensor values = on_host(named.tensor);
    sink.tensor(info_of(named), buffer_of(values, named.name));
}

void get(study::StateSource& source, const Named& named) {
    const ::torch::NoGradGuard no_gradients;
    const ::torch::Tensor target = named.tensor.detach();
    const bool in_place = target.is_cpu() && target.is_contiguous();
    const ::torch::Tensor values = in_place ? target : ::torch::empty(target.sizes(), target.scalar_type());
    source.tensor(info_of(named), buffer_of(values, named.name));
    if (!in_place) target.copy_(values);
}

} // namespace ranktune::libtorch
