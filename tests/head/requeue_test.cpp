// SPDX-License-Identifier: Apache-2.0
#include "head/requeue.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "head/background/job_watch.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"

namespace requeue_test {

using namespace ranktune;
using namespace ranktune::head;
using namespace ranktune::process;
using namespace std::chrono_literals;
using slurm::TimeLeft;

namespace {

/// A scripted Slurm that records its queries.
struct Slurm {
    std::map<std::string, CommandOutput> answers; ///< by program and first argument
    std::vector<std::string> asked;
    [[nodiscard]] auto ask() {
        return [this](const std::vector<std::string>& words) {
            std::string line;
            for (const auto& word : words) line += (line.empty() ? "" : " ") + word;
            asked.push_back(line);
            const auto found = answers.find(words[0] == "squeue" ? words[0] : words[0] + " " + words[1]);
            return found == answers.end() ? CommandOutput{{}, "", "cannot start '" + words[0] + "': no such program"}
                                          : found->second;
        };
    }
};

slurm::Allocation job() {
    slurm::Allocation job;
    job.job = "1207";
    job.name = "1200_7";
    return job;
}

const slurm::Stopped stopped{slurm::Stopped::By::signal, true, true, true};

TimeLeft left(Slurm& slurm, const slurm::Allocation& job, WhyUnknown& why) {
    return ask_time_left(job, 1'000'000, slurm.ask(), why);
}

} // namespace

TEST_CASE("The deadline comes from squeue, otherwise from scontrol, otherwise from the environment", "[head]") {
    Slurm slurm;
    WhyUnknown why;
    slurm::Allocation told = job();
    told.end = 1'000'090;
    slurm.answers["squeue"] = {0, "1:30:00\n", ""};
    slurm.answers["scontrol show"] = {0, "JobId=1207 RunTime=00:10:00 TimeLimit=00:30:00", ""};
    CHECK(left(slurm, told, why) == TimeLeft{TimeLeft::Kind::known, 90min});
    CHECK(slurm.asked == std::vector<std::string>{"squeue --noheader --jobs=1200_7 --format=%L"});

    slurm.answers["squeue"] = {0, "NOT_SET\n", ""};
    CHECK(left(slurm, told, why) == TimeLeft{TimeLeft::Kind::known, 20min});
    slurm.answers["squeue"] = {1, "5:00", "slurm_load_jobs error: Unable to contact slurm controller"};
    CHECK(left(slurm, told, why) == TimeLeft{TimeLeft::Kind::known, 20min});

    slurm.answers.clear();
    CHECK(left(slurm, told, why) == TimeLeft{TimeLeft::Kind::known, 90s});
    CHECK(why.text().empty());
}

TEST_CASE("An end in the environment that is past, or years ahead, is no deadline", "[head]") {
    // The limit was extended after the start: a live process has time left.
    for (const std::int64_t end :
         {std::int64_t{1'000'000}, std::int64_t{999'000}, std::int64_t{0}, std::int64_t{-5},
          std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
        Slurm slurm;
        WhyUnknown why;
        slurm::Allocation told = job();
        told.end = end;
        INFO(end);
        CHECK(left(slurm, told, why).kind == TimeLeft::Kind::unknown);
        CHECK(why.environment.starts_with("SLURM_JOB_END_TIME=" + std::to_string(end)));
        CHECK(why.programs.find("no such program") != std::string::npos);
        slurm.answers["squeue"] = {0, "1:30:00\n", ""};
        CHECK(left(slurm, told, why) == TimeLeft{TimeLeft::Kind::known, 90min});
    }
}

TEST_CASE("Without Slurm's programs, or with nonsense from them, the deadline is unknown", "[head]") {
    Slurm slurm;
    WhyUnknown why;
    CHECK(left(slurm, job(), why).kind == TimeLeft::Kind::unknown);
    CHECK(why.programs.find("no such program") != std::string::npos);
    slurm.answers["squeue"] = {0, std::string(100'000, '\xff'), ""};
    slurm.answers["scontrol show"] = {0, "TimeLimit=soon RunTime=long", ""};
    CHECK(left(slurm, job(), why).kind == TimeLeft::Kind::unknown);
}

TEST_CASE("A task of a job array is requeued by its number in the array, after everything is written", "[head]") {
    Slurm slurm;
    slurm.answers["scontrol show"] = {0, "JobId=1207 JobState=RUNNING Requeue=1", ""};
    slurm.answers["scontrol requeue"] = {0, "", ""};
    std::size_t asked_before = 0;
    const auto done = requeue(job(), {true, 20, 30s}, stopped, slurm.ask(), [&] { asked_before = slurm.asked.size(); });
    CHECK(done.result == studydir::Requeue::yes);
    CHECK(asked_before == 1);
    CHECK(slurm.asked.back() == "scontrol requeue 1200_7");
}

TEST_CASE("Where scontrol is missing or refuses, the user learns what to do", "[head]") {
    Slurm slurm;
    auto done = requeue(job(), {true, 20, 30s}, stopped, slurm.ask(), [] { FAIL("nothing was asked for"); });
    CHECK(done.result == studydir::Requeue::failed);
    CHECK(done.words.find("submit it again") != std::string::npos);

    slurm.answers["scontrol show"] = {0, "JobId=1207 JobState=RUNNING", ""};
    slurm.answers["scontrol requeue"] = {1, "", "Requested operation is presently disabled"};
    done = requeue(job(), {true, 20, 30s}, stopped, slurm.ask(), [] {});
    CHECK(done.result == studydir::Requeue::failed);
    CHECK(done.words.find("presently disabled") != std::string::npos);

    // Nobody wants a requeue: no message.
    slurm.answers.clear();
    CHECK(requeue(job(), {}, stopped, slurm.ask(), [] {}).words.empty());
}

TEST_CASE("Slurm is asked at the start, and again after each interval", "[head]") {
    const testing::TemporaryDirectory directory;
    const std::string asked = directory.path() + "/asked";
    const std::string squeue = directory.path() + "/squeue";
    std::ofstream(squeue) << "#!/bin/sh\necho asked >> " << asked << "\necho 2:00:00\n";
    std::filesystem::permissions(squeue, std::filesystem::perms::owner_all);
    const std::string path = std::getenv("PATH");
    ::setenv("PATH", (directory.path() + ":" + path).c_str(), 1);
    const auto times = [&] { return std::ranges::count(testing::read_file(asked), '\n'); };
    const auto wait_for = [](const auto& holds) {
        bool held = false; // asked once more, `news` would have none
        for (int i = 0; i < 6000 && !held; ++i) {
            held = holds();
            if (!held) std::this_thread::sleep_for(10ms);
        }
        CHECK(held);
    };
    Waker waker;
    base::NullLog log;
    {
        JobWatch often(job(), 30s, 20ms, waker, log);
        wait_for([&] { return times() >= 3; });
        CHECK(often.news()->end);
    }
    std::filesystem::remove(asked);
    {
        JobWatch seldom(job(), 30s, 1h, waker, log);
        wait_for([&] { return seldom.news().has_value(); });
        std::this_thread::sleep_for(100ms);
        CHECK(times() == 1);
    }
    ::setenv("PATH", path.c_str(), 1);
}

TEST_CASE("Only stops by a signal or the deadline may be followed by a requeue", "[head]") {
    using By = slurm::Stopped::By;
    using study::Reason;
    CHECK(stopped_by(Reason::draining, study::Asker::sigusr1) == By::signal);
    CHECK(stopped_by(Reason::draining, study::Asker::sigterm) == By::signal);
    CHECK(stopped_by(Reason::draining, study::Asker::sigusr2) == By::signal);
    CHECK(stopped_by(Reason::draining, study::Asker::sighup) == By::signal);
    CHECK(stopped_by(Reason::deadline, study::Asker::none) == By::deadline);
    CHECK(stopped_by(Reason::draining, study::Asker::sigint) == By::other);
    CHECK(stopped_by(Reason::draining, study::Asker::verb) == By::other);
    CHECK(stopped_by(Reason::unsaved, study::Asker::none) == By::other);
    CHECK(stopped_by(Reason::no_ranks, study::Asker::sigterm) == By::other);
}

} // namespace requeue_test
