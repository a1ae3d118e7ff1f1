// SPDX-License-Identifier: Apache-2.0
#pragma once
// Version and build type of this build.

namespace ranktune::cli {

/// "0.1.0 (a1b2c3d)"
[[nodiscard]] const char* version();
/// Meson's build type: "release"
[[nodiscard]] const char* build_type();

} // namespace ranktune::cli
