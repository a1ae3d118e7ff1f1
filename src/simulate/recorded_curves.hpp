// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measured curves as those of a study: the nearest configuration, and what lies beyond its data.

#include <cstdint>
#include <memory>
#include <vector>

#include "ranktune/space/search_space.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/spec.hpp"
#include "simulate/curves.hpp"
#include "simulate/recordings.hpp"

namespace ranktune::simulate {

/// A trial gets the measured curve whose configuration is nearest, of equally near ones the first; any curve, drawn by
/// its configuration, where the recordings have no hyper-parameters. Between measured
/// iterations values and times are interpolated, linearly. Beyond the last one a curve goes on parallel to the nearest
/// longer curve that is at least as good there; where there is none it keeps its value. So it is never better than a
/// measured one. A further iteration takes the time of one of those after the first, drawn.
///
/// With n curves and d parameters, a configuration costs O(n d), and each curve that is used O(n d + iterations), once.
class RecordedCurves final : public Curves {
  public:
    /// The other arguments may go. Throws base::UsageError when the recordings do not fit the study.
    RecordedCurves(std::shared_ptr<const Recordings> recordings, const CurveModel& curves, const TimeModel& time,
                   const study::StudySpec& spec);
    ~RecordedCurves() override;

    [[nodiscard]] std::shared_ptr<const Curve> curve(const space::Configuration& configuration) override;
    [[nodiscard]] double metric(double quality) const override {
        return mode_ == study::Mode::max ? quality : -quality;
    }
    /// The best measured one, up to study.max_iterations.
    [[nodiscard]] double best_reachable() const override;
    [[nodiscard]] std::optional<Distances> distances() const override;

  private:
    class Measured;
    /// A coordinate in the unit cube, or what cannot be compared.
    struct Place {
        enum class Kind : std::uint8_t { number, word, absent, foreign };
        Kind kind = Kind::absent;
        double at = 0.0; ///< in [0, 1]; of a word its position in the list
    };
    using Point = std::vector<Place>;

    void match(const space::SearchSpace& space);
    [[nodiscard]] static Place place(const space::Domain& domain, const std::string& text);
    [[nodiscard]] static double distance(const Point& a, const Point& b);
    [[nodiscard]] double quality(double value) const { return mode_ == study::Mode::max ? value : -value; }
    [[nodiscard]] Point point(const Recording& recording) const;
    [[nodiscard]] Point point(const space::Configuration& configuration) const;
    [[nodiscard]] std::size_t nearest(const Point& point);
    [[nodiscard]] std::shared_ptr<const Curve> extended(std::size_t number) const;
    [[nodiscard]] double quality_at(std::size_t number, base::Iteration iteration) const;
    [[nodiscard]] std::vector<double> measured(std::size_t number) const;
    void extend(std::vector<double>& qualities, std::size_t number) const;
    [[nodiscard]] std::vector<double> paces(std::size_t number) const;
    [[nodiscard]] std::vector<double> seconds(std::size_t number, std::size_t count) const;

    std::shared_ptr<const Recordings> recordings_;
    TimeModel time_;
    study::Mode mode_;
    base::Iteration ceiling_;
    std::uint64_t seed_;
    std::vector<space::Parameter> parameters_; ///< those that vary
    std::vector<std::size_t>
        columns_;               ///< of each in the recordings; empty: curves are drawn, whatever the configuration
    std::vector<Point> points_; ///< of each recording
    std::vector<std::shared_ptr<const Curve>> curves_; ///< of each recording; null: not used yet
    std::vector<float> distances_;                     ///< of each call of `curve`
};

} // namespace ranktune::simulate
