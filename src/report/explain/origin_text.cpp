// SPDX-License-Identifier: Apache-2.0
#include "report/explain/origin_text.hpp"

#include <fmt/format.h>

#include "report/screens/text.hpp"

namespace ranktune::report {
namespace {

std::string request_text(const OriginView& origin) {
    if (origin.who.empty()) return "asked for by a user";
    return fmt::format("asked for by {} at {}: {}", printable(origin.who), short_duration(origin.asked_s),
                       printable(origin.asked));
}

/// A Sobol point of a model's searcher has a model of another name, and a note that says why.
std::string suggestion_text(const OriginView& origin, const std::string& searcher, const std::string& metric) {
    std::string text = origin.origin.kind == study::Origin::Kind::ticket ? "prepared by " : "suggested by ";
    text += searcher;
    if (!origin.model.empty() && origin.model != searcher) text += " (" + printable(origin.model) + ")";
    if (origin.results > 0) text += " from " + counted(origin.results, "result");
    if (origin.expected) text += fmt::format("; expected {} {}", metric, metric_text(*origin.expected));
    if (origin.gain) text += "; log of its acquisition " + metric_text(*origin.gain);
    if (!origin.note.empty()) text += "; " + printable(origin.note);
    return text;
}

std::string stopgap_text(const OriginView& origin) {
    if (origin.origin.count == 0) return "no suggestion was ready";
    return "the searcher " + failure_text(origin.origin.count, unbroken(printable(first_line(origin.failure))));
}

} // namespace

std::string failure_text(std::uint32_t failures, const std::string& why) {
    return (failures > 1 ? fmt::format("failed {} times in a row, at last: ", failures) : "failed: ") + why;
}

std::string origin_text(const OriginView& origin, const std::string& searcher, const std::string& metric) {
    using Kind = study::Origin::Kind;
    switch (origin.origin.kind) {
        case Kind::searcher:
        case Kind::ticket:
            return suggestion_text(origin, searcher, metric);
        case Kind::stopgap:
            return fmt::format("a stopgap of {}: {}", searcher, stopgap_text(origin));
        case Kind::start:
            return fmt::format("point {} of [[searcher.start]]", origin.origin.index + 1);
        case Kind::user:
            return request_text(origin);
        case Kind::repeat:
            return fmt::format("repeat {} of #{}", origin.origin.count, origin.origin.index);
    }
    return {};
}

std::string origin_text(const StudyView& view, study::TrialId trial) {
    const auto own = [&](study::TrialId id) {
        const OriginView origin = view.origins.of(id, view.trials.at(id.value()).origin, view.mode);
        return origin_text(origin, view.searcher, view.metric);
    };
    const study::Origin& origin = view.trials.at(trial.value()).origin;
    if (origin.kind != study::Origin::Kind::repeat) return own(trial);
    return own(trial) + ": " + own(study::TrialId{static_cast<std::uint32_t>(origin.index)});
}

std::string changes_text(const space::Configuration& before, const space::Configuration& after) {
    std::string text;
    for (const auto& entry : after.entries()) {
        const auto* value = before.find(entry.name);
        if (value != nullptr && *value == entry.value) continue;
        text += fmt::format(", {} {} -> {}", entry.name, value == nullptr ? "-" : value_text(*value),
                            value_text(entry.value));
    }
    return text;
}

} // namespace ranktune::report
