// SPDX-License-Identifier: Apache-2.0
#include "trial/attempt_errors.hpp"

#include <new>
#include <system_error>

#include "device/device.hpp"
#include "process/spawn.hpp"

namespace ranktune::trial {

using study::AttemptOutcome;

AttemptOutcome outcome_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const CheckpointError& known) {
        return known.outcome();
    } catch (const process::SetUpError&) {
        return AttemptOutcome::unstarted;
    } catch (const DisturbedError&) {
        return AttemptOutcome::disturbed;
    } catch (const std::bad_alloc&) {
        return AttemptOutcome::disturbed;
    } catch (const std::system_error&) { // std::ios_base::failure and std::filesystem::filesystem_error among them
        return AttemptOutcome::disturbed;
    } catch (const base::IoError&) {
        return AttemptOutcome::disturbed;
    } catch (const device::DeviceError&) { // its memory is full, or it is sick
        return AttemptOutcome::disturbed;
    } catch (...) {
        return AttemptOutcome::failed;
    }
}

std::string message_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& known) {
        return known.what();
    } catch (...) {
        return "an exception that is not a std::exception";
    }
}

study::Failure failure_of(const std::exception_ptr& error, std::uint32_t thrower) {
    study::Failure failure{message_of(error), thrower};
    try {
        std::rethrow_exception(error);
    } catch (const CheckpointError& known) {
        if (known.rank()) failure.rank = known.rank();
    } catch (...) {
    }
    return failure;
}

} // namespace ranktune::trial
