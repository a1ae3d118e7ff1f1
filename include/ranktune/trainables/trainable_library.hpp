// SPDX-License-Identifier: Apache-2.0
#pragma once
// A trainable in a shared library of its own, which ranktune opens when a trial begins: [trainable] builtin = "torch".

#include <memory>

#include "ranktune/trainables/trainable.hpp"

namespace ranktune::trainables {

/// Changes whenever Trainable, TrialContext or what they use changes, so that a library is not used with another build.
inline constexpr unsigned trainable_library_interface = 3;

/// The one symbol that the library exports, under the name `ranktune_trainable_library` with C linkage.
struct TrainableLibrary {
    unsigned interface; ///< trainable_library_interface, as the library was compiled; compared first
    /// A new object for each trial and rank. Throws nothing: what can fail belongs into `setup`.
    std::unique_ptr<Trainable> (*make)();
};

} // namespace ranktune::trainables
