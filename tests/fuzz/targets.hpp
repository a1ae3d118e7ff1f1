// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fuzz targets, one for each reader of untrusted bytes: for libFuzzer (tools/fuzz) and for the test that replays the
// corpus. A target throws std::logic_error when a rule of its reader is violated; it catches the errors that the reader
// throws for invalid input. Always returns 0.

#include <cstddef>
#include <cstdint>

namespace ranktune::fuzz {

/// Lines of a program: reports, checkpoints, logs.
int program(const std::uint8_t* data, std::size_t size);
/// The head of a request to the live pages.
int request(const std::uint8_t* data, std::size_t size);
/// A study file and overrides, separated by zero bytes.
int study(const std::uint8_t* data, std::size_t size);
/// Records, and messages between the ranks.
int codec(const std::uint8_t* data, std::size_t size);
/// The segments of a journal, built from instructions in the bytes.
int journal(const std::uint8_t* data, std::size_t size);
/// Output of squeue and scontrol, and Slurm's variables.
int slurm(const std::uint8_t* data, std::size_t size);

} // namespace ranktune::fuzz
