// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads [space] and its nested tables.

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/space/search_space.hpp"
#include "study/parse/space/condition_checks.hpp"

namespace ranktune::study {

/// Reads the table and all nested ones.
class SpaceReader {
  public:
    /// `trusted`: a resolved study, whose keys are not checked for spelling mistakes.
    SpaceReader(Mistakes& mistakes, bool trusted) : mistakes_(mistakes), trusted_(trusted) {}

    void read_table(const Node& table, const std::string& prefix, const Conditions& outer);
    /// Call once, after all tables: gives a domain to what has bounds that depend on other parameters.
    void read_dependent();

    /// The checks for all tables read, because conditions may mention later parameters.
    [[nodiscard]] const ConditionChecks& checks() const { return checks_; }
    /// Those of `require` first, as in a resolved file.
    [[nodiscard]] std::vector<space::Rule> take_rules();

  private:
    void read_rules(const Node& node, const std::string& key, bool forbids);
    void read_combination(const Node& table, const std::string& key);
    [[nodiscard]] std::optional<std::string> combination_text(const Node& table, const std::string& key,
                                                              const std::string& prefix);
    void add_rule(const std::string& text, const Node& node, const std::string& key, bool forbids);
    void read_entry(const Node& node, const std::string& name, const Conditions& outer);
    void read_long_form(const Node& node, const std::string& name, const Conditions& outer);
    [[nodiscard]] bool refuse_misspelt(const Node& node, const std::string& name);
    [[nodiscard]] bool refuse_foreign(const Node& node, const std::string& name);
    void read_condition(const Node& node, const std::string& key, Conditions& to);
    [[nodiscard]] std::optional<space::Domain> read_domain(const Node& node, const std::string& key);
    [[nodiscard]] std::optional<space::Domain> read_call(const Node& node, const std::string& key);
    [[nodiscard]] bool settle(const Node& node, const std::string& key, SpaceEntry& entry);
    void read_variants(const Node& node, const std::string& name, const Conditions& outer);
    void read_variant_members(const Node& list, const std::string& name, const std::string& own,
                              const Conditions& outer);
    [[nodiscard]] std::optional<space::Domain> read_choice(const Node& node, const std::string& key);
    [[nodiscard]] std::optional<space::Domain> read_constant(const Node& node, const std::string& key);
    [[nodiscard]] std::optional<space::Domain> weighted(space::Domain domain, const Node& weights,
                                                        const std::string& key);
    void add(const Node& node, const std::string& name, std::optional<space::Domain> domain, Conditions conditions);

    Mistakes& mistakes_;
    bool trusted_;
    ConditionChecks checks_;
    std::vector<space::Rule> rules_;
    /// Calls with bounds that depend on other parameters; the entry of each has no domain yet.
    struct Dependent {
        const Node* node;
        std::string key;
        std::size_t entry;
    };
    std::vector<Dependent> dependent_;
    bool depends_ = false; ///< the domain that was read last
};

} // namespace ranktune::study
