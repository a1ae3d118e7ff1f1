// SPDX-License-Identifier: Apache-2.0
// Communicators over NCCL, always non-blocking:
// https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/communicators.html

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "device/cuda/accelerator.hpp"
#include "device/cuda/check.hpp"

namespace ranktune::device::cuda {

namespace {

static_assert(sizeof(ncclUniqueId) == sizeof(CommunicatorId::bytes));

/// NCCL has no code for a full memory: an error of CUDA, and a text.
[[noreturn]] void throw_nccl(ncclResult_t result, const char* call) {
    if (result == ncclUnhandledCudaError) {
        static_cast<void>(cudaGetLastError());
        const char* const text = ncclGetLastError(nullptr);
        if (text != nullptr && std::strstr(text, "out of memory") != nullptr)
            throw DeviceMemoryError(std::string("the memory of the GPU is full (") + call + ": " + text + ")");
    }
    const bool peer = result == ncclRemoteError;
    throw CommunicatorError(peer ? CommunicatorError::Cause::peer : CommunicatorError::Cause::system,
                            std::string("NCCL: ") + call + ": " + ncclGetErrorString(result) +
                                (peer ? "" : "; NCCL_DEBUG=WARN in the environment says more"));
}

void check_nccl(ncclResult_t result, const char* call) {
    if (result != ncclSuccess && result != ncclInProgress) throw_nccl(result, call);
}

ncclUniqueId native(const CommunicatorId& id) {
    ncclUniqueId result;
    std::memcpy(&result, id.bytes.data(), sizeof result);
    return result;
}

/// NCCL before 2.27 gives communicators no names.
template <class Config>
void set_name(Config& config, const char* name) {
    if constexpr (requires { config.commName = name; })
        config.commName = name;
    else
        static_cast<void>(name);
}

class NcclCommunicator final : public Communicator {
  public:
    NcclCommunicator(int device, const CommunicatorId& id, int size, int rank, const std::string& name)
        : device_(device), size_(size), name_(name) {
        check(cudaSetDevice(device), "cudaSetDevice");
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        set_name(config, name_.c_str());
        check_nccl(ncclCommInitRankConfig(&communicator_, size, native(id), rank, &config), "ncclCommInitRankConfig");
    }
    ~NcclCommunicator() override { abort(); }
    NcclCommunicator(const NcclCommunicator&) = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;

    [[nodiscard]] bool settled() override {
        ncclResult_t state = ncclSuccess;
        if (communicator_ == nullptr)
            throw CommunicatorError(CommunicatorError::Cause::system, "NCCL: the communicator was aborted");
        const ncclResult_t result = ncclCommGetAsyncError(communicator_, &state);
        if (result != ncclSuccess) throw_nccl(result, "ncclCommGetAsyncError");
        if (state == ncclInProgress) return false;
        if (state != ncclSuccess) throw_nccl(state, "an operation of the communicator");
        return true;
    }

    void sum(void* values, std::size_t count, base::DType type, Stream& stream) override {
        check(cudaSetDevice(device_), "cudaSetDevice");
        const ncclDataType_t native_type = type == base::DType::float64    ? ncclFloat64
                                           : type == base::DType::bfloat16 ? ncclBfloat16
                                                                           : ncclFloat32;
        check_nccl(ncclAllReduce(values, values, count, native_type, ncclSum, communicator_,
                                 static_cast<CudaStream&>(stream).handle()),
                   "ncclAllReduce");
    }

    void exchange(const void* parts, void* all, std::size_t bytes, Stream& stream) override {
        check(cudaSetDevice(device_), "cudaSetDevice");
        const cudaStream_t on = static_cast<CudaStream&>(stream).handle();
        const auto failed = [](ncclResult_t result) { return result != ncclSuccess && result != ncclInProgress; };
        check_nccl(ncclGroupStart(), "ncclGroupStart");
        ncclResult_t result = ncclSuccess;
        for (int rank = 0; rank < size_ && !failed(result); ++rank) {
            const std::size_t part = static_cast<std::size_t>(rank) * bytes;
            result = ncclSend(static_cast<const std::byte*>(parts) + part, bytes, ncclInt8, rank, communicator_, on);
            if (failed(result)) break;
            result = ncclRecv(static_cast<std::byte*>(all) + part, bytes, ncclInt8, rank, communicator_, on);
        }
        const ncclResult_t end = ncclGroupEnd(); // also after an error: groups belong to the thread
        check_nccl(result, "ncclSend or ncclRecv");
        check_nccl(end, "ncclGroupEnd");
    }

    void gather(const void* mine, void* all, std::size_t bytes, Stream& stream) override {
        check(cudaSetDevice(device_), "cudaSetDevice");
        check_nccl(ncclAllGather(mine, all, bytes, ncclInt8, communicator_, static_cast<CudaStream&>(stream).handle()),
                   "ncclAllGather");
    }

    void broadcast(void* values, std::size_t bytes, Stream& stream) override {
        check(cudaSetDevice(device_), "cudaSetDevice");
        check_nccl(
            ncclBroadcast(values, values, bytes, ncclInt8, 0, communicator_, static_cast<CudaStream&>(stream).handle()),
            "ncclBroadcast");
    }

    [[nodiscard]] bool close() override {
        if (communicator_ == nullptr) return true;
        check(cudaSetDevice(device_), "cudaSetDevice");
        if (!finalizing_) {
            check_nccl(ncclCommFinalize(communicator_), "ncclCommFinalize");
            finalizing_ = true;
        }
        if (!settled()) return false;
        const ncclComm_t done = communicator_;
        communicator_ = nullptr;
        check_nccl(ncclCommDestroy(done), "ncclCommDestroy");
        return true;
    }

    void abort() noexcept override {
        if (communicator_ == nullptr) return;
        cudaSetDevice(device_);
        ncclCommAbort(communicator_);
        communicator_ = nullptr;
    }

  private:
    int device_;
    int size_;
    std::string name_; ///< NCCL keeps the pointer
    ncclComm_t communicator_ = nullptr;
    bool finalizing_ = false;
};

} // namespace

std::unique_ptr<Communicator> make_nccl_communicator(int device, const CommunicatorId& id, int size, int rank,
                                                     const std::string& name) {
    return std::make_unique<NcclCommunicator>(device, id, size, rank, name);
}

CommunicatorId make_nccl_id() {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    CommunicatorId result;
    std::memcpy(result.bytes.data(), &id, sizeof id);
    return result;
}

int nccl_version() {
    int version = 0;
    return ncclGetVersion(&version) == ncclSuccess ? version : 0;
}

} // namespace ranktune::device::cuda
