// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mark in lists of fields (schema.hpp): these numbers have eight bytes each, because they are random.

namespace ranktune::study {

/// A digest, a random number, or a list of them.
template <class T>
struct Fixed {
    T& value;
};
template <class T>
[[nodiscard]] Fixed<T> fixed(T& value) {
    return {value};
}

} // namespace ranktune::study
