// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_runner.hpp"

#include <utility>

#include "device/module.hpp"
#include "process/environment.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "study/side_tasks.hpp"
#include "studydir/study_directory.hpp"
#include "worker/checkpoints/store_io.hpp"
#include "worker/hang_trace.hpp"
#include "worker/peer_io.hpp"
#include "worker/trial_meter.hpp"

namespace ranktune::worker {
namespace {

/// The trainable; null for programs.
const trainables::Registration* trainable_of(const study::StudySpec& spec) {
    return spec.trainable.program ? nullptr : &trainables::find_trainable(spec.trainable.name);
}

/// Devices for the trials of this study, of those that were granted.
worker::DeviceGrant devices_for(const study::StudySpec& spec, worker::DeviceGrant granted) {
    if (spec.resources.gpus == study::GpuUse::none) return {{}, true};
    return granted;
}

} // namespace

std::uint64_t MemoryWay::share() const { return process::memory_bytes() / ranks_of_node; }

namespace {

/// A trial thread with everything that it refers to.
class WorkerRunner final : public worker::Runner {
  public:
    WorkerRunner(study::StudySpec spec, storage::FileSystem& files, const std::string& directory,
                 worker::FormGroup form, const std::string& host, worker::DeviceGrant devices, WorkerLog& log,
                 process::Waker& waker, MemoryWay memory, BeginStaging stage)
        : spec_(std::move(spec)),
          begin_staging_(std::move(stage)),
          disk_(files, directory, spec_.checkpoint.direct),
          memory_(with_memory(memory, log)),
          program_{process::environment_entries(), directory, host,
                   [&log](base::TrialId trial, std::string_view line) {
                       log.write_output(study::unit_text(trial), std::string(line));
                   }},
          meter_(spec_.resources.gpu_metrics && spec_.resources.gpus != study::GpuUse::none, devices.on_node, log),
          thread_(
              {&spec_, trainable_of(spec_), std::move(form), checkpoints(), devices_for(spec_, std::move(devices)),
               &program_, memory.share()},
              [&waker] { waker.wake(); },
              [&log](base::TrialId trial, std::string_view line) {
                  log.write(base::LogLevel::info, "trial",
                            {{"trial", study::unit_text(trial)}, {"text", std::string(line)}});
              }) {
        device::set_memory_share(spec_.resources.gpu_share); // before any trial opens a GPU
        if (!study::makes_staged_files(spec_)) begin_staging();
    }

    void stage() override { begin_staging(); }
    [[nodiscard]] bool prepared() override {
        if (begin_staging_) return false;
        if (!stager_) return true;
        const data::StagingFigures figures = stager_->figures();
        if (!figures.over || !figures.problem.empty()) return false;
        spec_.data = stager_->files();
        stager_.reset();
        return true;
    }
    void start(const worker::Assignment& assignment) override {
        meter_.start(assignment);
        thread_.start(assignment);
    }
    void decide(const study::Decide& decide) override { thread_.decide(decide); }
    void interrupt(const study::Verdict& verdict) override { thread_.interrupt(verdict); }
    void contest() override { thread_.contest(); }
    void abandon() override { thread_.abandon(); }
    [[nodiscard]] std::optional<worker::RunnerEvent> poll() override {
        auto event = thread_.poll();
        meter_.measure(event);
        return event;
    }
    [[nodiscard]] std::uint64_t progress() const override { return thread_.progress(); }
    [[nodiscard]] bool waits() const override { return thread_.waits(); }

    worker::TrialThread& thread() { return thread_; }

  private:
    void begin_staging() {
        if (const auto begin = std::exchange(begin_staging_, nullptr)) stager_ = begin(spec_);
    }
    /// Null unless trials of the study may take over states of others.
    std::unique_ptr<PeerIo> with_memory(MemoryWay way, WorkerLog& log) {
        if (way.exchange == nullptr || !spec_.scheduler.algorithm->explores) return nullptr;
        return std::make_unique<PeerIo>(disk_, *way.exchange, way.share() / 4, [&log](std::string_view line) {
            log.write(base::LogLevel::info, "state", {{"text", std::string(line)}});
        });
    }
    worker::CheckpointIo* checkpoints() { return memory_ ? static_cast<worker::CheckpointIo*>(memory_.get()) : &disk_; }

    study::StudySpec spec_;
    BeginStaging begin_staging_;           ///< until it is called
    std::shared_ptr<data::Stager> stager_; ///< until it is over; `data` of the study are the originals until then
    worker::StoreIo disk_;
    std::unique_ptr<PeerIo> memory_;
    worker::ProgramSetting program_;
    TrialMeter meter_;
    worker::TrialThread thread_; // last: uses all of the above
};

} // namespace

void WorkerLog::open(const std::string& path) {
    file_ =
        std::make_unique<studydir::LogFile>(path, std::vector<base::LogField>{{"rank", std::to_string(rank_.value())}});
}

void WorkerLog::write(base::LogLevel level, std::string_view event, const std::vector<base::LogField>& fields) {
    if (file_) file_->write(level, event, fields);
}

void WorkerLog::write_output(const std::string& trial, const std::string& line) {
    if (file_) file_->write_text("out", {{"trial", trial}}, line);
}

void trace_trial(worker::Runner* runner, WorkerLog& log) {
    auto* mine = dynamic_cast<WorkerRunner*>(runner);
    if (mine == nullptr || !mine->thread().busy()) return;
    log.write(base::LogLevel::error, "hung", {{"text", "the trial does not return; its stack follows"}});
    write_stack_of(mine->thread().native_handle(), log.fd());
}

MakeRunner make_trial_runner(storage::FileSystem& files, worker::FormGroup form, std::string host, WorkerLog& log,
                             process::Waker& waker, worker::DeviceGrant devices, OnStudy on_study, BeginStaging stage,
                             MemoryWay memory) {
    return [&files, form = std::move(form), host = std::move(host), &log, &waker, devices = std::move(devices),
            on_study = std::move(on_study), stage = std::move(stage),
            memory](const comm::Welcome& welcome) -> std::unique_ptr<worker::Runner> {
        log.open(studydir::StudyDirectory{welcome.directory}.worker_log(host));
        auto spec = study::parse_study(welcome.study, welcome.directory + "/resolved.toml", {},
                                       {trainables::known_trainables(), trainables::known_algorithms()});
        if (on_study) on_study(spec);
        return std::make_unique<WorkerRunner>(std::move(spec), files, welcome.directory, form, host, devices, log,
                                              waker, memory, stage);
    };
}

} // namespace ranktune::worker
