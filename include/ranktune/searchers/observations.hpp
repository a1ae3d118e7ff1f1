// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a study has seen of its trials so far: one table for all searchers that learn.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ranktune/base/ids.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/objective.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::searchers {

/// Trials of earlier studies (searcher.warm_start) are numbered from here on. Their lines come before all others, and
/// look like those of trials that are over.
inline constexpr std::uint32_t first_earlier_trial = 0x80000000U;
[[nodiscard]] constexpr bool is_earlier(base::TrialId trial) { return trial.value() >= first_earlier_trial; }

/// One line of the table.
struct Observation {
    enum class Kind : std::uint8_t {
        asked,    ///< the trial trains with this point from now on
        reported, ///< a report takes effect
        over,     ///< the trial has reached a final phase
        paused    ///< the scheduler pauses the trial after its last report; it may go on later
    };
    Kind kind = Kind::asked;
    study::TrialPhase phase = study::TrialPhase::waiting; ///< over: the final phase
    base::TrialId trial;
    std::uint64_t point = 0; ///< number of the trial's point at that time; see Observations::point
    base::Iteration iteration = 0;
    study::Score score;            ///< reported
    std::uint64_t limits = no_one; ///< where its distances from constraints begin; no_one: it has none
    static constexpr std::uint64_t no_one = ~std::uint64_t{0};
};

/// An append-only list in pieces that never move: another thread may read a copy, as it was when it was made, while the
/// original grows.
template <class T>
class GrowingList {
  public:
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] const T& operator[](std::size_t i) const { return (*pieces_[i / piece])[i % piece]; }
    void push_back(T value) {
        if (size_ == pieces_.size() * piece) pieces_.push_back(std::make_shared<std::array<T, piece>>());
        (*pieces_.back())[size_++ % piece] = std::move(value);
    }
    /// The first `size` elements. Shares the pieces: costs one pointer for every 256 elements.
    [[nodiscard]] GrowingList first(std::size_t size) const {
        GrowingList list;
        list.size_ = std::min(size, size_);
        list.pieces_.assign(pieces_.begin(),
                            pieces_.begin() + static_cast<std::ptrdiff_t>((list.size_ + piece - 1) / piece));
        return list;
    }
    /// Whether `earlier` is a copy or a part of this list, as it was earlier: O(1), without comparing elements.
    [[nodiscard]] bool continues(const GrowingList& earlier) const {
        if (earlier.size_ == 0) return true;
        return size_ >= earlier.size_ && pieces_.front() == earlier.pieces_.front();
    }

  private:
    static constexpr std::size_t piece = 256;
    std::size_t size_ = 0;
    std::vector<std::shared_ptr<std::array<T, piece>>> pieces_;
};

/// In the order in which events took effect. Adding a line is O(1). The views that `first` gives are cheap, and another
/// thread may read them while the original grows.
class Observations {
  public:
    /// Empty, without a space.
    Observations() = default;
    /// `dimensions`: the size of SearchSpace::encode.
    explicit Observations(std::size_t dimensions) : dimensions_(dimensions) {}

    [[nodiscard]] std::size_t size() const { return lines_.size(); }
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] const Observation& operator[](std::size_t line) const { return lines_[line]; }
    /// Coordinates of a point in the unit cube: those of SearchSpace::encode, NaN where the configuration lacks the
    /// parameter. Size: dimensions().
    [[nodiscard]] std::vector<double> point(std::uint64_t number) const;
    [[nodiscard]] std::uint64_t points() const {
        return dimensions_ == 0 ? points_ : coordinates_.size() / dimensions_;
    }
    /// SearchSpace::grid_point of a point.
    [[nodiscard]] std::uint64_t grid_point(std::uint64_t number) const { return grid_points_[number]; }
    /// Constraint::distance of each constraint of the study, for a line that was reported; empty: there are none, or
    /// they are not known.
    [[nodiscard]] std::vector<double> distances(std::size_t line) const;
    /// How many of the points, the first ones, are those of trials of earlier studies.
    [[nodiscard]] std::uint64_t earlier_points() const { return earlier_; }
    [[nodiscard]] std::size_t dimensions() const { return dimensions_; }
    /// The table as it was when it had `lines` lines.
    [[nodiscard]] Observations first(std::size_t lines) const;
    /// The same lines with coordinates of another space. Throws base::UsageError for a point that does not lie in it.
    [[nodiscard]] Observations moved(const space::SearchSpace& from, const space::SearchSpace& to) const;
    /// Whether this is the same table as `earlier`, a copy or a view of it, with at least as many lines. O(1). Tables
    /// that were restored are tables of their own. A searcher that has read `earlier` need not read its lines again.
    [[nodiscard]] bool continues(const Observations& earlier) const { return lines_.continues(earlier.lines_); }

    // ---- for the owner of the table
    /// A trial of an earlier study, with its results and its end. Before all other trials.
    void earlier(const study::EarlierTrial& trial, const space::SearchSpace& space, study::Mode mode);
    /// A new trial, or a new configuration of a trial.
    void asked(base::TrialId trial, base::Iteration iteration, const space::SearchSpace& space,
               const space::Configuration& configuration);
    /// `distances`: from each constraint; each call has as many, or none.
    void reported(base::TrialId trial, base::Iteration iteration, const study::Score& score,
                  std::span<const double> distances = {});
    void over(base::TrialId trial, base::Iteration iteration, study::TrialPhase phase);
    void paused(base::TrialId trial, base::Iteration iteration);
    void snapshot(study::Encoder& out) const;
    /// Into an empty table of the same space. Throws base::FormatError for damage.
    void restore(study::Decoder& in);

  private:
    void restore_report(base::TrialId trial, base::Iteration iteration, study::Decoder& in);
    void add_point(base::TrialId trial, base::Iteration iteration, std::uint64_t grid_point);
    [[nodiscard]] std::vector<std::uint64_t>& newest_of(base::TrialId trial);
    [[nodiscard]] std::uint64_t newest(base::TrialId trial);

    std::size_t dimensions_ = 0;
    std::uint64_t points_ = 0;
    std::uint64_t earlier_ = 0;
    GrowingList<Observation> lines_;
    GrowingList<double> coordinates_;
    GrowingList<std::uint64_t> grid_points_;
    std::size_t constraints_ = 0; ///< of reports with distances; 0: none so far
    GrowingList<double> distances_;
    // Newest point of each trial; empty in a view.
    std::vector<std::uint64_t> point_of_;
    std::vector<std::uint64_t> point_of_earlier_;
};

} // namespace ranktune::searchers
