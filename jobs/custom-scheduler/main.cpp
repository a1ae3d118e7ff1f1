// SPDX-License-Identifier: Apache-2.0
// `ranktune` with one more scheduler.
#include "mean_stopping.hpp"

int main(int argc, char** argv) {
    ranktune::register_scheduler(describe_mean_stopping());
    return ranktune::run_program(argc, argv);
}
