// SPDX-License-Identifier: Apache-2.0
#include "worker/trial_meter.hpp"

namespace ranktune::worker {
namespace {

/// NVIDIA's GPUs count their load over a sixth of a second to a second.
constexpr std::chrono::milliseconds between_samples{200};

} // namespace

TrialMeter::TrialMeter(bool on, std::vector<std::vector<std::string>> gpus_on_node, base::LogSink& log)
    : on_(on), gpus_on_node_(std::move(gpus_on_node)), log_(log) {}

void TrialMeter::start(const worker::Assignment& assignment) {
    runs_ = false;
    if (!on_ || !assignment.leads()) return;
    std::vector<std::string> names;
    for (const base::Rank rank : assignment.start.ranks)
        if (rank.value() < gpus_on_node_.size())
            names.insert(names.end(), gpus_on_node_[rank.value()].begin(), gpus_on_node_[rank.value()].end());
    if (names.empty()) return;
    if (!meter_ || names != measured_) {
        meter_ = std::make_unique<device::GpuMeter>(names);
        measured_ = std::move(names);
        if (!meter_->works())
            log_.write(base::LogLevel::warning, "gpu-metrics",
                       {{"text", "no NVIDIA driver shows the GPUs of the trial: its reports have no gpu/ metrics"}});
    }
    runs_ = meter_->works();
    if (runs_) static_cast<void>(meter_->take()); // what was before does not count
    next_ = Clock::now() + between_samples;
}

void TrialMeter::measure(std::optional<worker::RunnerEvent>& event) {
    if (!runs_) return;
    if (event) {
        if (std::holds_alternative<worker::RunnerEnded>(*event)) runs_ = false;
        auto* report = std::get_if<worker::RunnerReported>(&*event);
        if (report == nullptr) return;
        const device::GpuReading reading = meter_->take();
        report->metrics.push_back({"gpu/peak_MB", 1e-6 * reading.peak_bytes});
        report->metrics.push_back({"gpu/busy", reading.busy});
        report->metrics.push_back({"gpu/joules", reading.joules});
    } else if (const auto now = Clock::now(); now >= next_) {
        meter_->sample();
        next_ = now + between_samples;
    }
}

} // namespace ranktune::worker
