// SPDX-License-Identifier: Apache-2.0
// The kernels of libranktune-cuda, compiled from their own source for the host.

#include "cuda_words.hpp"
#include "device/cuda/gradient_kernels.cuh"
#include "machine.hpp"

#include <memory>
#include <tuple>
#include <type_traits>

namespace stand_in {
namespace {

/// An argument as the host form gets it: pointers lead to the contents of live memory.
template <class A>
A resolved(A argument, int device, const std::string& name) {
    if constexpr (std::is_pointer_v<A>) {
        if (argument == nullptr) return nullptr;
        return reinterpret_cast<A>(contents(argument, 0, device, name));
    } else {
        static_cast<void>(device);
        static_cast<void>(name);
        return argument;
    }
}

template <auto kernel>
struct HostForm;
template <class... A, void (*kernel)(A...)>
struct HostForm<kernel> {
    static BoundKernel bind(void** arguments, const std::string& name) {
        return bind_at(arguments, name, std::index_sequence_for<A...>{});
    }
    /// CUDA copies the arguments at launch.
    template <std::size_t... i>
    static BoundKernel bind_at([[maybe_unused]] void** arguments, const std::string& name, std::index_sequence<i...>) {
        const auto copies = std::make_shared<std::tuple<A...>>(*static_cast<A*>(arguments[i])...);
        return [copies, name](int device) -> std::function<void()> {
            const std::tuple<A...> real{resolved<A>(std::get<i>(*copies), device, name)...};
            return [real] { std::apply(kernel, real); };
        };
    }
};

template <auto kernel>
void add(const char* name) {
    add_kernel(std::string("ranktune::device::cuda::") + name, &HostForm<kernel>::bind);
}

namespace cuda = ranktune::device::cuda;

[[maybe_unused]] const bool added = [] {
    add<&cuda::widen<__half>>("widen<__half>");
    add<&cuda::widen<__nv_bfloat16>>("widen<__nv_bfloat16>");
    add<&cuda::narrow<__half>>("narrow<__half>");
    add<&cuda::narrow<__nv_bfloat16>>("narrow<__nv_bfloat16>");
    add<&cuda::add_numbers>("add_numbers");
    add<&cuda::sum_squares>("sum_squares");
    add<&cuda::scale_to_norm>("scale_to_norm");
    add<&cuda::add_narrow_parts<__half>>("add_narrow_parts<__half>");
    add<&cuda::add_narrow_parts<__nv_bfloat16>>("add_narrow_parts<__nv_bfloat16>");
    add<&cuda::widen_times<__half>>("widen_times<__half>");
    add<&cuda::widen_times<__nv_bfloat16>>("widen_times<__nv_bfloat16>");
    add<&cuda::choose_largest>("choose_largest");
    add<&cuda::scatter_numbers>("scatter_numbers");
    add<&cuda::make_orthonormal>("make_orthonormal");
    add<&cuda::make_orthonormal_or_refill>("make_orthonormal_or_refill");
    add<&cuda::expand_product>("expand_product");
    add<&cuda::activate_rows>("activate_rows");
    add<&cuda::activate_backward_rows>("activate_backward_rows");
    add<&cuda::cross_entropy_rows>("cross_entropy_rows");
    add<&cuda::squared_error_rows>("squared_error_rows");
    add<&cuda::total_of>("total_of");
    add<&cuda::sgd_step>("sgd_step");
    add<&cuda::adam_step>("adam_step");
    return true;
}();

} // namespace
} // namespace stand_in
