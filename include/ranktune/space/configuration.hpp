// SPDX-License-Identifier: Apache-2.0
#pragma once
// A configuration: the hyper-parameters of one trial. Parameters whose condition does not hold are absent.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/space/value.hpp"

namespace ranktune::space {

/// An ordered list of (name, value). Names of nested tables are joined by dots ("optimizer.lr"). Order is that of the
/// study file, on every rank and in every life.
class Configuration {
  public:
    struct Entry {
        std::string name;
        Value value;
        friend bool operator==(const Entry&, const Entry&) = default;
    };

    Configuration() = default;
    explicit Configuration(std::vector<Entry> entries) : entries_(std::move(entries)) {}

    /// Adds a parameter, or replaces the value of one that is there.
    void set(std::string_view name, Value value);
    /// Adds a parameter that is not there yet (the caller knows), without a search.
    void append(std::string name, Value value) { entries_.push_back({std::move(name), std::move(value)}); }
    void reserve(std::size_t parameters) { entries_.reserve(parameters); }
    [[nodiscard]] const Value* find(std::string_view name) const;
    [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
    /// Throws base::UsageError naming the parameter and those that exist.
    [[nodiscard]] const Value& at(std::string_view name) const;

    /// Looks every parameter up.
    [[nodiscard]] const std::vector<Entry>& entries() const;
    [[nodiscard]] bool empty() const { return entries_.empty(); }
    /// `lr=0.0312 batch_size=32 hidden=[128,64]`
    [[nodiscard]] std::string text() const;

    /// From now on `on_look` is called with the position of every entry that is looked up, in this object and in every
    /// copy made of it, on the thread that looks.
    void watch(std::function<void(std::size_t)> on_look) {
        on_look_ = std::make_shared<const std::function<void(std::size_t)>>(std::move(on_look));
    }

    friend bool operator==(const Configuration& a, const Configuration& b) { return a.entries_ == b.entries_; }

  private:
    std::vector<Entry> entries_;
    std::shared_ptr<const std::function<void(std::size_t)>> on_look_; ///< null: not watched
};

} // namespace ranktune::space
