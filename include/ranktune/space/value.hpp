// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of a hyper-parameter: bool, integer, float, string, a list of these, or none.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ranktune::space {

/// Changes only by assignment, so that copies share strings and lists: 16 bytes, cheap to copy.
class Value {
  public:
    using List = std::vector<Value>;

    Value() : Value(false) {}
    // NOLINTBEGIN(google-explicit-constructor)
    Value(bool value) : kind_(Kind::boolean), data_{} { data_.boolean = value; }
    Value(int value) : Value(static_cast<std::int64_t>(value)) {}
    Value(std::int64_t value) : kind_(Kind::integer), data_{value} {}
    Value(double value) : kind_(Kind::real), data_{} { data_.real = value; }
    Value(const char* value) : Value(std::string(value)) {}
    Value(std::string value);
    Value(List value);
    // NOLINTEND(google-explicit-constructor)
    Value(const Value& other) : kind_(other.kind_), data_(other.data_) {
        if (is_shared()) share();
    }
    /// Leaves `false`.
    Value(Value&& other) noexcept : kind_(std::exchange(other.kind_, Kind::boolean)), data_(other.data_) {
        other.data_.boolean = false;
    }
    Value& operator=(const Value& other) {
        Value copy(other);
        swap(copy);
        return *this;
    }
    Value& operator=(Value&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Value() {
        if (is_shared()) release();
    }

    /// Nothing: a trainable or program that gets it goes on as if the parameter were not there, Python gets None.
    [[nodiscard]] static Value none() {
        Value value;
        value.kind_ = Kind::none;
        return value;
    }

    [[nodiscard]] bool is_none() const { return kind_ == Kind::none; }
    [[nodiscard]] bool is_bool() const { return kind_ == Kind::boolean; }
    [[nodiscard]] bool is_int() const { return kind_ == Kind::integer; }
    [[nodiscard]] bool is_double() const { return kind_ == Kind::real; }
    [[nodiscard]] bool is_number() const { return is_int() || is_double(); }
    [[nodiscard]] bool is_string() const { return kind_ == Kind::string; }
    [[nodiscard]] bool is_list() const { return kind_ == Kind::list; }

    /// Exact accessors: throw base::UsageError naming the wanted and the actual kind. `as_double` also takes an
    /// integer.
    [[nodiscard]] bool as_bool() const;
    [[nodiscard]] std::int64_t as_int() const;
    [[nodiscard]] double as_double() const;
    [[nodiscard]] const std::string& as_string() const;
    [[nodiscard]] const List& as_list() const;

    /// "bool", "integer", "float", "string", "list" or "none".
    [[nodiscard]] std::string_view kind() const;
    /// For people and for command lines: the shortest text that reads back as the same value; strings without quotes,
    /// lists as `[128,64]`, `None`.
    [[nodiscard]] std::string text() const;
    /// As a literal of a study file: `0.5`, `'adam'`, `[128, 64]`, `None`. What `parse_domain` reads, and, but for
    /// `None`, valid TOML.
    [[nodiscard]] std::string literal() const;

    /// Same kind and same value: 1 and 1.0 differ.
    friend bool operator==(const Value& a, const Value& b);

  private:
    enum class Kind : std::uint8_t { boolean, integer, real, string, list, none };
    /// Never modified; the last value that refers to it frees it.
    template <class T>
    struct Shared;
    union Data {
        std::int64_t integer; ///< the first, so that `{}` makes all bytes zero
        bool boolean;
        double real;
        Shared<std::string>* string;
        Shared<List>* list;
    };
    [[nodiscard]] bool is_shared() const { return is_string() || is_list(); }
    void share() const;
    void release();
    void swap(Value& other) noexcept {
        std::swap(kind_, other.kind_);
        std::swap(data_, other.data_);
    }

    Kind kind_;
    Data data_;
};

/// Shortest decimal text that reads back as `value`, with a decimal point or an exponent (outside 1e-4 <= |value| <
/// 1e16, as in Python): "0.0001", "1e-05", "32.0"; "nan", "inf", "-inf". Independent of the locale.
[[nodiscard]] std::string float_text(double value);
/// The same for people: "3", not "3.0".
[[nodiscard]] std::string number_text(double value);

} // namespace ranktune::space
