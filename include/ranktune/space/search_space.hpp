// SPDX-License-Identifier: Apache-2.0
#pragma once
// The search space: named domains, in order, some with conditions, and rules that configurations keep.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/condition.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/space/domain.hpp"

namespace ranktune::space {

struct Parameter {
    std::string name; ///< nested tables joined by dots
    Domain domain;
    std::optional<Condition> condition; ///< absent: always active
};

/// What every configuration keeps: a condition that holds (`require`) or does not hold (`forbid`).
struct Rule {
    Condition condition;
    bool forbids = false;

    /// A requirement asks nothing of a configuration that lacks one of its parameters.
    [[nodiscard]] bool is_kept_by(const Configuration& configuration) const;
    /// `require "x < y"`
    [[nodiscard]] std::string text() const;
};

class SearchSpace {
  public:
    SearchSpace() = default;
    /// Orders the parameters so that each comes after those its condition mentions. Throws base::UsageError for a
    /// duplicate name, a condition or rule on an unknown name, a cycle, `problem(domain)`, or rules that no
    /// configuration was found to keep.
    explicit SearchSpace(std::vector<Parameter> parameters, std::vector<Rule> rules = {});

    /// In the order of the study file.
    [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
    [[nodiscard]] const Parameter* find(std::string_view name) const;

    /// Why the configuration does not lie in the space, whatever the rules, in words; empty: it does.
    [[nodiscard]] std::string why_outside(const Configuration& configuration) const;

    [[nodiscard]] const std::vector<Rule>& rules() const { return rules_; }
    /// The first rule that the configuration breaks; null: none.
    [[nodiscard]] const Rule* broken_by(const Configuration& configuration) const;
    /// Whether the point of the unit cube, as of `decode`, keeps them.
    [[nodiscard]] bool allows(std::span<const double> unit, std::uint64_t grid_point) const;
    /// About which part of the space the rules allow: counted, or by samples.
    [[nodiscard]] double allowed_share() const { return ruled_ ? ruled_->share : 1.0; }
    /// `wish`, or, where it breaks a rule, a configuration near it that keeps all, with the values of `given`; nullopt:
    /// none was found. Requires values from their domains.
    [[nodiscard]] std::optional<Configuration> nearest(const Configuration& wish, const Configuration& given) const;
    /// The space in which parameters have the values of `given`; nullopt: none of its configurations was found to keep
    /// the rules.
    [[nodiscard]] std::optional<SearchSpace> pinned(const Configuration& given) const;

    /// Random configuration of a trial: a function of (seed, trial) only. Parameter i (in file order, counting grids
    /// and constants) is `decode` of the first `uniform()` of the stream (seed, sample, trial, i), whichever others are
    /// active; a range of more than 2^53 integers uses `below` instead. The grid point is trial modulo grid_size().
    /// Where rules exclude it, later draws count, and where they exclude nearly all, a walk from a configuration that
    /// keeps them (slice sampling, Neal 2003).
    [[nodiscard]] Configuration sample(std::uint64_t seed, base::TrialId trial) const;

    /// Number of unit-cube coordinates: one per parameter that is neither Grid nor Constant, in file order.
    [[nodiscard]] std::size_t dimensions() const { return dimensions_; }
    /// The configuration at a point of the unit cube (size == dimensions(); each in [0, 1)), with grid point
    /// `grid_point` (taken modulo grid_size()). A parameter whose condition does not hold is absent; its coordinate has
    /// no effect. Where rules exclude it, one near it: on the way to a point that keeps them, changed in as few
    /// parameters as possible.
    [[nodiscard]] Configuration decode(std::span<const double> unit, std::uint64_t grid_point = 0) const;
    /// The same for points that shall cover the space: weights of choices count, and where rules exclude the point, it
    /// is `sample(seed, index)`.
    [[nodiscard]] Configuration spread(std::span<const double> unit, std::uint64_t index, std::uint64_t seed) const;
    /// The inverse for the parameters that the configuration has; others get 0.5. Throws base::UsageError for a value
    /// outside its domain, or a name that is not in the space.
    [[nodiscard]] std::vector<double> encode(const Configuration& configuration) const;

    /// Size of the cross product of all Grid domains (1 without any). Saturates at 2^63.
    [[nodiscard]] std::uint64_t grid_size() const { return grid_size_; }
    /// The grid point of a configuration: that of `decode`, below grid_size(). An absent grid counts as its first
    /// value.
    [[nodiscard]] std::uint64_t grid_point(const Configuration& configuration) const;

    /// The same parameters, conditions and rules in the same order, as they are written.
    friend bool operator==(const SearchSpace& a, const SearchSpace& b);

    /// The configuration whose parameter i has the value `value(i)`, where its condition holds. `value` is called for
    /// active parameters only, each after those that its condition mentions.
    template <class ValueOf>
    [[nodiscard]] Configuration assemble(ValueOf value) const;

  private:
    struct Point {
        std::vector<double> unit;
        std::uint64_t grid = 0;
    };
    using Values = std::vector<std::optional<Value>>; ///< one for each parameter; absent ones have none
    /// What the rules depend on, and where they are kept.
    struct Ruled {
        std::vector<std::vector<std::size_t>> of_rule; ///< positions of the parameters that each rule mentions
        std::vector<std::size_t> order;                ///< of the parameters on which the rules depend, as in `order_`
        std::vector<std::size_t> coordinates;          ///< of these parameters
        bool uses_grids = false;                       ///< one of these is a grid
        std::vector<Point> points;                     ///< some that keep the rules
        double share = 0.0;                            ///< of the space that keeps them
    };
    class Finder;

    void find_allowed();
    /// `draw`: 0, or which of the later draws of the trial.
    [[nodiscard]] Configuration drawn(std::uint64_t seed, base::TrialId trial, std::uint64_t grid_point,
                                      std::uint32_t draw) const;
    [[nodiscard]] Configuration walked(std::uint64_t seed, base::TrialId trial) const;
    /// Without regard to the rules.
    [[nodiscard]] Configuration at(std::span<const double> unit, std::uint64_t grid_point) const;
    [[nodiscard]] bool allows(const Point& point) const;
    /// The values of the parameters on which the rules depend; others have none.
    void read_ruled(const Point& point, Values& values) const;
    [[nodiscard]] bool is_kept(std::size_t rule, const Values& values) const;
    /// Pointers to the values at these positions.
    static std::span<const Value*> values_at(const std::vector<std::size_t>& positions, const Values& values,
                                             std::vector<const Value*>& room);
    /// One that keeps the rules, near the given one in the coordinates that they depend on.
    [[nodiscard]] const Point& allowed_near(const Point& point) const;

    /// Position of each Grid domain at a grid point, the last one fastest.
    [[nodiscard]] std::vector<std::size_t> grid_positions(std::uint64_t point) const;
    /// Position i: the value of parameter i, if it has one.
    [[nodiscard]] Configuration of_present(std::vector<std::optional<Value>> values) const;
    /// Whether the condition of parameter i holds for the values found so far.
    [[nodiscard]] bool exists(std::size_t i, const Values& values) const;

    std::vector<Parameter> parameters_;
    std::vector<Rule> rules_;
    std::shared_ptr<const Ruled> ruled_;                ///< null: no rules
    std::shared_ptr<const Configuration::Shape> shape_; ///< of all parameters; null: there are none
    std::vector<std::vector<std::size_t>> needs_;       ///< positions of what each parameter's condition mentions
    bool conditional_ = false;                          ///< some parameter has a condition
    std::vector<std::size_t> coordinate_;               ///< of each parameter that has one
    std::vector<std::size_t> order_; ///< positions in parameters_, each after those that its condition mentions
    std::size_t dimensions_ = 0;
    std::uint64_t grid_size_ = 1;
};

template <class ValueOf>
Configuration SearchSpace::assemble(ValueOf value) const {
    if (!shape_) return {};
    if (!conditional_) {
        Configuration all = Configuration::of_shape(shape_);
        for (std::size_t i = 0; i < parameters_.size(); ++i) all.values()[i] = value(i);
        return all;
    }
    std::vector<std::optional<Value>> values(parameters_.size());
    for (const std::size_t i : order_)
        if (exists(i, values)) values[i] = value(i);
    return of_present(std::move(values));
}

} // namespace ranktune::space
