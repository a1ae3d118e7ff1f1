// SPDX-License-Identifier: Apache-2.0
#pragma once
// The entries of [space], right or wrong, and what can be wrong with their conditions taken together: unknown names,
// circles, conditions that never hold.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/space/condition.hpp"
#include "ranktune/space/domain.hpp"
#include "study/checker.hpp"

namespace ranktune::study {

/// Of a parameter: its own condition and those of the tables around it.
struct Conditions {
    std::optional<space::Condition> all; ///< joined by "and"; nothing: always there
    std::vector<std::size_t> parts;      ///< numbers of the conditions as they are written, from the outermost
    bool unreadable = false;             ///< there is one that is wrong in itself
    [[nodiscard]] bool any() const { return all.has_value() || unreadable; }
};

/// What stands under one name of [space].
struct SpaceEntry {
    std::string name;
    std::optional<space::Domain> domain; ///< nothing: wrong
    Conditions conditions;
    bool pinned = false; ///< conditions may be left without a case: to them it may be anything
    /// False: a table that is no nested one and no parameter, as far as one can tell. There may be a parameter of this
    /// name, or some whose names go on from it.
    bool is_parameter = true;
};

/// Whether a parameter may have this name, once what is wrong with the entries is mended: nothing that mentions it can
/// be called mistaken.
[[nodiscard]] bool may_name_parameter(std::span<const SpaceEntry> entries, std::string_view name);
/// For suggestions.
[[nodiscard]] std::vector<std::string> names_of(std::span<const SpaceEntry> entries);

/// Collects the conditions and entries of [space] in the order of the file. Nodes have to outlive it.
class ConditionChecks {
  public:
    /// A condition as it is written, which holds for the parameters whose conditions `to` is copied to.
    void add_condition(space::Condition condition, const Node& node, std::string key, Conditions& to);
    /// One that cannot be read, which is told already.
    void add_unreadable(std::string_view text, Conditions& to);
    void add_entry(SpaceEntry entry);
    [[nodiscard]] const std::vector<SpaceEntry>& entries() const { return entries_; }

    /// Says what is wrong, each at its own condition. `names`: gets all parameters that conditions mention. `trusted`:
    /// a study that began already; that a condition never holds is not looked at.
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
