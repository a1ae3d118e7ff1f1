// SPDX-License-Identifier: Apache-2.0
// The smallest program that can be a trial: one report, one answer. For programs.py.

#include <unistd.h>
#include <cstdlib>

int main() {
    const char* number = std::getenv("RANKTUNE_FD");
    if (number == nullptr) return 2;
    const int control = std::atoi(number);
    constexpr char line[] = "{\"report\": {\"score\": 1}}\n";
    if (write(control, line, sizeof line - 1) != static_cast<ssize_t>(sizeof line - 1)) return 1;
    char byte = 0;
    while (read(control, &byte, 1) == 1 && byte != '\n') {
    }
    return 0;
}
