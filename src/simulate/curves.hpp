// SPDX-License-Identifier: Apache-2.0
#pragma once
// Learning curves of simulated trials: by a power law (power_laws.hpp) or measured (recorded_curves.hpp).

#include <cstdint>
#include <memory>
#include <optional>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/configuration.hpp"

namespace ranktune::simulate {

struct Setup;

/// How far the state of a trial is, measured in iterations of the configuration in force.
struct Progress {
    double iterations = 0.0; ///< 0: untrained
    double lead = 0.0;       ///< quality above the curve, left over from another configuration; may be negative
};

/// What one iteration gives by chance, and how long it takes on a rank that is no straggler.
struct Step {
    double noise = 0.0; ///< of the quality that is reported
    double seconds = 0.0;
};

/// How one configuration learns. Of two qualities the larger one is better.
class Curve {
  public:
    Curve() = default;
    Curve(const Curve&) = delete;
    Curve& operator=(const Curve&) = delete;
    virtual ~Curve() = default;
    /// Without noise. Requires progress.iterations > 0.
    [[nodiscard]] virtual double quality(const Progress& progress) const = 0;
    /// The progress of a state of this quality that was trained with another configuration: it keeps its quality and
    /// moves on along this curve.
    [[nodiscard]] virtual Progress progress_at(double quality) const = 0;
    /// The progress of a state that had this quality after `iterations` on this curve.
    [[nodiscard]] virtual Progress resumed(double quality, double iterations) const = 0;
    /// The iteration that follows `progress`; it is number `iteration` of its trial.
    [[nodiscard]] virtual Step step(const Progress& progress, base::Iteration iteration) const = 0;
    /// False: no data reach so far.
    [[nodiscard]] virtual bool is_known(const Progress&) const { return true; }
};

/// From configurations to measured ones, in the unit cube: root mean square over the coordinates, from 0 to 1.
struct Distances {
    double median = 0.0;
    double largest = 0.0;
};

class Curves {
  public:
    Curves() = default;
    Curves(const Curves&) = delete;
    Curves& operator=(const Curves&) = delete;
    virtual ~Curves() = default;

    /// Called once for each configuration of a trial.
    [[nodiscard]] virtual std::shared_ptr<const Curve> curve(const space::Configuration& configuration) = 0;
    /// The study's metric for a quality.
    [[nodiscard]] virtual double metric(double quality) const = 0;
    /// Quality.
    [[nodiscard]] virtual double best_reachable() const = 0;
    /// Over all calls of `curve`. nullopt: the curves are not measured, or do not depend on configurations.
    [[nodiscard]] virtual std::optional<Distances> distances() const { return std::nullopt; }
};

/// The curves that the setup asks for. `setup` may go. Throws base::UsageError when its recordings do not fit its
/// study.
[[nodiscard]] std::unique_ptr<Curves> make_curves(const Setup& setup);

} // namespace ranktune::simulate
