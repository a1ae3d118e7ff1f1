// SPDX-License-Identifier: Apache-2.0
#include "tuner/values/requests.hpp"

#include <algorithm>
#include <set>

#include "schedulers/checks.hpp"
#include "tuner/rules/causes.hpp"

namespace ranktune::tuner {

bool Requests::knows(std::uint64_t request) const { return std::ranges::find(numbers_, request) != numbers_.end(); }

const std::string* Requests::before(const std::string& key) const {
    const auto found = std::ranges::find(keys_, key);
    return found == keys_.end() ? nullptr : &before_[static_cast<std::size_t>(found - keys_.begin())];
}

void Requests::check_invariants() const {
    using schedulers::require;
    require(std::set(numbers_.begin(), numbers_.end()).size() == numbers_.size(), "a request took effect twice");
    require(std::set(keys_.begin(), keys_.end()).size() == keys_.size(), "a changed key is listed twice");
    require(keys_.size() == before_.size(), "a changed key has no value before");
    require(!numbers_.empty() || keys_.empty(), "a key was changed by nobody");
    require(!numbers_.empty() || (points_.empty() && created_ == 0), "a trial was added by nobody");
}

void Requests::take_effect(std::uint64_t request, const std::vector<space::Configuration>& points) {
    if (knows(request)) impossible("a request takes effect twice");
    numbers_.push_back(request);
    points_.insert(points_.end(), points.begin(), points.end());
}

void Requests::point_created() {
    if (points_.empty()) impossible("a trial was added by nobody");
    points_.pop_front();
    ++created_;
}

void Requests::changed(const std::string& key, const std::string& value) {
    if (before(key) != nullptr) return;
    keys_.push_back(key);
    before_.push_back(value);
}

void Requests::forget(const std::string& key) {
    const auto found = std::ranges::find(keys_, key);
    if (found == keys_.end()) return;
    before_.erase(before_.begin() + (found - keys_.begin()));
    keys_.erase(found);
}

} // namespace ranktune::tuner
