// SPDX-License-Identifier: Apache-2.0
#include "trial/bodies/side_body.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/file_system.hpp"
#include "studydir/log_file.hpp"
#include "studydir/study_directory.hpp"
#include "trial/attempt_errors.hpp"
#include "trial/bodies/program_facts.hpp"

namespace ranktune::trial {

study::StudySpec spec_for(const study::StudySpec& study, const study::SideTask& task) {
    const study::SideSpec& side = study.side(task.kind);
    study::StudySpec spec = study;
    study::ProgramSpec program;
    program.command = side.command;
    program.shell = true;
    program.result = study::PrintedResult::success;
    program.directory = side.directory;
    program.checkpoints = program.launcher_variables = false;
    if (const auto& own = study.trainable.program) {
        program.env = own->env;
        program.keep_env = own->keep_env;
    }
    spec.trainable.program = std::move(program);
    if (task.kind != study::SideTask::Kind::after_trial) spec.trainable.options = {}; // there is no row of a table
    spec.failure.iteration_timeout = side.timeout;
    spec.failure.report_timeout.reset();
    return spec;
}

void SideBody::start(const study::CheckpointRef* checkpoint) {
    trainables::ProgramFacts told = facts();
    study::CommandValues filled = values();
    filled.trial = task_.trial;
    if (checkpoint != nullptr) told.checkpoint = filled.checkpoint = locate(*checkpoint);
    std::string folder;
    if (task_.kind == study::SideTask::Kind::after_trial) {
        told.config_path = trainables::configuration_json(configuration());
        const auto names = study::CommandTemplate(program()).placeholders();
        if (std::ranges::find(names, "config") != names.end()) {
            folder = make_folder();
            told.config_path = filled.config_path = folder + "/config.json";
        }
    }
    told.configuration = configuration();
    start_process(told, filled, std::move(folder));
}

/// Verified, if it is a program's.
std::string SideBody::locate(const study::CheckpointRef& checkpoint) const {
    if (setting().trainable != nullptr) {
        const std::string path = setting().program->directory + "/" + checkpoint.path;
        return checkpoint.shards.empty() ? path : storage::shard_path(path, 0);
    }
    try {
        return setting().checkpoints->locate(checkpoint);
    } catch (const base::Error& error) {
        throw CheckpointError(outcome_of_reading(error), error.what());
    }
}

/// With the configuration as a file.
std::string SideBody::make_folder() const {
    const studydir::StudyDirectory directory{setting().program->directory};
    const std::string folder = directory.attempts() + "/" + name_of(assignment().start);
    try {
        auto& files = storage::posix_file_system();
        files.make_below(directory.path, std::filesystem::path(folder).lexically_relative(directory.path).string());
        studydir::publish_text(files, folder + "/config.json", trainables::configuration_json(configuration()), false);
    } catch (const base::IoError& error) {
        throw process::SetUpError(error.what());
    }
    return folder;
}

study::Verb SideBody::train(const Report& report) {
    const Waiting waiting(port()); // only its own time-out ends it
    while (waits()) {
    }
    if (!result_->metrics.empty()) static_cast<void>(report(result_->metrics));
    return study::Verb::go_on;
}

void SideBody::add(trainables::Metrics& metrics, const std::vector<std::pair<std::string, std::string>>& texts) {
    for (auto& [name, value] : metrics) {
        const auto known = std::ranges::find(found_.metrics, name, &trainables::Metrics::value_type::first);
        if (known == found_.metrics.end())
            found_.metrics.emplace_back(name, value);
        else
            known->second = value;
    }
    if (task_.kind != study::SideTask::Kind::after_trial) return; // no trial can have them as notes
    if (const auto said = texts_.keep(texts, task_.trial, setting().spec->objective, *setting().program); !said.empty())
        log(said);
}

void SideBody::take(trainables::ProgramMessage& message) {
    if (auto* report = std::get_if<trainables::ProgramReport>(&message)) {
        add(report->metrics, report->texts);
        child().send(trainables::decision_line(study::Verb::go_on, ++reports_));
    } else {
        throw base::Error(
            "the program answers as one that trains or is kept; a task beside the trials gives its values with "
            "ranktune.report(), or as JSON on its last line");
    }
}

void SideBody::ended() {
    if (!child().exited()->clean()) process_failed();
    auto last = trainables::values_on_last_line(child().last_output());
    add(last.metrics, last.texts);
    result_ = std::move(found_);
}

void SideBody::check_time() const {
    const auto& limit = setting().spec->failure.iteration_timeout;
    if (limit && Clock::now() - started_at_ >= *limit)
        throw base::Error("it took longer than " + study::duration_text(*limit) + " (" +
                          std::string(study::name(task_.kind)) + ".timeout)");
}

/// It runs again in the next start.
void SideBody::give_up() { throw ddp::Aborted("the study stops before the task has ended"); }

} // namespace ranktune::trial
