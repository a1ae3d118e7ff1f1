// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads untrusted JSON: from programs, and from files that anybody may have replaced.

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "ranktune/base/error.hpp"

namespace ranktune::process {

/// Limit of nested lists and objects. Printing and copying recurse per level, so without a limit a short line could
/// exhaust the stack.
inline constexpr std::size_t deepest_json = 64;

namespace detail {

/// Builds the value from the parser's events. An object keeps the order of its members, and a member that comes twice
/// has its last value at its first place, as in ordered_json, which compares every new name with all before it: a
/// report may have tens of thousands of metrics.
class JsonBuilder : public nlohmann::json_sax<nlohmann::ordered_json> {
  public:
    using Json = nlohmann::ordered_json;

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(Json::number_integer_t value) override { return put(value); }
    bool number_unsigned(Json::number_unsigned_t value) override { return put(value); }
    bool number_float(Json::number_float_t value, const std::string&) override { return put(value); }
    bool string(std::string& value) override { return put(std::move(value)); }
    bool binary(Json::binary_t&) override { return false; }
    bool start_object(std::size_t) override { return open(Json::value_t::object); }
    bool start_array(std::size_t) override { return open(Json::value_t::array); }
    bool end_array() override { return close(); }
    bool end_object() override { return close(); }
    bool key(std::string& name) override {
        Level& level = open_.back();
        Members& members = level.value->get_ref<Json::object_t&>();
        const auto [at, is_new] = level.places.emplace(name, members.size());
        if (is_new) members.emplace_back(std::move(name), Json());
        level.member = at->second;
        return true;
    }
    bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

    [[nodiscard]] Json take() { return std::move(root_); }

  private:
    using Members = Json::object_t::Container;
    struct Level {
        Json* value;
        std::unordered_map<std::string, std::size_t> places = {}; ///< of the members
        std::size_t member = 0;                                   ///< the one whose value comes next
    };

    template <class Value>
    Json* slot(Value&& value) {
        if (open_.empty()) return &(root_ = std::forward<Value>(value));
        Level& level = open_.back();
        if (!level.value->is_object()) return &level.value->emplace_back(std::forward<Value>(value));
        Members& members = level.value->get_ref<Json::object_t&>();
        return &(members[level.member].second = std::forward<Value>(value));
    }
    template <class Value>
    bool put(Value&& value) {
        slot(std::forward<Value>(value));
        return true;
    }
    bool open(Json::value_t kind) {
        if (open_.size() >= deepest_json)
            throw base::FormatError("more than " + std::to_string(deepest_json) +
                                    " lists and objects lie inside each other");
        Json* const value = slot(Json(kind)); // stays in place until it is closed: its parent does not grow meanwhile
        open_.push_back({value});
        return true;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    Json root_;
    std::vector<Level> open_;
};

} // namespace detail

/// Returns a discarded value when the text is not JSON; throws base::FormatError as soon as it is nested deeper than
/// `deepest_json`. Throws nothing else.
[[nodiscard]] inline nlohmann::ordered_json read_json(std::string_view text) {
    detail::JsonBuilder builder;
    if (!nlohmann::ordered_json::sax_parse(text, &builder)) return nlohmann::ordered_json::value_t::discarded;
    return builder.take();
}

} // namespace ranktune::process
