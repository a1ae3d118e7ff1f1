// SPDX-License-Identifier: Apache-2.0
#include "cli/verbs/predict.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/checks/remarks.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal/output_file.hpp"
#include "cli/version.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/data/source.hpp"
#include "ranktune/results.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "report/screens/screens.hpp"
#include "report/view/load.hpp"
#include "storage/journal/journal.hpp"
#include "study/options.hpp"
#include "study/printed_values.hpp"
#include "study/toml_text.hpp"
#include "studydir/study_directory.hpp"
#include "trainables/predict/plan.hpp"

namespace ranktune::cli {
namespace {

namespace fs = std::filesystem;
using trainables::PredictingTrial;
using trainables::PredictPlan;

constexpr std::string_view predict_header = "# Written by `ranktune predict`: a trial for each range of samples.\n";

std::string whole_path(const std::string& path) { return fs::absolute(path).lexically_normal().string(); }

/// Fills in `input`, `group`, `field` and `samples` from FILE or FILE:DATASET. Returns the bytes of a sample.
std::uint64_t find_samples(const std::string& given, PredictPlan& plan) {
    std::error_code error;
    const std::size_t colon = given.rfind(':');
    const bool names_set = colon != std::string::npos && !fs::exists(given, error);
    plan.input = whole_path(names_set ? given.substr(0, colon) : given);
    if (fs::is_directory(plan.input, error))
        throw base::UsageError("--input: '" + plan.input +
                               "' is a folder: make one file of samples of it, .npy or HDF5, or have `ranktune map` "
                               "run a program for each of its files");
    if (!fs::is_regular_file(plan.input, error))
        throw base::UsageError("--input: there is no file '" + plan.input + "'");
    if (names_set) {
        const std::string set = given.substr(colon + 1);
        const std::size_t slash = set.rfind('/');
        plan.group = slash == std::string::npos ? "" : set.substr(0, slash);
        plan.field = slash == std::string::npos ? set : set.substr(slash + 1);
    }
    try {
        const auto source = data::Source::open(plan.input, {.group = plan.group, .field = plan.field});
        plan.samples = source->samples();
        if (std::ranges::all_of(source->fields(), [](const data::Field& field) { return field.varying; }))
            throw base::UsageError("--input " + given +
                                   ": its samples are files of any size, and models get arrays: make .npy or HDF5 of "
                                   "them, or have `ranktune map` run a program for each");
        if (plan.samples == 0) throw base::UsageError("'" + plan.input + "' has no samples");
        if (!plan.field.empty()) return source->fields()[source->field(plan.field)].bytes();
        return source->extent().sample_bytes;
    } catch (const base::FormatError& wrong) {
        throw base::UsageError("--input " + given + ": " + wrong.what() +
                               (names_set ? "" : "; FILE:DATASET names a data set, as in x.h5:val/x"));
    }
}

/// A 256th of the input, so that ranks share the work, but 8 to 64 MiB of it: small ranges cost more than they compute,
/// and a range is what a kill costs. Not above 100,000 ranges. Long ranges have borders at pages of the output (a page
/// has 1,024 numbers of 4 bytes): no two nodes write to one page, which would cost a lock.
std::uint64_t samples_of_range(std::uint64_t samples, std::uint64_t sample_bytes) {
    constexpr std::uint64_t shares = 256;
    constexpr std::uint64_t least_bytes = std::uint64_t{8} << 20U;
    constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20U;
    constexpr std::uint64_t most_ranges = 100'000;
    const std::uint64_t size = std::max<std::uint64_t>(sample_bytes, 1);
    const std::uint64_t bytes = std::clamp(samples / shares * size, least_bytes, most_bytes);
    const std::uint64_t range = std::max({bytes / size, samples / most_ranges + 1, std::uint64_t{1}});
    constexpr std::uint64_t of_page = 1024;
    return range < of_page ? range : (range + of_page - 1) / of_page * of_page;
}

PredictingTrial trial_of_study(const tuner::Tuner& tuner, base::TrialId id, const std::string& directory) {
    const study::StudySpec& spec = tuner.spec();
    const tuner::Trial& trial = tuner.state().trial(id);
    const study::CheckpointRef* checkpoint = tuner::best_checkpoint(trial, spec.objective);
    if (checkpoint == nullptr)
        throw base::UsageError(fmt::format(
            "trial #{} has no checkpoint{}", id.value(),
            study::is_final(trial.phase)
                ? ": only the best trial keeps one, unless checkpoint.every_trial = true is set before it ends"
                : " yet; `ranktune status " + directory + "` tells how far it is"));
    PredictingTrial predicts{.trial = id, .seed = spec.seed_of(id), .checkpoint = *checkpoint};
    predicts.configuration = tuner::configuration_at(trial, checkpoint->iteration);
    study::add_options(predicts.configuration, spec);
    return predicts;
}

/// The program in which the models predict; no command: they are trainables of this process. Throws base::UsageError
/// when they cannot be asked.
study::PredictSpec predicting_program(const PredictArguments& arguments, const study::StudySpec& spec,
                                      const std::string& directory) {
    study::PredictSpec predict = spec.predict;
    const std::string here = fs::current_path().string();
    const bool given = !arguments.command.empty() || !arguments.python.empty();
    if (!arguments.command.empty()) predict = {arguments.command, here, {}, {}};
    if (!arguments.python.empty()) {
        predict = {{}, here, {}, predict.interpreter};
        if (predict.interpreter.empty() && spec.trainable.program)
            predict.interpreter = spec.trainable.program->interpreter;
    }
    if (given || predict.by_program()) {
        const std::string key = predict.command.empty() ? "python" : "command";
        try {
            if (!arguments.python.empty()) predict.function = study::python_target(arguments.python, here);
            if (!predict.command.empty()) study::check_predict_command(spec, predict.command);
            if (const std::string missing = missing_in_command(program_of(predict)); !missing.empty())
                throw base::UsageError(missing);
        } catch (const base::UsageError& error) {
            throw base::UsageError((given ? "--" + key : "predict." + key + " of '" + directory + "'") + ": " +
                                   error.what());
        }
    } else if (spec.trainable.program) {
        throw base::UsageError("the trials of '" + directory +
                               "' are programs: give one that predicts, --command \"python3 predict.py {checkpoint}\", "
                               "which loops over ranktune.predict(), or --python predict.py:predict, a function");
    } else if (!trainables::find_trainable(spec.trainable.name).factory) {
        throw base::UsageError("the trials of '" + directory + "' run the function '" + spec.trainable.name +
                               "'; to predict, make it a class with predict() (ranktune/trainables/trainable.hpp), or "
                               "give a program by --command or --python");
    }
    return predict;
}

/// What the study of predictions takes over as it is.
struct TakenOver {
    std::vector<study::DataFile> data;
    study::StagingSpec staging;
    study::ResourceSpec resources;
    study::PredictSpec predict;
    std::vector<std::string> read; ///< paths of the files that the trials read
};

std::vector<std::string> files_of(const study::StudySpec& spec) {
    std::vector<std::string> paths;
    for (const study::DataFile& file : spec.data)
        if (!file.is_mixture()) paths.push_back(file.path);
    for (const study::InputFile& file : spec.trainable.inputs)
        if (const space::Value* path = spec.trainable.options.find(file.option); path != nullptr && path->is_string())
            paths.push_back(path->as_string());
    return paths;
}

/// `read`: files that the trials or the prediction read. Throws base::UsageError if the output is one of them.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& read) {
    std::error_code missing;
    for (const std::string& path : read)
        if (fs::equivalent(output, path, missing))
            throw base::UsageError("-o " + output +
                                   " is a file that is read: give the predictions a file of their own");
}

TakenOver find_trials(const PredictArguments& arguments, PredictPlan& plan) {
    const std::string directory = directory_of(arguments.study);
    const report::LoadedStudy study = report::load_state(storage::posix_file_system(), directory);
    const study::StudySpec& spec = study.tuner->spec();
    if (!study.tuner->state().simulation.empty())
        throw base::UsageError("'" + directory + "' holds a simulated study, which has no weights");
    study::PredictSpec predict = predicting_program(arguments, spec, directory);
    plan.study = spec.name;
    plan.directory = absolute_directory(directory);
    plan.trainable = spec.trainable.name;
    plan.max_iterations = spec.max_iterations;
    if (arguments.top > 1 && arguments.trial != "best")
        throw base::UsageError("--top takes the best trials: ranktune predict " + arguments.study + " best --top " +
                               std::to_string(arguments.top));
    const auto ids = arguments.top > 1
                         ? report::best_trials(*study.tuner, arguments.top)
                         : std::vector{report::trial_named(study.tuner->state(), arguments.trial, directory)};
    for (const base::TrialId id : ids) plan.trials.push_back(trial_of_study(*study.tuner, id, directory));
    return {spec.data, spec.staging, spec.resources, std::move(predict), files_of(spec)};
}

/// The version that the file of a study which has begun names: that of the program which began it.
std::string version_in(const std::string& file) {
    const std::string text = text_of(file, "cannot read the study file");
    constexpr std::string_view key = "\nversion = \"";
    const std::size_t begin = text.find(key);
    if (begin == std::string::npos) return version();
    const std::size_t value = begin + key.size();
    return text.substr(value, text.find('"', value) - value);
}

std::string predict_study(const PredictArguments& arguments, const std::string& name, const std::string& begun_by) {
    PredictPlan plan;
    auto [data, staging, resources, predict, read] = find_trials(arguments, plan);
    const std::uint64_t sample_bytes = find_samples(arguments.input, plan);
    read.push_back(plan.input);
    refuse_overwriting(arguments.run.directory, read);
    plan.input_content = storage::content_text(storage::posix_file_system(), plan.input);
    plan.output = whole_path(OutputFile(arguments.run.directory).path); // a link may lead to nothing yet
    plan.range = arguments.range > 0 ? arguments.range : samples_of_range(plan.samples, sample_bytes);
    plan.batch = arguments.batch;
    plan.combine = arguments.combine;
    plan.version = begun_by;
    std::string text =
        fmt::format("{}[study]\nname = {}\nmetric = \"samples\"\nmode = \"max\"\nmax_iterations = 1\n\n{}",
                    predict_header, study::text_of(fs::path(name).filename().string()), text_of(plan));
    if (!data.empty()) text += "\n[data]\n";
    for (const study::DataFile& each : data) text += each.name + " = " + study::text_of(each) + "\n";
    if (staging.stage) text += fmt::format("stage = true\nmust_fit = {}\n", staging.must_fit);
    if (!staging.directory.empty()) text += "directory = " + study::text_of(staging.directory) + "\n";
    if (predict.by_program()) text += "\n[predict]\n";
    for (const auto& [key, value] :
         {std::pair("command", predict.command), std::pair("python", predict.function),
          std::pair("interpreter", predict.interpreter), std::pair("directory", predict.directory)})
        if (predict.by_program() && !value.empty()) text += fmt::format("{} = {}\n", key, study::text_of(value));
    text += fmt::format("\n[resources]\ncpus_per_rank = {}\n", resources.cpus_per_rank);
    if (resources.gpus == study::GpuUse::none) text += "gpus = 0\n";
    if (resources.gpus == study::GpuUse::one_per_rank)
        text += "gpus = " + (resources.gpu_share < 1.0 ? study::text_of(resources.gpu_share) : "1") + "\n";
    text += fmt::format(
        "\n[space]\n{} = \"randint(0, {})\"\n\n[searcher]\ntype = \"grid\"\n\n[scheduler]\n"
        "type = \"fifo\"\n\n[failure]\ntolerate = 0.0\n",
        trainables::range_parameter, (plan.samples + plan.range - 1) / plan.range);
    return text;
}

/// Samples [begin, end) as they were predicted.
struct PredictedRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t digest = 0;
    base::TrialId trial;
};

/// Without its digest and trial.
PredictedRange range_of(const PredictPlan& plan, const space::Configuration& configuration) {
    const auto range = static_cast<std::uint64_t>(configuration.at(trainables::range_parameter).as_int());
    return {range * plan.range, std::min((range + 1) * plan.range, plan.samples), 0, {}};
}

/// Those of the study in `directory` that are finished, in the order of the samples.
std::vector<PredictedRange> predicted_ranges(const std::string& directory, const PredictPlan& plan) {
    const Study study = Study::open(directory);
    std::vector<PredictedRange> ranges;
    for (const Study::Trial& trial : study.trials()) {
        if (trial.phase != study::TrialPhase::finished) continue;
        const auto half = [&](const char* metric) {
            return static_cast<std::uint64_t>(study.curve(trial.id, metric).back().value);
        };
        ranges.push_back(range_of(plan, trial.configuration));
        ranges.back().trial = trial.id;
        ranges.back().digest = half("digest_high") << 32U | half("digest_low");
    }
    std::ranges::sort(ranges, {}, &PredictedRange::begin);
    return ranges;
}

/// Whether the output has the rows that were predicted.
bool has_range(const data::Source& output, const PredictedRange& range) {
    if (output.samples() < range.end) return false;
    std::vector<std::uint64_t> rows(range.end - range.begin);
    std::iota(rows.begin(), rows.end(), range.begin);
    base::Digest of_y;
    base::Digest of_classes;
    for (std::size_t i = 0; i < output.fields().size(); ++i) {
        const data::Field& field = output.fields()[i];
        std::vector<std::byte> bytes(rows.size() * field.bytes());
        output.gather(i, rows, bytes);
        (field.name == "y" ? of_y : of_classes).add(bytes);
    }
    return trainables::digest_of_range(of_y, of_classes) == range.digest;
}

/// Those that the output does not have, in their order. Only each `step`th is compared, back from the last one.
std::vector<PredictedRange> lacking(const data::Source& output, const std::vector<PredictedRange>& ranges,
                                    std::size_t step = 1) {
    std::vector<PredictedRange> lost;
    for (std::size_t i = ranges.size(); i > 0; i -= std::min(step, i))
        if (!has_range(output, ranges[i - 1])) lost.push_back(ranges[i - 1]);
    std::ranges::reverse(lost);
    return lost;
}

[[noreturn]] void refuse_output(const tuner::Tuner& tuner, const std::string& directory, const std::string& output,
                                const std::string& what,
                                const std::string& or_else = "begin again with `ranktune predict ... --fresh`") {
    throw base::UsageError(
        fmt::format("'{}' {}, and '{}' says that {} ranges of it are predicted; bring the output back, or {}", output,
                    what, directory, tuner.state().in(study::TrialPhase::finished), or_else));
}

/// "samples 1024 to 2047", for each gap between these ranges, which ascend.
std::vector<std::string> gaps(const std::vector<PredictedRange>& ranges, std::uint64_t samples) {
    std::vector<std::string> found;
    std::uint64_t expected = 0; // sample at which the next range begins, if none is missing
    const auto reach = [&](std::uint64_t begin) {
        if (expected < begin) found.push_back(fmt::format("samples {} to {}", expected, begin - 1));
    };
    for (const PredictedRange& range : ranges) {
        reach(range.begin);
        expected = range.end;
    }
    reach(samples);
    return found;
}

/// Returns 1 unless all ranges are predicted, and the output has them.
int verify(const std::string& directory) {
    const auto loaded = report::load_state(storage::posix_file_system(), directory);
    const PredictPlan plan = trainables::predict_plan_of(loaded.tuner->spec().trainable.options);
    const std::vector<PredictedRange> ranges = predicted_ranges(directory, plan);
    const auto output = data::Source::open(plan.output);
    for (const std::string& gap : gaps(ranges, plan.samples)) std::cout << gap << " are not predicted yet\n";
    const std::vector<PredictedRange> lost = lacking(*output, ranges);
    const std::size_t wrong = lost.size();
    for (const PredictedRange& range : lost)
        std::cout << fmt::format("samples {} to {} are not what was predicted\n", range.begin, range.end - 1);
    const std::uint64_t missing = (plan.samples + plan.range - 1) / plan.range - ranges.size();
    std::cout << fmt::format(
        "{} ranges compared, {} differ, {} missing{}\n", ranges.size(), wrong, missing,
        wrong > 0      ? ": the same line with --restart-errored in place of --verify predicts them again"
        : missing == 0 ? ""
        : loaded.tuner->state().ended
            ? fmt::format(": ranktune status {} says how it goes on", study::shell_text({directory}))
            : ": the same line without --verify predicts them");
    return wrong + missing > 0 ? 1 : 0;
}

/// The study that stands for a prediction, and where it lies.
class MadePrediction {
  public:
    explicit MadePrediction(const PredictArguments& arguments)
        : arguments_(arguments), output_(arguments.run.directory) {}

    [[nodiscard]] std::string directory() const { return output_ + ".predict"; }
    [[nodiscard]] std::string file() const { return directory() + ".toml"; }
    /// Made once: reading the input takes time. Throws base::UsageError for another prediction than that which has
    /// begun, and for an output that is there without its study.
    [[nodiscard]] const std::string& text();
    void write() { write_made_study(file(), text(), predict_header, begun(), advice); }
    /// See RunArguments::MadeStudy.
    void begin();

  private:
    [[nodiscard]] bool begun() const { return !arguments_.run.fresh && storage::has_journal(files_, directory()); }

    static constexpr const char* advice =
        "that is another prediction; give it another output (-o FILE), or begin again with --fresh";
    storage::FileSystem& files_ = storage::posix_file_system();
    PredictArguments arguments_;
    std::string output_; ///< as typed
    std::string text_;
};

const std::string& MadePrediction::text() {
    if (!text_.empty()) return text_;
    const std::string begun_by = begun() && files_.exists(file()) ? version_in(file()) : version();
    const std::string text = predict_study(arguments_, directory(), begun_by); // refuses its own input as the output
    refuse_other_made_study(file(), text, predict_header, begun(), advice);
    return text_ = text;
}

/// Another start may have made it since text() looked: the one that holds the lease is right.
void MadePrediction::begin() { studydir::publish_text(files_, whole_path(file()), text(), true); }

} // namespace

int predict(const PredictArguments& arguments, const Invocation& invocation) {
    const std::string& output = arguments.run.directory;
    const auto made = std::make_shared<MadePrediction>(arguments);
    const std::string name = made->directory();
    if (const std::string last = fs::path(name).filename().string();
        !study::is_study_name(last) || output.ends_with('/'))
        throw base::UsageError("-o " + output + ": '" + last +
                               "' cannot name a study: letters, digits, '_', '-' and '.'");
    if (const std::string ending = fs::path(output).extension().string(); ending != ".h5" && ending != ".hdf5")
        throw base::UsageError("-o " + output + ": the output is an HDF5 file; call it " + output + ".h5");
    if (arguments.verify) {
        static_cast<void>(made->text()); // refuses another prediction
        return verify(name);
    }
    const std::string file = made->file();
    if (arguments.write) {
        made->write();
        std::cout << fmt::format(
            "wrote {}. To run it: ranktune run {} -o {}, or ranktune submit {} -o {} --time "
            "1:00:00\n",
            file, file, name, file, name);
        return 0;
    }
    RunArguments run_arguments = arguments.run;
    run_arguments.study = file;
    run_arguments.directory = name;
    run_arguments.made = {.text = [made] { return made->text(); }, .begin = [made] { made->begin(); }};
    return run(run_arguments, invocation);
}

void refuse_other_output(const study::StudySpec& spec, const std::string& directory, bool fresh) {
    storage::FileSystem& files = storage::posix_file_system();
    if (!study::predicts(spec) || fresh || storage::has_journal(files, directory)) return;
    const PredictPlan plan = trainables::predict_plan_of(spec.trainable.options);
    if (files.exists(plan.output))
        throw base::UsageError("'" + plan.output +
                               "' exists and is no output of this prediction: move it away; or give `ranktune predict` "
                               "another -o; or begin with `--fresh`, which renames it to '" +
                               fs::path(plan.output).filename().string() + "~1'");
}

std::string set_output_aside(const study::StudySpec& spec) {
    if (!study::predicts(spec)) return {};
    storage::FileSystem& files = storage::posix_file_system();
    const PredictPlan plan = trainables::predict_plan_of(spec.trainable.options);
    if (!files.exists(plan.output)) return {};
    // The target of a symbolic link, not the link: the user wants the output at that place.
    const std::string real = files.resolve(plan.output);
    const std::string moved = storage::free_name(files, real);
    files.rename(real, moved);
    return fmt::format("the output that was in '{}' is now in '{}'", fs::path(plan.output).filename().string(),
                       fs::path(moved).filename().string());
}

namespace {

/// Finished ranges that the output does not have, of so many of them at most, the last one among them. Throws
/// base::UsageError when the output is gone, or another file.
std::vector<PredictedRange> lost_ranges(const tuner::Tuner& tuner, const std::string& directory, std::size_t looks) {
    if (!study::predicts(tuner.spec()) || tuner.state().in(study::TrialPhase::finished) == 0) return {};
    const PredictPlan plan = trainables::predict_plan_of(tuner.spec().trainable.options);
    if (!storage::posix_file_system().exists(plan.output)) refuse_output(tuner, directory, plan.output, "is gone");
    try {
        const auto output = data::Source::open(plan.output);
        const std::vector<PredictedRange> ranges = predicted_ranges(directory, plan);
        return lacking(*output, ranges, (ranges.size() - 1) / looks + 1);
    } catch (const base::FormatError& error) {
        refuse_output(tuner, directory, plan.output, std::string("is another file (") + error.what() + ")");
    }
}

} // namespace

void refuse_lost_predictions(const tuner::Tuner& tuner, const std::string& directory) {
    constexpr std::size_t looks = 64;
    const auto lost = lost_ranges(tuner, directory, looks);
    if (lost.empty()) return;
    refuse_output(tuner, directory, trainables::predict_plan_of(tuner.spec().trainable.options).output,
                  fmt::format("lacks the predictions for samples {} to {}", lost.front().begin, lost.front().end - 1),
                  "give --restart-errored, which predicts again all ranges that it lacks");
}

std::vector<base::TrialId> lost_predictions(const tuner::Tuner& tuner, const std::string& directory) {
    std::vector<base::TrialId> trials;
    for (const PredictedRange& range : lost_ranges(tuner, directory, std::numeric_limits<std::size_t>::max()))
        trials.push_back(range.trial);
    std::ranges::sort(trials);
    return trials;
}

std::string predicted_words(const tuner::Tuner& tuner) {
    if (!study::predicts(tuner.spec())) return {};
    const PredictPlan plan = trainables::predict_plan_of(tuner.spec().trainable.options);
    const auto& state = tuner.state();
    std::vector<PredictedRange> ranges;
    for (const tuner::Trial& trial : state.trials)
        if (trial.phase == study::TrialPhase::finished) ranges.push_back(range_of(plan, trial.configuration));
    std::ranges::sort(ranges, {}, &PredictedRange::begin);
    std::uint64_t done = 0;
    for (const PredictedRange& range : ranges) done += range.end - range.begin;
    const double seconds = base::to_seconds(state.now);
    std::string words = fmt::format("{} of {} samples in {:.1f} s, {:.0f} a second: {}", done, plan.samples, seconds,
                                    static_cast<double>(done) / std::max(seconds, 1e-9), plan.output);
    if (!tuner::is_over(state)) return words;
    constexpr std::size_t shown = 5;
    if (const auto missing = gaps(ranges, plan.samples); !missing.empty())
        words += "; not predicted, zero in the output: " + base::join_some(missing, shown);
    return words;
}

} // namespace ranktune::cli
