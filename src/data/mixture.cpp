// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "ranktune/base/error.hpp"

namespace ranktune::data {

namespace {

constexpr std::uint64_t mixture_part = std::uint64_t{1} << 63;

std::uint64_t first_period(const MixtureSource& source) {
    return source.from / Mixture::period + (source.from % Mixture::period == 0 ? 0 : 1);
}

/// Thousandths of the weights, by largest remainder; of equal remainders the first.
std::vector<std::uint64_t> shares_of(const std::vector<double>& weights) {
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<std::uint64_t> shares;
    std::vector<double> remainders;
    for (const double weight : weights) {
        const double exact = weight * static_cast<double>(Mixture::period) / total;
        shares.push_back(static_cast<std::uint64_t>(exact));
        remainders.push_back(exact - std::floor(exact));
    }
    const std::uint64_t given = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
    std::vector<std::size_t> by_remainder(weights.size());
    std::iota(by_remainder.begin(), by_remainder.end(), std::size_t{0});
    std::ranges::stable_sort(by_remainder, std::ranges::greater(), [&](std::size_t i) { return remainders[i]; });
    for (std::uint64_t i = 0; i < Mixture::period - given; ++i) ++shares[by_remainder[i]];
    return shares;
}

void check(const std::vector<MixtureSource>& sources) {
    const auto fail = [](std::size_t i, const std::string& what) {
        throw base::UsageError("source " + std::to_string(i + 1) + " of the mixture " + what);
    };
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (sources[i].shape.samples == 0) fail(i, "has no samples");
        if (!std::isfinite(sources[i].weight) || sources[i].weight <= 0.0) fail(i, "needs a weight above 0");
    }
    if (std::ranges::none_of(sources, [](const MixtureSource& source) { return source.from == 0; }))
        throw base::UsageError("no source of the mixture takes part at the beginning: set from = 0 for one of them");
}

} // namespace

Mixture::Mixture(std::vector<MixtureSource> sources, std::uint64_t seed, std::uint32_t trial)
    : sources_(std::move(sources)), seed_(seed), trial_(trial), epochs_(sources_.size()) {
    check(sources_);
    std::set<std::uint64_t> firsts;
    for (const MixtureSource& source : sources_) firsts.insert(first_period(source));
    for (const std::uint64_t first : firsts) add_stage(first);
}

void Mixture::add_stage(std::uint64_t first) {
    std::vector<double> weights;
    for (const MixtureSource& source : sources_) weights.push_back(first_period(source) <= first ? source.weight : 0.0);
    Stage stage{first, std::vector<std::uint64_t>(sources_.size()), shares_of(weights)};
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        if (weights[i] > 0.0 && stage.shares[i] == 0)
            throw base::UsageError("source " + std::to_string(i + 1) +
                                   " of the mixture would get less than 1 of 1,000 samples: raise its weight, or leave "
                                   "it out");
        if (!stages_.empty())
            stage.before[i] = stages_.back().before[i] + (first - stages_.back().first) * stages_.back().shares[i];
    }
    stages_.push_back(std::move(stage));
}

const Mixture::Stage& Mixture::stage_of(std::uint64_t number) const {
    return *std::prev(std::ranges::upper_bound(stages_, number, {}, &Stage::first));
}

/// Makes the table of a period.
void Mixture::enter(std::uint64_t number) {
    const Stage& stage = stage_of(number);
    const Permutation order(period, {seed_, trial_, 0, mixture_part + number});
    std::vector<std::uint16_t> met(sources_.size());
    for (std::uint64_t i = 0; i < period; ++i) {
        std::uint64_t at = order(i);
        std::uint16_t source = 0;
        while (at >= stage.shares[source]) at -= stage.shares[source++];
        places_[i] = {source, met[source]++};
    }
    entered_ = number;
}

Mixture::Place Mixture::operator()(std::uint64_t position) {
    const std::uint64_t number = position / period;
    if (number != entered_) enter(number);
    const auto [source, earlier] = places_[position % period];
    const Stage& stage = stage_of(number);
    const std::uint64_t own = stage.before[source] + (number - stage.first) * stage.shares[source] + earlier;
    const OrderShape& shape = sources_[source].shape;
    const std::uint64_t epoch = own / shape.samples;
    std::optional<Epoch>& known = epochs_[source];
    if (!known || known->number != epoch) known = Epoch{epoch, Order(shape, seed_, trial_, epoch)};
    return {source, epoch, known->order(own % shape.samples)};
}

} // namespace ranktune::data
