// SPDX-License-Identifier: Apache-2.0
#include "trainables/blas.hpp"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "ranktune/base/error.hpp"

namespace ranktune::trainables::blas {

namespace {

constexpr int row_major = 101;
constexpr int cblas(Transpose transpose) { return transpose == Transpose::yes ? 112 : 111; }

int extent(std::size_t n) {
    assert(n <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
    return static_cast<int>(n);
}

/// cblas_sgemm.
using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                       int lda, const float* b, int ldb, float beta, float* c, int ldc);

/// Opens the module with RTLD_GLOBAL, because MKL and FlexiBLAS load further parts that need its symbols.
Sgemm load() {
    void* const module = dlopen(RANKTUNE_BLAS_MODULE, RTLD_NOW | RTLD_GLOBAL);
    const char* error = module == nullptr ? dlerror() : nullptr;
    const auto* const function =
        module == nullptr ? nullptr : static_cast<const Sgemm*>(dlsym(module, "ranktune_cblas_sgemm"));
    if (function != nullptr) return *function;
    throw base::Error("cannot load the BLAS that the built-in trainable mlp computes with: " +
                      std::string(error != nullptr ? error : RANKTUNE_BLAS_MODULE " is not ranktune's") +
                      "; install " RANKTUNE_BLAS_MODULE " beside libranktune.so, and the library that it needs (" +
                      built_with() + "), or load the environment module of that library");
}

Sgemm sgemm() {
    static const Sgemm function = load();
    return function;
}

/// A function of the loaded library.
template <class Function>
Function* symbol(const char* name) {
    static_cast<void>(sgemm());
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// The file that cblas_sgemm comes from, without symbolic links.
std::string library_file() {
    Dl_info info{};
    if (dladdr(reinterpret_cast<void*>(sgemm()), &info) == 0 || info.dli_fname == nullptr) return {};
    const std::unique_ptr<char, decltype(&free)> resolved(realpath(info.dli_fname, nullptr), &free);
    return resolved ? resolved.get() : info.dli_fname;
}

bool is_reference(std::string_view file) {
    const std::string_view name = file.substr(file.rfind('/') + 1);
    return name.starts_with("libblas.") || name.starts_with("libcblas.") || name.starts_with("librefblas") ||
           name.starts_with("libgslcblas");
}

std::string flexiblas_backend() {
    auto* backend = symbol<int(char*, std::size_t)>("flexiblas_current_backend");
    char name[64] = "";
    if (backend == nullptr || backend(name, sizeof name) < 0) return {};
    return name;
}

std::string detect() {
    if (const std::string backend = flexiblas_backend(); !backend.empty())
        return backend == "NETLIB" ? "reference BLAS" : "FlexiBLAS (" + backend + ")";
    if (symbol<void(int)>("openblas_set_num_threads") != nullptr) return "OpenBLAS";
    if (symbol<void(int)>("MKL_Set_Num_Threads") != nullptr) return "MKL";
    if (symbol<void(long)>("bli_thread_set_num_threads") != nullptr) return "BLIS";
    if (symbol<void(int)>("armpl_set_num_threads") != nullptr) return "Arm Performance Libraries";
    return is_reference(library_file()) ? "reference BLAS" : "unknown BLAS";
}

} // namespace

void multiply(Transpose transpose_a, Transpose transpose_b, std::size_t m, std::size_t n, std::size_t k, const float* a,
              const float* b, float beta, float* c) {
    multiply(transpose_a, transpose_b, m, n, k, {a, transpose_a == Transpose::yes ? m : k},
             {b, transpose_b == Transpose::yes ? k : n}, beta, {c, n});
}

void multiply(Transpose transpose_a, Transpose transpose_b, std::size_t m, std::size_t n, std::size_t k,
              Block<const float> a, Block<const float> b, float beta, Block<float> c) {
    if (m == 0 || n == 0) return;
    if (k == 0) { // libraries differ in whether they scale C then
        for (std::size_t row = 0; row < m; ++row)
            for (float& value : std::span(c.data + row * c.stride, n)) value = beta == 0.0F ? 0.0F : beta * value;
        return;
    }
    sgemm()(row_major, cblas(transpose_a), cblas(transpose_b), extent(m), extent(n), extent(k), 1.0F, a.data,
            extent(a.stride), b.data, extent(b.stride), beta, c.data, extent(c.stride));
}

std::string built_with() { return RANKTUNE_BLAS_BUILT_WITH; }

std::string library() {
    static const std::string name = detect();
    return name;
}

void use_threads(int threads) {
    if (library() == "reference BLAS")
        throw base::Error(
            "the BLAS that ranktune is linked to (" + library_file() +
            ") is the reference implementation, which is 10 to 50 times slower than a tuned one; on Debian: apt-get "
            "install libopenblas0-pthread, elsewhere link OpenBLAS, BLIS or MKL");
    threads = std::max(threads, 1);
    if (auto* set = symbol<void(int)>("flexiblas_set_num_threads")) return set(threads);
    if (auto* set = symbol<void(int)>("openblas_set_num_threads")) return set(threads);
    if (auto* set = symbol<void(int)>("MKL_Set_Num_Threads")) return set(threads);
    if (auto* set = symbol<void(long)>("bli_thread_set_num_threads")) return set(threads);
    if (auto* set = symbol<void(int)>("armpl_set_num_threads")) return set(threads);
}

} // namespace ranktune::trainables::blas
