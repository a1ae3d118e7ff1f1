// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/timeline.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ranktune::ddp {

namespace {

/// Length of the union of the spans.
double covered(std::vector<Span> spans) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    double total = 0.0;
    double reached = spans.empty() ? 0.0 : spans.front().begin;
    for (const Span& span : spans) {
        total += std::max(0.0, span.end - std::max(span.begin, reached));
        reached = std::max(reached, span.end);
    }
    return total;
}

/// Quotes and backslashes in names must not break the document.
std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return result;
}

void append_lane(std::string& json, const std::vector<Span>& spans, const char* lane, int rank, int thread) {
    char line[160];
    std::snprintf(line, sizeof line,
                  R"({"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":"%s"}},)"
                  "\n",
                  rank, thread, lane);
    json += line;
    for (const Span& span : spans) {
        std::snprintf(line, sizeof line, R"(","ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f},)", rank, thread,
                      span.begin * 1e6, (span.end - span.begin) * 1e6);
        json += R"({"name":")" + escaped(span.name) + line + "\n";
    }
}

} // namespace

Timeline::Timeline(std::function<double()> clock, std::size_t capacity)
    : clock_(std::move(clock)), capacity_(capacity) {}

void Timeline::add(std::vector<Span>& lane, std::string name, double begin, double end) {
    if (lane.size() < capacity_) lane.push_back({std::move(name), begin, end});
}

double Timeline::Summary::hidden() const { return in_flight_s > 0.0 ? 1.0 - waited_s / in_flight_s : 1.0; }

Timeline::Summary Timeline::summary() const { return {covered(reductions_), covered(waits_)}; }

std::string Timeline::chrome_trace(int rank) const {
    std::string json = "{\"traceEvents\":[\n";
    append_lane(json, compute_, "compute", rank, 0);
    append_lane(json, reductions_, "reductions", rank, 1);
    append_lane(json, waits_, "waiting", rank, 2);
    json += R"({"name":"process_name","ph":"M","pid":)" + std::to_string(rank) + R"(,"args":{"name":"rank )" +
            std::to_string(rank) + "\"}}\n]}\n";
    return json;
}

} // namespace ranktune::ddp
