// SPDX-License-Identifier: Apache-2.0
#include "ranktune/ddp/comm_meter.hpp"

#include <chrono>

namespace ranktune::ddp {

void CommMeter::watch(GradientReducer& reducer) {
    reducer.set_clock(
        [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); });
    last_bytes_ = taken_bytes_ = reducer.traffic().bytes;
    taken_ = reducer.total_timing();
}

void CommMeter::after_step(const GradientReducer& reducer) {
    const std::uint64_t bytes = reducer.traffic().bytes;
    bytes_in_steps_ += bytes - last_bytes_;
    last_bytes_ = bytes;
    ++steps_;
}

namespace {

std::vector<std::pair<std::string, double>> metrics_of(double exposed_s, double bytes_per_s, double bytes) {
    return {{"comm/exposed_ms", 1e3 * exposed_s}, {"comm/GBps", 1e-9 * bytes_per_s}, {"comm/MB", 1e-6 * bytes}};
}

} // namespace

std::vector<std::pair<std::string, double>> CommMeter::of_one_rank() { return metrics_of(0.0, 0.0, 0.0); }

std::vector<std::pair<std::string, double>> CommMeter::take(const GradientReducer& reducer) {
    const double steps = static_cast<double>(steps_ > 0 ? steps_ : 1);
    const GradientReducer::Timing total = reducer.total_timing();
    const double in_flight_s = total.in_flight_s - taken_.in_flight_s;
    const double speed = in_flight_s > 0.0 ? static_cast<double>(bytes_in_steps_) / in_flight_s : 0.0;
    const std::uint64_t bytes = reducer.traffic().bytes;
    auto metrics =
        metrics_of((total.waited_s - taken_.waited_s) / steps, speed, static_cast<double>(bytes - taken_bytes_));
    taken_ = total;
    steps_ = bytes_in_steps_ = 0;
    last_bytes_ = taken_bytes_ = bytes;
    return metrics;
}

} // namespace ranktune::ddp
