// SPDX-License-Identifier: Apache-2.0
// Captures and graphs of the stand-in. A graph knows what was ordered by streams and events while it was captured, and
// nothing else: its nodes run in any order that this allows, by chance.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "capture.hpp"
#include "failures.hpp"

namespace stand_in {

namespace {

struct Node {
    Operation operation;
    std::vector<std::size_t> after;
};

} // namespace

struct Capture {
    std::thread::id thread;
    const Stream* origin = nullptr;
    std::vector<Node> nodes;
    std::map<const Stream*, std::vector<std::size_t>> ends; ///< of the streams that take part: their last nodes
    cudaError_t broken = cudaSuccess;
};

namespace {

std::mutex captures_mutex; // of all captures
std::map<const Stream*, std::shared_ptr<Capture>>& captures() {
    static auto* const all = new std::map<const Stream*, std::shared_ptr<Capture>>;
    return *all;
}

/// In locked captures.
std::shared_ptr<Capture> find_capture(const Stream* stream) {
    const auto found = captures().find(stream);
    return found == captures().end() ? nullptr : found->second;
}

void merge(std::vector<std::size_t>& into, const std::vector<std::size_t>& from) {
    into.insert(into.end(), from.begin(), from.end());
    std::ranges::sort(into);
    into.erase(std::unique(into.begin(), into.end()), into.end());
}

/// Whether everything that other streams have captured comes before the end of the first one.
bool is_joined(const Capture& capture) {
    std::vector<bool> before(capture.nodes.size());
    std::vector<std::size_t> open = capture.ends.at(capture.origin);
    while (!open.empty()) {
        const std::size_t node = open.back();
        open.pop_back();
        if (before[node]) continue;
        before[node] = true;
        open.insert(open.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
    }
    return std::ranges::find(before, false) == before.end();
}

using Nodes = std::shared_ptr<const std::vector<Node>>;

/// The nodes in an order that is allowed, each late by chance.
void run_nodes(const std::vector<Node>& nodes, int device, unsigned number) {
    Delays delays(number);
    std::vector<bool> done(nodes.size());
    for (std::size_t left = nodes.size(); left > 0; --left) {
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < nodes.size(); ++i)
            if (!done[i] && std::ranges::all_of(nodes[i].after, [&](std::size_t other) { return done[other]; }))
                ready.push_back(i);
        const std::size_t node = ready[delays.chance() % ready.size()];
        const unsigned late = delays.next() + extra_time(nodes[node].operation.name);
        if (late > 0) std::this_thread::sleep_for(std::chrono::microseconds(late));
        if (has_failed(device)) return;
        try {
            nodes[node].operation.work();
        } catch (const Fault& fault) {
            throw Fault(nodes[node].operation.name + ": " + fault.what());
        }
        done[node] = true;
    }
}

Stream* stream_of(cudaStream_t stream) { return reinterpret_cast<Stream*>(stream); }
Nodes* nodes_of(cudaGraph_t graph) { return reinterpret_cast<Nodes*>(graph); }
Nodes* nodes_of(cudaGraphExec_t graph) { return reinterpret_cast<Nodes*>(graph); }

/// RANKTUNE_STAND_IN_CAPTURE: which call refuses.
bool refuses(const char* call) { return setting("CAPTURE", "") == call; }

} // namespace

bool is_captured(const Stream* stream) {
    const std::lock_guard lock(captures_mutex);
    return find_capture(stream) != nullptr;
}

void capture(const Stream* stream, Operation operation) {
    const std::lock_guard lock(captures_mutex);
    const auto capture = find_capture(stream);
    if (capture->broken != cudaSuccess) return;
    auto& ends = capture->ends.at(stream);
    capture->nodes.push_back({std::move(operation), ends});
    ends = {capture->nodes.size() - 1};
}

CapturedRecord record_in_capture(const Stream* stream) {
    const std::lock_guard lock(captures_mutex);
    const auto capture = find_capture(stream);
    return {capture, capture->ends.at(stream)};
}

cudaError_t wait_in_capture(const Stream* stream, const CapturedRecord& record) {
    const std::lock_guard lock(captures_mutex);
    const auto capture = find_capture(stream);
    const auto broken = [](Capture& of, cudaError_t code) { return of.broken = code; };
    if (capture && !record.capture) return broken(*capture, cudaErrorStreamCaptureIsolation);
    if (capture && capture != record.capture) return broken(*capture, cudaErrorStreamCaptureMerge);
    if (!capture && find_capture(record.capture->origin) != record.capture) return cudaErrorCapturedEvent; // it is over
    captures()[stream] = record.capture;
    merge(record.capture->ends[stream], record.after);
    return cudaSuccess;
}

cudaError_t break_capture(const Stream* stream, cudaError_t code) {
    const std::lock_guard lock(captures_mutex);
    if (const auto capture = find_capture(stream)) capture->broken = code;
    return code;
}

bool forbidden_by_capture() {
    const std::lock_guard lock(captures_mutex);
    bool found = false;
    for (const auto& [stream, capture] : captures()) {
        if (capture->thread != std::this_thread::get_id()) continue;
        capture->broken = cudaErrorStreamCaptureUnsupported;
        found = true;
    }
    return found;
}

} // namespace stand_in

using namespace stand_in;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    if (refuses("begin")) return answer(cudaErrorStreamCaptureUnsupported);
    if (mode != cudaStreamCaptureModeThreadLocal) return answer(cudaErrorInvalidValue); // the module uses no other
    const std::lock_guard lock(captures_mutex);
    if (find_capture(stream_of(stream))) return answer(cudaErrorIllegalState);
    auto capture = std::make_shared<Capture>();
    capture->thread = std::this_thread::get_id();
    capture->origin = stream_of(stream);
    capture->ends[stream_of(stream)] = {};
    captures()[stream_of(stream)] = std::move(capture);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
    *graph = nullptr;
    const std::lock_guard lock(captures_mutex);
    const auto capture = find_capture(stream_of(stream));
    if (!capture) return answer(cudaErrorIllegalState);
    if (capture->origin != stream_of(stream)) return answer(capture->broken = cudaErrorStreamCaptureUnmatched);
    if (capture->thread != std::this_thread::get_id()) return answer(cudaErrorStreamCaptureWrongThread);
    std::erase_if(captures(), [&](const auto& each) { return each.second == capture; });
    if (refuses("end")) return answer(cudaErrorStreamCaptureUnsupported);
    if (capture->broken != cudaSuccess) return answer(cudaErrorStreamCaptureInvalidated);
    if (!is_joined(*capture)) return answer(cudaErrorStreamCaptureUnjoined);
    *graph =
        reinterpret_cast<cudaGraph_t>(new Nodes(std::make_shared<const std::vector<Node>>(std::move(capture->nodes))));
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    delete nodes_of(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    if (flags != 0) return answer(cudaErrorInvalidValue);
    if (refuses("instantiate")) return answer(cudaErrorMemoryAllocation);
    *executable = reinterpret_cast<cudaGraphExec_t>(new Nodes(*nodes_of(graph)));
    return cudaSuccess;
}

/// Work that was launched goes on.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    delete nodes_of(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
    Stream* const on = stream_of(stream);
    const int device = device_of(on);
    if (has_failed(device)) return answer(cudaErrorIllegalAddress);
    if (is_captured(on)) return answer(break_capture(on, cudaErrorStreamCaptureUnsupported));
    const Nodes nodes = *nodes_of(graph);
    try {
        for (const Node& node : *nodes)
            if (node.operation.issue) node.operation.issue();
    } catch (const Fault& fault) {
        fail_device(device, fault.what());
        return answer(cudaErrorIllegalAddress);
    }
    static std::atomic<unsigned> launches{0};
    enqueue(on, "cudaGraphLaunch", [nodes, device, number = 1000 + ++launches] { run_nodes(*nodes, device, number); });
    return cudaSuccess;
}
}
