// SPDX-License-Identifier: Apache-2.0
#pragma once
// What reads bytes that others wrote, each as a function of bytes: for libFuzzer (tools/fuzz) and for the test that
// replays the corpus. A target throws std::logic_error when a rule of its reader does not hold; errors that a reader
// throws on purpose end it quietly. Always returns 0.

#include <cstddef>
#include <cstdint>

namespace ranktune::fuzz {

/// Lines of a program: reports, checkpoints, logs.
int program(const std::uint8_t* data, std::size_t size);
/// A study file, and overrides behind zero bytes.
int study(const std::uint8_t* data, std::size_t size);
/// Records, and messages between the ranks.
int codec(const std::uint8_t* data, std::size_t size);
/// The segments of a journal, made as the bytes tell.
int journal(const std::uint8_t* data, std::size_t size);
/// What squeue and scontrol print, and Slurm's variables.
int slurm(const std::uint8_t* data, std::size_t size);

} // namespace ranktune::fuzz
