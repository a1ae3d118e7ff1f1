// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of a hyper-parameter: bool, integer, float, string, a list of these, or none.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ranktune::space {

/// Changes only by assignment, so that copies share strings and lists: 24 bytes, cheap to copy.
class Value {
  public:
    using List = std::vector<Value>;

    Value() : data_(false) {}
    Value(bool value) : data_(value) {}                           // NOLINT(google-explicit-constructor)
    Value(int value) : data_(static_cast<std::int64_t>(value)) {} // NOLINT(google-explicit-constructor)
    Value(std::int64_t value) : data_(value) {}                   // NOLINT(google-explicit-constructor)
    Value(double value) : data_(value) {}                         // NOLINT(google-explicit-constructor)
    Value(const char* value) : Value(std::string(value)) {}       // NOLINT(google-explicit-constructor)
    Value(std::string value)                                      // NOLINT(google-explicit-constructor)
        : data_(Shared<std::string>(std::move(value))) {}
    Value(List value) // NOLINT(google-explicit-constructor)
        : data_(Shared<List>(std::move(value))) {}

    /// Nothing: a trainable or program that gets it goes on as if the parameter were not there, Python gets None.
    [[nodiscard]] static Value none() {
        Value value;
        value.data_ = std::monostate();
        return value;
    }

    [[nodiscard]] bool is_none() const { return std::holds_alternative<std::monostate>(data_); }
    [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(data_); }
    [[nodiscard]] bool is_int() const { return std::holds_alternative<std::int64_t>(data_); }
    [[nodiscard]] bool is_double() const { return std::holds_alternative<double>(data_); }
    [[nodiscard]] bool is_number() const { return is_int() || is_double(); }
    [[nodiscard]] bool is_string() const { return std::holds_alternative<Shared<std::string>>(data_); }
    [[nodiscard]] bool is_list() const { return std::holds_alternative<Shared<List>>(data_); }

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
    friend bool operator==(const Value&, const Value&) = default;

  private:
    /// Has no move constructor: a moved-from value still holds something.
    template <class T>
    struct Shared {
        explicit Shared(T value) : at(std::make_shared<const T>(std::move(value))) {}
        Shared(const Shared&) = default;
        Shared& operator=(const Shared&) = default;
        ~Shared() = default;
        friend bool operator==(const Shared& a, const Shared& b) { return *a.at == *b.at; }
        std::shared_ptr<const T> at;
    };
    std::variant<bool, std::int64_t, double, Shared<std::string>, Shared<List>, std::monostate> data_;
};

/// Shortest decimal text that reads back as `value`, with a decimal point or an exponent (outside 1e-4 <= |value| <
/// 1e16, as in Python): "0.0001", "1e-05", "32.0"; "nan", "inf", "-inf". Independent of the locale.
[[nodiscard]] std::string float_text(double value);
/// The same for people: "3", not "3.0".
[[nodiscard]] std::string number_text(double value);

} // namespace ranktune::space
