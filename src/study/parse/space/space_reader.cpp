// SPDX-License-Identifier: Apache-2.0
#include "study/parse/space/space_reader.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "study/options.hpp"
#include "study/parse/foreign/foreign_range.hpp"
#include "study/parse/foreign/foreign_text.hpp"
#include "study/parse/parse_tables.hpp"

namespace ranktune::study {

using space::Condition;
using space::Domain;

namespace {

bool is_near(const std::string& key, std::string_view word) {
    return key != word && !base::nearest(key, {word}).empty();
}

bool is_condition(const Node& node) {
    if (!node.is(Node::Kind::string)) return false;
    try {
        static_cast<void>(Condition::parse(node.text));
        return true;
    } catch (const base::UsageError&) {
        return false;
    }
}

bool is_list_of_tables(const Node& node) {
    const auto is_table = [](const Node& item) { return item.is(Node::Kind::table); };
    return node.is(Node::Kind::array) && !node.items.empty() && std::ranges::all_of(node.items, is_table);
}

bool is_call(const Node& node) { return node.is(Node::Kind::string) && space::looks_like_call(node.text); }

/// Whether a member of [space] is what configurations keep, and no hyper-parameter of this name.
bool is_rule(const std::string& key, const Node& node) {
    if ((key != "require" && key != "forbid") || is_call(node) || is_long_form(node)) return false;
    if (node.is(Node::Kind::table)) return key == "forbid";
    return node.is(Node::Kind::string) || node.is(Node::Kind::array);
}

/// The key of the long form that the member was probably meant to be, or nothing.
std::string_view meant_word(const Node& table, const Member& member) {
    if (is_near(member.key, "condition") && is_condition(member.value)) return "condition";
    if (is_near(member.key, "domain") && is_call(member.value)) return "domain";
    // Alone, or beside a condition: a nested table would have no more than this one parameter.
    const bool alone = std::ranges::all_of(table.members, [&](const Member& other) {
        return other.key == member.key || other.key == "condition" || is_near(other.key, "condition");
    });
    if (alone && is_near(member.key, "value") && !member.value.is(Node::Kind::table)) return "value";
    return {};
}

/// The smallest and the largest number of a domain; nullopt: it has others, or no bounds.
std::optional<Condition::Range> number_range(const Domain& domain) {
    if (const auto* range = std::get_if<space::FloatRange>(&domain))
        return Condition::Range{range->lower, range->upper};
    const auto count = space::cardinality(domain);
    if (!count) return std::nullopt;
    Condition::Range range{space::value_at(domain, 0).is_number() ? space::value_at(domain, 0).as_double() : 0.0, 0.0};
    range.high = range.low;
    const auto take = [&](std::uint64_t index) {
        const space::Value value = space::value_at(domain, index);
        if (!value.is_number()) return false;
        range = {std::min(range.low, value.as_double()), std::max(range.high, value.as_double())};
        return true;
    };
    if (std::holds_alternative<space::IntRange>(domain))
        return take(0) && take(*count - 1) ? std::optional(range) : std::nullopt;
    for (std::uint64_t i = 0; i < *count; ++i)
        if (!take(i)) return std::nullopt;
    return range;
}

/// The key whose values tell the tables of a list apart; null: there is none.
const std::string* telling_key(const Node& list) {
    for (const Member& member : list.items.front().members) {
        std::vector<std::string> seen;
        for (const Node& table : list.items) {
            const Node* node = table.find(member.key);
            const bool constant = node != nullptr && !is_call(*node) &&
                                  (node->is(Node::Kind::string) || node->is_number() || node->is(Node::Kind::boolean));
            if (!constant || std::ranges::find(seen, node->text) != seen.end()) break;
            seen.push_back(node->text);
        }
        if (seen.size() == list.items.size()) return &member.key;
    }
    return nullptr;
}

bool are_same(const Node& a, const Node& b) {
    if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
        a.members.size() != b.members.size())
        return false;
    for (std::size_t i = 0; i < a.items.size(); ++i)
        if (!are_same(a.items[i], b.items[i])) return false;
    for (std::size_t i = 0; i < a.members.size(); ++i)
        if (a.members[i].key != b.members[i].key || !are_same(a.members[i].value, b.members[i].value)) return false;
    return true;
}

} // namespace

/// Refuses a table of [space] that is nearly a long form: as a nested table it would give parameters such as
/// `lr.domain`.
bool SpaceReader::refuse_misspelt(const Node& node, const std::string& name) {
    if (trusted_) return false;
    const Node* domain = node.find("domain");
    const bool has_domain = domain != nullptr && (is_call(*domain) || domain->is(Node::Kind::array));
    const std::size_t before = mistakes_.size();
    for (const Member& member : node.members) {
        if (member.key == "domain" || member.key == "value" || member.key == "condition" || member.key == "weights")
            continue;
        const std::string key = "space." + name + "." + member.key;
        const std::string way_out =
            "; a hyper-parameter of this name is written " + member.key + " = { value = ... } or { domain = ... }";
        if (const auto word = meant_word(node, member); !word.empty()) {
            mistakes_.key(member.value, key, "unknown key; did you mean '" + std::string(word) + "'?" + way_out);
        } else if (has_domain) {
            mistakes_.key(member.value, key,
                          "unknown key beside 'domain', which goes with 'condition' and 'weights' alone; a "
                          "hyper-parameter called "
                          "domain is written domain = { domain = ... }");
        }
    }
    return mistakes_.size() != before;
}

/// Refuses a range as another tool writes it: as a table, a list of tables, or a string.
bool SpaceReader::refuse_foreign(const Node& node, const std::string& name) {
    if (trusted_) return false;
    const std::string own_name = name.substr(name.rfind('.') + 1);
    std::string why;
    if (node.is(Node::Kind::table)) why = foreign_range(node, own_name);
    if (node.is(Node::Kind::array)) why = foreign_list(node, own_name);
    if (node.is(Node::Kind::string)) why = foreign_text(node.text, own_name);
    if (!why.empty()) mistakes_.value(node, "space." + name, why);
    return !why.empty();
}

void SpaceReader::read_table(const Node& table, const std::string& prefix, const Conditions& outer) {
    Conditions inner = outer;
    // As a string, `condition` is the condition of the table; in any other form it is a hyper-parameter of that name.
    if (const Node* node = table.find("condition"); node != nullptr && node->is(Node::Kind::string)) {
        const std::string key = "space." + prefix + "condition";
        if (prefix.empty()) {
            mistakes_.key(*node, key,
                          "a condition belongs to a parameter or to a nested table, not to the whole space; a "
                          "hyper-parameter of this name is written condition = { value = ... }");
        } else {
            read_condition(*node, key, inner);
        }
    }
    bool any = false;
    for (const auto& [key, node] : table.members) {
        if (key == "condition" && node.is(Node::Kind::string)) continue;
        any = true;
        if (prefix.empty() && is_rule(key, node)) {
            read_rules(node, "space." + key, key == "forbid");
            continue;
        }
        const std::string name = prefix + key;
        if (check_name(node, "space." + name, key, mistakes_))
            read_entry(node, name, inner);
        else
            checks_.add_entry({.name = name, .domain = {}, .conditions = inner, .is_parameter = false});
    }
    if (!any && !prefix.empty()) {
        const std::string name = prefix.substr(0, prefix.size() - 1);
        mistakes_.value(table, "space." + name, "a nested table without parameters");
        checks_.add_entry({.name = name, .domain = {}, .conditions = inner, .is_parameter = false});
    }
}

void SpaceReader::read_entry(const Node& node, const std::string& name, const Conditions& outer) {
    if (is_long_form(node)) {
        read_long_form(node, name, outer);
    } else if (node.is(Node::Kind::table)) {
        if (refuse_foreign(node, name) || refuse_misspelt(node, name)) {
            // Other conditions may mention it.
            checks_.add_entry({.name = name, .domain = {}, .conditions = outer, .is_parameter = false});
        } else {
            read_table(node, name + ".", outer);
        }
    } else if (refuse_foreign(node, name)) {
        checks_.add_entry({.name = name, .domain = {}, .conditions = outer, .is_parameter = false});
    } else if (is_list_of_tables(node)) {
        read_variants(node, name, outer);
    } else {
        const std::string key = "space." + name;
        const bool drawn = is_call(node) || node.is(Node::Kind::array);
        add(node, name, drawn ? read_domain(node, key) : read_constant(node, key), outer);
    }
}

void SpaceReader::read_long_form(const Node& node, const std::string& name, const Conditions& outer) {
    const std::string key = "space." + name;
    Conditions conditions = outer;
    if (const Node* condition = node.find("condition")) read_condition(*condition, key + ".condition", conditions);
    const Node* domain = node.find("domain");
    const Node* value = node.find("value");
    std::optional<Domain> read;
    if (domain != nullptr && value != nullptr) {
        mistakes_.key(*value, key + ".value", "is given beside domain; give one of them");
    } else if (domain != nullptr) {
        read = read_domain(*domain, key + ".domain");
        if (const Node* weights = node.find("weights"); weights != nullptr && read)
            read = weighted(*std::move(read), *weights, key + ".weights");
    } else {
        read = read_constant(*value, key + ".value");
        if (const Node* weights = node.find("weights")) // a constant has none
            read = read ? weighted(*std::move(read), *weights, key + ".weights") : std::nullopt;
    }
    add(node, name, std::move(read), std::move(conditions));
}

std::vector<space::Rule> SpaceReader::take_rules() {
    std::ranges::stable_partition(rules_, [](const space::Rule& rule) { return !rule.forbids; });
    return std::move(rules_);
}

/// One text, a list of texts, or, of what is forbidden, tables of values.
void SpaceReader::read_rules(const Node& node, const std::string& key, bool forbids) {
    if (node.is(Node::Kind::array)) {
        for (const Node& item : node.items) read_rules(item, key, forbids);
    } else if (node.is(Node::Kind::string)) {
        add_rule(node.text, node, key, forbids);
    } else if (forbids && node.is(Node::Kind::table)) {
        read_combination(node, key);
    } else {
        mistakes_.value(node, key,
                        std::string("needs a condition such as \"width * depth <= 4096\"") +
                            (forbids ? " or a table of values" : "") + ", not " + std::string(kind_text(node)) +
                            "; a hyper-parameter of this name is written { value = ... } or { domain = ... }");
    }
}

/// `{ optimizer = "sgd", batch_size = [256, 512] }`: these values together.
void SpaceReader::read_combination(const Node& table, const std::string& key) {
    if (const auto text = combination_text(table, key, "")) add_rule(*text, table, key, true);
}

std::optional<std::string> SpaceReader::combination_text(const Node& table, const std::string& key,
                                                         const std::string& prefix) {
    std::string text;
    for (const auto& [own, node] : table.members) {
        const std::string name = prefix + own;
        std::optional<std::string> part;
        if (node.is(Node::Kind::table)) {
            part = combination_text(node, key, name + ".");
        } else if (const auto value = to_value(node, key + "." + name, mistakes_)) {
            part = name + (value->is_list() ? " in " : " == ") + value->literal();
        }
        if (!part) return std::nullopt;
        text += (text.empty() ? "" : " and ") + *part;
    }
    return text;
}

void SpaceReader::add_rule(const std::string& text, const Node& node, const std::string& key, bool forbids) {
    try {
        rules_.push_back({Condition::parse(text), forbids});
        Conditions apart;
        checks_.add_condition(rules_.back().condition, node, key, apart);
    } catch (const base::UsageError& error) {
        mistakes_.value(node, key, std::string(error.what()) + ":  " + in_quotes(text));
    }
}

void SpaceReader::read_condition(const Node& node, const std::string& key, Conditions& to) {
    if (!node.is(Node::Kind::string)) {
        to.unreadable = true;
        mistakes_.value(node, key, "needs a string, as in \"optimizer == 'sgd'\", not " + std::string(kind_text(node)));
        return;
    }
    try {
        checks_.add_condition(Condition::parse(node.text), node, key, to);
    } catch (const base::UsageError& error) {
        checks_.add_unreadable(node.text, to);
        mistakes_.value(node, key, std::string(error.what()) + ":  " + in_quotes(node.text));
    }
}

std::optional<Domain> SpaceReader::read_domain(const Node& node, const std::string& key) {
    if (node.is(Node::Kind::array)) return read_choice(node, key);
    if (node.is(Node::Kind::string)) return read_call(node, key);
    mistakes_.value(node, key,
                    "needs a call such as \"uniform(0.0, 1.0)\" or a list, not " + std::string(kind_text(node)) +
                        "; a constant is written value = ...");
    return std::nullopt;
}

std::optional<Domain> SpaceReader::read_call(const Node& node, const std::string& key) {
    if (!space::looks_like_call(node.text)) {
        mistakes_.value(node, key,
                        "needs a call such as \"uniform(0.0, 1.0)\" or a list, not " + in_quotes(node.text) +
                            "; a constant is written value = ...");
        return std::nullopt;
    }
    depends_ = false;
    try {
        // Which parameters there are is known at the end.
        return space::parse_domain(node.text, "",
                                   [&](const std::string&) -> Condition::Range {
                                       depends_ = true;
                                       throw base::UsageError("");
                                   })
            .domain;
    } catch (const base::UsageError& error) {
        if (!depends_) mistakes_.value(node, key, std::string(error.what()) + ":  " + in_quotes(node.text));
        return std::nullopt;
    }
}

/// Gives the entry its domain, and the rules that go with it; false: a parameter that a bound mentions has none yet.
bool SpaceReader::settle(const Node& node, const std::string& key, SpaceEntry& entry) {
    bool waits = false;
    const auto bounds = [&](const std::string& name) -> Condition::Range {
        const auto& entries = checks_.entries();
        const auto found = std::ranges::find(entries, name, &SpaceEntry::name);
        if (found == entries.end())
            throw base::UsageError("unknown parameter '" + name + "'" + base::suggestion(name, names_of(entries)));
        if (!found->domain) {
            waits = true;
            throw base::UsageError("");
        }
        const auto range = number_range(*found->domain);
        if (!range)
            throw base::UsageError("'" + name + "' has no smallest and largest number: " + space::text(*found->domain));
        return *range;
    };
    try {
        auto dependent = space::parse_domain(node.text, entry.name, bounds);
        entry.domain = std::move(dependent.domain);
        for (const std::string& requirement : dependent.requirements) add_rule(requirement, node, key, false);
    } catch (const base::UsageError& error) {
        if (waits) return false;
        mistakes_.value(node, key, std::string(error.what()) + ":  " + in_quotes(node.text));
    }
    return true;
}

void SpaceReader::read_dependent() {
    bool any = true;
    while (any) {
        any = false;
        std::erase_if(dependent_, [&](const Dependent& each) {
            const bool settled = settle(*each.node, each.key, checks_.entry(each.entry));
            any = any || settled;
            return settled;
        });
    }
    if (mistakes_.empty() && !dependent_.empty())
        mistakes_.value(*dependent_.front().node, dependent_.front().key,
                        "its bounds depend on parameters whose bounds depend on it; write one of them with numbers:  " +
                            in_quotes(dependent_.front().node->text));
}

/// `[{ name = "sgd", momentum = "uniform(0, 1)" }, { name = "adam" }]`: a choice of the names, and parameters that
/// exist where their table is chosen.
void SpaceReader::read_variants(const Node& node, const std::string& name, const Conditions& outer) {
    const std::string* key = telling_key(node);
    if (key == nullptr) {
        mistakes_.value(node, "space." + name,
                        "is a list of tables that no key tells apart; give each one, as in " + name +
                            " = [{ name = \"sgd\", momentum = \"uniform(0, 1)\" }, { name = \"adam\" }]");
        checks_.add_entry({.name = name, .domain = {}, .conditions = outer, .is_parameter = false});
        return;
    }
    Node choice;
    choice.kind = Node::Kind::array;
    choice.at = node.at;
    choice.key_at = node.key_at;
    std::vector<std::string> members;
    for (const Node& table : node.items) {
        choice.items.push_back(*table.find(*key));
        for (const Member& member : table.members)
            if (member.key != *key && std::ranges::find(members, member.key) == members.end())
                members.push_back(member.key);
    }
    const std::string chosen = name + "." + *key;
    if (!check_name(*node.items.front().find(*key), "space." + chosen, *key, mistakes_)) {
        checks_.add_entry({.name = name, .domain = {}, .conditions = outer, .is_parameter = false});
        return;
    }
    add(node, chosen, read_choice(choice, "space." + chosen), outer);
    for (const std::string& member : members) read_variant_members(node, chosen, member, outer);
}

/// The parameter `own` of the tables of a list, told apart by the parameter `chosen`.
void SpaceReader::read_variant_members(const Node& list, const std::string& chosen, const std::string& own,
                                       const Conditions& outer) {
    const auto dot = chosen.rfind('.');
    const std::string name = chosen.substr(0, dot) + "." + own;
    const Node* first = nullptr;
    std::vector<space::Value> with;
    for (const Node& table : list.items) {
        const Node* node = table.find(own);
        if (node == nullptr) continue;
        const auto value = to_value(*table.find(chosen.substr(dot + 1)), "space." + chosen, mistakes_);
        if (value) with.push_back(*value);
        if (first == nullptr) first = node;
        if (are_same(*first, *node)) continue;
        mistakes_.value(*node, "space." + name,
                        "has another domain in a table before; give them different names, or one domain and rules");
        return;
    }
    if (!check_name(*first, "space." + name, own, mistakes_)) return;
    Conditions inner = outer;
    if (with.size() < list.items.size())
        checks_.add_condition(Condition::parse(chosen + " in " + space::Value(with).literal()), list, "space." + name,
                              inner);
    read_entry(*first, name, inner);
}

std::optional<Domain> SpaceReader::read_choice(const Node& node, const std::string& key) {
    const auto values = to_value(node, key, mistakes_);
    if (!values) return std::nullopt;
    // Studies of before 0.2.0 have lists without an order; resolved files since then say it of each list of numbers.
    Domain domain = space::Choice{values->as_list(), !trusted_ && space::in_order(values->as_list())};
    if (const std::string why = space::problem(domain); !why.empty()) {
        mistakes_.value(node, key, "a choice " + why);
        return std::nullopt;
    }
    return domain;
}

std::optional<Domain> SpaceReader::read_constant(const Node& node, const std::string& key) {
    const auto value = to_value(node, key, mistakes_);
    if (!value) return std::nullopt;
    return space::Constant{*value};
}

std::optional<Domain> SpaceReader::weighted(Domain domain, const Node& weights, const std::string& key) {
    auto* choice = std::get_if<space::Choice>(&domain);
    if (choice == nullptr) {
        mistakes_.key(weights, key, "goes with a list of values, not with " + space::text(domain));
        return std::nullopt;
    }
    if (!weights.is(Node::Kind::array) || !std::ranges::all_of(weights.items, &Node::is_number)) {
        mistakes_.value(weights, key, "needs a list of numbers, one for each value, as in [3, 1, 1]");
        return std::nullopt;
    }
    choice->weights.clear();
    for (const Node& item : weights.items)
        choice->weights.push_back(item.is(Node::Kind::integer) ? static_cast<double>(item.integer) : item.real);
    std::string why = choice->weights.empty() ? "needs one weight for each value" : space::problem(domain);
    if (why.empty()) return domain;
    mistakes_.value(weights, key, std::move(why));
    return std::nullopt;
}

void SpaceReader::add(const Node& node, const std::string& name, std::optional<Domain> domain, Conditions conditions) {
    // A parameter pinned on the command line may make conditions of the file impossible; that is no mistake.
    const bool pinned = !node.override_by.empty() || (domain && std::holds_alternative<space::Constant>(*domain));
    if (std::exchange(depends_, false)) {
        const Node* call = node.is(Node::Kind::table) ? node.find("domain") : &node;
        dependent_.push_back({call, "space." + name + (call == &node ? "" : ".domain"), checks_.entries().size()});
    }
    checks_.add_entry({name, std::move(domain), std::move(conditions), pinned});
}

} // namespace ranktune::study
