// SPDX-License-Identifier: Apache-2.0
#include "trainables/predict/prediction.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "base/joined.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::trainables {

namespace {

using Put = study::MemoryState::Tensor;

const Put* tensor_called(const study::MemoryState& put, std::string_view name) {
    const auto& all = put.stored_tensors();
    const auto found = std::ranges::find(all, name, [](const Put& each) { return std::string_view(each.info.name); });
    return found == all.end() ? nullptr : &*found;
}

std::size_t numbers_in(const std::vector<std::uint64_t>& row) {
    return std::accumulate(row.begin(), row.end(), std::size_t{1}, std::multiplies<>());
}

/// Requires float32 or float64.
std::vector<double> doubles_of(const Put& put, std::size_t count) {
    const auto take = [&](auto values) { return std::vector<double>(values.begin(), values.begin() + count); };
    const base::ConstBuffer values = put.values();
    return values.type() == base::DType::float64 ? take(values.as<double>()) : take(values.as<float>());
}

Prediction mean_of(std::vector<Prediction> members) {
    Prediction mean = std::move(members.front());
    if (members.size() == 1) return mean;
    for (const Prediction& member : std::span(members).subspan(1))
        std::ranges::transform(mean.y, member.y, mean.y.begin(), std::plus<>());
    for (double& value : mean.y) value /= static_cast<double>(members.size());
    if (mean.classifies) mean.classes = largest_of_rows<double>(mean.y, numbers_in(mean.row));
    return mean;
}

Prediction vote_of(std::span<const Prediction> members) {
    Prediction vote = members.front();
    const std::size_t width = numbers_in(vote.row);
    std::ranges::fill(vote.y, 0.0);
    for (const Prediction& member : members)
        for (std::size_t i = 0; i < member.classes.size(); ++i)
            vote.y[i * width + static_cast<std::size_t>(member.classes[i])] += 1.0;
    vote.classes = largest_of_rows<double>(vote.y, width);
    for (double& value : vote.y) value /= static_cast<double>(members.size());
    return vote;
}

Prediction side_by_side(std::span<const Prediction> members) {
    Prediction all = members.front();
    const std::size_t width = numbers_in(all.row);
    const std::size_t samples = all.y.size() / width;
    all.row.insert(all.row.begin(), members.size());
    all.y.clear();
    all.classes.clear();
    if (all.classifies) all.class_row = {members.size()};
    for (std::size_t i = 0; i < samples; ++i)
        for (const Prediction& member : members) {
            const auto row = std::span(member.y).subspan(i * width, width);
            all.y.insert(all.y.end(), row.begin(), row.end());
            if (all.classifies) all.classes.push_back(member.classes[i]);
        }
    return all;
}

} // namespace

std::string Prediction::form() const {
    const std::string shape = base::joined(row, [](std::uint64_t extent) { return std::to_string(extent); });
    return std::string(base::name(type)) + " [" + shape + "]" + (classifies ? ", with a class" : "");
}

Prediction prediction_of(const study::MemoryState& put, std::size_t samples, std::size_t wanted, std::uint64_t first) {
    const Put* y = tensor_called(put, "y");
    if (y == nullptr) throw base::UsageError("predict() puts no tensor `y`");
    const auto& shape = y->info.shape;
    if (shape.empty() || shape[0] != samples)
        throw base::UsageError("predict() got " + std::to_string(samples) + " samples and puts `y` with " +
                               (shape.empty() ? "none" : std::to_string(shape[0])) + " rows");
    if (y->info.type != base::DType::float32 && y->info.type != base::DType::float64)
        throw base::UsageError("predict() puts `y` as " + std::string(base::name(y->info.type)) +
                               ": put float32 or float64");
    Prediction found{.type = y->info.type, .row = {shape.begin() + 1, shape.end()}};
    const std::size_t width = numbers_in(found.row);
    if (width == 0) throw base::UsageError("predict() puts `y` with rows of no numbers");
    found.y = doubles_of(*y, wanted * width);
    const auto wrong = std::ranges::find_if_not(found.y, [](double value) { return std::isfinite(value); });
    if (wrong != found.y.end())
        throw base::Error("the prediction for sample " +
                          std::to_string(first + static_cast<std::size_t>(wrong - found.y.begin()) / width) + " is " +
                          (std::isnan(*wrong) ? "NaN" : "infinite"));
    const Put* classes = tensor_called(put, "class");
    if (classes == nullptr) return found;
    if (classes->info.type != base::DType::int32 || classes->info.shape != std::vector<std::uint64_t>{samples} ||
        found.row.size() != 1)
        throw base::UsageError(
            "predict() puts `class`: it needs to be [samples], int32, beside `y` [samples, classes]");
    const auto values = classes->values().as<std::int32_t>();
    found.classifies = true;
    found.classes.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(wanted));
    for (const std::int32_t each : found.classes)
        if (each < 0 || static_cast<std::uint64_t>(each) >= found.row[0])
            throw base::UsageError("predict() puts the class " + std::to_string(each) + ", and `y` has " +
                                   std::to_string(found.row[0]) + " classes");
    return found;
}

Combine combine_of(std::string_view name) {
    if (name == "mean") return Combine::mean;
    if (name == "vote") return Combine::vote;
    if (name == "all") return Combine::all;
    throw base::UsageError("trainable.combine is '" + std::string(name) + "', not one of mean, vote, all");
}

Prediction combined(std::vector<Prediction> members, Combine how) {
    const Prediction& first = members.front();
    for (const Prediction& member : members)
        if (member.form() != first.form())
            throw base::UsageError("one trial predicts " + first.form() + ", and another one " + member.form() +
                                   ": an ensemble needs one form");
    if (how == Combine::vote && !first.classifies)
        throw base::UsageError("only classifiers vote, and these trials predict numbers: use --combine mean");
    if (how == Combine::mean) return mean_of(std::move(members));
    return how == Combine::vote ? vote_of(members) : side_by_side(members);
}

} // namespace ranktune::trainables
