// SPDX-License-Identifier: Apache-2.0
#pragma once
// A configuration: the hyper-parameters of one trial. Parameters whose condition does not hold are absent.

#include <atomic>
#include <cstddef>
#include <cstdint>
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
    /// Refers into its configuration.
    struct Entry {
        const std::string& name;
        const Value& value;
    };
    /// Refers to its configuration, which must outlive it and not change meanwhile.
    class Entries;

    Configuration() = default;
    Configuration(const Configuration& other) : block_(other.block_) {
        if (block_ != nullptr) block_->users.fetch_add(1, std::memory_order_relaxed);
    }
    Configuration(Configuration&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
    Configuration& operator=(Configuration other) noexcept {
        std::swap(block_, other.block_);
        return *this;
    }
    ~Configuration() {
        if (block_ != nullptr) leave();
    }
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
    [[nodiscard]] std::size_t size() const { return block_ == nullptr ? 0 : block_->size; }
    /// `lr=0.0312 batch_size=32 hidden=[128,64]`
    [[nodiscard]] std::string text() const;

    /// From now on `on_look` is called with the position of every entry that is looked up, in this object and in every
    /// copy made of it, on the thread that looks.
    void watch(std::function<void(std::size_t)> on_look);

    /// Shares the names of `other`, if they are equal, to save memory.
    void share_names(const Configuration& other);

    /// The same names and values in the same order.
    friend bool operator==(const Configuration& a, const Configuration& b);

  private:
    friend class SearchSpace;
    using OnLook = std::function<void(std::size_t)>;
    /// What many configurations share; never modified.
    struct Shape {
        std::vector<std::string> names; ///< never empty
        OnLook on_look = {};            ///< see watch; empty: not watched
    };
    /// The head of one piece of memory; `size` values follow. Shared by copies, so never modified but by its maker.
    struct Block {
        explicit Block(std::shared_ptr<const Shape> of)
            : size(static_cast<std::uint32_t>(of->names.size())), shape(std::move(of)) {}
        std::atomic<std::uint32_t> users = 1;
        const std::uint32_t size;
        std::shared_ptr<const Shape> shape;
    };
    static_assert(sizeof(Block) % alignof(Value) == 0);

    /// To be filled: one value for each name. Requires names.
    [[nodiscard]] static Configuration of_shape(std::shared_ptr<const Shape> shape);
    [[nodiscard]] static std::shared_ptr<const Shape> shape_of(std::vector<std::string> names);
    void leave();
    [[nodiscard]] Value* values() const { return reinterpret_cast<Value*>(block_ + 1); }
    [[nodiscard]] const Value& value(std::size_t position) const { return values()[position]; }
    [[nodiscard]] const std::vector<std::string>& names() const { return block_->shape->names; }
    /// The same values with another shape, of at least as many names.
    void reshape(std::shared_ptr<const Shape> shape);

    Block* block_ = nullptr; ///< null without parameters
};

class Configuration::Entries {
  public:
    class Iterator {
      public:
        using value_type = Entry;
        using difference_type = std::ptrdiff_t;
        Iterator() = default;
        Iterator(const Configuration& of, std::size_t at) : of_(&of), at_(at) {}
        [[nodiscard]] Entry operator*() const { return {of_->names()[at_], of_->value(at_)}; }
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
