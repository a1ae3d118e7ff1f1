// SPDX-License-Identifier: Apache-2.0
// Instead of nccl.cpp, in builds without NCCL: a trial has one GPU.

#include "device/cuda/accelerator.hpp"

namespace ranktune::device::cuda {

namespace {

constexpr const char* no_nccl = "this build has no NCCL, so a trial can use one GPU (meson -Dnccl=enabled)";

} // namespace

std::unique_ptr<Communicator> make_nccl_communicator(int, const CommunicatorId&, int, int, const std::string&) {
    throw base::UsageError(no_nccl);
}

CommunicatorId make_nccl_id() { throw base::UsageError(no_nccl); }

int nccl_version() { return 0; }

} // namespace ranktune::device::cuda
