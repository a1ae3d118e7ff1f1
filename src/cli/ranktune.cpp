// SPDX-License-Identifier: Apache-2.0
#include "ranktune/main.hpp"

int main(int argc, char** argv) { return ranktune::main(argc, argv); }
