// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the threads of a kernel's grid as fibres of one thread of the host.

#include <functional>

namespace stand_in {

struct Extent {
    unsigned x = 1;
    unsigned y = 1;
    unsigned z = 1;
};

/// Calls `thread_body` for every thread of every block. Blocks, and the threads between two barriers, run in their
/// order or in reverse, by chance. Throws Fault when some threads of a block wait at a barrier that others do not
/// reach. `seed`: for that chance.
void run_grid(const Extent& grid, const Extent& block, const std::function<void()>& thread_body, unsigned seed);

} // namespace stand_in
