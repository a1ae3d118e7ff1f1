// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_start.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include <fcntl.h>
#include <sys/stat.h>

#include "process/spawn.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/unique_handle.hpp"
#include "studydir/study_directory.hpp"
#include "studydir/trial_folder.hpp"
#include "worker/bodies/kept_program.hpp"
#include "worker/bodies/program_facts.hpp"
#include "worker/trial/attempt_errors.hpp"
#include "worker/trial/rendezvous.hpp"

namespace ranktune::worker {
namespace {

namespace fs = std::filesystem;

/// Bytes of JSON in a variable; Linux starts no program with one above 128 KiB.
constexpr std::size_t longest_variable = std::size_t{64} << 10U;

std::string text_of(const study::Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// What each rank tells the others about itself.
struct Introduction {
    std::string host;
    std::vector<std::string> devices;
    std::uint16_t port = 0;

    [[nodiscard]] std::string encoded() const {
        study::Bytes bytes;
        study::Encoder out(bytes);
        out.string(host);
        out.varint(devices.size());
        for (const std::string& device : devices) out.string(device);
        out.varint(port);
        return text_of(bytes);
    }
    static Introduction decoded(const std::string& text) {
        study::Decoder in(std::as_bytes(std::span(text)));
        Introduction result;
        result.host = in.string();
        result.devices.resize(in.count());
        for (std::string& device : result.devices) device = in.string();
        result.port = static_cast<std::uint16_t>(in.varint());
        return result;
    }
};

/// Whether two ranks of a node use the same device names: with a cgroup per task each rank sees only its own device, as
/// "0".
bool names_are_private(const std::vector<Introduction>& ranks, const std::string& host) {
    std::set<std::string> names;
    for (const Introduction& rank : ranks) {
        if (rank.host != host) continue;
        for (const std::string& device : rank.devices)
            if (!names.insert(device).second) return true;
    }
    return false;
}

/// A node id per rank. Ranks that cannot see each other's devices count as different nodes, because LOCAL_RANK and
/// LOCAL_WORLD_SIZE must match the devices that a program sees.
std::vector<std::uint64_t> nodes_of(const std::vector<Introduction>& ranks) {
    std::vector<std::uint64_t> nodes;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const std::string& host = ranks[r].host;
        nodes.push_back(base::digest_of(names_are_private(ranks, host) ? host + " " + std::to_string(r) : host));
    }
    return nodes;
}

/// The devices of all ranks on this rank's node, in rank order: LOCAL_RANK picks one.
std::optional<std::string> visible_devices(const std::vector<Introduction>& ranks,
                                           const std::vector<std::uint64_t>& nodes, std::size_t own,
                                           bool job_has_gpus) {
    std::string list;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        if (nodes[r] != nodes[own]) continue;
        for (const std::string& device : ranks[r].devices) list += (list.empty() ? "" : ",") + device;
    }
    if (list.empty() && !job_has_gpus) return std::nullopt;
    return list;
}

bool on_one_host(const std::vector<Introduction>& ranks) {
    return std::ranges::all_of(ranks, [&](const Introduction& rank) { return rank.host == ranks.front().host; });
}

} // namespace

ProgramStart::ProgramStart(const AttemptParts& parts, Spare& spare)
    : setting_(parts.setting),
      assignment_(parts.assignment),
      configuration_(parts.configuration),
      group_(parts.group),
      port_(parts.port),
      spare_(spare),
      reads_file_(program().function.empty() || program().fresh ||
                  process::configuration_json(configuration_).size() > longest_variable) {}

StartedProgram ProgramStart::start(const study::CheckpointRef* checkpoint) && {
    const base::TrialId trial = assignment_.start.trial;
    trial_folder_ = studydir::trial_folder(setting_.program->directory, trial);
    works_in_ = study::working_directory(program(), trial, trial_folder_);
    const bool stays = processes_stay();
    if (!stays) prepare_process();
    if (leads()) set_up();
    // Known to rank 0 only.
    study::Bytes bytes;
    if (leads()) {
        study::Encoder out(bytes);
        out.string(scratch_);
        out.string(checkpoint != nullptr ? locate(*checkpoint) : "");
        out.varint(reads_file_ ? 1 : 0);
    }
    const std::string shared = share(group_, text_of(bytes));
    study::Decoder in(std::as_bytes(std::span(shared)));
    scratch_ = in.string();
    const std::string path = in.string();
    reads_file_ = in.varint() != 0;
    if (!scratch_.empty()) checkpoint_directory_ = scratch_ + (reads_file_ ? "/checkpoint" : "");
    std::error_code error; // with one, every file counts as new
    const auto began =
        leads() ? fs::last_write_time(reads_file_ ? config_path() : scratch_, error) : fs::file_time_type{};
    if (stays)
        go_on_with_process(path);
    else
        start_process(path);
    return {std::move(process_),
            std::move(printed_),
            {setting_.program->directory, works_in_, checkpoint_directory_, trial_folder_},
            began};
}

/// Whether the attempt is a task: a process on one rank that only has to succeed. It needs no folder, unless it reads
/// its configuration there, and no port. Thousands of short ones start one after the other.
bool ProgramStart::is_task() const {
    const auto names = study::CommandTemplate(program()).placeholders();
    return program().has_tasks() && group_.size() == 1 && !program().launcher_variables &&
           std::ranges::find(names, "config") == names.end();
}

/// Collective. Whether the processes of the attempt before go on in this one, on all ranks.
bool ProgramStart::processes_stay() {
    if (!std::holds_alternative<study::Donor>(assignment_.start.from)) return false; // the same on all ranks
    const bool here = spare_.program && spare_.program->waits_for(assignment_);
    return group_.min_max(here ? 1 : 0).first == 1;
}

/// For a new process. Ends the one that waits here for another attempt.
void ProgramStart::prepare_process() {
    if (spare_.program) {
        spare_.program->dismiss([this] {
            port_.progressed();
            return !port_.abort_flag().load();
        });
        spare_.program.reset();
    }
    process_ = std::make_unique<ProgramProcess>([output = setting_.program->output, trial = assignment_.start.trial](
                                                    std::string_view line) { output(trial, line); });
}

/// Collective.
void ProgramStart::start_process(const std::string& checkpoint) {
    process::ProgramFacts facts = facts_of(setting_, assignment_);
    if (!checkpoint.empty()) facts.checkpoint = checkpoint;
    facts.config_path = scratch_.empty() || !reads_file_ ? process::configuration_json(configuration_) : config_path();
    facts.configuration = with_number(configuration_, assignment_.start);
    facts.checkpoint_directory = checkpoint_directory_;
    meet(facts);
    facts.trial_folder = trial_folder_;
    const auto environment = process::program_environment(setting_.program->environment, program(), facts);
    if (!program().function.empty() && !program().fresh) return start_function(environment);
    if (leads() && program().prints()) printed_ = std::make_shared<PrintedReports>(program(), setting_.spec->objective);
    process_->start(words(), environment, works_in_, term_grace_of(*setting_.spec),
                    [printed = printed_](std::string_view line) {
                        if (printed) printed->line(line);
                    });
}

/// An interpreter of earlier attempts may have been stopped, or have no room left: it is replaced once.
void ProgramStart::start_function(const std::vector<std::string>& environment) {
    const bool is_new = !spare_.interpreter;
    const auto start = [&] {
        process_->start(interpreter(environment), environment, works_in_, term_grace_of(*setting_.spec));
    };
    try {
        start();
    } catch (const process::SetUpError& error) {
        spare_.interpreter.reset();
        if (is_new) throw;
        port_.log(assignment_.start.trial, std::string(error.what()) + "; a new one is started");
        start();
    }
}

/// The interpreter of this rank, which has imported the file of the function. The first attempt pays for the imports.
const std::shared_ptr<process::Interpreter>& ProgramStart::interpreter(const std::vector<std::string>& environment) {
    auto& kept = spare_.interpreter;
    if (kept && !kept->serves(environment)) kept.reset();
    using Manner = process::Interpreter::Manner;
    if (!kept)
        kept = std::make_shared<process::Interpreter>(
            program().kept ? Manner::calls : Manner::forks, words(), environment, study::common_directory(program()),
            [output = setting_.program->output, trial = assignment_.start.trial](std::string_view line) {
                output(trial, line);
            });
    const auto& limits = setting_.spec->failure;
    try {
        kept->wait_until_ready([this, &limits, since = Clock::now()] {
            port_.progressed();
            const auto passed = Clock::now() - since;
            const std::string what = "the import of the function's file took longer than ";
            if (limits.iteration_timeout && passed >= *limits.iteration_timeout)
                throw base::Error(what + study::duration_text(*limits.iteration_timeout) +
                                  " (failure.iteration_timeout)");
            if (limits.report_timeout && passed >= *limits.report_timeout)
                throw DisturbedError(what + study::duration_text(*limits.report_timeout) + " (failure.report_timeout)");
            if (port_.abort_flag().load()) throw ddp::Aborted("the trial was told to give up");
        });
    } catch (...) {
        kept.reset();
        throw;
    }
    return kept;
}

/// The command. If the trial works in a folder of its own, names of files in it are those above that folder.
std::vector<std::string> ProgramStart::words() const {
    if (!program().function.empty()) {
        const studydir::StudyDirectory directory{setting_.program->directory};
        std::vector<std::string> call = {study::interpreter_of(program()), directory.python_function(),
                                         program().function};
        if (program().fresh) call.emplace_back("--fresh");
        if (program().kept)
            call.insert(call.end(), {"--kept", "--restart-after=" + std::to_string(program().restart_after),
                                     "--restart-growth=" + std::to_string(program().restart_growth)});
        return call;
    }
    auto words =
        study::CommandTemplate(program()).expand({.configuration = configuration_,
                                                  .config_path = config_path(),
                                                  .iterations = setting_.spec->max_iterations,
                                                  .trial = assignment_.start.trial,
                                                  .folder = trial_folder_,
                                                  .data = setting_.spec->data,
                                                  .row = assignment_.start.configuration.find(study::row_parameter)});
    if (!study::works_apart(program()) || program().shell) return words;
    const std::string common = study::common_directory(program());
    for (std::string& word : words) {
        if (word.starts_with('/') || (&word == &words.front() && word.find('/') == std::string::npos)) continue;
        if (std::string found = studydir::find_above(common, word); !found.empty()) word = std::move(found);
    }
    return words;
}

/// Answers the last report of the attempt before.
void ProgramStart::go_on_with_process(const std::string& checkpoint) {
    process_ = std::move(*std::exchange(spare_.program, nullptr)).take();
    process_->child().send(
        process::exploit_line(assignment_.first_iteration(), assignment_.start.attempt, checkpoint, configuration_));
    if (leads()) port_.log(assignment_.start.trial, "the program stays alive and takes over the new state");
}

/// Path of the program's checkpoint, with every file verified.
std::string ProgramStart::locate(const study::CheckpointRef& checkpoint) {
    try {
        return setting_.checkpoints->locate(checkpoint);
    } catch (const base::Error& error) {
        throw CheckpointError(outcome_of_reading(error), error.what());
    }
}

/// Errors here are not the trial's fault. A process that stays alive finds its new configuration where the old one was.
void ProgramStart::set_up() {
    need_directory(*setting_.program);
    try {
        if (process_ && !is_task()) make_scratch();
        if (!process_) {
            scratch_ = spare_.program->folder();
            std::error_code error;
            reads_file_ = fs::exists(config_path(), error);
        }
        if (study::uses_trial_folder(program()))
            storage::posix_file_system().make_below(
                setting_.program->directory,
                fs::path(trial_folder_).lexically_relative(setting_.program->directory).string());
        if (study::works_apart(program())) storage::posix_file_system().make_directories(works_in_);
        if (!scratch_.empty()) write_configuration();
    } catch (const base::IoError& error) {
        throw process::SetUpError(error.what());
    }
}

/// A folder for the duration of the process, on the study's file system, where every rank sees it. Nobody needs it
/// after a power cut, so nothing of it is synced.
void ProgramStart::make_scratch() {
    const fs::path folder =
        fs::path(studydir::StudyDirectory{setting_.program->directory}.attempts()) / name_of(assignment_.start);
    std::error_code error;
    fs::remove_all(folder, error);
    const std::string inner = reads_file_ ? "/checkpoint" : "";
    for (const fs::path& each : {folder.parent_path(), folder}) ::mkdir(each.c_str(), 0755);
    if (!inner.empty()) ::mkdir((folder.string() + inner).c_str(), 0755);
    if (!fs::is_directory(folder.string() + inner, error)) // says why it cannot
        storage::posix_file_system().make_below(setting_.program->directory,
                                                "attempts/" + name_of(assignment_.start) + inner);
    scratch_ = folder.string();
    process_->own(scratch_);
}

/// A process that lives on may be reading the old one. A function gets it without a file; its folder has the time.
void ProgramStart::write_configuration() const {
    if (!reads_file_) {
        if (!process_) ::utimensat(AT_FDCWD, scratch_.c_str(), nullptr, 0);
        return;
    }
    auto& files = storage::posix_file_system();
    const std::string text = process::configuration_json(configuration_);
    if (!process_) return studydir::publish_text(files, config_path(), text, false);
    files.open(config_path(), storage::FileSystem::Open::create_new)->write_at(0, std::as_bytes(std::span(text)));
}

/// Collective. The ranks exchange host, devices and ports.
void ProgramStart::meet(process::ProgramFacts& facts) {
    const auto own = static_cast<std::size_t>(group_.rank());
    // (A task, which has no folder, meets nobody.)
    const bool needs_port = (leads() && !scratch_.empty()) || program().tf_config;
    const std::uint64_t start = port_start(setting_.program->directory, assignment_.start, own);
    const Introduction mine{setting_.program->host, setting_.devices.devices,
                            needs_port ? free_port(start) : std::uint16_t{0}};
    std::vector<Introduction> ranks;
    for (const std::string& text : gather(group_, mine.encoded())) ranks.push_back(Introduction::decoded(text));
    const std::vector<std::uint64_t> nodes = nodes_of(ranks);
    facts.place = process::place_in_group(nodes, group_.rank());
    std::vector<std::string> addresses(ranks.size(), "127.0.0.1");
    if (!on_one_host(ranks)) addresses = gather(group_, reachable_address(setting_.program->host));
    facts.master_address = addresses[0];
    facts.master_port = ranks[0].port;
    facts.visible_devices = visible_devices(ranks, nodes, own, setting_.devices.job_has_gpus);
    for (std::size_t r = 0; r < ranks.size(); ++r)
        facts.addresses.push_back(addresses[r] + ":" + std::to_string(ranks[r].port));
}

} // namespace ranktune::worker
