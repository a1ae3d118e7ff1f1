// SPDX-License-Identifier: Apache-2.0
#include "worker/predict/predict_programs.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "process/spawn.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "storage/unique_handle.hpp"
#include "studydir/study_directory.hpp"
#include "worker/bodies/task_process.hpp"
#include "worker/checkpoints/store_io.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {
namespace {

using process::ProgramBatch;
using trainables::PredictingTrial;
using trainables::PredictPlan;

/// Memory that a program maps. It has no name, so a killed rank leaves nothing behind.
class SharedMemory {
  public:
    SharedMemory() : file_(::memfd_create("ranktune-batch", MFD_CLOEXEC)) {
        if (!file_) fail("cannot share memory with a program");
    }
    [[nodiscard]] int descriptor() const { return file_.get(); }
    /// Room for the samples, which the program maps. The program extends it when it writes its predictions.
    void make_size(std::uint64_t bytes) {
        if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail("no memory for a batch");
    }
    void write(std::span<const std::byte> bytes, std::uint64_t offset) {
        while (!bytes.empty()) {
            const ssize_t size = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (size < 0 && errno == EINTR) continue;
            if (size <= 0) fail("no memory for a batch");
            bytes = bytes.subspan(static_cast<std::size_t>(size));
            offset += static_cast<std::uint64_t>(size);
        }
    }
    /// False: it is not that long.
    [[nodiscard]] bool read(std::span<std::byte> bytes, std::uint64_t offset) const {
        while (!bytes.empty()) {
            const ssize_t size = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (size < 0 && errno == EINTR) continue;
            if (size <= 0) return false;
            bytes = bytes.subspan(static_cast<std::size_t>(size));
            offset += static_cast<std::uint64_t>(size);
        }
        return true;
    }
    [[nodiscard]] std::uint64_t size() const {
        struct stat info {};
        return ::fstat(file_.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
    }

  private:
    [[noreturn]] static void fail(const char* what) {
        throw process::SetUpError(std::string(what) + ": " + std::generic_category().message(errno));
    }
    storage::FileDescriptor file_;
};

/// Of the trained trial, verified. Empty: it is in parts, which programs do not read.
std::string checkpoint_path(const PredictPlan& plan, const PredictingTrial& trial) {
    if (!trial.checkpoint.shards.empty()) return {};
    StoreIo store(storage::posix_file_system(), plan.directory);
    try {
        if (plan.trainable == study::program_name) return store.locate(trial.checkpoint);
        static_cast<void>(store.load(trial.checkpoint, {}));
    } catch (const base::Error& error) {
        throw CheckpointError(outcome_of_reading(error), error.what());
    }
    return plan.directory + "/" + trial.checkpoint.path;
}

/// To a cache line: NumPy needs aligned arrays.
std::uint64_t aligned(std::uint64_t bytes) {
    constexpr std::uint64_t line = 64;
    return (bytes + line - 1) / line * line;
}

} // namespace

/// One model. While a batch is predicted the next one is in the program's other memory.
class PredictPrograms::Program final : public trainables::PredictingModel {
  public:
    Program(const PredictPlan& plan, const PredictingTrial& trial, const AttemptSetting& setting)
        : plan_(plan), trial_(trial), setting_(setting) {}

    void start_range(const Assignment& assignment, AttemptPort& port) {
        process_.emplace(setting_, assignment, port,
                         TaskManner{.on_early_end = "the program ended, with exit code 0, before all was predicted; it "
                                                    "has to go through all batches: for batch in ranktune.predict()"});
        if (!kept_ || !process_->take(std::move(kept_))) start_process();
        kept_.reset();
    }
    void end_range() {
        kept_ = process_->keep();
        process_.reset();
    }
    void begin(const data::Batch& batch, std::size_t wanted) override;
    [[nodiscard]] trainables::Prediction predict(const data::Batch& batch, std::size_t wanted,
                                                 trainables::TrialContext& within) override;

  private:
    void start_process();
    [[nodiscard]] std::vector<std::string> words_of(const study::ProgramSpec& program,
                                                    const std::string& checkpoint) const;
    [[nodiscard]] process::ProgramPredicted answer();
    void read(const process::ProgramPredicted& said, std::size_t rows);

    const PredictPlan& plan_;
    const PredictingTrial& trial_;
    const AttemptSetting& setting_;
    std::unique_ptr<KeptProgram> kept_; ///< between ranges
    std::optional<TaskProcess> process_;
    std::vector<SharedMemory> memories_; ///< of the process: batch i is in memory i mod most_begun
    std::uint64_t begun_ = 0;            ///< batches that the process has got
    std::uint64_t predicted_ = 0;
    std::uint64_t y_offset_ = 0;
    study::MemoryState put_;
};

void PredictPrograms::Program::start_process() {
    const study::StudySpec& spec = *setting_.spec;
    study::ProgramSpec program = program_of(spec.predict);
    program.kept = true;
    program.env = {{"RANKTUNE_KEPT", "predict"}};
    program.launcher_variables = false;
    process::ProgramFacts facts = process_->facts();
    facts.trial = trial_.trial;
    facts.seed = trial_.seed;
    facts.iteration = trial_.checkpoint.iteration;
    facts.iterations = plan_.max_iterations;
    const std::string checkpoint = checkpoint_path(plan_, trial_);
    if (!checkpoint.empty()) facts.checkpoint = checkpoint;
    facts.config_path = process::configuration_json(trial_.configuration);
    process_->start(program, words_of(program, checkpoint), facts);
    memories_ = std::vector<SharedMemory>(most_begun);
    begun_ = predicted_ = 0;
}

std::vector<std::string> PredictPrograms::Program::words_of(const study::ProgramSpec& program,
                                                            const std::string& checkpoint) const {
    const study::CommandTemplate command(program);
    const auto names = command.placeholders();
    const bool calls = !program.function.empty();
    if (checkpoint.empty() && (calls || std::ranges::find(names, "checkpoint") != names.end()))
        throw base::UsageError(name_of(plan_, trial_) +
                               "its checkpoint is in parts, which no program reads: `ranktune checkpoint` makes one "
                               "file of them; give its name to a command (predict.command, --command)");
    if (calls)
        return {study::interpreter_of(program), studydir::StudyDirectory{setting_.program->directory}.python_function(),
                program.function, "--predict"};
    return command.expand({.configuration = trial_.configuration,
                           .config_path = {},
                           .iterations = plan_.max_iterations,
                           .trial = trial_.trial,
                           .data = setting_.spec->data,
                           .checkpoint = checkpoint});
}

void PredictPrograms::Program::begin(const data::Batch& batch, std::size_t wanted) {
    ProgramBatch message{
        .number = begun_, .memory = begun_ % most_begun, .first = batch.begin, .rows = wanted, .columns = {}};
    SharedMemory& memory = memories_[message.memory];
    std::uint64_t end = 0;
    for (const data::Column& column : batch.columns) {
        const data::Field& field = column.field;
        message.columns.push_back({field.name, std::string(data::name(field.type)), field.shape, end});
        end = aligned(end + plan_.batch * field.bytes());
    }
    message.y_offset = y_offset_ = end;
    if (begun_ < most_begun) memory.make_size(end);
    for (std::size_t i = 0; i < batch.columns.size(); ++i)
        memory.write(batch.columns[i].bytes().first(wanted * batch.columns[i].field.bytes()),
                     message.columns[i].offset);
    if (begun_ == 0) {
        std::vector<int> descriptors;
        for (const SharedMemory& each : memories_) descriptors.push_back(each.descriptor());
        process_->child().send_with(batch_line(message), descriptors);
    } else {
        process_->child().send(batch_line(message));
    }
    ++begun_;
}

process::ProgramPredicted PredictPrograms::Program::answer() {
    auto message = process_->next();
    if (!message) throw RangeGivenUp{process_->given_up()->verb};
    auto* predicted = std::get_if<process::ProgramPredicted>(&*message);
    if (predicted == nullptr)
        throw base::Error(
            "the program reports an iteration, a result or a checkpoint, and it is asked for predictions: "
            "it gives them with batch.write()");
    if (predicted->batch != predicted_)
        throw base::Error("the program has predicted batch " + std::to_string(predicted->batch) + ", and batch " +
                          std::to_string(predicted_) + " was the next one");
    return std::move(*predicted);
}

trainables::Prediction PredictPrograms::Program::predict(const data::Batch& batch, std::size_t wanted,
                                                         trainables::TrialContext& /*within*/) {
    try {
        read(answer(), wanted);
        return trainables::prediction_of(put_, wanted, wanted, batch.begin);
    } catch (const base::UsageError& error) {
        throw base::UsageError(name_of(plan_, trial_) + error.what());
    }
}

void PredictPrograms::Program::read(const process::ProgramPredicted& said, std::size_t rows) {
    const auto* const type =
        std::ranges::find(base::dtypes, said.type, [](base::DType each) { return base::name(each); });
    if (type == std::end(base::dtypes))
        throw base::UsageError("y has the type '" + said.type + "': send float32 or float64");
    const SharedMemory& memory = memories_[predicted_++ % most_begun];
    const study::TensorInfo y{.name = "y", .type = *type, .shape = said.shape};
    const std::uint64_t bytes = study::bytes_of(y); // saturates
    put_.reset();
    const auto short_of = [&] {
        throw base::UsageError("the program says that it has written predictions of " + std::to_string(bytes) +
                               " bytes, and the memory of the batch has fewer");
    };
    if (bytes > memory.size() || !memory.read(put_.add(y), y_offset_)) short_of();
    if (!said.classifies) return;
    const study::TensorInfo classes{.name = "class", .type = base::DType::int32, .shape = {rows}};
    if (!memory.read(put_.add(classes), y_offset_ + bytes)) short_of();
}

PredictPrograms::PredictPrograms(PredictPlan plan, const AttemptSetting& setting, trainables::TrialContext& within)
    : predictor_(
          std::move(plan),
          [this, &setting](const PredictPlan& of, const PredictingTrial& trial, trainables::TrialContext&) {
              auto program = std::make_unique<Program>(of, trial, setting);
              if (now_)
                  program->start_range(now_->assignment, now_->port);
              else
                  programs_.push_back(program.get());
              return program;
          },
          within) {}

PredictPrograms::~PredictPrograms() = default;

trainables::Metrics PredictPrograms::predict_range(trainables::TrialContext& context, const Assignment& assignment,
                                                   AttemptPort& port) {
    now_.emplace(Now{assignment, port});
    for (Program* program : programs_) program->start_range(assignment, port);
    auto metrics = predictor_.predict_range(context);
    for (Program* program : programs_) program->end_range();
    now_.reset();
    return metrics;
}

} // namespace ranktune::worker
