// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can be wrong with the conditions of [space] taken together: unknown names, circles, conditions that never hold.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/space/condition.hpp"
#include "ranktune/space/domain.hpp"
#include "study/checker.hpp"

namespace ranktune::study {

/// Of a parameter: its own condition and those of the tables around it.
struct Conditions {
    std::optional<space::Condition> all; ///< joined by "and"; nothing: always there
    std::vector<std::size_t> parts;      ///< numbers of the conditions as they are written, from the outermost
};

/// Collects the conditions and parameters of [space] in the order of the file. Nodes have to outlive it.
class ConditionChecks {
  public:
    /// A condition as it is written, which holds for the parameters whose conditions `to` is copied to.
    void add_condition(space::Condition condition, const Node& node, std::string key, Conditions& to);
    /// `domain`: nothing when it is wrong, or may be anything.
    void add_parameter(std::string name, std::optional<space::Domain> domain, Conditions conditions);

    /// Says what is wrong, each at its own condition. `names`: gets all parameters that conditions mention. `trusted`:
    /// a study that began already; that a condition never holds is not looked at.
    void check(Mistakes& mistakes, std::vector<std::string>& names, bool trusted) const;

  private:
    struct Written {
        space::Condition condition;
        const Node* node;
        std::string key;
    };
    struct Member {
        std::string name;
        std::optional<space::Domain> domain;
        Conditions conditions;
    };

    [[nodiscard]] const Member* find(std::string_view name) const;
    [[nodiscard]] bool check_names(Mistakes& mistakes, std::vector<std::string>& names) const;
    [[nodiscard]] bool check_circles(Mistakes& mistakes) const;
    [[nodiscard]] std::vector<std::vector<std::size_t>> needs() const;
    void tell_circle(Mistakes& mistakes, const std::vector<std::size_t>& circle) const;
    void check_possible(Mistakes& mistakes) const;
    [[nodiscard]] bool possible(const space::Condition& condition) const;
    void tell_impossible(Mistakes& mistakes, std::size_t part, const std::string& why) const;
    [[nodiscard]] std::string drawn_from(const space::Condition& condition) const;

    std::vector<Written> written_;
    std::vector<Member> members_;
};

} // namespace ranktune::study
