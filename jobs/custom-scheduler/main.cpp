// SPDX-License-Identifier: Apache-2.0
// `ranktune` with one scheduler more.
#include "mean_stopping.hpp"

int main(int argc, char** argv) {
    ranktune::register_scheduler(describe_mean_stopping());
    return ranktune::run_program(argc, argv);
}
