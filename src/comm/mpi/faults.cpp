// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/faults.hpp"

#include <atomic>

#include "comm/mpi/environment.hpp"

// In <mpi-ext.h> of an MPI that reports deaths. Weak: null in any other.
extern "C" {
int MPIX_Comm_failure_ack(MPI_Comm) __attribute__((weak));
int MPIX_Comm_get_failed(MPI_Comm, MPI_Group*) __attribute__((weak));
int MPIX_Comm_is_revoked(MPI_Comm, int*) __attribute__((weak));
int MPIX_Comm_revoke(MPI_Comm) __attribute__((weak));
int MPIX_Comm_shrink(MPI_Comm, MPI_Comm*) __attribute__((weak));
}

namespace ranktune::comm::mpi {
namespace {

std::atomic<bool> shrinking{false};

} // namespace

bool reports_deaths() {
    // MPICH and its kin have the names, too: the setting of Open MPI says that they work in this job.
    static const bool enabled = control_variable("mpi_ft_enable").value_or(std::string(1, '\0')).front() != '\0' &&
                                MPIX_Comm_failure_ack != nullptr && MPIX_Comm_get_failed != nullptr &&
                                MPIX_Comm_is_revoked != nullptr && MPIX_Comm_revoke != nullptr &&
                                MPIX_Comm_shrink != nullptr;
    return enabled;
}

bool acknowledge_deaths(MPI_Comm communicator) {
    return reports_deaths() && MPIX_Comm_failure_ack(communicator) == MPI_SUCCESS;
}

void look_for_deaths() {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

bool is_revoked(MPI_Comm communicator) {
    int revoked = 0;
    if (reports_deaths()) MPIX_Comm_is_revoked(communicator, &revoked);
    return revoked != 0;
}

int dead_in(MPI_Comm communicator) {
    MPI_Group dead = MPI_GROUP_NULL;
    if (!reports_deaths() || MPIX_Comm_get_failed(communicator, &dead) != MPI_SUCCESS) return 0;
    int count = 0;
    MPI_Group_size(dead, &count);
    MPI_Group_free(&dead);
    return count;
}

int shrink(MPI_Comm communicator, MPI_Comm* living) {
    MPIX_Comm_revoke(communicator);
    shrinking.store(true);
    const int code = MPIX_Comm_shrink(communicator, living);
    shrinking.store(false);
    return code;
}

bool is_shrinking() noexcept { return shrinking.load(); }

} // namespace ranktune::comm::mpi
