// SPDX-License-Identifier: Apache-2.0
#include "simulate/model.hpp"

#include <algorithm>
#include <limits>

#include "ranktune/study/parse.hpp"
#include "study/parse/checker.hpp"
#include "study/parse/key_table.hpp"
#include "study/parse/toml_tree.hpp"

namespace ranktune::simulate {
namespace {

constexpr double longest_s = 1e7;

void take(study::TableReader& table, const char* key, double& value, double low, double high) {
    value = table.number(key, low, high).value_or(value);
}

void read_curves(study::TableReader table, CurveModel& curves) {
    take(table, "best", curves.best, 0.0, 1.0);
    take(table, "worst", curves.worst, 0.0, 1.0);
    take(table, "start", curves.start, 0.0, 1.0);
    take(table, "roughness", curves.roughness, 0.0, 1.0);
    take(table, "slowest", curves.slowest, 0.01, 10.0);
    take(table, "fastest", curves.fastest, 0.01, 10.0);
    take(table, "crossing", curves.crossing, 0.0, 1.0);
    take(table, "noise", curves.noise, 0.0, 1.0);
    take(table, "forgetting", curves.forgetting, 0.0, 1.0);
    if (const auto seed = table.integer("seed", 0, std::numeric_limits<std::int64_t>::max()))
        curves.seed = static_cast<std::uint64_t>(*seed);
    if (curves.worst > curves.best) table.complain("worst", "is larger than curves.best");
    if (curves.start >= curves.worst) table.complain("start", "has to be smaller than curves.worst");
    if (curves.slowest > curves.fastest) table.complain("slowest", "is larger than curves.fastest");
    table.finish();
}

void read_time(study::TableReader table, TimeModel& time) {
    take(table, "iteration", time.iteration, 1e-3, longest_s);
    take(table, "spread", time.spread, 0.0, 5.0);
    take(table, "jitter", time.jitter, 0.0, 0.99);
    take(table, "stragglers", time.stragglers, 0.0, 1.0);
    take(table, "straggler_factor", time.straggler_factor, 1.0, 1000.0);
    take(table, "start", time.start, 0.0, longest_s);
    take(table, "checkpoint", time.checkpoint, 0.0, longest_s);
    take(table, "exploit", time.exploit, 0.0, longest_s);
    table.finish();
}

} // namespace

const std::vector<std::string>& model_keys() {
    static const std::vector<std::string> keys{
        "curves.best",    "curves.worst",    "curves.start", "curves.roughness",  "curves.slowest",
        "curves.fastest", "curves.crossing", "curves.noise", "curves.forgetting", "curves.seed",
        "time.iteration", "time.spread",     "time.jitter",  "time.stragglers",   "time.straggler_factor",
        "time.start",     "time.checkpoint", "time.exploit", "failures.rate",     "cluster.ranks_per_host"};
    return keys;
}

Model parse_model(const std::string& text, const std::string& file) {
    study::Mistakes mistakes;
    study::Node root;
    Model model;
    try {
        root = study::parse_toml(text);
    } catch (const study::TomlError& error) {
        mistakes.add(error.at(), "", "not valid TOML: " + std::string(error.what()));
        throw study::StudyFileError(file, mistakes.sorted());
    }
    const study::KeyTable keys(model_keys());
    for (const auto& [name, node] : root.members)
        if (!keys.has_table(name)) mistakes.key(node, name, keys.explain_unknown_table(name));
    const auto table = [&](const char* name) { return study::TableReader(root.find(name), name, keys, mistakes); };
    read_curves(table("curves"), model.curves);
    read_time(table("time"), model.time);
    study::TableReader failures = table("failures");
    take(failures, "rate", model.failures.rate, 0.0, 1.0);
    failures.finish();
    study::TableReader cluster = table("cluster");
    if (const auto ranks = cluster.integer("ranks_per_host", 1, 100'000))
        model.cluster.ranks_per_host = static_cast<std::uint32_t>(*ranks);
    cluster.finish();
    if (!mistakes.empty()) throw study::StudyFileError(file, mistakes.sorted());
    return model;
}

} // namespace ranktune::simulate
