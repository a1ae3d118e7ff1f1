// SPDX-License-Identifier: Apache-2.0
#include "study/options.hpp"

#include <algorithm>
#include <cmath>

#include "ranktune/base/text.hpp"

namespace ranktune::study {
namespace {

constexpr int max_option_depth = 8;

std::string bounds_text(const OptionInfo& option) {
    if (option.low && option.high)
        return " from " + space::number_text(*option.low) + " to " + space::number_text(*option.high);
    if (option.low) return " >= " + space::number_text(*option.low);
    if (option.high) return " <= " + space::number_text(*option.high);
    return "";
}

bool within(const OptionInfo& option, double value) {
    return !(option.low && value < *option.low) && !(option.high && value > *option.high);
}

bool suits(const OptionInfo& option, const space::Value& value) {
    if (value.is_none()) return !option.required; // as if it were not given
    switch (option.kind) {
        case OptionInfo::Kind::boolean:
            return value.is_bool();
        case OptionInfo::Kind::integer:
            return value.is_int() && within(option, static_cast<double>(value.as_int()));
        case OptionInfo::Kind::number:
            return value.is_number() && std::isfinite(value.as_double()) && within(option, value.as_double());
        case OptionInfo::Kind::string:
            return value.is_string() &&
                   (option.accepted.empty() ||
                    std::ranges::find(option.accepted, value.as_string()) != option.accepted.end());
        case OptionInfo::Kind::path:
            return value.is_string() && !value.as_string().empty();
        case OptionInfo::Kind::integer_list:
            return value.is_list() && std::ranges::all_of(value.as_list(), [&](const space::Value& item) {
                       return item.is_int() && within(option, static_cast<double>(item.as_int()));
                   });
    }
    return false;
}

std::string shown(const space::Value& value) {
    if (value.is_string()) return in_quotes(value.as_string());
    const std::string text = value.text();
    return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

std::string takes(const OptionInfo& option, const std::string& instead) {
    return "the option takes " + option_text(option) + ", not " + instead;
}

std::string range_problem(const OptionInfo& option, const space::FloatRange& range) {
    if (option.kind == OptionInfo::Kind::integer)
        return takes(option, "floats; integers are drawn by randint, lograndint, qrandint and qlograndint");
    if (option.kind != OptionInfo::Kind::number) return takes(option, "floats");
    if (within(option, range.lower) && within(option, range.upper)) return "";
    return takes(option, "values from " + space::number_text(range.lower) + " to " + space::number_text(range.upper));
}

std::string range_problem(const OptionInfo& option, const space::IntRange& range) {
    if (option.kind != OptionInfo::Kind::integer && option.kind != OptionInfo::Kind::number)
        return takes(option, "integers");
    if (within(option, static_cast<double>(range.lower)) && within(option, static_cast<double>(range.upper))) return "";
    return takes(option, "integers from " + std::to_string(range.lower) + " to " + std::to_string(range.upper));
}

std::string range_problem(const OptionInfo& option, const space::Normal&) {
    if (option.kind != OptionInfo::Kind::number) return takes(option, "floats");
    if (!option.low && !option.high) return "";
    return takes(option, "a normal distribution, which has no bounds");
}

std::string list_problem(const OptionInfo& option, const std::vector<space::Value>& values) {
    for (const space::Value& value : values)
        if (std::string why = option_problem(option, value); !why.empty()) return why;
    return "";
}

std::string range_problem(const OptionInfo& option, const space::Choice& choice) {
    return list_problem(option, choice.values);
}
std::string range_problem(const OptionInfo& option, const space::Grid& grid) {
    return list_problem(option, grid.values);
}
std::string range_problem(const OptionInfo& option, const space::Constant& constant) {
    return option_problem(option, constant.value);
}

std::optional<space::Value> to_value(const Node& node, const std::string& key, Mistakes& mistakes, int depth) {
    switch (node.kind) {
        case Node::Kind::boolean:
            return space::Value(node.boolean);
        case Node::Kind::integer:
            return space::Value(node.integer);
        case Node::Kind::string:
            return space::Value(node.text);
        case Node::Kind::real:
            if (!std::isnan(node.real)) return space::Value(node.real);
            mistakes.value(node, key, "nan is not a value");
            return std::nullopt;
        case Node::Kind::array:
            break;
        default:
            mistakes.value(node, key, "needs a boolean, number, string or list, not " + std::string(kind_text(node)));
            return std::nullopt;
    }
    if (depth >= max_option_depth) {
        mistakes.value(node, key, "lists are nested more than " + std::to_string(max_option_depth) + " deep");
        return std::nullopt;
    }
    space::Value::List list;
    for (const Node& item : node.items) {
        auto value = to_value(item, key, mistakes, depth + 1);
        if (!value) return std::nullopt;
        list.push_back(std::move(*value));
    }
    return space::Value(std::move(list));
}

} // namespace

bool check_name(const Node& node, const std::string& key, std::string_view name, Mistakes& mistakes) {
    constexpr std::size_t longest = 100;
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto allowed = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '-'; };
    if (!name.empty() && name.size() <= longest && letter(name[0]) && std::ranges::all_of(name, allowed)) return true;
    mistakes.key(node, key,
                 "a name has letters, digits, '_' and '-', begins with a letter or '_', and is at most " +
                     std::to_string(longest) + " long");
    return false;
}

std::optional<space::Value> to_value(const Node& node, const std::string& key, Mistakes& mistakes) {
    return to_value(node, key, mistakes, 0);
}

const OptionInfo* find_option(const TrainableInfo& info, std::string_view name) {
    const auto found = std::ranges::find(info.options, name, &OptionInfo::name);
    return found == info.options.end() ? nullptr : &*found;
}

std::string option_text(const OptionInfo& option) {
    switch (option.kind) {
        case OptionInfo::Kind::boolean:
            return "true or false";
        case OptionInfo::Kind::integer:
            return "an integer" + bounds_text(option);
        case OptionInfo::Kind::number:
            return "a number" + bounds_text(option);
        case OptionInfo::Kind::path:
            return "a path";
        case OptionInfo::Kind::integer_list:
            return bounds_text(option).empty() ? "a list of integers"
                                               : "a list of integers, each" + bounds_text(option);
        case OptionInfo::Kind::string:
            break;
    }
    if (option.accepted.empty()) return "a string";
    const std::vector<std::string_view> accepted(option.accepted.begin(), option.accepted.end());
    return either(accepted);
}

std::string option_problem(const OptionInfo& option, const space::Value& value) {
    if (suits(option, value)) return "";
    std::string why = takes(option, shown(value));
    if (option.kind == OptionInfo::Kind::string && value.is_string()) {
        const std::string_view best = base::nearest(value.as_string(), option.accepted);
        if (!best.empty()) why += "; did you mean \"" + std::string(best) + "\"?";
    }
    return why;
}

std::string option_problem(const OptionInfo& option, const space::Domain& domain) {
    return std::visit([&](const auto& d) { return range_problem(option, d); }, domain);
}

std::string absolute_path(const std::string& path, const std::filesystem::path& directory) {
    // An empty path is reported as a mistake elsewhere; resolved, it would be the folder itself.
    if (path.empty()) return path;
    std::string absolute = std::filesystem::absolute(directory / path).lexically_normal().string();
    if (absolute.size() > 1 && absolute.ends_with('/')) absolute.pop_back();
    return absolute;
}

std::optional<std::string> data_reference(const space::Value& value) {
    constexpr std::string_view begin = "{data.";
    if (!value.is_string() || !value.as_string().starts_with(begin) || !value.as_string().ends_with('}')) return {};
    return value.as_string().substr(begin.size(), value.as_string().size() - begin.size() - 1);
}

void add_options(space::Configuration& configuration, const StudySpec& spec) {
    for (const auto& option : spec.trainable.options.entries()) configuration.set(option.name, option.value);
    if (spec.data.empty()) return;
    const space::Configuration given = configuration;
    for (const auto& entry : given.entries())
        if (const auto name = data_reference(entry.value))
            if (const DataFile* file = spec.data_file(*name)) configuration.set(entry.name, file->path);
}

space::Value resolved(const OptionInfo& option, const space::Value& value, const std::filesystem::path& directory) {
    if (option.kind != OptionInfo::Kind::path || !value.is_string() || data_reference(value)) return value;
    return absolute_path(value.as_string(), directory);
}

space::Domain resolved(const OptionInfo& option, const space::Domain& domain, const std::filesystem::path& directory) {
    space::Domain out = domain;
    const auto resolve_all = [&](std::vector<space::Value>& values) {
        for (space::Value& value : values) value = resolved(option, value, directory);
    };
    if (auto* choice = std::get_if<space::Choice>(&out)) resolve_all(choice->values);
    if (auto* grid = std::get_if<space::Grid>(&out)) resolve_all(grid->values);
    if (auto* constant = std::get_if<space::Constant>(&out))
        constant->value = resolved(option, constant->value, directory);
    return out;
}

bool is_variable_name(std::string_view name) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return !name.empty() && letter(name[0]) &&
           std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string python_target(const std::string& given, const std::filesystem::path& directory) {
    const auto colon = given.rfind(':');
    const std::string path = given.substr(0, std::min(colon, given.size()));
    const std::string name = colon == std::string::npos ? "" : given.substr(colon + 1);
    if (!path.ends_with(".py") || !is_variable_name(name))
        throw base::UsageError("needs a file and one of its functions, as in \"train.py:train\", not " +
                               in_quotes(given));
    return absolute_path(path, directory) + ":" + name;
}

std::string interpreter_path(const std::string& given, const std::filesystem::path& directory) {
    return given.find('/') == std::string::npos ? given : absolute_path(given, directory);
}

} // namespace ranktune::study
