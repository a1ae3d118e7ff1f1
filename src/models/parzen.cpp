// SPDX-License-Identifier: Apache-2.0
#include "models/parzen.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "models/kernel_density.hpp"

namespace ranktune::models {
namespace {

constexpr double prior_mean = 0.5;
constexpr double prior_width = 1.0;
constexpr std::size_t newest = 25;
/// Kernels are added in blocks, so that those of a block stay in the cache while all points are asked.
constexpr std::size_t block = 128;
constexpr double least_mass = 1e-300;

double standard_below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

/// Logarithm of the factor of a truncated normal density.
double log_factor(double mean, double width) {
    return -std::log(width * std::sqrt(2.0 * std::numbers::pi) * normal_mass(0.0, 1.0, mean, width));
}

std::size_t cell_at(const ParzenColumn& column, double unit) {
    const auto above = std::upper_bound(column.borders.begin() + 1, column.borders.end() - 1, unit);
    return static_cast<std::size_t>(above - column.borders.begin()) - 1;
}

std::uint32_t level_at(const ParzenColumn& column, double unit) {
    const double level = std::floor(unit * column.levels);
    return static_cast<std::uint32_t>(std::clamp(level, 0.0, column.levels - 1.0));
}

/// A coordinate of a point, and of all kernels of a block.
struct Axis {
    double at;
    const double* mean;
    const double* inverse;
    [[nodiscard]] double square(std::size_t i) const {
        const double z = (at - mean[i]) * inverse[i];
        return z * z;
    }
};

/// With a size that is known when it is compiled, the compiler uses vector instructions. The numbers are the same.
template <class Size>
void subtract_squares(const Axis& a, const Axis& b, double* kernels, Size size) {
    for (std::size_t i = 0; i < size; ++i) kernels[i] -= a.square(i) + b.square(i);
}

void subtract_squares(const Axis& a, double* kernels, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) kernels[i] -= a.square(i);
}

} // namespace

double parzen_weight(std::size_t rank, std::size_t size) {
    if (size < newest || rank + newest >= size) return 1.0;
    const double least = 1.0 / static_cast<double>(size);
    const std::size_t older = size - newest;
    if (older == 1) return least;
    return least + static_cast<double>(rank) * ((1.0 - least) / static_cast<double>(older - 1));
}

double normal_mass(double from, double to, double mean, double sd) {
    const double a = (from - mean) / sd;
    const double b = (to - mean) / sd;
    return a > 0.0 ? standard_below(-a) - standard_below(-b) : standard_below(b) - standard_below(a);
}

ParzenEstimator::ParzenEstimator(std::span<const ParzenColumn> columns, double prior_weight, double narrowing)
    : prior_weight_(prior_weight), narrowing_(narrowing), columns_(columns.size()) {
    assert(!columns.empty() && prior_weight >= 0.0);
    for (std::size_t j = 0; j < columns.size(); ++j) columns_[j].kind = &columns[j];
}

std::size_t ParzenEstimator::index(std::uint64_t key) const {
    return static_cast<std::size_t>(std::ranges::lower_bound(keys_, key) - keys_.begin());
}

// ---- points come and go

void ParzenEstimator::insert(std::uint64_t key, std::span<const double> point) {
    const std::size_t at = index(key);
    assert(point.size() == columns_.size() && (at == keys_.size() || keys_[at] != key));
    const auto offset = static_cast<std::ptrdiff_t>(at);
    keys_.insert(keys_.begin() + offset, key);
    for (std::size_t j = 0; j < columns_.size(); ++j) {
        Column& column = columns_[j];
        const double unit = point[j];
        const bool lacks = std::isnan(unit);
        if (column.is_category()) {
            column.row.insert(column.row.begin() + offset, lacks ? column.kind->levels : level_at(*column.kind, unit));
            continue;
        }
        column.mean.insert(column.mean.begin() + offset, lacks ? prior_mean : unit);
        column.width.insert(column.width.begin() + offset, 0.0);
        column.inverse.insert(column.inverse.begin() + offset, 0.0);
        column.scale.insert(column.scale.begin() + offset, 0.0);
        if (column.has_cells()) column.row.insert(column.row.begin() + offset, 0);
        if (lacks) {
            set_width(column, at, prior_width);
            continue;
        }
        const std::pair entry(unit, key);
        const auto place = column.sorted.insert(std::ranges::lower_bound(column.sorted, entry), entry);
        column.changed.push_back(key);
        if (place != column.sorted.begin()) column.changed.push_back((place - 1)->second);
        if (place + 1 != column.sorted.end()) column.changed.push_back((place + 1)->second);
    }
}

void ParzenEstimator::erase(std::uint64_t key) {
    const std::size_t at = index(key);
    assert(at < keys_.size() && keys_[at] == key);
    const auto offset = static_cast<std::ptrdiff_t>(at);
    for (Column& column : columns_) {
        if (column.is_category()) {
            column.row.erase(column.row.begin() + offset);
            continue;
        }
        const std::pair entry(column.mean[at], key);
        const auto place = std::ranges::lower_bound(column.sorted, entry);
        if (place != column.sorted.end() && *place == entry) { // else it lacks the coordinate
            if (place != column.sorted.begin()) column.changed.push_back((place - 1)->second);
            if (place + 1 != column.sorted.end()) column.changed.push_back((place + 1)->second);
            column.sorted.erase(place);
        }
        if (column.has_cells()) {
            if (column.width[at] > 0.0) drop_row(column, column.mean[at], column.width[at]);
            column.row.erase(column.row.begin() + offset);
        }
        column.mean.erase(column.mean.begin() + offset);
        column.width.erase(column.width.begin() + offset);
        column.inverse.erase(column.inverse.begin() + offset);
        column.scale.erase(column.scale.begin() + offset);
    }
    keys_.erase(keys_.begin() + offset);
}

// ---- kernels

/// Distance to the farther one of the two neighbours, within the limits.
double ParzenEstimator::width_at(const Column& column, std::size_t position) const {
    const auto& sorted = column.sorted;
    const double at = sorted[position].first;
    const bool first = position == 0;
    const bool last = position + 1 == sorted.size();
    double width = 0.0;
    if (sorted.size() == 1) {
        width = std::max(at, 1.0 - at);
    } else {
        if (!first) width = at - sorted[position - 1].first;
        if (!last) width = std::max(width, sorted[position + 1].first - at);
    }
    return std::clamp(width, column.least, 1.0);
}

/// Rows are shared: points of a number with few values differ in few means and widths.
std::uint32_t ParzenEstimator::take_row(Column& column, double mean, double width) {
    const auto [at, is_new] = column.rows.try_emplace({mean, width});
    ++at->second.used;
    if (!is_new) return at->second.id;
    const std::size_t cells = column.cells();
    if (column.free_rows.empty()) {
        at->second.id = static_cast<std::uint32_t>(column.log_mass.size() / cells);
        column.log_mass.resize(column.log_mass.size() + cells);
    } else {
        at->second.id = column.free_rows.back();
        column.free_rows.pop_back();
    }
    const double whole = normal_mass(0.0, 1.0, mean, width);
    const auto& borders = column.kind->borders;
    for (std::size_t k = 0; k < cells; ++k)
        column.log_mass[at->second.id * cells + k] =
            std::log(std::max(normal_mass(borders[k], borders[k + 1], mean, width) / whole, least_mass));
    return at->second.id;
}

void ParzenEstimator::drop_row(Column& column, double mean, double width) {
    const auto at = column.rows.find({mean, width});
    if (--at->second.used > 0) return;
    column.free_rows.push_back(at->second.id);
    column.rows.erase(at);
}

void ParzenEstimator::set_width(Column& column, std::size_t kernel, double width) {
    const double before = column.width[kernel];
    if (width == before) return;
    const double mean = column.mean[kernel];
    column.width[kernel] = width;
    if (column.has_cells()) {
        column.row[kernel] = take_row(column, mean, width);
        if (before > 0.0) drop_row(column, mean, before);
        return;
    }
    column.inverse[kernel] = 1.0 / (std::numbers::sqrt2 * width);
    column.scale[kernel] = log_factor(mean, width);
}

void ParzenEstimator::settle(Column& column) {
    const auto prior = static_cast<std::size_t>(has_prior());
    if (column.is_category()) {
        const double smoothing =
            (prior_weight_ > 0.0 ? prior_weight_ : least_mass) / static_cast<double>(keys_.size() + prior);
        const double whole = 1.0 + smoothing * column.kind->levels;
        column.same = std::log((1.0 + smoothing) / whole);
        column.other = std::log(smoothing / whole);
        return;
    }
    const auto kernels = static_cast<double>(column.sorted.size() + prior);
    const double narrowing = column.has_cells() ? 1.0 : narrowing_;
    const double least = 1.0 / std::min(100.0, 1.0 + narrowing * kernels);
    if (least != std::exchange(column.least, least)) {
        for (std::size_t position = 0; position < column.sorted.size(); ++position)
            set_width(column, index(column.sorted[position].second), width_at(column, position));
    } else {
        for (const std::uint64_t key : column.changed) {
            const std::size_t kernel = index(key);
            if (kernel == keys_.size() || keys_[kernel] != key) continue; // erased since
            const auto place = std::ranges::lower_bound(column.sorted, std::pair(column.mean[kernel], key));
            if (place == column.sorted.end() || place->second != key) continue; // inserted anew, without it
            set_width(column, kernel, width_at(column, static_cast<std::size_t>(place - column.sorted.begin())));
        }
    }
    column.changed.clear();
}

void ParzenEstimator::settle() {
    for (Column& column : columns_) settle(column);
    weights_.resize(keys_.size());
    total_ = prior_weight();
    for (std::size_t i = 0; i < weights_.size(); ++i) total_ += weights_[i] = parzen_weight(i, weights_.size());
}

// ---- questions

double ParzenEstimator::width(std::uint64_t key, std::size_t column) const {
    return columns_[column].width[index(key)];
}

double ParzenEstimator::weight(std::uint64_t key) const { return weights_[index(key)]; }

/// `kernel`: size() for the prior.
double ParzenEstimator::draw(const Column& column, std::size_t kernel, base::RngStream& random) const {
    const double u = random.uniform_open();
    const bool from_prior = kernel == keys_.size();
    if (column.is_category()) {
        const std::uint32_t levels = column.kind->levels;
        const std::uint32_t own = from_prior ? levels : column.row[kernel];
        const double other = own == levels ? 1.0 / levels : std::exp(column.other);
        // The own value takes what the others leave.
        std::uint32_t level = own;
        const auto drawn = static_cast<std::uint32_t>(std::min(u / other, 4294967294.0));
        if (own == levels)
            level = std::min(drawn, levels - 1);
        else if (drawn + 1 < levels)
            level = drawn < own ? drawn : drawn + 1;
        return (level + 0.5) / levels;
    }
    const double mean = from_prior ? prior_mean : column.mean[kernel];
    const double unit = truncated_normal(u, mean, from_prior ? prior_width : column.width[kernel]);
    return column.has_cells() ? column.kind->middles[cell_at(*column.kind, unit)] : unit;
}

std::vector<double> ParzenEstimator::draw(base::RngStream& random) const {
    double left = random.uniform() * total_;
    std::size_t kernel = 0;
    while (kernel < weights_.size() && left >= weights_[kernel]) left -= weights_[kernel++];
    if (kernel == weights_.size() && !has_prior()) --kernel; // rounding
    std::vector<double> point;
    for (const Column& column : columns_) point.push_back(draw(column, kernel, random));
    return point;
}

struct ParzenEstimator::Question {
    std::span<const double> point;
    std::vector<std::size_t> numbers;                                ///< continuous columns that the point has
    std::vector<std::pair<std::size_t, std::vector<double>>> tables; ///< others: logarithm for each row
};

ParzenEstimator::Question ParzenEstimator::question(std::span<const double> point) const {
    Question result{point, {}, {}};
    for (std::size_t j = 0; j < columns_.size(); ++j) {
        const Column& column = columns_[j];
        if (std::isnan(point[j])) continue;
        if (column.is_continuous()) {
            result.numbers.push_back(j);
            continue;
        }
        std::vector<double> table;
        if (column.is_category()) {
            table.assign(column.kind->levels + 1, column.other);
            table[level_at(*column.kind, point[j])] = column.same;
            table.back() = -std::log(static_cast<double>(column.kind->levels));
        } else {
            const std::size_t cells = column.cells();
            table.resize(column.log_mass.size() / cells);
            for (std::size_t row = 0, at = cell_at(*column.kind, point[j]); row < table.size(); ++row, at += cells)
                table[row] = column.log_mass[at];
        }
        result.tables.emplace_back(j, std::move(table));
    }
    return result;
}

double ParzenEstimator::log_prior(const Question& question) const {
    double sum = 0.0;
    for (const std::size_t j : question.numbers) {
        const double z = (question.point[j] - prior_mean) / prior_width;
        sum += log_factor(prior_mean, prior_width) - 0.5 * z * z;
    }
    for (const auto& [j, table] : question.tables) {
        const Column& column = columns_[j];
        if (column.is_category()) {
            sum += table.back();
            continue;
        }
        const std::size_t k = cell_at(*column.kind, question.point[j]);
        const auto& borders = column.kind->borders;
        sum += std::log(normal_mass(borders[k], borders[k + 1], prior_mean, prior_width) /
                        normal_mass(0.0, 1.0, prior_mean, prior_width));
    }
    return sum;
}

/// Adds `size` kernels from `begin` on to `sum`. `factors`: logarithms of what stands
/// before their exponentials.
void ParzenEstimator::add_block(const Question& question, std::size_t begin, std::size_t size,
                                std::span<const double> factors, LogSum& sum) const {
    std::array<double, block> kernels;
    std::copy_n(factors.begin(), size, kernels.begin());
    const auto matters = [&](double kernel) { return sum.matters(kernel); };
    for (const auto& [j, table] : question.tables) {
        const std::uint32_t* row = &columns_[j].row[begin];
        for (std::size_t i = 0; i < size; ++i) kernels[i] += table[row[i]];
    }
    for (std::size_t at = 0; at < question.numbers.size(); at += 2) {
        const std::size_t j = question.numbers[at];
        const std::size_t k = question.numbers[std::min(at + 1, question.numbers.size() - 1)];
        const Axis a{question.point[j], &columns_[j].mean[begin], &columns_[j].inverse[begin]};
        const Axis b{question.point[k], &columns_[k].mean[begin], &columns_[k].inverse[begin]};
        if (j == k)
            subtract_squares(a, kernels.data(), size);
        else if (size == block)
            subtract_squares(a, b, kernels.data(), std::integral_constant<std::size_t, block>());
        else
            subtract_squares(a, b, kernels.data(), size);
        // The other columns make them smaller.
        const bool ask = at % 4 == 2 && at + 2 < question.numbers.size();
        if (ask && std::none_of(kernels.begin(), kernels.begin() + static_cast<std::ptrdiff_t>(size), matters)) return;
    }
    for (std::size_t i = 0; i < size; ++i) sum.add(kernels[i], weights_[begin + i]);
}

void ParzenEstimator::log_density(std::span<const double> points, std::span<double> result) const {
    const std::size_t width = columns_.size();
    assert(points.size() == width * result.size());
    std::vector<Question> questions;
    std::vector<LogSum> sums(result.size());
    for (std::size_t q = 0; q < result.size(); ++q) {
        questions.push_back(question(points.subspan(q * width, width)));
        if (!has_prior()) continue;
        sums[q] = {log_prior(questions[q]), prior_weight()};
    }
    std::array<double, block> factors{};
    for (std::size_t begin = 0; begin < keys_.size(); begin += block) {
        const std::size_t size = std::min(block, keys_.size() - begin);
        for (std::size_t q = 0; q < result.size(); ++q) {
            if (q == 0 || questions[q].numbers != questions[q - 1].numbers) {
                factors.fill(0.0);
                for (const std::size_t j : questions[q].numbers)
                    for (std::size_t i = 0; i < size; ++i) factors[i] += columns_[j].scale[begin + i];
            }
            add_block(questions[q], begin, size, factors, sums[q]);
        }
    }
    for (std::size_t q = 0; q < result.size(); ++q) result[q] = sums[q].value() - std::log(total_);
}

} // namespace ranktune::models
