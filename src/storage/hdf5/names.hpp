// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of data sets that people or programs chose: HDF5 gives a meaning to "/" and to "." alone.

#include <string>
#include <string_view>

namespace ranktune::storage::hdf5 {

/// A link name for any text: "%", "/" and zero bytes become %25, %2F and %00, a lone "." becomes %2E, and nothing
/// becomes "%". Different texts have different link names.
[[nodiscard]] inline std::string link_name(std::string_view text) {
    if (text.empty()) return "%";
    if (text == ".") return "%2E";
    std::string name;
    for (const char c : text) {
        switch (c) {
            case '%':
                name += "%25";
                break;
            case '/':
                name += "%2F";
                break;
            case '\0':
                name += "%00";
                break;
            default:
                name += c;
        }
    }
    return name;
}

} // namespace ranktune::storage::hdf5
