// SPDX-License-Identifier: Apache-2.0
// One study on the ranks of an mpirun, over links that delay messages; a worker's link may die.
//
//   campaign_mpi_faults STUDY DIRECTORY SEED      SEED 0: no faults
//
// Ends with the study's exit code. On standard error of rank 0: how the study ended; of each rank: what went wrong.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "comm/mpi/environment.hpp"
#include "launch/run_study.hpp"
#include "process/signals.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "simulate/transport/fault.hpp"
#include "storage/file_system.hpp"

namespace {

using namespace ranktune;
using namespace std::chrono_literals;

/// A fault transport that runs on real time, from the first message on: a worker dies after it has said Hello, however
/// long it takes to start.
class Links final : public comm::Transport {
  public:
    Links(std::unique_ptr<comm::Transport> wire, const simulate::FaultPlan& plan) : faults_(std::move(wire), plan) {}
    ~Links() override {
        std::fprintf(stderr, "rank %u sent %llu%s\n", rank().value(),
                     static_cast<unsigned long long>(faults_.counts().sent), faults_.dead() ? " dead" : "");
    }
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;

    [[nodiscard]] base::Rank rank() const override { return faults_.rank(); }
    [[nodiscard]] std::uint32_t size() const override { return faults_.size(); }
    void send(base::Rank to, std::span<const std::byte> bytes) override {
        if (!began_) began_ = std::chrono::steady_clock::now();
        advance();
        faults_.send(to, bytes);
    }
    [[nodiscard]] std::optional<comm::Packet> poll() override {
        advance();
        return faults_.poll();
    }
    [[nodiscard]] bool flushed() override {
        advance();
        return faults_.flushed();
    }

  private:
    void advance() {
        if (began_) faults_.advance(base::StudyTime{std::chrono::steady_clock::now() - *began_});
    }

    std::optional<std::chrono::steady_clock::time_point> began_;
    simulate::FaultTransport faults_;
};

/// The same faults on all ranks, except for the death.
simulate::FaultPlan plan_for(std::uint64_t seed, base::Rank self, std::uint32_t size) {
    base::RngStream random(seed, base::Purpose::fault, 0);
    simulate::FaultPlan plan;
    plan.seed = seed;
    plan.max_delay = std::chrono::microseconds(random.below(5000));
    const bool dies = random.below(3) == 0;
    const base::Rank victim{1 + static_cast<std::uint32_t>(random.below(size - 1))};
    const base::StudyTime at{std::chrono::milliseconds(20 + random.below(700))};
    if (dies && victim == self) plan.death = at;
    return plan;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fputs("usage: campaign_mpi_faults STUDY DIRECTORY SEED\n", stderr);
        return 2;
    }
    process::block_stop_signals();
    const comm::mpi::Environment mpi;
    const std::uint64_t seed = std::strtoull(argv[3], nullptr, 10);
    head::RunOptions options;
    options.version = "campaign";
    if (seed > 0)
        options.wrap = [seed](std::unique_ptr<comm::Transport> wire) -> std::unique_ptr<comm::Transport> {
            const simulate::FaultPlan plan = plan_for(seed, wire->rank(), wire->size());
            return std::make_unique<Links>(std::move(wire), plan);
        };
    if (mpi.rank() == 0) {
        options.study_text = storage::read_text(storage::posix_file_system(), argv[1]);
        options.spec = study::parse_study(options.study_text, argv[1], {},
                                          {trainables::known_trainables(), trainables::known_algorithms()});
        options.directory = argv[2];
        options.on_end = [](const head::RunEnd& end) {
            std::fprintf(stderr, "the study ended with %d: %s\n", static_cast<int>(end.outcome), end.message.c_str());
        };
    }
    return launch::run_study(mpi, options);
}
