// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stream and Event over CUDA.

#include <cuda_runtime_api.h>

#include <cstddef>

#include "device/cuda/budget.hpp"
#include "device/device.hpp"

namespace ranktune::device::cuda {

class CudaEvent final : public Event {
  public:
    /// `flags`: without cudaEventDisableTiming it is slower.
    explicit CudaEvent(int device, unsigned flags = cudaEventDisableTiming);
    ~CudaEvent() override;
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;

    [[nodiscard]] bool reached() const override;
    [[nodiscard]] double seconds_since(const Event& earlier) const override;
    [[nodiscard]] cudaEvent_t handle() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

class CudaGraph final : public Graph {
  public:
    /// Takes nothing from `recorded`, which may be destroyed.
    CudaGraph(int device, cudaGraph_t recorded);
    ~CudaGraph() override;
    CudaGraph(const CudaGraph&) = delete;
    CudaGraph& operator=(const CudaGraph&) = delete;

    [[nodiscard]] cudaGraphExec_t handle() const { return graph_; }

  private:
    cudaGraphExec_t graph_ = nullptr;
};

/// Does not synchronise with the default stream, which only other libraries use.
class CudaStream final : public Stream {
  public:
    /// `budget` outlives the stream.
    CudaStream(int device, MemoryBudget& budget);
    /// A stream that another library owns; null: the default stream.
    CudaStream(int device, MemoryBudget& budget, cudaStream_t borrowed);
    ~CudaStream() override;
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;

    void record(Event& event) override;
    void wait(const Event& event) override;
    [[nodiscard]] bool idle() override;
    [[nodiscard]] void* native() const override { return stream_; }
    void upload(void* to, const void* pinned, std::size_t bytes) override;
    void download(void* pinned, const void* from, std::size_t bytes) override;
    void copy(void* to, const void* from, std::size_t bytes) override;
    void fill_zero(void* memory, std::size_t bytes) override;
    void widen(float* to, const void* from, std::size_t count, base::DType from_type) override;
    void narrow(void* to, base::DType to_type, const float* from, std::size_t count) override;
    void add(float* to, const float* from, std::size_t count) override;
    void clip(float* values, std::size_t count, double most, double* numbers) override;
    [[nodiscard]] void* allocate(std::size_t bytes) override;
    void release(void* memory) noexcept override;
    void begin_recording() override;
    [[nodiscard]] std::unique_ptr<Graph> end_recording() override;
    void drop_recording() noexcept override;
    void launch(Graph& graph) override;

    [[nodiscard]] cudaStream_t handle() const { return stream_; }

  private:
    void use() const;

    int device_;
    MemoryBudget* budget_;
    cudaStream_t stream_ = nullptr;
    bool owned_ = true;
    bool recording_ = false;
};

} // namespace ranktune::device::cuda
