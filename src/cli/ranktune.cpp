// SPDX-License-Identifier: Apache-2.0
#include "ranktune/run_program.hpp"

int main(int argc, char** argv) { return ranktune::run_program(argc, argv); }
