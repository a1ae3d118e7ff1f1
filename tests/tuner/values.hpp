// SPDX-License-Identifier: Apache-2.0
#pragma once
// Helpers for tests of the core's values: snapshots as bytes, and messages of errors.

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranktune/study/schema.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "tuner/state.hpp"

namespace ranktune::tuner::testing {

/// The values, one after the other, as in a snapshot.
[[nodiscard]] study::Bytes written(const auto&... values) {
    study::Bytes bytes;
    study::Encoder out(bytes);
    (study::put(out, values), ...);
    return bytes;
}

/// `value` takes all of the bytes.
void read_back(const study::Bytes& bytes, auto& value) {
    study::Decoder in(bytes);
    study::get(in, value);
    CHECK(in.empty());
}

/// The X of the error "the journal contradicts itself: X. It was written by ..." that `act` throws.
template <class Act>
[[nodiscard]] std::string contradiction(Act act) {
    const std::string text = ranktune::testing::error_of<base::FormatError>(act);
    const std::string begin = "the journal contradicts itself: ";
    const std::size_t end = text.find(". It was written by another version");
    if (!text.starts_with(begin) || end == std::string::npos) return text;
    return text.substr(begin.size(), end - begin.size());
}

/// The invariant that `value.check_invariants(more...)` finds broken; empty: all hold.
template <class Value, class... More>
[[nodiscard]] std::string broken(const Value& value, const More&... more) {
    return ranktune::testing::error_of<std::logic_error>([&] { value.check_invariants(more...); });
}

[[nodiscard]] inline StudyTime at_second(double seconds) {
    return StudyTime{std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds))};
}
[[nodiscard]] inline std::vector<Rank> ranks(const std::vector<std::uint32_t>& numbers) {
    std::vector<Rank> all;
    for (const std::uint32_t number : numbers) all.emplace_back(number);
    return all;
}
/// Ranks 1, 2, ... on these hosts.
[[nodiscard]] inline std::vector<RankInfo> workers_on(const std::vector<std::string>& hosts) {
    std::vector<RankInfo> infos;
    for (const auto& host : hosts) infos.push_back({Rank{static_cast<std::uint32_t>(infos.size() + 1)}, host, 0});
    return infos;
}
/// Ranks 1, 2, ... on these hosts, with these GPUs ("": none).
[[nodiscard]] inline std::vector<RankInfo> workers_with(
    const std::vector<std::pair<std::string, std::string>>& places) {
    std::vector<RankInfo> infos;
    for (const auto& [host, device] : places) {
        infos.push_back({Rank{static_cast<std::uint32_t>(infos.size() + 1)}, host, device.empty() ? 0U : 1U});
        infos.back().device = device;
    }
    return infos;
}
[[nodiscard]] inline Trial in_phase(TrialPhase phase) {
    Trial t;
    t.phase = phase;
    t.attempt.live = phase == TrialPhase::running;
    t.last = t.best = not_a_number;
    return t;
}
/// What it was judged has taken effect, and its attempt saves a state.
[[nodiscard]] inline Trial winding_down(TrialPhase phase) {
    Trial t = in_phase(phase);
    t.attempt.live = true;
    return t;
}

} // namespace ranktune::tuner::testing
