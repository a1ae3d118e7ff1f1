// SPDX-License-Identifier: Apache-2.0
#pragma once
// Grid search: every configuration of a finite space, once.

#include <vector>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/enumeration.hpp"

namespace ranktune::searchers {

/// Suggestion i is configuration i of the `Enumeration`: all domains crossed in file order, the last fastest; lists,
/// grids, integer ranges and quantised floats count. Points that others have asked for before their turn came (start
/// points, points that users added) are left out. Where the space has grown, all that have had a trial are left out,
/// and the next suggestion is the first of the others. After the last one the search ends, however many trials the
/// study asks for (Ray Tune repeats the whole grid instead).
class GridSearcher final : public Searcher {
  public:
    /// `space` must outlive it. Throws base::UsageError naming the continuous parameters.
    explicit GridSearcher(const space::SearchSpace& space) : points_(space) {}

    [[nodiscard]] std::string_view name() const override { return "grid"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index, const Observations&) const override {
        if (exhausted(index)) return std::nullopt;
        return points_.at(number_of(index));
    }
    [[nodiscard]] bool exhausted(std::uint64_t index) const override { return number_of(index) >= points_.size(); }
    void apply(const study::Record& record) override;
    void begin_after(std::uint64_t suggested) override { first_ = suggested_ = suggested; }
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;

  private:
    /// Of suggestion `index` in the enumeration.
    [[nodiscard]] std::uint64_t number_of(std::uint64_t index) const;

    space::Enumeration points_;
    std::uint64_t suggested_ = 0;         ///< suggestions that trials have taken
    std::uint64_t first_ = 0;             ///< suggestion that is the first configuration not left out
    std::vector<std::uint64_t> left_out_; ///< numbers of points that are no suggestions, ascending
};

} // namespace ranktune::searchers
