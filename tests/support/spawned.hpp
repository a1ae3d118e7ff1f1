// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ranktune::testing {

/// Whether a child that cannot begin its program tells process::spawn so. ThreadSanitizer makes a fork of vfork, after
/// which nobody sees what the child wrote.
#ifdef __SANITIZE_THREAD__
inline constexpr bool children_tell_errors = false;
#else
inline constexpr bool children_tell_errors = true;
#endif

} // namespace ranktune::testing
