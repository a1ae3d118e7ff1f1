// SPDX-License-Identifier: Apache-2.0
#include "searchers/external.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/study/schema.hpp"

namespace ranktune::searchers {

study::SearcherInfo describe_external();

namespace {

/// A point of the sequence, or a random one if the space has too many parameters.
space::Configuration spread_point(const space::SearchSpace& space, const std::optional<models::Sobol>& sequence,
                                  std::uint64_t seed, std::uint64_t index) {
    const auto number = static_cast<std::uint32_t>(index);
    return sequence ? space.spread(sequence->point(number), index, seed) : space.sample(seed, base::TrialId{number});
}

std::optional<models::Sobol> sequence_of(const space::SearchSpace& space, std::uint64_t seed) {
    if (space.dimensions() > models::Sobol::max_dimensions) return std::nullopt;
    return models::Sobol(space.dimensions(), seed);
}

} // namespace

// ---- the question

space::Configuration ExternalQuestion::operator()() const {
    const std::uint64_t other = base::RngStream(setting->seed, base::Purpose::suggest, 0, 1)();
    return spread_point(setting->space, sequence_of(setting->space, other), other, ticket);
}

space::Configuration ExternalQuestion::configuration_at(std::size_t line) const {
    const Observation& asked = seen[line];
    const space::Configuration& first = trials[asked.trial.value()].configuration;
    const std::vector<double> unit = seen.point(asked.point);
    std::vector<double> own = setting->space.encode(first);
    const bool unchanged = std::ranges::equal(unit, own, [](double a, double b) { return !(a == a) || a == b; });
    if (unchanged) return first;
    std::size_t next = 0;
    std::vector<std::size_t> coordinate;
    for (const space::Parameter& parameter : setting->space.parameters())
        coordinate.push_back(space::has_coordinate(parameter.domain) ? next++ : 0);
    return setting->space.assemble([&](std::size_t i) -> space::Value {
        const space::Parameter& parameter = setting->space.parameters()[i];
        const space::Value* kept = first.find(parameter.name);
        if (!space::has_coordinate(parameter.domain) && kept != nullptr) return *kept;
        const double x = space::has_coordinate(parameter.domain) ? unit[coordinate[i]] : 0.5;
        return space::decode(parameter.domain, x == x ? x : 0.5);
    });
}

// ---- the searcher

ExternalSearcher::ExternalSearcher(const study::StudySpec& spec)
    : spec_(spec), sequence_(sequence_of(spec.space, spec.seed)) {}

std::optional<space::Configuration> ExternalSearcher::suggest(std::uint64_t index, const Observations&) const {
    return spread_point(spec_.space, sequence_, spec_.seed, index);
}

std::uint32_t ExternalSearcher::prepares_ahead(std::uint32_t groups, const Observations& /*seen*/) const {
    constexpr std::uint32_t most = 16;
    return failures_ >= most_failures ? 0 : std::clamp((groups + 3) / 4, 1U, most);
}

Searcher::Preparation ExternalSearcher::prepare(std::uint64_t ticket, Observations seen) const {
    const auto text = [&](std::string_view name) { return spec_.searcher.options.at(name).as_string(); };
    auto setting =
        std::make_shared<const ExternalSetting>(ExternalSetting{.command = text("command"),
                                                                .directory = text("directory"),
                                                                .timeout = study::parse_duration(text("timeout")),
                                                                .study = spec_.name,
                                                                .seed = spec_.seed,
                                                                .objective = spec_.objective,
                                                                .num_trials = spec_.num_trials,
                                                                .max_iterations = spec_.max_iterations,
                                                                .space = spec_.space});
    return ExternalQuestion{std::move(setting), ticket, std::move(seen), trials_.first(trials_.size())};
}

void ExternalSearcher::apply(const study::Record& record) {
    if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
        const bool prepared = created->origin.kind == study::Origin::Kind::ticket;
        trials_.push_back({created->configuration, prepared ? std::optional(created->origin.index) : std::nullopt});
    } else if (const auto* prepared = std::get_if<study::TicketPrepared>(&record)) {
        failures_ = prepared->configuration ? 0 : failures_ + 1;
    } else if (std::holds_alternative<study::IncarnationBegan>(record)) {
        failures_ = 0;
    }
}

void ExternalSearcher::snapshot(study::Encoder& out) const {
    out.u8(1);
    out.varint(failures_);
    out.varint(trials_.size());
    for (std::size_t i = 0; i < trials_.size(); ++i) study::put(out, trials_[i]);
}

void ExternalSearcher::restore(study::Decoder& in) {
    if (in.u8() != 1) throw base::FormatError("a snapshot of \"external\" has an unknown version");
    failures_ = static_cast<std::uint32_t>(in.varint());
    trials_ = {};
    for (std::size_t n = in.count(); n > 0; --n) trials_.push_back(study::decoded<ExternalTrial>(in));
}

bool stops_on_failure(const study::SearcherSpec& searcher) {
    const space::Value* wish = searcher.options.find("on_failure");
    return wish != nullptr && wish->is_string() && wish->as_string() == "stop";
}

// ---- the description

namespace {

using ExternalKind = study::OptionInfo::Kind;

std::vector<study::AlgorithmOption> external_options() {
    return {
        {.name = "command",
         .kind = ExternalKind::string,
         .standard = "python3 search.py",
         .description = "The program and its arguments, for `/bin/sh -c`. It runs beside the head.",
         .takes = "command",
         .may_change = true},
        {.name = "directory",
         .kind = ExternalKind::path,
         .standard = ".",
         .description = "Working directory of the program; `.` is that of the study file.",
         .takes = "path",
         .may_change = true},
        {.name = "timeout",
         .kind = ExternalKind::string,
         .standard = "1m",
         .description = "How long an answer may take; the first one includes the start of the program. A program that "
                        "takes longer is ended.",
         .takes = "duration",
         .may_change = true},
        {.name = "on_failure",
         .kind = ExternalKind::string,
         .standard = "sobol",
         .description = "After a wrong or late answer: `sobol` tries a Sobol point and restarts the program, three "
                        "times in a row; `stop` stops the study.",
         .accepted = {"sobol", "stop"},
         .may_change = true},
    };
}

void check_external(const study::AlgorithmCheck& check) {
    if (check.is_right("command") && check.options.at("command").as_string().empty() && check.reads_file)
        check.complain("command", "needs the program that makes the suggestions, such as \"python3 search.py\"");
    if (!check.is_right("timeout")) return;
    try {
        if (study::parse_duration(check.options.at("timeout").as_string()) <= base::Duration::zero())
            check.complain("timeout", "needs more than no time, such as \"1m\"");
    } catch (const base::UsageError& error) {
        check.complain("timeout", error.what());
    }
}

std::unique_ptr<Searcher> make_external(const study::StudySpec& spec) {
    return std::make_unique<ExternalSearcher>(spec);
}

} // namespace

study::SearcherInfo describe_external() {
    study::SearcherInfo info;
    info.name = "external";
    info.description =
        "a program of your own makes the suggestions, in lines of JSON: Optuna, Ax, Nevergrad, a script.";
    info.options = external_options();
    info.foreign_names = {"optuna", "ax", "nevergrad", "ask-tell"};
    info.several_objectives = true;
    info.check = check_external;
    info.not_deterministic =
        study::NotDeterministic{.why = ": another run of the program may answer otherwise; use \"tpe\" or \"gp\""};
    info.runs_program = true;
    info.make = make_external;
    return info;
}

} // namespace ranktune::searchers
