// SPDX-License-Identifier: Apache-2.0
// The campaign over loopback: RUNS random studies on simulated clusters with delays, exceptions, deaths of ranks and
// heads, early stops and resumes, all in virtual time. Each depends only on its number.
//
//   campaign_loopback [RUNS] [--from NUMBER] [--jobs N]      RUNS cases from NUMBER on (defaults 10000, 0, 1)
//
// Prints every case that failed, then one line with the figures. Exits 1 when any did.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "simulate/cluster/campaign.hpp"

namespace {

using ranktune::simulate::CaseResult;

struct Totals {
    std::uint64_t lives = 0, trials = 0, failed_trials = 0, records = 0, messages = 0, attempts = 0, ranks_lost = 0,
                  heads_killed = 0, wrong = 0;
    double virtual_seconds = 0.0;
    std::uint64_t outcomes[256] = {};

    void add(const CaseResult& result) {
        lives += result.lives;
        trials += result.trials;
        failed_trials += result.failed_trials;
        records += result.records;
        messages += result.messages;
        attempts += result.attempts;
        ranks_lost += result.ranks_lost;
        heads_killed += result.heads_killed;
        virtual_seconds += result.virtual_seconds;
        ++outcomes[static_cast<std::uint8_t>(result.outcome)];
        if (!result.problems.empty()) ++wrong;
    }
};

void print_wrong(std::uint64_t number, const CaseResult& result) {
    if (result.problems.empty()) return;
    std::printf("case %llu: %s\n", static_cast<unsigned long long>(number), result.description.c_str());
    for (const std::string& problem : result.problems) std::printf("    %s\n", problem.c_str());
}

std::uint64_t number(const char* text) {
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text, &end, 10);
    if (end == text || *end != '\0') {
        std::fprintf(stderr, "campaign_loopback: '%s' is no number\n", text);
        std::exit(2);
    }
    return value;
}

} // namespace

int main(int argc, char** argv) {
    std::uint64_t runs = 10000;
    std::uint64_t from = 0;
    std::uint64_t jobs = 1;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--from" && i + 1 < argc)
            from = number(argv[++i]);
        else if (argument == "--jobs" && i + 1 < argc)
            jobs = number(argv[++i]);
        else
            runs = number(argv[i]);
    }
    Totals totals;
    std::mutex mutex;
    std::atomic<std::uint64_t> next{0};
    const auto work = [&] {
        for (std::uint64_t i = next++; i < runs; i = next++) {
            const CaseResult result = ranktune::simulate::run_case(from + i);
            const std::lock_guard lock(mutex);
            print_wrong(from + i, result);
            totals.add(result);
        }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t j = 1; j < jobs; ++j) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();

    const auto count = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "%llu runs, %llu wrong: %llu lives (%llu heads and %llu ranks killed), %llu trials (%llu failed), "
        "%llu attempts, %llu records, %llu messages; outcomes 0: %llu, 3: %llu, "
        "4: %llu, other: %llu; %.0f h of virtual time in %.1f s of CPU\n",
        count(runs), count(totals.wrong), count(totals.lives), count(totals.heads_killed), count(totals.ranks_lost),
        count(totals.trials), count(totals.failed_trials), count(totals.attempts), count(totals.records),
        count(totals.messages), count(totals.outcomes[0]), count(totals.outcomes[3]), count(totals.outcomes[4]),
        count(runs - totals.outcomes[0] - totals.outcomes[3] - totals.outcomes[4]), totals.virtual_seconds / 3600.0,
        static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
    return totals.wrong == 0 ? 0 : 1;
}
