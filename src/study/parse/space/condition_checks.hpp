// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries of [space], right or wrong, and what can be wrong with their conditions taken together: unknown names,
// cycles, conditions that never hold.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/space/condition.hpp"
#include "ranktune/space/domain.hpp"
#include "study/parse/checker.hpp"

namespace ranktune::study {

/// The conditions of a parameter: its own and those of the tables around it.
struct Conditions {
    std::optional<space::Condition> all; ///< joined by "and"; nullopt: always active
    std::vector<std::size_t> parts;      ///< positions of the conditions as written, from the outermost
    bool unreadable = false;             ///< one of them cannot be parsed
    [[nodiscard]] bool any() const { return all.has_value() || unreadable; }
};

/// The entry of one name in [space].
struct SpaceEntry {
    std::string name;
    std::optional<space::Domain> domain; ///< nullopt: wrong
    Conditions conditions;
    bool pinned = false; ///< has one fixed value; checks of conditions treat it as unknown
    /// False: an entry with a mistake that may have been meant as a parameter of this name, or as a table of
    /// parameters.
    bool is_parameter = true;
};

/// Whether a parameter has this name, or may have it once the mistakes in the entries are corrected; then a mention of
/// it is not reported as unknown.
[[nodiscard]] bool may_name_parameter(std::span<const SpaceEntry> entries, std::string_view name);
/// For suggestions.
[[nodiscard]] std::vector<std::string> names_of(std::span<const SpaceEntry> entries);

/// Collects the conditions and entries of [space] in the order of the file. Nodes have to outlive it.
class ConditionChecks {
  public:
    /// Adds a condition to those in `to`, for all parameters whose conditions are copied from `to`.
    void add_condition(space::Condition condition, const Node& node, std::string key, Conditions& to);
    /// Adds a condition that cannot be parsed. The caller has reported it.
    void add_unreadable(std::string_view text, Conditions& to);
    void add_entry(SpaceEntry entry);
    [[nodiscard]] const std::vector<SpaceEntry>& entries() const { return entries_; }
    [[nodiscard]] SpaceEntry& entry(std::size_t position) { return entries_[position]; }

    /// Reports each mistake at its condition. `names`: gets all parameters that conditions mention. `trusted`: the
    /// study has begun already; do not check whether conditions can hold.
    void check(Mistakes& mistakes, std::vector<std::string>& names, bool trusted) const;

  private:
    struct Written {
        space::Condition condition;
        const Node* node;
        std::string key;
    };

    [[nodiscard]] const SpaceEntry* find(std::string_view name) const;
    [[nodiscard]] const space::Domain* drawn(std::string_view name) const;
    void check_names(Mistakes& mistakes, std::vector<std::string>& names) const;
    void check_circles(Mistakes& mistakes) const;
    [[nodiscard]] std::vector<std::vector<std::size_t>> needs() const;
    void tell_circle(Mistakes& mistakes, const std::vector<std::size_t>& circle) const;
    void check_possible(Mistakes& mistakes) const;
    [[nodiscard]] bool possible(const space::Condition& condition) const;
    void tell_impossible(Mistakes& mistakes, std::size_t part, const std::string& why) const;
    [[nodiscard]] std::string drawn_from(const space::Condition& condition) const;

    std::vector<Written> written_;
    std::vector<SpaceEntry> entries_;
    std::vector<std::string> mentioned_; ///< words of conditions that cannot be read
};

} // namespace ranktune::study
