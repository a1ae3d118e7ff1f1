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

/// An ordered list of (name, value). Names of nested tables are joined by dots ("optimizer.lr"). The order is that of
/// the study file, on every rank and after every restart. Copies share names and values; the configurations of a space
/// without conditions share their names.
class Configuration {
  public:
    using Names = std::vector<std::string>;
    /// Refers into its configuration.
    struct Entry {
        const std::string& name;
        const Value& value;
    };
    /// Refers to its configuration, which must outlive it and not change meanwhile.
    class Entries;

    Configuration() = default;
    /// Requires distinct names.
    explicit Configuration(std::vector<std::pair<std::string, Value>> entries);

    /// Adds a parameter, or replaces the value of one that is there. O(parameters). Invalidates what was looked up
    /// before.
    void set(std::string_view name, Value value);
    [[nodiscard]] const Value* find(std::string_view name) const;
    [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
    /// Throws base::UsageError naming the parameter and those that exist.
    [[nodiscard]] const Value& at(std::string_view name) const;

    /// All parameters. Counts as a look-up of each (see `watch`).
    [[nodiscard]] Entries entries() const&;
    [[nodiscard]] Entries entries() const&& = delete;
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] std::size_t size() const { return names_ ? names_->size() : 0; }
    /// `lr=0.0312 batch_size=32 hidden=[128,64]`
    [[nodiscard]] std::string text() const;

    /// From now on `on_look` is called with the position of every entry that is looked up, in this object and in every
    /// copy made of it, on the thread that looks.
    void watch(std::function<void(std::size_t)> on_look) {
        on_look_ = std::make_shared<const std::function<void(std::size_t)>>(std::move(on_look));
    }

    /// Shares the names of `other`, if they are equal, to save memory.
    void share_names(const Configuration& other);

    /// The same names and values in the same order.
    friend bool operator==(const Configuration& a, const Configuration& b);

  private:
    friend class SearchSpace;
    /// One value for each name.
    Configuration(std::shared_ptr<const Names> names, std::shared_ptr<const Value[]> values)
        : names_(std::move(names)), values_(std::move(values)) {}

    [[nodiscard]] static std::shared_ptr<Value[]> make_values(std::size_t size) {
#if __cpp_lib_shared_ptr_arrays >= 201707L
        return std::make_shared<Value[]>(size);
#else // GCC 11
        return std::shared_ptr<Value[]>(new Value[size]);
#endif
    }
    [[nodiscard]] const Value& value(std::size_t position) const { return values_.get()[position]; }

    // One value for each name; null without parameters. Shared, so never modified.
    std::shared_ptr<const Names> names_;
    std::shared_ptr<const Value[]> values_;
    std::shared_ptr<const std::function<void(std::size_t)>> on_look_; ///< null: not watched
};

class Configuration::Entries {
  public:
    class Iterator {
      public:
        using value_type = Entry;
        using difference_type = std::ptrdiff_t;
        Iterator() = default;
        Iterator(const Configuration& of, std::size_t at) : of_(&of), at_(at) {}
        [[nodiscard]] Entry operator*() const { return {(*of_->names_)[at_], of_->value(at_)}; }
        Iterator& operator++() {
            ++at_;
            return *this;
        }
        Iterator operator++(int) { return {*of_, at_++}; }
        friend bool operator==(const Iterator&, const Iterator&) = default;

      private:
        const Configuration* of_ = nullptr;
        std::size_t at_ = 0;
    };

    explicit Entries(const Configuration& of) : of_(&of) {}
    [[nodiscard]] Iterator begin() const { return {*of_, 0}; }
    [[nodiscard]] Iterator end() const { return {*of_, of_->size()}; }
    [[nodiscard]] std::size_t size() const { return of_->size(); }
    /// Requires position < size().
    [[nodiscard]] Entry operator[](std::size_t position) const { return *Iterator(*of_, position); }

  private:
    const Configuration* of_;
};

} // namespace ranktune::space
