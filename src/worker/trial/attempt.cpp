// SPDX-License-Identifier: Apache-2.0
#include "worker/trial/attempt.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "device/module.hpp"
#include "study/options.hpp"
#include "study/printed_values.hpp"
#include "worker/bodies/program_body.hpp"
#include "worker/bodies/side_body.hpp"
#include "worker/bodies/task_body.hpp"
#include "worker/bodies/trainable_body.hpp"
#include "worker/predict/predict_body.hpp"
#include "worker/trial/attempt_context.hpp"
#include "worker/trial/attempt_errors.hpp"
#include "worker/trial/group_collective.hpp"
#include "worker/trial/trial_loop.hpp"

namespace ranktune::worker {
namespace {

using study::AttemptOutcome;

/// Hyper-parameters and fixed options together; of a program with a table, its row.
space::Configuration merged(const study::StartTrial& start, const study::StudySpec& spec, Spare& spare) {
    space::Configuration all = start.configuration;
    if (spec.trainable.program) {
        const space::Value* table = spec.trainable.options.find(study::table_option);
        if (table == nullptr) return all;
        if (!spare.rows) spare.rows = std::make_unique<trainables::RowTable>(table->as_string());
        return trainables::with_row(std::move(all), *spare.rows);
    }
    study::add_options(all, spec);
    return all;
}

/// Records which entries of a configuration were read, on any thread of the trial.
class Looks {
  public:
    /// Call before `configuration` is used; it must outlive this object.
    void watch(space::Configuration& configuration) {
        configuration_ = &configuration;
        looked_ = std::make_shared<std::vector<std::atomic<bool>>>(configuration.size());
        configuration.watch([looked = looked_](std::size_t i) { (*looked)[i].store(true, std::memory_order_relaxed); });
    }
    /// Names of the entries that nobody read; empty when nothing was watched. Entries that decide about ranks or other
    /// parameters count as read.
    [[nodiscard]] std::vector<std::string> unread(const study::StudySpec& spec) const {
        if (configuration_ == nullptr) return {};
        const std::vector<bool> looked(looked_->begin(), looked_->end()); // a copy: the conditions below may read, too
        std::vector<std::string> names;
        for (std::size_t i = 0; i < looked.size(); ++i)
            if (!looked[i]) names.push_back(configuration_->entries()[i].name);
        const auto used_otherwise = [&spec](const std::string& name) {
            const auto decides = [&name](const space::Parameter& parameter) {
                if (!parameter.condition) return false;
                const auto& mentioned = parameter.condition->names();
                return std::find(mentioned.begin(), mentioned.end(), name) != mentioned.end();
            };
            const auto& parameters = spec.space.parameters();
            return name == spec.resources.ranks_parameter || std::any_of(parameters.begin(), parameters.end(), decides);
        };
        std::erase_if(names, used_otherwise);
        return names;
    }

  private:
    const space::Configuration* configuration_ = nullptr;
    std::shared_ptr<std::vector<std::atomic<bool>>> looked_;
};

/// The body for the kind of trainable: program, class or function.
std::unique_ptr<TrialBody> make_body(const AttemptParts& parts, Spare& spare) {
    const AttemptSetting& setting = parts.setting;
    if (const auto task = study::side_task_of(parts.assignment.start.trial))
        return std::make_unique<SideBody>(parts, *task);
    if (const auto& program = setting.spec->trainable.program) {
        if (program->keeps_for_tasks()) return std::make_unique<TaskBody>(parts, spare);
        return std::make_unique<ProgramBody>(parts, spare);
    }
    if (study::runs_programs(*setting.spec)) return std::make_unique<PredictBody>(parts, spare);
    if (setting.trainable->factory) return std::make_unique<ClassBody>(parts, spare);
    return std::make_unique<FunctionBody>(parts);
}

RunnerEnded run(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port, Spare& spare) {
    const study::StudySpec& spec = *setting.spec;
    space::Configuration configuration = merged(assignment.start, spec, spare);
    if (port.abort_flag().load()) return {AttemptOutcome::lost, {}};
    std::unique_ptr<GroupCollective> group;
    try {
        group = std::make_unique<GroupCollective>(setting.form(assignment, port.abort_flag()), port);
        if (!spec.trainable.program) group->limit_waits(spec.failure.collective_timeout);
    } catch (const ddp::GroupLost& error) {
        return {AttemptOutcome::lost, failure_of(error, static_cast<std::uint32_t>(assignment.group_rank))};
    } catch (const ddp::Aborted&) {
        return {AttemptOutcome::lost, {}};
    } catch (...) {
        if (port.abort_flag().load()) return {AttemptOutcome::lost, {}};
        return {AttemptOutcome::failed, {"cannot form the group: " + message_of(std::current_exception())}};
    }
    Looks looks;
    const bool any_option = !spec.trainable.program && setting.trainable->info.any_option;
    const bool is_new = assignment.checkpoint() == nullptr && !spare.trainable && !spare.predict; // others have read
    if (any_option && assignment.leads() && is_new) looks.watch(configuration);
    TrialLoop loop(spec, assignment, port, [&] { group->fail(); });
    const auto body = make_body({setting, assignment, configuration, *group, port, loop}, spare);
    RunnerEnded ended = loop.run(*body);
    ended.unread = looks.unread(spec);
    return ended;
}

} // namespace

RunnerEnded run_attempt(const AttemptSetting& setting, const Assignment& assignment, AttemptPort& port, Spare& spare) {
    try {
        const auto task = study::side_task_of(assignment.start.trial);
        const study::StudySpec own = task ? spec_for(*setting.spec, *task) : study::StudySpec{};
        AttemptSetting of_side_task = setting;
        of_side_task.spec = &own;
        // What stays in `spare` refers to `setting`.
        RunnerEnded ended = run(task ? of_side_task : setting, assignment, port, spare);
        device::free_caches();
        if (ended.outcome == AttemptOutcome::oversized && device::relieve())
            ended = {
                AttemptOutcome::lost,
                {"the memory of the GPU was full while it held connections of earlier trials; they are closed now: " +
                     ended.failure.message,
                 static_cast<std::uint32_t>(assignment.group_rank)}};
        ended.sick_device = device::sickness();
        return ended;
    } catch (...) { // building the configuration failed
        return {AttemptOutcome::failed, {message_of(std::current_exception())}};
    }
}

} // namespace ranktune::worker
