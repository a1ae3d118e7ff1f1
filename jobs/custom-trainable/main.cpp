// SPDX-License-Identifier: Apache-2.0
// `ranktune` with one more trainable.
#include "curve_fit.hpp"

int main(int argc, char** argv) {
    const ranktune::OptionInfo lr{"lr", ranktune::OptionKind::number, true, "learning rate"};
    ranktune::register_trainable<CurveFit>({.name = "curve_fit", .options = {lr}, .metrics = {"loss"}});
    return ranktune::run_program(argc, argv);
}
