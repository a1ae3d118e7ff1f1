// SPDX-License-Identifier: Apache-2.0
// Requests of a loop, served by a real head on real and on failing disks.

#include <atomic>
#include <cerrno>
#include <functional>
#include <utility>
#include <vector>

#include "head/asktell/refusals.hpp"
#include "head/asktell/session.hpp"
#include "head/head_run.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "storage/journal/journal.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/hooked_file_system.hpp"
#include "support/known.hpp"

namespace ranktune::testing {

using namespace ranktune::head;

namespace {

using Json = nlohmann::ordered_json;

std::string study_of(const std::string& study, const std::string& rest = "") {
    return "[study]\nname = \"asked\"\nmetric = \"loss\"\nmode = \"min\"\n" + study +
           "[trainable]\nbuiltin = \"outside\"\nbatch = 8\n[space]\nlr = \"uniform(0, 1)\"\n[searcher]\ntype = "
           "\"random\"\n" +
           rest;
}

study::StudySpec spec_of_text(const std::string& toml) {
    return study::parse_study(toml, "/study.toml", {}, known(trainables::known_trainables()));
}

/// What a loop can do in a round of the head.
class Loop {
  public:
    Loop(AskSession& session, const tuner::Tuner& tuner, head::HeadMachine& head, const process::ProcessClock& clock)
        : session_(session), tuner_(tuner), head_(head), clock_(clock) {}
    Json say(const Json& request) {
        const auto answer = session_.answer(request.dump());
        REQUIRE(answer); // the searcher `random` computes nothing ahead
        return Json::parse(*answer);
    }
    [[nodiscard]] bool answers(const Json& request) { return session_.answer(request.dump()).has_value(); }
    /// The number of the trial; -1: none.
    int ask() {
        const Json answer = say({{"ask", true}});
        return answer.at("trial").is_null() ? -1 : answer.at("trial").get<int>();
    }
    Json tell(int trial, double loss) { return say({{"tell", trial}, {"metrics", {{"loss", loss}}}}); }
    Json report(int trial, double loss) { return say({{"report", trial}, {"metrics", {{"loss", loss}}}}); }
    [[nodiscard]] const tuner::Tuner& tuner() const { return tuner_; }
    [[nodiscard]] study::TrialPhase phase(std::uint32_t trial) const {
        return tuner_.state().trial(base::TrialId{trial}).phase;
    }

    // What others do to the study:
    void stop() {
        head_.on_stop_request({"the test stops it", study::Reason::draining, study::Asker::verb}, clock_.now());
        session_.tend();
    }
    void stop_at_once() {
        head_.on_stop_at_once({"the test insists", study::Reason::draining, study::Asker::verb}, clock_.now());
    }
    void cancel(std::uint32_t trial) {
        head_.on_steering({"test", {trial + 1, study::SteerVerb::cancel, base::TrialId{trial}, {}, {}}}, clock_.now());
        session_.tend();
    }

  private:
    AskSession& session_;
    const tuner::Tuner& tuner_;
    head::HeadMachine& head_;
    const process::ProcessClock& clock_;
};

/// Runs `loop` once, in the first round of a head, and then ends it.
head::HeadRunEnd run_asked(const std::string& toml, const std::string& directory,
                           const std::function<void(Loop&)>& loop,
                           storage::FileSystem& files = storage::posix_file_system()) {
    OutsideRanks ranks(8, "test", "here");
    AskSession session(ranks);
    bool done = false;
    head::RunOptions options;
    options.version = "test";
    options.spec = spec_of_text(toml);
    options.spec.max_concurrent = 1;
    options.study_text = toml;
    options.directory = directory;
    options.files = &files;
    options.observer = &session;
    options.outside = [&](head::HeadMachine& head, const tuner::Tuner& tuner, const process::ProcessClock& clock) {
        if (!head.began()) return;
        session.set_head(head, tuner, clock);
        session.tend();
        if (std::exchange(done, true)) return;
        Loop here(session, tuner, head, clock);
        loop(here);
        session.leave();
    };
    return head::run_head(ranks, nullptr, options, "none");
}

template <class T>
std::vector<T> records_in(const std::string& directory) {
    std::vector<T> found;
    storage::read_journal(storage::posix_file_system(), directory, [&](study::Record&& record) {
        if (auto* wanted = std::get_if<T>(&record)) found.push_back(std::move(*wanted));
    });
    return found;
}

} // namespace

TEST_CASE("a loop that tells each trial before it asks for the next has one place", "[asktell]") {
    const TemporaryDirectory directory;
    const auto end = run_asked(study_of("max_iterations = 1\nnum_trials = 4\n"), directory.path(), [](Loop& loop) {
        for (int trial = 0; trial < 4; ++trial) {
            CHECK(loop.ask() == trial);
            CHECK(loop.tuner().state().trials.size() == static_cast<std::size_t>(trial + 1));
            CHECK_FALSE(loop.tell(trial, 1.0).contains("error"));
        }
        CHECK(loop.ask() == -1);
    });
    CHECK(end.outcome == study::StudyOutcome::ok);
    CHECK(records_in<study::Steered>(directory.path()).empty());
    CHECK(records_in<study::StudyEnded>(directory.path()).size() == 1);
}

TEST_CASE("an ask that finds all places taken makes one more", "[asktell]") {
    const TemporaryDirectory directory;
    static_cast<void>(run_asked(study_of("max_iterations = 1\nnum_trials = 9\n"), directory.path(), [](Loop& loop) {
        for (int trial = 0; trial < 3; ++trial) CHECK(loop.ask() == trial);
        CHECK(loop.tuner().spec().max_concurrent == 3);
        static_cast<void>(loop.tell(1, 1.0));
        CHECK(loop.ask() == 3);
        CHECK(loop.tuner().spec().max_concurrent == 3);
    }));
    CHECK(records_in<study::Steered>(directory.path()).size() == 2);
}

TEST_CASE("more trials than there are ranks are not handed out", "[asktell]") {
    const TemporaryDirectory directory;
    static_cast<void>(run_asked(study_of("max_iterations = 1\nnum_trials = 20\n"), directory.path(), [](Loop& loop) {
        for (int trial = 0; trial < 8; ++trial) CHECK(loop.ask() == trial);
        const auto refused = loop.say({{"ask", true}}).at("error").get<std::string>();
        CHECK(refused.find("8 trials are asked for and not told yet") == 0);
        static_cast<void>(loop.tell(3, 1.0));
        CHECK(loop.ask() == 8);
    }));
}

TEST_CASE("constants of [trainable] are in every configuration", "[asktell]") {
    const TemporaryDirectory directory;
    static_cast<void>(run_asked(study_of("max_iterations = 1\nnum_trials = 1\n"), directory.path(), [](Loop& loop) {
        CHECK(loop.say({{"ask", true}}).at("configuration").at("batch") == 8);
    }));
}

TEST_CASE("what an answer acknowledges is in the journal", "[asktell]") {
    const TemporaryDirectory directory;
    const std::string scheduler = "[scheduler]\ntype = \"median\"\n";
    const auto toml = study_of("num_trials = 4\nmax_iterations = 3\n", scheduler);
    static_cast<void>(run_asked(toml, directory.path(), [&](Loop& loop) {
        CHECK(loop.ask() == 0);
        CHECK(loop.report(0, 5.0).at("stop") == false);
        CHECK(records_in<study::Reported>(directory.path()).size() == 1);
        static_cast<void>(loop.tell(0, 4.0));
        CHECK(records_in<study::Reported>(directory.path()).size() == 2);
        REQUIRE(records_in<study::TrialClosed>(directory.path()).size() == 1); // below the ceiling
        CHECK(loop.ask() == 1);
        static_cast<void>(loop.say({{"fail", 1}, {"message", "out of memory"}}));
        REQUIRE(records_in<study::AttemptEnded>(directory.path()).size() == 2);
        CHECK(records_in<study::AttemptEnded>(directory.path())[1].failure.message == "out of memory");
    }));
}

TEST_CASE("a trial that is not told goes back to the study, and costs none of its attempts", "[asktell]") {
    const TemporaryDirectory directory;
    const auto toml = study_of("max_iterations = 1\nnum_trials = 2\n");
    for (int start = 0; start < 5; ++start) // more than failure.max_losses
        static_cast<void>(run_asked(toml, directory.path(), [&](Loop& loop) {
            const Json asked = loop.say({{"ask", true}});
            CHECK(asked.at("trial") == 0);
            CHECK(asked.at("attempt") == start + 1);
        }));
    const auto end = run_asked(toml, directory.path(), [](Loop& loop) {
        while (loop.ask() >= 0) {
        }
        CHECK_FALSE(loop.tell(0, 1.0).contains("error"));
        CHECK_FALSE(loop.tell(1, 1.0).contains("error"));
    });
    CHECK(end.outcome == study::StudyOutcome::ok);
}

TEST_CASE("nothing is acknowledged that the journal does not have", "[asktell]") {
    const auto toml = study_of("max_iterations = 1\nnum_trials = 40\n");
    for (const int fails_from : {1, 2, 5}) {
        const TemporaryDirectory directory;
        std::atomic<bool> armed = false;
        std::atomic<int> writes = 0;
        test::HookedFileSystem files(storage::posix_file_system(), [&](auto call, const std::string& path) {
            using Call = test::HookedFileSystem::Call;
            if (!armed || path.find("/journal") == std::string::npos) return;
            if (call == Call::write || call == Call::create || call == Call::reserve)
                if (++writes >= fails_from) throw base::IoError("injected at", path, {EIO, std::generic_category()});
        });
        std::size_t acknowledged = 0;
        bool refused = false;
        const auto end = run_asked(
            toml, directory.path(),
            [&](Loop& loop) {
                while (!refused) {
                    const Json asked = loop.say({{"ask", true}});
                    armed = true;
                    refused = asked.contains("error") || loop.tell(asked.at("trial").get<int>(), 1.0).contains("error");
                    acknowledged += refused ? 0 : 1;
                }
            },
            files);
        CHECK(refused);
        CHECK((acknowledged > 0 || fails_from < 5));
        CHECK(end.outcome == study::StudyOutcome::resumable);
        CHECK(records_in<study::Reported>(directory.path()).size() >= acknowledged);
    }
}

TEST_CASE("a trial that is told while the study stops has finished", "[asktell]") {
    const TemporaryDirectory directory;
    const auto toml = study_of("max_iterations = 3\nnum_trials = 4\n");
    static_cast<void>(run_asked(toml, directory.path(), [](Loop& loop) {
        for (int trial = 0; trial < 4; ++trial) CHECK(loop.ask() == trial);
        CHECK(loop.report(0, 1.0).at("stop") == false);
        loop.stop();
        CHECK_FALSE(loop.say({{"tell", 0}}).contains("error"));
        CHECK(loop.report(1, 1.0).at("stop") == true);
        CHECK_FALSE(loop.say({{"tell", 1}}).contains("error"));
        CHECK_FALSE(loop.tell(2, 2.0).contains("error"));
        for (const std::uint32_t trial : {0, 1, 2}) CHECK(loop.phase(trial) == study::TrialPhase::finished);
    }));
    static_cast<void>(run_asked(toml, directory.path(), [](Loop& loop) { CHECK(loop.ask() == 3); }));
}

TEST_CASE("nothing is acknowledged, and nothing handed out, once the study ends at once", "[asktell]") {
    const TemporaryDirectory directory;
    const auto toml = study_of("max_iterations = 3\nnum_trials = 4\n");
    static_cast<void>(run_asked(toml, directory.path(), [](Loop& loop) {
        for (int trial = 0; trial < 3; ++trial) CHECK(loop.ask() == trial);
        CHECK(loop.report(0, 1.0).at("stop") == false);
        loop.stop_at_once();
        const char* const again = "is handed out again";
        CHECK(loop.say({{"tell", 0}}).at("error").get<std::string>().find(again) != std::string::npos);
        CHECK(loop.say({{"fail", 1}, {"message", "broken"}}).at("error").get<std::string>().find(again) !=
              std::string::npos);
        CHECK(loop.tell(2, 1.0).contains("error"));
        CHECK_FALSE(loop.answers({{"ask", true}})); // what ended it is not known yet
    }));
}

TEST_CASE("trials that are cancelled, or of a study that stops, are not handed out", "[asktell]") {
    const TemporaryDirectory directory;
    const auto toml = study_of("max_iterations = 1\nnum_trials = 4\n");
    static_cast<void>(run_asked(toml, directory.path(), [](Loop& loop) {
        loop.cancel(0); // it began when the study was opened
        CHECK(loop.ask() == 1);
    }));
    static_cast<void>(run_asked(toml, directory.path(), [](Loop& loop) {
        loop.stop();
        CHECK(loop.ask() == -1);
    }));
    static_cast<void>(run_asked(toml, directory.path(), [](Loop& loop) { CHECK(loop.ask() == 1); }));
}

TEST_CASE("a request that is no such thing is an error, and no more", "[asktell]") {
    const TemporaryDirectory directory;
    static_cast<void>(run_asked(study_of("max_iterations = 2\nnum_trials = 2\n"), directory.path(), [](Loop& loop) {
        CHECK(loop.ask() == 0);
        for (const Json& wrong : {Json{{"report", 0}}, Json{{"report", 0}, {"metrics", 3}}, Json{{"tell", 0}},
                                  Json{{"tell", 0}, {"metrics", nullptr}}, Json{{"fail", 0}}, Json{{"tell", "0"}}})
            CHECK(loop.say(wrong).contains("error"));
        CHECK_FALSE(loop.tell(0, 1.0).contains("error"));
    }));
    CHECK(records_in<study::Reported>(directory.path()).size() == 1);
}

TEST_CASE("a result that says no more than the last report is that report", "[asktell]") {
    const TemporaryDirectory directory;
    static_cast<void>(run_asked(study_of("max_iterations = 9\nnum_trials = 2\n"), directory.path(), [](Loop& loop) {
        for (const int trial : {0, 1}) {
            CHECK(loop.ask() == trial);
            CHECK(loop.say({{"report", trial}, {"metrics", {{"loss", 1}, {"accuracy", 0.5}}}}).at("stop") == false);
        }
        CHECK_FALSE(loop.tell(0, 1.0).contains("error"));
        CHECK_FALSE(loop.say({{"tell", 1}, {"metrics", {{"loss", 1}, {"seconds", 0.5}}}}).contains("error"));
    }));
    CHECK(records_in<study::Reported>(directory.path()).size() == 3);
}

TEST_CASE("a request that comes again has the same answer", "[asktell]") {
    const TemporaryDirectory directory;
    static_cast<void>(run_asked(study_of("max_iterations = 9\nnum_trials = 4\n"), directory.path(), [](Loop& loop) {
        const Json asked = loop.say({{"id", 1}, {"ask", true}});
        CHECK(loop.say({{"id", 1}, {"ask", true}}) == asked);
        CHECK(loop.say({{"id", 2}, {"ask", true}}).at("trial") == 1);
        const Json report{{"id", 3}, {"report", 0}, {"metrics", {{"loss", 1}}}};
        CHECK(loop.say(report).at("iteration") == 1);
        CHECK(loop.say(report).at("iteration") == 1);
    }));
}

TEST_CASE("to ask a head that has failed is an error, and one that has ended says why", "[asktell]") {
    OutsideRanks ranks(2, "test", "here");
    AskSession session(ranks);
    session.head_is_gone("asked to stop", false);
    CHECK(session.answer(R"({"id":1,"ask":true})") == R"({"id":1,"trial":null,"why":"asked to stop"})");
    session.head_is_gone("the head failed", true);
    CHECK(session.answer(R"({"id":2,"ask":true})") == R"({"id":2,"error":"the head failed"})");
}

TEST_CASE("what no loop of the user's can do is refused by its key", "[asktell]") {
    CHECK(refusals(spec_of_text(study_of("max_iterations = 1\nnum_trials = 4\n"))).empty());
    const auto why =
        refusals(spec_of_text(study_of("max_iterations = 1\nnum_trials = 4\nmax_concurrent = 2\n",
                                       "[resources]\nranks = 2\n[failure]\nreport_timeout = \"1m\"\n[run]\n"
                                       "spares = 1\n")));
    REQUIRE(why.size() == 4);
    const char* const keys[] = {"resources:", "study.max_concurrent:", "run.spares:", "failure:"};
    for (std::size_t i = 0; i < why.size(); ++i) CHECK(why[i].find(keys[i]) == 0);
}

TEST_CASE("the ranks of asked trials offer the lowest trial, and say goodbye when told to", "[asktell]") {
    OutsideRanks ranks(2, "test", "here");
    const auto decoded = [&] {
        const auto message = ranks.poll();
        REQUIRE(message);
        comm::Message kind;
        comm::decode_message(message->bytes, kind);
        return kind;
    };
    CHECK(std::holds_alternative<comm::Hello>(decoded()));
    CHECK(std::holds_alternative<comm::Hello>(decoded()));
    const auto send = [&ranks](std::uint32_t to, const auto& message) {
        study::Bytes bytes;
        comm::encode_message(message, bytes);
        ranks.send(base::Rank{to}, bytes);
    };
    CHECK(ranks.offered() == nullptr);
    study::StartTrial start;
    start.trial = base::TrialId{7};
    start.attempt = base::AttemptId{1};
    start.ranks = {base::Rank{1}};
    send(1, start);
    start.trial = base::TrialId{4};
    start.ranks = {base::Rank{2}};
    send(2, start);
    REQUIRE(ranks.offered() != nullptr);
    CHECK(ranks.offered()->start.trial == base::TrialId{4});
    study::Decide of_another_attempt;
    of_another_attempt.trial = base::TrialId{4};
    of_another_attempt.attempt = base::AttemptId{2};
    of_another_attempt.verdict = {study::Verb::stop, study::Reason::not_in_top, 1, 3};
    send(2, of_another_attempt);
    CHECK_FALSE(ranks.offered()->verdict);
    send(2, comm::Alive{});
    CHECK_FALSE(ranks.poll());
    send(2, comm::Leave{});
    CHECK(std::holds_alternative<comm::Bye>(decoded()));
}

} // namespace ranktune::testing
