// SPDX-License-Identifier: Apache-2.0
// simulate: a study on a virtual cluster, as a study directory or as a table.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "cli/study_input.hpp"
#include "cli/terminal/message.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/screens/simulated.hpp"
#include "simulate/directory.hpp"
#include "simulate/sweep.hpp"
#include "storage/file_system.hpp"
#include "study/side_tasks.hpp"
#include "studydir/earlier/earlier_results.hpp"

namespace ranktune::cli {
namespace {

/// Far above any cluster, and numbers of ranks still fit into 32 bits.
constexpr std::uint64_t most_ranks = 16'000'000;

/// What the options ask for, beside the study.
struct Inputs {
    simulate::Model model;
    std::string model_text; ///< empty: no file
    simulate::FaultModel faults;
    std::string fault_text;
};

bool is_directory(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::is_directory(path, ignored);
}

/// A directory in place of a model file is that of an earlier study. Paths in the file are relative to it.
Inputs inputs_of(const SimulateArguments& arguments) {
    Inputs inputs;
    inputs.fault_text = text_of(arguments.faults, "cannot read the file of failures");
    inputs.faults = simulate::parse_faults(inputs.fault_text, arguments.faults);
    if (is_directory(arguments.model)) {
        inputs.model.curves.study = arguments.model;
        return inputs;
    }
    inputs.model_text = text_of(arguments.model, "cannot read the model file");
    inputs.model = simulate::parse_model(inputs.model_text, arguments.model);
    const auto place = std::filesystem::path(arguments.model).parent_path();
    for (std::string* path : {&inputs.model.curves.file, &inputs.model.curves.study})
        if (!path->empty()) *path = (place / *path).string();
    return inputs;
}

std::shared_ptr<const simulate::Recordings> recordings_of(const simulate::CurveModel& curves,
                                                          const study::StudySpec& spec) {
    if (!curves.is_measured()) return nullptr;
    const std::string& metric = spec.objective.metric;
    if (!curves.study.empty())
        return std::make_shared<simulate::Recordings>(
            simulate::read_study(storage::posix_file_system(), curves.study, metric));
    std::vector<std::string> parameters;
    for (const auto& parameter : spec.space.parameters())
        if (!std::holds_alternative<space::Constant>(parameter.domain)) parameters.push_back(parameter.name);
    if (curves.file.ends_with(".h5") || curves.file.ends_with(".hdf5"))
        return std::make_shared<simulate::Recordings>(simulate::read_hdf5(curves.file, metric, parameters));
    return std::make_shared<simulate::Recordings>(
        simulate::read_csv(text_of(curves.file, "cannot read the table of curves"), curves.file, metric, parameters));
}

/// `hours` may only shorten the study.
simulate::Setup setup_for(const SimulateArguments& arguments, const study::StudySpec& spec, const Inputs& inputs,
                          std::shared_ptr<const simulate::Recordings> recordings) {
    if (spec.objective.several())
        throw base::UsageError("a simulation has curves of one metric, and study.metric names " +
                               std::to_string(spec.objective.goals().size()) + "; give one: study.metric=" +
                               spec.objective.metric + " study.mode=" + std::string(study::name(spec.objective.mode)));
    if (spec.searcher.algorithm->runs_program)
        throw base::UsageError("a simulation runs no programs, so it cannot have searcher.type = \"" +
                               spec.searcher.algorithm->name + "\"; try it with another searcher: searcher.type=tpe");
    simulate::Setup setup{study::without_side_tasks(spec), inputs.model, arguments.groups, inputs.faults,
                          std::move(recordings)};
    setup.earlier = studydir::read_earlier_results(storage::posix_file_system(), spec, trainables::known_algorithms());
    if (arguments.hours > 0.0) {
        const auto budget =
            std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(arguments.hours * 3600.0));
        setup.spec.time_budget = std::min(budget, spec.time_budget.value_or(budget));
    }
    if (std::uint64_t{setup.groups} * simulate::ranks_of_group(spec) > most_ranks)
        throw base::UsageError("--groups: that many groups have more than " + std::to_string(most_ranks) + " ranks");
    return setup;
}

/// On a terminal: how far a simulation of more than a second has got.
class ProgressLine {
  public:
    ProgressLine(std::string what, std::uint32_t trials) : what_(std::move(what)), trials_(trials) {}
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine() {
        if (shown_) std::cerr << "\r\033[K" << std::flush;
    }
    void operator()(std::uint64_t trials) {
        const auto now = std::chrono::steady_clock::now();
        if (!terminal_ || now < next_) return;
        next_ = now + std::chrono::milliseconds(500);
        shown_ = true;
        std::cerr << "\r\033[K" << what_ << ": " << base::grouped(trials) << " of " << base::counted(trials_, "trial")
                  << std::flush;
    }

  private:
    std::string what_;
    std::uint32_t trials_;
    bool terminal_ = isatty(STDERR_FILENO) != 0;
    bool shown_ = false;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + std::chrono::seconds(1);
};

int one_study(const SimulateArguments& arguments, const Inputs& inputs) {
    const StudyInput input = read_study(arguments.study, arguments.overrides);
    const std::string shown = arguments.directory.empty() ? input.spec.name + "-simulated" : arguments.directory;
    refuse_directory(shown, arguments.study, input, arguments.fresh);
    const simulate::Setup setup =
        setup_for(arguments, input.spec, inputs, recordings_of(inputs.model.curves, input.spec));
    const auto figures = [&] {
        ProgressLine line("simulating", setup.spec.num_trials);
        return simulate::simulate_to(
            storage::posix_file_system(), setup,
            {absolute_directory(shown), input.text, inputs.model_text, inputs.fault_text, version(), arguments.fresh},
            std::ref(line));
    }();
    std::cout << report::simulated_screen(setup, figures, shown, detect_terminal().style);
    return figures.reports == 0 ? static_cast<int>(study::StudyOutcome::no_success) : 0;
}

int table(const SimulateArguments& arguments, const Inputs& inputs) {
    std::vector<simulate::Axis> axes;
    for (const std::string& text : arguments.sweeps) axes.push_back(simulate::parse_axis(text));
    const auto all = simulate::combinations(axes);
    std::vector<simulate::Setup> setups; // all mistakes show before the first study is simulated
    for (const auto& values : all) {
        std::vector<std::string> overrides = arguments.overrides;
        for (std::size_t i = 0; i < axes.size(); ++i) overrides.push_back(axes[i].key + "=" + values[i]);
        const auto spec = read_study(arguments.study, overrides).spec;
        setups.push_back(
            setup_for(arguments, spec, inputs,
                      setups.empty() ? recordings_of(inputs.model.curves, spec) : setups.front().recordings));
    }
    std::vector<simulate::SweepRow> rows;
    const std::uint32_t each = std::max(1U, arguments.seeds);
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<simulate::Figures> seeds;
        const std::uint64_t first = setups[i].spec.seed;
        for (std::uint32_t k = 0; k < each; ++k) {
            setups[i].spec.seed = first + k;
            ProgressLine line(fmt::format("simulating study {} of {}", i * each + k + 1, all.size() * each),
                              setups[i].spec.num_trials);
            seeds.push_back(simulate::simulate(setups[i], "simulated", version(), nullptr, std::ref(line)));
        }
        rows.push_back(simulate::summarise(all[i], seeds));
    }
    std::cout << report::sweep_table(axes, rows, setups.front());
    return 0;
}

} // namespace

int simulate(const SimulateArguments& arguments) {
    return or_trouble([&] {
        const Inputs inputs = inputs_of(arguments);
        if (arguments.sweeps.empty() && arguments.seeds == 0) return one_study(arguments, inputs);
        return table(arguments, inputs);
    });
}

} // namespace ranktune::cli
