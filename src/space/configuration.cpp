// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/configuration.hpp"

#include <algorithm>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::space {

Configuration::Configuration(std::vector<std::pair<std::string, Value>> entries) {
    auto names = std::make_shared<Names>();
    auto values = make_values(entries.size());
    names->reserve(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
        names->push_back(std::move(entries[i].first));
        values.get()[i] = std::move(entries[i].second);
    }
    names_ = std::move(names);
    values_ = std::move(values);
}

void Configuration::set(std::string_view name, Value value) {
    const std::size_t before = size();
    std::size_t at = 0;
    while (at < before && (*names_)[at] != name) ++at;
    auto values = make_values(std::max(before, at + 1));
    std::copy_n(values_.get(), before, values.get());
    values.get()[at] = std::move(value);
    values_ = std::move(values);
    if (at < before) return;
    auto names = names_ ? std::make_shared<Names>(*names_) : std::make_shared<Names>();
    names->emplace_back(name);
    names_ = std::move(names);
}

const Value* Configuration::find(std::string_view name) const {
    for (std::size_t i = 0; i < size(); ++i) {
        if ((*names_)[i] != name) continue;
        if (on_look_) (*on_look_)(i);
        return &value(i);
    }
    return nullptr;
}

Configuration::Entries Configuration::entries() const& {
    for (std::size_t i = 0; on_look_ && i < size(); ++i) (*on_look_)(i);
    return Entries(*this);
}

const Value& Configuration::at(std::string_view name) const {
    if (const Value* value = find(name)) return *value;
    throw base::UsageError("the configuration has no parameter '" + std::string(name) + "'; it has " +
                           (empty() ? "none" : base::join(*names_)));
}

std::string Configuration::text() const {
    std::string out;
    for (std::size_t i = 0; i < size(); ++i) {
        if (i > 0) out += ' ';
        out += (*names_)[i] + '=' + value(i).text();
    }
    return out;
}

void Configuration::share_names(const Configuration& other) {
    if (names_ != other.names_ && names_ && other.names_ && *names_ == *other.names_) names_ = other.names_;
}

bool operator==(const Configuration& a, const Configuration& b) {
    if (a.size() != b.size()) return false;
    if (a.empty()) return true;
    return (a.names_ == b.names_ || *a.names_ == *b.names_) &&
           std::equal(a.values_.get(), a.values_.get() + a.size(), b.values_.get());
}

} // namespace ranktune::space
