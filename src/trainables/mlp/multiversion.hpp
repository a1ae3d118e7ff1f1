// SPDX-License-Identifier: Apache-2.0
#pragma once
// RANKTUNE_MULTIVERSION: compiles a function for several x86-64 instruction sets, chosen when the program is loaded, so
// that one package serves every CPU. Results may differ in the last bits between CPUs of different sets (fused
// multiply-add), never between runs on one. Off under ASan and TSan, whose run-time is not ready when the choice is
// made, and where the tool chain cannot do it.

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define RANKTUNE_MULTIVERSION __attribute__((target_clones("default", "arch=haswell", "arch=skylake-avx512")))
#else
#define RANKTUNE_MULTIVERSION
#endif
