// SPDX-License-Identifier: Apache-2.0
// A study program for tests that kill it: `study_program DIR STUDY.toml` runs a study, `study_program --check DIR`
// reads its journal without MPI and prints a summary.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include "launch/run_study.hpp"
#include "process/signals.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "storage/journal/journal.hpp"
#include "support/files.hpp"
#include "support/known.hpp"

namespace {

using namespace ranktune;
using ranktune::testing::read_file;

int check(const std::string& directory) {
    auto spec = study::parse_study(read_file(directory + "/resolved.toml"), directory + "/resolved.toml", {},
                                   ranktune::testing::known(trainables::known_trainables()));
    tuner::Tuner tuner(spec);
    const auto summary = storage::read_journal(storage::posix_file_system(), directory,
                                               [&](study::Record&& record) { tuner.apply(record); });
    tuner.check_invariants();
    const auto& state = tuner.state();
    std::cout << "records=" << summary.records << " reports=" << state.reports << " ended=" << state.ended
              << " running=" << state.in(study::TrialPhase::running)
              << " waiting=" << state.in(study::TrialPhase::waiting)
              << " paused=" << state.in(study::TrialPhase::paused)
              << " finished=" << state.in(study::TrialPhase::finished)
              << " stopped=" << state.in(study::TrialPhase::stopped)
              << " failed=" << state.in(study::TrialPhase::failed) << " trials=" << state.trials.size() << "\n";
    return 0;
}

/// A trial that hangs: never returns from an iteration.
class Hang final : public trainables::Trainable {
  public:
    void setup(trainables::TrialContext&) override {}
    trainables::Metrics step(trainables::TrialContext&) override {
        volatile bool forever = true;
        while (forever) std::this_thread::sleep_for(std::chrono::seconds(1));
        return {};
    }
    void save(study::StateSink&) const override {}
    void load(study::StateSource&) override {}
};

/// Rank 1 comes to the second iteration of the first attempt of its process late.
class Late final : public trainables::Trainable {
  public:
    void setup(trainables::TrialContext& context) override {
        static_cast<void>(context.configuration().at("lr"));
        static bool first = true;
        late_ = std::exchange(first, false) && context.rank() == 1;
    }
    trainables::Metrics step(trainables::TrialContext& context) override {
        if (late_ && context.iteration() == 1) std::this_thread::sleep_for(std::chrono::seconds(5));
        return {{"score", context.group().reduced(1.0)}};
    }
    void save(study::StateSink&) const override {}
    void load(study::StateSource&) override {}

  private:
    bool late_ = false;
};

/// Prints, and aborts in its third iteration if its configuration says so.
class Loud final : public trainables::Trainable {
  public:
    void setup(trainables::TrialContext& context) override {
        static_cast<void>(context.configuration().at("lr")); // a parameter that is never read would end the study
        crash_ = context.configuration().contains("crash") && context.rank() == 1;
    }
    trainables::Metrics step(trainables::TrialContext& context) override {
        std::printf("iteration %d of a loud trial\n", static_cast<int>(context.iteration()) + 1);
        std::cerr << "and an error message" << std::endl;
        context.log("a line by log()");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (crash_ && ++steps_ == 3) {
            std::printf("last words");
            std::fflush(stdout);
            std::abort();
        }
        return {{"score", 1.0}};
    }
    void save(study::StateSink&) const override {}
    void load(study::StateSource&) override {}

  private:
    bool crash_ = false;
    int steps_ = 0;
};

/// A function that reports and does not save checkpoints.
void plain(trainables::FunctionContext& context) {
    const double lr = context.configuration().at("lr").as_double();
    do std::this_thread::sleep_for(std::chrono::milliseconds(300));
    while (context.report({{"score", lr}}));
}

} // namespace

int main(int argc, char** argv) {
    trainables::register_trainable<Hang>(testing::any_trainable("hang", {"score"}));
    trainables::register_trainable<Late>(testing::any_trainable("late", {"score"}));
    trainables::register_trainable<Loud>(testing::any_trainable("loud", {"score"}));
    trainables::register_function(testing::any_trainable("plain", {"score"}), plain);
    if (argc == 3 && std::string(argv[1]) == "--check") return check(argv[2]);
    if (argc != 3) return 2;
    process::block_stop_signals();
    const comm::mpi::Environment environment;
    head::RunOptions options;
    options.version = "test";
    options.layout = comm::survey(environment);
    comm::Neighbours neighbours(options.layout, base::Rank(static_cast<std::uint32_t>(environment.rank())));
    options.neighbours = &neighbours;
    if (environment.rank() == 0) {
        options.study_text = read_file(argv[2]);
        options.spec = study::parse_study(options.study_text, argv[2], {},
                                          ranktune::testing::known(trainables::known_trainables()));
        options.directory = argv[1];
        options.on_end = [](const head::RunEnd& end) {
            std::cout << "end " << static_cast<int>(end.outcome) << " " << end.message << std::endl;
        };
    }
    return launch::run_study(environment, options);
}
