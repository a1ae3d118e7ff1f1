// SPDX-License-Identifier: Apache-2.0
#pragma once
// RANKTUNE_MULTIVERSION: compiles a function for several x86-64 instruction sets and selects one at load time, so that
// one package serves every CPU. Results may differ in the last bits between CPUs with different sets (fused
// multiply-add), never between runs on one. Off under ASan and TSan, whose run-time is not initialised at that time,
// and where the tool chain does not support it.

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RANKTUNE_MULTIVERSION __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define RANKTUNE_MULTIVERSION
#endif
