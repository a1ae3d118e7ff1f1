// SPDX-License-Identifier: Apache-2.0
#include "drivers/process_clock.hpp"

#include <ctime>

namespace ranktune::drivers {

double process_cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace ranktune::drivers
