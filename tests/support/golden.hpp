// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expected output in files. RANKTUNE_REWRITE=1 overwrites it with the actual output: review the diff before committing.

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace ranktune::testing {

/// The expected `text`: the contents of tests/<room>/golden/<name>.txt. Needs the macro RANKTUNE_SOURCE_ROOT.
[[nodiscard]] inline std::string golden(const std::string& room, const std::string& name, const std::string& text) {
    const std::string path = std::string(RANKTUNE_SOURCE_ROOT "/tests/") + room + "/golden/" + name + ".txt";
    if (std::getenv("RANKTUNE_REWRITE") != nullptr) std::ofstream(path, std::ios::binary) << text;
    std::ifstream in(path, std::ios::binary);
    std::ostringstream expected;
    expected << in.rdbuf();
    return in ? expected.str() : "no file " + path;
}

} // namespace ranktune::testing
