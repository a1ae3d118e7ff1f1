// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/side_body.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/file_system.hpp"
#include "studydir/log_file.hpp"
#include "studydir/study_directory.hpp"
#include "studydir/trial_folder.hpp"
#include "worker/bodies/program_facts.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {

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
    if (task.kind != study::SideTask::Kind::after_trial) { // it has no trial
        spec.trainable.options = {};
        // (A table's columns are placeholders, too.)
        const bool is_known = study.trainable.options.find(study::table_option) == nullptr;
        std::erase_if(program.env, [&](const auto& variable) {
            return study::differs_by_trial(variable.value, is_known ? &study.space : nullptr);
        });
    }
    spec.trainable.program = std::move(program);
    spec.failure.iteration_timeout = side.timeout;
    spec.failure.report_timeout.reset();
    return spec;
}

SideBody::SideBody(const AttemptParts& parts, const study::SideTask& task)
    : setting_(parts.setting),
      assignment_(parts.assignment),
      configuration_(parts.configuration),
      port_(parts.port),
      task_(task),
      limit_(std::string(study::name(task.kind)) + ".timeout"),
      process_(parts.setting, parts.assignment, parts.port, {.on_early_end = nullptr, .limit = limit_}) {}

void SideBody::start(const study::CheckpointRef* checkpoint) {
    const study::ProgramSpec& program = *setting_.spec->trainable.program;
    const study::CommandTemplate command(program);
    process::ProgramFacts told = process_.facts();
    study::CommandValues filled{.configuration = configuration_,
                                .config_path = {},
                                .iterations = setting_.spec->max_iterations,
                                .trial = task_.trial,
                                .data = setting_.spec->data,
                                .row = assignment_.start.configuration.find(study::row_parameter)};
    if (checkpoint != nullptr) told.checkpoint = filled.checkpoint = locate(*checkpoint);
    std::string folder;
    if (task_.kind == study::SideTask::Kind::after_trial) {
        told.trial_folder = studydir::trial_folder(setting_.program->directory, task_.trial); // its trial made it
        told.config_path = process::configuration_json(configuration_);
        const auto names = command.placeholders();
        if (std::ranges::find(names, "config") != names.end()) {
            folder = make_folder();
            told.config_path = filled.config_path = folder + "/config.json";
        }
    }
    told.configuration = with_number(configuration_, assignment_.start);
    process_.start(program, command.expand(filled), told, std::move(folder));
}

/// Verified, if it is a program's.
std::string SideBody::locate(const study::CheckpointRef& checkpoint) const {
    if (setting_.trainable != nullptr) {
        const std::string path = setting_.program->directory + "/" + checkpoint.path;
        return checkpoint.shards.empty() ? path : storage::shard_path(path, 0);
    }
    try {
        return setting_.checkpoints->locate(checkpoint);
    } catch (const base::Error& error) {
        throw CheckpointError(outcome_of_reading(error), error.what());
    }
}

/// With the configuration as a file.
std::string SideBody::make_folder() const {
    const studydir::StudyDirectory directory{setting_.program->directory};
    const std::string folder = directory.attempts() + "/" + name_of(assignment_.start);
    try {
        auto& files = storage::posix_file_system();
        files.make_below(directory.path, std::filesystem::path(folder).lexically_relative(directory.path).string());
        studydir::publish_text(files, folder + "/config.json", process::configuration_json(configuration_), false);
    } catch (const base::IoError& error) {
        throw process::SetUpError(error.what());
    }
    return folder;
}

study::Verb SideBody::train(const Report& report) {
    const Waiting waiting(port_); // only its own time-out ends it
    while (auto message = process_.next()) take(std::move(*message));
    auto last = process::values_on_last_line(process_.child().last_line());
    add(last.metrics, last.texts);
    done_ = true;
    if (!found_.empty()) static_cast<void>(report(found_));
    return study::Verb::go_on;
}

void SideBody::add(trainables::Metrics& metrics, const std::vector<std::pair<std::string, std::string>>& texts) {
    for (auto& [name, value] : metrics) {
        const auto known = std::ranges::find(found_, name, &trainables::Metrics::value_type::first);
        if (known == found_.end())
            found_.emplace_back(name, value);
        else
            known->second = value;
    }
    if (task_.kind != study::SideTask::Kind::after_trial) return; // no trial can have them as notes
    if (const auto said = texts_.keep(texts, task_.trial, setting_.spec->objective, *setting_.program); !said.empty())
        port_.log(assignment_.start.trial, said);
}

void SideBody::take(process::ProgramMessage message) {
    if (auto* report = std::get_if<process::ProgramReport>(&message)) {
        add(report->metrics, report->texts);
        if (report->checkpoint || report->pending) process_.print("its checkpoint is left out: a side task has none");
        process_.child().send(process::decision_line(study::Verb::go_on, ++reports_));
    } else {
        throw base::Error(
            "the program answers as one that trains or is kept; a task beside the trials gives its values with "
            "ranktune.report(), or as JSON on its last line");
    }
}

} // namespace ranktune::worker
