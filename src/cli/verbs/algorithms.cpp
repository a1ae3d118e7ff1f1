// SPDX-License-Identifier: Apache-2.0
// algorithms: the searchers and schedulers that a study file may name, with their options.

#include <iostream>

#include "cli/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "ranktune/algorithms/registry.hpp"
#include "report/algorithm_text.hpp"

namespace ranktune::cli {

int algorithms(bool markdown) {
    const study::Algorithms known = ranktune::algorithms::known_algorithms();
    if (markdown) {
        std::cout << "## `[searcher]`\n\n"
                  << report::searcher_table(known) << "\n## `[scheduler]`\n\n"
                  << report::scheduler_table(known);
    } else {
        std::cout << report::algorithms_text(known, detect_terminal().style.width);
    }
    return 0;
}

} // namespace ranktune::cli
