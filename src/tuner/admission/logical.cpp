// SPDX-License-Identifier: Apache-2.0
#include "tuner/admission/logical.hpp"

#include <cassert>

namespace ranktune::tuner {

std::uint32_t LogicalTime::enter(TrialId trial, Iteration received) {
    assert(!empty_.empty());
    const std::uint32_t position = *empty_.begin();
    empty_.erase(empty_.begin());
    LogicalSlot& slot = slots_[position];
    slot.trial = trial;
    slot.clock = now_;
    slot.received = received;
    busy_.insert(key(position));
    return position;
}

void LogicalTime::admit(std::uint32_t position) {
    const UnitKey before = key(position);
    busy_.erase(before);
    needy_.erase(before);
    parked_.erase(before);
    slots_[position].clock = now_ = before.end;
    busy_.insert(key(position));
}

void LogicalTime::leave(std::uint32_t position) {
    const UnitKey before = key(position);
    busy_.erase(before);
    needy_.erase(before);
    parked_.erase(before);
    LogicalSlot& slot = slots_[position];
    slot.trial.reset();
    slot.received = 0;
    slot.held.clear();
    slot.end.reset();
    empty_.insert(position);
}

void LogicalTime::put(std::set<UnitKey>& set, std::uint32_t position, bool in) {
    if (in)
        set.insert(key(position));
    else
        set.erase(key(position));
}

void LogicalTime::restored(double now, std::vector<LogicalSlot> slots) {
    now_ = now;
    slots_ = std::move(slots);
    rebuild();
}

void LogicalTime::rebuild() {
    busy_.clear();
    empty_.clear();
    needy_.clear();
    parked_.clear();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].trial)
            busy_.insert(key(i));
        else
            empty_.insert(i);
    }
}

} // namespace ranktune::tuner
