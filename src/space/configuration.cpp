// SPDX-License-Identifier: Apache-2.0
#include "ranktune/space/configuration.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::space {

Configuration Configuration::of_shape(std::shared_ptr<const Shape> shape) {
    const std::size_t size = shape->names.size();
    Configuration made;
    made.block_ = new (::operator new(sizeof(Block) + size * sizeof(Value))) Block(std::move(shape));
    std::uninitialized_default_construct_n(made.values(), size);
    return made;
}

std::shared_ptr<const Configuration::Shape> Configuration::shape_of(std::vector<std::string> names) {
    return names.empty() ? nullptr : std::make_shared<const Shape>(Shape{std::move(names)});
}

Configuration::Configuration(std::vector<std::pair<std::string, Value>> entries) {
    std::vector<std::string> names;
    names.reserve(entries.size());
    for (auto& entry : entries) names.push_back(std::move(entry.first));
    if (names.empty()) return;
    *this = of_shape(shape_of(std::move(names)));
    for (std::size_t i = 0; i < entries.size(); ++i) values()[i] = std::move(entries[i].second);
}

void Configuration::leave() {
    if (block_->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::destroy_n(values(), block_->size);
    block_->~Block();
    ::operator delete(block_);
}

void Configuration::reshape(std::shared_ptr<const Shape> shape) {
    Configuration other = of_shape(std::move(shape));
    if (block_ != nullptr) std::copy_n(values(), size(), other.values());
    std::swap(block_, other.block_);
}

void Configuration::set(std::string_view name, Value value) {
    std::size_t at = 0;
    while (at < size() && names()[at] != name) ++at;
    if (at < size()) {
        reshape(block_->shape);
    } else {
        Shape more = block_ == nullptr ? Shape{} : *block_->shape;
        more.names.emplace_back(name);
        reshape(std::make_shared<const Shape>(std::move(more)));
    }
    values()[at] = std::move(value);
}

void Configuration::watch(OnLook on_look) {
    if (block_ != nullptr) reshape(std::make_shared<const Shape>(Shape{names(), std::move(on_look)}));
}

const Value* Configuration::find(std::string_view name) const {
    for (std::size_t i = 0; i < size(); ++i) {
        if (names()[i] != name) continue;
        if (block_->shape->on_look) block_->shape->on_look(i);
        return &value(i);
    }
    return nullptr;
}

Configuration::Entries Configuration::entries() const& {
    for (std::size_t i = 0; i < size() && block_->shape->on_look; ++i) block_->shape->on_look(i);
    return Entries(*this);
}

const Value& Configuration::at(std::string_view name) const {
    if (const Value* value = find(name)) return *value;
    throw base::UsageError("the configuration has no parameter '" + std::string(name) + "'; it has " +
                           (empty() ? "none" : base::join(names())));
}

std::string Configuration::text() const {
    std::string out;
    for (std::size_t i = 0; i < size(); ++i) {
        if (i > 0) out += ' ';
        out += names()[i] + '=' + value(i).text();
    }
    return out;
}

void Configuration::share_names(const Configuration& other) {
    if (empty() || other.empty() || block_->shape == other.block_->shape || names() != other.names()) return;
    if (block_->shape->on_look || other.block_->shape->on_look) return;
    if (block_->users.load(std::memory_order_acquire) == 1)
        block_->shape = other.block_->shape;
    else
        reshape(other.block_->shape);
}

bool operator==(const Configuration& a, const Configuration& b) {
    if (a.block_ == b.block_) return true;
    if (a.size() != b.size() || a.empty()) return a.size() == b.size();
    return (a.block_->shape == b.block_->shape || a.names() == b.names()) &&
           std::equal(a.values(), a.values() + a.size(), b.values());
}

} // namespace ranktune::space
