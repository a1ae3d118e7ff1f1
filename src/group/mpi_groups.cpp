// SPDX-License-Identifier: Apache-2.0
#include "group/mpi_groups.hpp"

#include <string>

#include "ddp/collective.hpp"
#include "ddp/collective/mpi_collective.hpp"

namespace ranktune::group {

trial::FormGroup make_mpi_groups(comm::GroupFactory& factory, ddp::DeviceGroups& devices) {
    return [&factory, &devices](const trial::Assignment& assignment,
                                const std::atomic<bool>& abort) -> std::unique_ptr<ddp::Collective> {
        const auto& start = assignment.start;
        if (start.ranks.size() == 1) return ddp::make_self_collective(&abort);
        return ddp::form_mpi_collective(factory, start.ranks,
                                        comm::formation_ticket(start.trial, start.attempt, start.incarnation), abort,
                                        &devices, "trial " + std::to_string(start.trial.value()));
    };
}

} // namespace ranktune::group
