// SPDX-License-Identifier: Apache-2.0
// From what a file holds to configurations of this study's space.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ranktune/base/text.hpp"
#include "space/foreign_value.hpp"
#include "studydir/earlier/found.hpp"

namespace ranktune::studydir {
namespace {

/// The configuration that is meant, or why the space has none.
struct Fitted {
    std::optional<space::Configuration> configuration;
    std::string why;
};

Fitted fitted(const space::Configuration& values, const space::SearchSpace& space) {
    Fitted result;
    const auto stand_in = [](const space::Parameter& parameter) { return space::value_at(parameter.domain, 0); };
    auto configuration = space.assemble([&](std::size_t i) -> space::Value {
        const space::Parameter& parameter = space.parameters()[i];
        const space::Value* given = values.find(parameter.name);
        const auto* constant = std::get_if<space::Constant>(&parameter.domain);
        if (given == nullptr && constant != nullptr) return constant->value;
        if (given == nullptr) {
            if (result.why.empty()) result.why = "without " + parameter.name;
            return stand_in(parameter);
        }
        const space::Value value = given->is_string()
                                       ? space::as_meant(parameter.domain, std::string_view(given->as_string()))
                                       : space::as_meant(parameter.domain, *given);
        if (space::contains(parameter.domain, value)) return value;
        if (result.why.empty()) result.why = parameter.name + " outside " + space::text(parameter.domain);
        return stand_in(parameter);
    });
    if (result.why.empty()) result.configuration = std::move(configuration);
    return result;
}

/// A hyper-parameter that every configuration has must be in the file.
void check_names(const Found& found, const study::WarmSource& source, const space::SearchSpace& space) {
    std::vector<std::string> missing;
    for (const space::Parameter& parameter : space.parameters()) {
        const bool needed = !parameter.condition && !std::holds_alternative<space::Constant>(parameter.domain);
        if (needed && !found.names.contains(parameter.name)) missing.push_back(parameter.name);
    }
    if (missing.empty()) return;
    constexpr std::size_t shown = 20;
    std::string has = base::join_some({found.names.begin(), found.names.end()}, shown);
    refuse(source, "has no values of " + base::join(missing) + ", which [space] has; names must be the same" +
                       (has.empty() ? "" : "; the file has " + has));
}

/// Results at iterations that this study has, ascending; of an iteration that is there twice, the first one.
std::vector<study::EarlierTrial::Result> within(std::vector<study::EarlierTrial::Result> results,
                                                base::Iteration ceiling) {
    using Result = study::EarlierTrial::Result;
    std::erase_if(results, [&](const Result& result) { return result.iteration < 1 || result.iteration > ceiling; });
    std::ranges::stable_sort(results, {}, &Result::iteration);
    const auto same = [](const Result& a, const Result& b) { return a.iteration == b.iteration; };
    results.erase(std::unique(results.begin(), results.end(), same), results.end());
    return results;
}

/// "left out: 2 trials (lr outside uniform(0.0, 1.0)), 1 trial (no result)"
std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out) {
    std::string text;
    for (const auto& [why, count] : left_out)
        text += (text.empty() ? "left out: " : ", ") + base::counted(count, "trial") + " (" + why + ")";
    return text;
}

/// Values of other hyper-parameters, which may have influenced the results.
std::string ignored_text(const Found& found, const space::SearchSpace& space) {
    if (found.only_known_names) return {};
    std::vector<std::string> ignored;
    for (const std::string& name : found.names)
        if (space.find(name) == nullptr) ignored.push_back(name);
    constexpr std::size_t shown = 5;
    return ignored.empty() ? "" : "ignored, because [space] lacks it: " + base::join_some(ignored, shown);
}

} // namespace

study::WarmStarted::Source fit(Found found, const study::WarmSource& source, const study::StudySpec& spec,
                               std::vector<study::EarlierTrial>& out) {
    study::WarmStarted::Source told{source.path, 0, 0, {}};
    if (!found.trials.empty()) check_names(found, source, spec.space);
    std::map<std::string, std::uint64_t> left_out;
    for (FoundTrial& each : found.trials) {
        const FoundTrial trial = std::exchange(each, {});
        Fitted one = fitted(trial.values, spec.space);
        auto results = within(trial.results, spec.max_iterations);
        if (one.configuration && results.empty() && !trial.failed)
            one.why = trial.results.empty() ? "no result"
                                            : "no result at iterations 1 to " + std::to_string(spec.max_iterations);
        if (!one.why.empty()) {
            ++told.left_out;
            ++left_out[one.why];
            continue;
        }
        ++told.trials;
        results.shrink_to_fit();
        out.push_back({std::move(*one.configuration), std::move(results), trial.failed});
        out.back().configuration.share_names(out.front().configuration);
    }
    told.why = left_out_text(left_out);
    if (const std::string ignored = ignored_text(found, spec.space); !ignored.empty())
        told.why += (told.why.empty() ? "" : "; ") + ignored;
    return told;
}

} // namespace ranktune::studydir
