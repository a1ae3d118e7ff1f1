// SPDX-License-Identifier: Apache-2.0
// Whole studies over MPI. Rank 0 is the head: with n ranks there are n - 1 workers.

#include "study_world.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "comm/mpi/communicator.hpp"
#include "ranktune/base/rng.hpp"
#include "support/catch.hpp"

namespace ranktune::test {
namespace {

std::string toml(unsigned trials, const std::string& ranks, const std::string& scheduler,
                 const std::string& trainable = "builtin = \"curve\"\n") {
    std::string text = "[study]\nname = \"mpi\"\nmetric = \"score\"\nmode = \"max\"\nmax_iterations = 9\nseed = 3\n";
    text += "num_trials = " + std::to_string(trials) + "\n";
    text += "[trainable]\n" + trainable;
    text += "[resources]\nranks = " + ranks + "\n";
    text += "[searcher]\ntype = \"random\"\n[space]\nlr = \"loguniform(1e-4, 1.0)\"\n";
    if (ranks == "\"{size}\"") text += world().size() > 3 ? "size = [1, 2, 3]\n" : "size = [1]\n";
    return text + "[scheduler]\n" + scheduler;
}

void check_complete(const StudyResult& result, unsigned trials) {
    CHECK(result.same_code);
    if (world().rank() != 0) return;
    CHECK(result.outcome.find("exit=" + std::to_string(result.code) + "\n") == 0);
    REQUIRE(result.tuner);
    CHECK_NOTHROW(result.tuner->check_invariants());
    CHECK(result.tuner->state().ended);
    CHECK(result.tuner->state().trials.size() == trials);
    for (const auto& trial : result.tuner->state().trials) CHECK(study::is_final(trial.phase));
}

/// Resident memory of this process in MiB.
double resident_mib() {
    std::ifstream file("/proc/self/statm");
    double pages = 0.0;
    double resident = 0.0;
    file >> pages >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024.0 * 1024.0);
}

/// Resource use of this rank at the start of each of its trials.
struct Footprint {
    std::vector<double> resident;
    std::vector<std::size_t> communicators;
};
Footprint footprint;

/// Three reductions; one trial in ten throws on one rank, before, between or after them.
class Brief final : public trainables::Trainable {
  public:
    void setup(trainables::TrialContext& context) override {
        footprint.resident.push_back(resident_mib());
        footprint.communicators.push_back(comm::mpi::Communicator::live());
        static_cast<void>(context.configuration().at("lr")); // a parameter that is never read would end the study
        base::RngStream random(context.seed(), base::Purpose::fault, context.trial().value());
        if (random.below(10) != 0) return;
        fails_at_ = static_cast<int>(random.below(4));
        fails_on_ = static_cast<int>(random.below(static_cast<std::uint64_t>(context.size())));
    }
    trainables::Metrics step(trainables::TrialContext& context) override {
        double sum = 0.0;
        for (int part = 0; part < 4; ++part) {
            if (part == fails_at_ && context.rank() == fails_on_) throw base::Error("thrown on purpose");
            double one = 1.0;
            if (part < 3) context.group().all_reduce(std::span(&one, 1));
            sum += one;
        }
        return {{"score", sum}};
    }
    void save(study::StateSink&) const override {}
    void load(study::StateSource&) override {}

  private:
    int fails_at_ = -1;
    int fails_on_ = -1;
};

void register_brief() {
    static const bool once = [] {
        trainables::register_trainable({.name = "brief",
                                        .description = "three reductions",
                                        .options = {},
                                        .can_checkpoint = false,
                                        .any_option = true,
                                        .metrics = {"score"}},
                                       [] { return std::make_unique<Brief>(); });
        return true;
    }();
    static_cast<void>(once);
}

[[maybe_unused]] double worst(const std::vector<double>& values, std::size_t from, std::size_t to) {
    return *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(from),
                             values.begin() + static_cast<std::ptrdiff_t>(to));
}

/// Many short trials of one to three ranks: memory and communicators of every worker do not grow.
void check_no_leak(unsigned trials) {
    register_brief();
    footprint = {};
    const auto result = run_study(toml(trials, "\"{size}\"", "type = \"fifo\"\n", "builtin = \"brief\"\n"));
    check_complete(result, trials);
    if (world().rank() == 0) {
        const auto failed = result.tuner->state().in(study::TrialPhase::failed);
        CHECK(failed > trials / 20);
        CHECK(failed < trials / 5);
        WARN(trials << " trials in " << result.figures.elapsed_s << " s, head CPU "
                    << 1e6 * result.figures.head_cpu_s / trials << " us per trial");
        return;
    }
    const std::size_t count = footprint.resident.size();
    if (count < 100) return;       // too few trials on this rank to judge
#if !defined(__SANITIZE_ADDRESS__) // it keeps freed memory, and has its own leak check
    CHECK(worst(footprint.resident, count / 2, count) - worst(footprint.resident, 0, count / 2) < 2.0);
#endif
    // One per kept roster, however many trials there are.
    CHECK(*std::max_element(footprint.communicators.begin(), footprint.communicators.end()) < 48);
}

} // namespace

TEST_CASE("studies run to their end with every scheduler", "[mpi]") {
    for (const char* scheduler : {"type = \"asha\"\n", "type = \"asha\"\nvariant = \"stop\"\n", "type = \"median\"\n"})
        check_complete(run_study(toml(20, "1", scheduler)), 20);
}

TEST_CASE("trials of mixed sizes run side by side", "[mpi]") {
    check_complete(run_study(toml(24, "\"{size}\"", "type = \"asha\"\n")), 24);
}

TEST_CASE("trials that throw on one rank fail alone", "[mpi]") {
    const auto result = run_study(
        toml(30, world().size() > 2 ? "2" : "1", "type = \"asha\"\n", "builtin = \"curve\"\nfail_rate = 0.1\n"));
    check_complete(result, 30);
    if (world().rank() != 0) return;
    for (const auto& trial : result.tuner->state().trials)
        if (trial.phase == study::TrialPhase::failed)
            CHECK(trial.failure.message.find("curve was told to fail at iteration") != std::string::npos);
}

TEST_CASE("2,000 trials, one in ten throwing on one rank, leak nothing", "[mpi]") { check_no_leak(2000); }

TEST_CASE("10,000 trials, one in ten throwing on one rank, leak nothing", "[.leak]") { check_no_leak(10000); }

TEST_CASE("a study of many workers on few cores runs to its end", "[.many]") {
    check_complete(run_study(toml(200, "\"{size}\"", "type = \"asha\"\n",
                                  "builtin = \"curve\"\nfail_rate = 0.1\nseconds = 0.01\n")),
                   200);
}

} // namespace ranktune::test
