// SPDX-License-Identifier: Apache-2.0
#include "ddp/gradients/device_timer.hpp"

#include <algorithm>
#include <utility>

#include "comm/backoff.hpp"

namespace ranktune::ddp {

DeviceTimer::Step DeviceTimer::fresh() {
    if (spare_.empty())
        return {on_.make_timed_event(), on_.make_timed_event(), on_.make_timed_event(), on_.make_timed_event()};
    Step step = std::move(spare_.back());
    spare_.pop_back();
    return step;
}

void DeviceTimer::begin() {
    collect();
    if (!open_.begun) open_ = fresh();
    has_sums_ = joined_ = false;
}

void DeviceTimer::sums() {
    if (has_sums_) return;
    on_.compute_stream().record(*open_.begun);
    has_sums_ = true;
}

void DeviceTimer::joins() {
    if (!has_sums_) return;
    on_.compute_stream().record(*open_.computed);
    on_.communication_stream().record(*open_.summed);
    joined_ = true;
}

void DeviceTimer::ends() {
    if (!joined_) return;
    on_.compute_stream().record(*open_.resumed);
    ended_.push_back(std::move(open_));
    open_ = {};
    has_sums_ = joined_ = false;
}

void DeviceTimer::collect() {
    while (!ended_.empty() && ended_.front().resumed->reached()) {
        Step& step = ended_.front();
        total_.in_flight_s += step.summed->seconds_since(*step.begun);
        total_.waited_s += std::max(0.0, step.resumed->seconds_since(*step.computed));
        spare_.push_back(std::move(step));
        ended_.pop_front();
    }
}

GradientReducer::Timing DeviceTimer::total(const std::function<void()>& look) {
    comm::Backoff backoff;
    for (collect(); !ended_.empty(); collect()) {
        look();
        backoff.pause();
    }
    return total_;
}

} // namespace ranktune::ddp
