// SPDX-License-Identifier: Apache-2.0
// simulate: a study on a virtual cluster, as a study directory or as a table.

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "cli/message.hpp"
#include "cli/study_input.hpp"
#include "cli/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/version.hpp"
#include "report/simulated.hpp"
#include "simulate/directory.hpp"
#include "simulate/sweep.hpp"
#include "storage/file_system.hpp"

namespace ranktune::cli {
namespace {

/// Far above any cluster, and numbers of ranks still fit into 32 bits.
constexpr std::uint64_t most_ranks = 16'000'000;

std::string model_text(const SimulateArguments& arguments) {
    if (arguments.model.empty()) return {};
    try {
        return storage::read_text(storage::posix_file_system(), arguments.model);
    } catch (const base::IoError& error) {
        throw base::UsageError("cannot read the model file '" + arguments.model + "': " + error.code().message());
    }
}

/// `hours` may only shorten the study.
simulate::Setup setup_for(const SimulateArguments& arguments, const study::StudySpec& spec,
                          const simulate::Model& model) {
    simulate::Setup setup{spec, model, arguments.groups};
    if (arguments.hours > 0.0) {
        const auto budget =
            std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(arguments.hours * 3600.0));
        setup.spec.time_budget = std::min(budget, spec.time_budget.value_or(budget));
    }
    if (std::uint64_t{setup.groups} * spec.max_ranks_per_trial() > most_ranks)
        throw base::UsageError("--groups: that many groups have more than " + std::to_string(most_ranks) + " ranks");
    return setup;
}

int one_study(const SimulateArguments& arguments, const simulate::Model& model, std::string model_file) {
    const StudyInput input = read_study(arguments.study, arguments.overrides);
    const std::string shown = arguments.directory.empty() ? input.spec.name + "-simulated" : arguments.directory;
    refuse_directory(shown, arguments.study, input, arguments.fresh);
    const simulate::Setup setup = setup_for(arguments, input.spec, model);
    const auto figures = simulate::simulate_to(
        storage::posix_file_system(), setup,
        {absolute_directory(shown), input.text, std::move(model_file), version(), arguments.fresh});
    std::cout << report::simulated_screen(setup, figures, shown, detect_terminal().style);
    return 0;
}

int table(const SimulateArguments& arguments, const simulate::Model& model) {
    std::vector<simulate::Axis> axes;
    for (const std::string& text : arguments.sweeps) axes.push_back(simulate::parse_axis(text));
    const auto all = simulate::combinations(axes);
    std::vector<simulate::Setup> setups; // all mistakes show before the first study is simulated
    for (const auto& values : all) {
        std::vector<std::string> overrides = arguments.overrides;
        for (std::size_t i = 0; i < axes.size(); ++i) overrides.push_back(axes[i].key + "=" + values[i]);
        setups.push_back(setup_for(arguments, read_study(arguments.study, overrides).spec, model));
    }
    std::vector<simulate::SweepRow> rows;
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<simulate::Figures> seeds;
        const std::uint64_t first = setups[i].spec.seed;
        for (std::uint32_t k = 0; k < arguments.seeds; ++k) {
            setups[i].spec.seed = first + k;
            seeds.push_back(simulate::simulate(setups[i], "simulated", version(), nullptr));
        }
        rows.push_back(simulate::summarise(all[i], seeds));
    }
    std::cout << report::sweep_table(axes, rows, setups.front());
    return 0;
}

} // namespace

int simulate(const SimulateArguments& arguments) {
    return or_trouble([&] {
        std::string text = model_text(arguments);
        const simulate::Model model = simulate::parse_model(text, arguments.model);
        if (arguments.sweeps.empty() && arguments.seeds == 1) return one_study(arguments, model, std::move(text));
        return table(arguments, model);
    });
}

} // namespace ranktune::cli
