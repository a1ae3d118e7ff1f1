// SPDX-License-Identifier: Apache-2.0
#include "simulate/model.hpp"

#include <limits>

#include "simulate/file_keys.hpp"

namespace ranktune::simulate {
namespace {

constexpr double longest_s = 1e7;

void take(study::TableReader& table, const char* key, double& value, double low, double high) {
    value = table.number(key, low, high).value_or(value);
}

void read_power_laws(study::TableReader& table, CurveModel& curves) {
    take(table, "best", curves.best, 0.0, 1.0);
    take(table, "worst", curves.worst, 0.0, 1.0);
    take(table, "skew", curves.skew, 0.1, 100.0);
    take(table, "start", curves.start, 0.0, 1.0);
    take(table, "roughness", curves.roughness, 0.0, 1.0);
    take(table, "slowest", curves.slowest, 0.01, 10.0);
    take(table, "fastest", curves.fastest, 0.01, 10.0);
    take(table, "crossing", curves.crossing, 0.0, 1.0);
    take(table, "noise", curves.noise, 0.0, 1.0);
    if (curves.worst > curves.best) table.complain("worst", "is larger than curves.best");
    if (curves.start >= curves.worst) table.complain("start", "has to be smaller than curves.worst");
    if (curves.slowest > curves.fastest) table.complain("slowest", "is larger than curves.fastest");
}

void read_curves(study::TableReader table, CurveModel& curves) {
    curves.file = table.string("file").value_or("");
    curves.study = table.string("study").value_or("");
    if (!curves.file.empty() && !curves.study.empty())
        table.complain("study", "cannot be combined with curves.file: curves come from one of them");
    if (curves.is_measured()) {
        for (const char* key :
             {"best", "worst", "skew", "start", "roughness", "slowest", "fastest", "crossing", "noise"})
            if (table.has(key)) table.refuse(key, "describes power laws, but the curves are measured ones");
    } else {
        read_power_laws(table, curves);
    }
    take(table, "forgetting", curves.forgetting, 0.0, 1.0);
    if (const auto seed = table.integer("seed", 0, std::numeric_limits<std::int64_t>::max()))
        curves.seed = static_cast<std::uint64_t>(*seed);
    table.finish();
}

void read_time(study::TableReader table, TimeModel& time) {
    const auto take_time = [&](const char* key, double& value, double low, double high) {
        if (table.has(key)) time.given.emplace_back(key);
        take(table, key, value, low, high);
    };
    take_time("iteration", time.iteration, 1e-6, longest_s);
    take_time("spread", time.spread, 0.0, 5.0);
    take_time("jitter", time.jitter, 0.0, 0.99);
    take_time("stragglers", time.stragglers, 0.0, 1.0);
    take_time("straggler_factor", time.straggler_factor, 1.0, 1000.0);
    take_time("start", time.start, 0.0, longest_s);
    if (table.has("first_start")) {
        double first = 0.0;
        take_time("first_start", first, 0.0, longest_s);
        time.first_start = first;
    }
    take_time("checkpoint", time.checkpoint, 0.0, longest_s);
    take_time("exploit", time.exploit, 0.0, longest_s);
    take_time("report", time.report, 0.0, longest_s);
    take_time("head", time.head, 0.0, longest_s);
    take_time("suggestion", time.suggestion, 0.0, longest_s);
    table.finish();
}

} // namespace

const std::vector<std::string>& model_keys() {
    static const std::vector<std::string> keys = names_of(model_key_infos());
    return keys;
}

Model parse_model(const std::string& text, const std::string& file) {
    Model model;
    read_tables(text, file, model_keys(), [&](const TableNamed& table) {
        read_curves(table("curves"), model.curves);
        read_time(table("time"), model.time);
        study::TableReader cluster = table("cluster");
        if (const auto ranks = cluster.integer("ranks_per_host", 1, 100'000))
            model.cluster.ranks_per_host = static_cast<std::uint32_t>(*ranks);
        cluster.finish();
    });
    return model;
}

} // namespace ranktune::simulate
