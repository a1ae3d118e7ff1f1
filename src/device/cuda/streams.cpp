// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/streams.hpp"

#include <cassert>
#include <string>

#include "device/cuda/check.hpp"
#include "device/cuda/kernels.hpp"

namespace ranktune::device::cuda {

bool is_sticky(cudaError_t code) {
    constexpr int tensor_memory_leak = 721; // older toolkits have no name for it
    if (static_cast<int>(code) == tensor_memory_leak) return true;
    switch (code) {
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorAssert:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorContained:
        case cudaErrorMpsClientTerminated:
        case cudaErrorExternalDevice:
            return true;
        default:
            return false;
    }
}

void check(cudaError_t code, const char* call) {
    if (code == cudaSuccess) return;
    static_cast<void>(cudaGetLastError()); // an error that is not sticky is forgotten
    if (code == cudaErrorMemoryAllocation)
        throw DeviceMemoryError(std::string("the memory of the GPU is full (") + call + ": " +
                                cudaGetErrorString(code) + ")");
    const bool lost = is_sticky(code);
    throw DeviceError(std::string("the GPU failed: ") + call + ": " + cudaGetErrorString(code) + " (" +
                          cudaGetErrorName(code) + ")" +
                          (lost ? "; it cannot be used again before this process ends" : ""),
                      lost);
}

bool is_complete(cudaError_t code, const char* call) {
    if (code != cudaErrorNotReady) return check(code, call), true;
    static_cast<void>(cudaGetLastError()); // or the next launch may return it
    return false;
}

CudaEvent::CudaEvent(int device, unsigned flags) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate");
}

CudaEvent::~CudaEvent() { cudaEventDestroy(event_); }

bool CudaEvent::reached() const { return is_complete(cudaEventQuery(event_), "cudaEventQuery"); }

double CudaEvent::seconds_since(const Event& earlier) const {
    float milliseconds = 0.0F;
    check(cudaEventElapsedTime(&milliseconds, static_cast<const CudaEvent&>(earlier).handle(), event_),
          "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
}

CudaGraph::CudaGraph(int device, cudaGraph_t recorded) {
    check(cudaSetDevice(device), "cudaSetDevice");
    check(cudaGraphInstantiate(&graph_, recorded, 0), "cudaGraphInstantiate");
}

CudaGraph::~CudaGraph() { cudaGraphExecDestroy(graph_); }

CudaStream::CudaStream(int device, MemoryBudget& budget) : device_(device), budget_(&budget) {
    use();
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

CudaStream::CudaStream(int device, MemoryBudget& budget, cudaStream_t borrowed)
    : device_(device), budget_(&budget), stream_(borrowed), owned_(false) {}

CudaStream::~CudaStream() {
    if (owned_) cudaStreamDestroy(stream_);
}

/// The current device is a property of the thread.
void CudaStream::use() const { check(cudaSetDevice(device_), "cudaSetDevice"); }

void CudaStream::record(Event& event) {
    use(); // a default stream has no name of its own: it is the current device's
    check(cudaEventRecord(static_cast<CudaEvent&>(event).handle(), stream_), "cudaEventRecord");
}

void CudaStream::wait(const Event& event) {
    use();
    check(cudaStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).handle(), 0), "cudaStreamWaitEvent");
}

bool CudaStream::idle() {
    use();
    return is_complete(cudaStreamQuery(stream_), "cudaStreamQuery");
}

void CudaStream::upload(void* to, const void* pinned, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync to the device");
}

void CudaStream::download(void* pinned, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync to the host");
}

void CudaStream::copy(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "cudaMemcpyAsync within the device");
}

void CudaStream::fill_zero(void* memory, std::size_t bytes) {
    if (bytes == 0) return;
    check(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemsetAsync");
}

void CudaStream::widen(float* to, const void* from, std::size_t count, base::DType from_type) {
    assert(base::size_of(from_type) == 2);
    use();
    check(launch_widen(to, from, count, from_type == base::DType::bfloat16, stream_), "widen");
}

void CudaStream::narrow(void* to, base::DType to_type, const float* from, std::size_t count) {
    assert(base::size_of(to_type) == 2);
    use();
    check(launch_narrow(to, from, count, to_type == base::DType::bfloat16, stream_), "narrow");
}

void CudaStream::add(float* to, const float* from, std::size_t count) {
    use();
    check(launch_add(to, from, count, stream_), "add");
}

void CudaStream::clip(float* values, std::size_t count, double most, double* numbers) {
    use();
    check(launch_clip(values, count, most, numbers, stream_), "clip");
}

void* CudaStream::allocate(std::size_t bytes) {
    if (bytes == 0) return nullptr;
    return budget_->room_for(bytes, [this](std::size_t size) {
        use();
        void* memory = nullptr;
        check(cudaMallocAsync(&memory, size, stream_),
              ("cudaMallocAsync of " + std::to_string(size) + " bytes").c_str());
        return memory;
    });
}

void CudaStream::release(void* memory) noexcept {
    if (memory == nullptr) return;
    budget_->give_back(memory);
    cudaFreeAsync(memory, stream_);
}

/// Other threads go on as they like: what they do has no part in this recording.
void CudaStream::begin_recording() {
    use();
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    recording_ = true;
}

std::unique_ptr<Graph> CudaStream::end_recording() {
    recording_ = false;
    cudaGraph_t recorded = nullptr;
    check(cudaStreamEndCapture(stream_, &recorded), "cudaStreamEndCapture");
    const std::unique_ptr<CUgraph_st, cudaError_t (*)(cudaGraph_t)> owner(recorded, &cudaGraphDestroy);
    return std::make_unique<CudaGraph>(device_, recorded);
}

void CudaStream::drop_recording() noexcept {
    if (!recording_) return;
    recording_ = false;
    cudaGraph_t recorded = nullptr;
    cudaStreamEndCapture(stream_, &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    static_cast<void>(cudaGetLastError());
}

void CudaStream::launch(Graph& graph) {
    use();
    check(cudaGraphLaunch(static_cast<CudaGraph&>(graph).handle(), stream_), "cudaGraphLaunch");
}

} // namespace ranktune::device::cuda
