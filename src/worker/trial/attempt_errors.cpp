// SPDX-License-Identifier: Apache-2.0
#include "worker/trial/attempt_errors.hpp"

#include <new>
#include <system_error>

#include "device/device.hpp"
#include "device/module.hpp"
#include "process/spawn.hpp"
#include "ranktune/ddp/group.hpp"
#include "storage/error_kinds.hpp"

namespace ranktune::worker {

using study::AttemptOutcome;

AttemptOutcome outcome_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const CheckpointError& known) {
        return known.outcome();
    } catch (const process::SetUpError&) {
        return AttemptOutcome::unstarted;
    } catch (const device::NoDeviceError&) {
        return AttemptOutcome::unstarted;
    } catch (const DisturbedError&) {
        return AttemptOutcome::disturbed;
    } catch (const std::bad_alloc&) {
        return AttemptOutcome::disturbed;
    } catch (
        const std::system_error& known) { // std::ios_base::failure and std::filesystem::filesystem_error among them
        return storage::cannot_be_written(known.code()) ? AttemptOutcome::unsaved : AttemptOutcome::disturbed;
    } catch (const base::IoError& known) {
        return storage::cannot_be_written(known.code()) ? AttemptOutcome::unsaved : AttemptOutcome::disturbed;
    } catch (const PermanentError&) {
        return AttemptOutcome::permanent;
    } catch (const OversizedError&) {
        return AttemptOutcome::oversized;
    } catch (const device::DeviceMemoryError&) {
        return AttemptOutcome::oversized;
    } catch (const device::DeviceError&) { // it is sick
        return AttemptOutcome::disturbed;
    } catch (const std::exception& known) { // libraries hide the code
        return storage::names_refusal(known.what()) ? AttemptOutcome::unsaved : AttemptOutcome::failed;
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
    if (outcome_of(error) == AttemptOutcome::oversized)
        failure.message = "the trial needs more memory than the device has: " + failure.message +
                          ". Make the model or the batch smaller, or compute a batch in parts (mlp: accumulate), or "
                          "ask for GPUs with "
                          "more memory; the trial is not tried again";
    try {
        std::rethrow_exception(error);
    } catch (const CheckpointError& known) {
        if (known.rank()) failure.rank = known.rank();
    } catch (...) {
    }
    try {
        std::rethrow_exception(error);
    } catch (const ProgramEnd& end) {
        failure.exit_code = end.exit_code();
    } catch (...) {
    }
    return failure;
}

std::string while_saving(base::Iteration iteration, const std::string& why) {
    return "while saving at iteration " + std::to_string(iteration) + ": " + why;
}

study::Failure failure_of(const ddp::GroupLost& error, std::uint32_t thrower) {
    if (error.cause() == ddp::GroupLost::Cause::told) return {};
    return {error.what(), thrower};
}

void last_save_failed(bool needed, base::Iteration iteration) {
    bool is_storage = false;
    try {
        throw;
    } catch (const CheckpointError&) {
        throw;
    } catch (const ddp::Aborted&) {
        throw;
    } catch (const ddp::PeerFailed&) { // the rank that failed says why
        throw;
    } catch (const std::system_error& known) {
        is_storage = storage::is_of_storage(known.code());
    } catch (const base::IoError& known) {
        is_storage = storage::is_of_storage(known.code());
    } catch (const std::exception& known) {
        is_storage = storage::names_refusal(known.what(), true);
    } catch (...) {
    }
    if (needed && !is_storage) throw;
    throw CheckpointError(AttemptOutcome::unsaved, while_saving(iteration, message_of(std::current_exception())));
}

} // namespace ranktune::worker
