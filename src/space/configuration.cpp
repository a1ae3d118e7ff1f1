// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/configuration.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"

namespace ranktune::space {

void Configuration::set(std::string_view name, Value value) {
    const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    if (at != entries_.end()) {
        at->value = std::move(value);
    } else {
        append(std::string(name), std::move(value));
    }
}

const Value* Configuration::find(std::string_view name) const {
    const auto at = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == name; });
    if (at == entries_.end()) return nullptr;
    if (on_look_) (*on_look_)(static_cast<std::size_t>(at - entries_.begin()));
    return &at->value;
}

const std::vector<Configuration::Entry>& Configuration::entries() const {
    for (std::size_t i = 0; on_look_ && i < entries_.size(); ++i) (*on_look_)(i);
    return entries_;
}

const Value& Configuration::at(std::string_view name) const {
    if (const Value* value = find(name)) return *value;
    std::string known;
    for (const Entry& entry : entries_) known += (known.empty() ? "" : ", ") + entry.name;
    throw base::UsageError("the configuration has no parameter '" + std::string(name) + "'; it has " +
                           (known.empty() ? "none" : known));
}

std::string Configuration::text() const {
    std::string out;
    for (const Entry& entry : entries_) {
        if (!out.empty()) out += ' ';
        out += entry.name;
        out += '=';
        out += entry.value.text();
    }
    return out;
}

} // namespace ranktune::space
