// SPDX-License-Identifier: Apache-2.0
// Heads whose disk fails or hangs: how they end, and what the next start does.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "comm/transport/shared.hpp"
#include "comm/wire/keep_alive.hpp"
#include "head/local_study.hpp"
#include "storage/journal/lease.hpp"
#include "studydir/study_directory.hpp"
#include "support/catch.hpp"
#include "support/hooked_file_system.hpp"

namespace ranktune::testing {

using namespace ranktune::worker;
using namespace ranktune::head;
using namespace ranktune::studydir;
using namespace ranktune::comm;
namespace {

using test::HookedFileSystem;
using Call = HookedFileSystem::Call;

/// With pauses and promotions, so that checkpoints are written, loaded and released.
constexpr const char* small_study =
    "[study]\nname = \"small\"\nmetric = \"score\"\nmode = \"max\"\nnum_trials = 4\nmax_iterations = 3\nseed = 5\n"
    "[trainable]\nbuiltin = \"curve\"\n[space]\nlr = \"loguniform(1e-4, 1.0)\"\nc = \"uniform(0.2, 1.0)\"\n"
    "[scheduler]\ntype = \"asha\"\n";

[[noreturn]] void fail(const std::string& path, int error) {
    throw base::IoError("injected at", path, {error, std::generic_category()});
}

/// The n-th call fails, once.
struct FailsOnce {
    std::uint64_t n;
    std::atomic<std::uint64_t> calls{0};
    void operator()(Call, const std::string& path) {
        if (++calls == n) fail(path, EIO);
    }
    [[nodiscard]] bool undisturbed() const { return calls < n; }
};

/// From the n-th call on the disk is full: nothing new fits; existing files can be overwritten and renamed.
struct FillsUp {
    std::uint64_t n;
    std::atomic<std::uint64_t> calls{0};
    void operator()(Call call, const std::string& path) {
        if (++calls < n || path.find("/outcome") != std::string::npos) return;
        if (call == Call::write || call == Call::reserve) fail(path, ENOSPC);
    }
    [[nodiscard]] bool undisturbed() const { return calls < n; }
};

/// From the n-th call on the journal's disk is dead.
struct JournalDies {
    std::uint64_t n;
    std::atomic<std::uint64_t> calls{0};
    void operator()(Call, const std::string& path) {
        if (++calls >= n && path.find("/journal") != std::string::npos) fail(path, EIO);
    }
    [[nodiscard]] bool undisturbed() const { return calls < n; }
};

struct Records {
    std::size_t deaths = 0;
    std::size_t began = 0;
};

Records records_of(const std::string& directory) {
    Records found;
    auto& files = storage::posix_file_system();
    if (!storage::has_journal(files, directory)) return found;
    try {
        storage::read_journal(files, directory, [&](study::Record&& record) {
            found.deaths += std::holds_alternative<study::JobDied>(record) ? 1 : 0;
            found.began += std::holds_alternative<study::IncarnationBegan>(record) ? 1 : 0;
        });
    } catch (const base::UsageError&) { // a segment without a record
    }
    return found;
}

LocalStudy run_on(storage::FileSystem& files, const std::string& directory) {
    RunOptions options = local_options(small_study, directory);
    options.files = &files;
    return run_local_study(std::move(options), 2);
}

/// In memory if possible: thousands of syncs.
class QuickDirectory {
  public:
    QuickDirectory() {
        std::string name = "/dev/shm/ranktune-walk-XXXXXX";
        path_ = ::mkdtemp(name.data()) != nullptr ? name : slow_.path();
    }
    ~QuickDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    QuickDirectory(const QuickDirectory&) = delete;
    QuickDirectory& operator=(const QuickDirectory&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    TemporaryDirectory slow_;
    std::string path_;
};

/// One start on a disk with the fault, then one on a good disk. False: the fault did not occur any more.
template <class Fault>
bool check_life_and_next(const std::string& before, std::uint64_t n) {
    const QuickDirectory there;
    const std::string directory = there.path() + "/study";
    if (!before.empty()) std::filesystem::copy(before, directory, std::filesystem::copy_options::recursive);
    const std::size_t began_before = records_of(directory).began;
    Fault fault{n};
    HookedFileSystem files(storage::posix_file_system(), std::ref(fault));
    const LocalStudy life = run_on(files, directory);
    INFO("call " << n << ": " << life.message);
    if (life.head.outcome != study::StudyOutcome::ok) {
        CHECK(life.head.outcome == study::StudyOutcome::resumable);
        CHECK(life.message.find("injected at") != std::string::npos);
        if (records_of(directory).began > began_before) { // trials may have run
            const auto left = read_outcome(storage::posix_file_system(), {directory});
            REQUIRE(left);
            CHECK(left->outcome == study::StudyOutcome::resumable);
            CHECK(left->cause == EndCause::storage);
            CHECK(left->reason.find("injected at") != std::string::npos);
        }
    }
    for (const WorkerEnd& worker : life.workers) CHECK_FALSE(worker.lost_head); // they were told to leave
    // A real process would be dead by now, and would have left this lease behind.
    storage::posix_file_system().remove(storage::lease_path(directory));
    const LocalStudy next = run_local_study(small_study, 2, directory);
    INFO("next: " << next.message);
    CHECK(next.head.outcome == study::StudyOutcome::ok);
    CHECK(records_of(directory).deaths == 0);
    const auto tuner = replay(small_study, directory);
    CHECK(tuner->state().in(study::TrialPhase::failed) == 0);
    CHECK(tuner->state().trials.size() == 4);
    return !fault.undisturbed();
}

template <class Fault>
void walk(const std::string& before, std::uint64_t step) {
    std::uint64_t n = 1;
    while (check_life_and_next<Fault>(before, n)) n += step;
    CHECK(n > 50); // otherwise the hook sees too little
}

/// A study whose first start ended in the middle because its disk failed.
void stop_in_the_middle(const std::string& directory) {
    struct Fault {
        std::atomic<int> frames{0};
        void operator()(Call call, const std::string& path) {
            if (call == Call::write && path.find("/journal/") != std::string::npos && ++frames > 8) fail(path, EIO);
            if (call == Call::create && path.find("/journal/") != std::string::npos && frames > 8) fail(path, EIO);
        }
    } fault;
    HookedFileSystem files(storage::posix_file_system(), std::ref(fault));
    REQUIRE(run_on(files, directory).head.outcome == study::StudyOutcome::resumable);
}

} // namespace

TEST_CASE("Whichever disk call fails, the head writes its outcome, and the next start suspects no trial", "[head]") {
    SECTION("once, in a new study") { walk<FailsOnce>("", 1); }
    SECTION("with a full disk, in a new study") { walk<FillsUp>("", 3); }
    SECTION("for good, on the journal's disk, in a new study") { walk<JournalDies>("", 3); }
    SECTION("once, in a study that goes on") {
        const QuickDirectory first;
        stop_in_the_middle(first.path() + "/study");
        walk<FailsOnce>(first.path() + "/study", 1);
    }
}

TEST_CASE("An exception that leaves the head's loop is written to the file outcome, and the workers are told to leave",
          "[head]") {
    struct Throwing final : Observer {
        void on_records(const tuner::Tuner& tuner, const std::vector<study::Record>&, const HeadFigures&) override {
            if (tuner.state().reports >= 2) throw std::runtime_error("a fault of this program");
        }
        void on_tick(const tuner::Tuner&, const HeadFigures&) override {}
    } throwing;
    const TemporaryDirectory there;
    const LocalStudy study = run_local_study(small_study, 2, there.path() + "/study", &throwing);
    CHECK(study.head.outcome == study::StudyOutcome::runtime_error);
    CHECK_FALSE(study.head.clean);
    CHECK(study.message == "the head failed: a fault of this program");
    const auto left = read_outcome(storage::posix_file_system(), {there.path() + "/study"});
    REQUIRE(left);
    CHECK(left->outcome == study::StudyOutcome::runtime_error);
    CHECK(left->cause == EndCause::error);
    CHECK(left->reason == study.message);
    for (const WorkerEnd& worker : study.workers) {
        CHECK_FALSE(worker.lost_head);
        CHECK(worker.outcome == study::StudyOutcome::runtime_error);
    }
    CHECK_FALSE(storage::read_lease(storage::posix_file_system(), there.path() + "/study"));
    CHECK(run_local_study(small_study, 2, there.path() + "/study").head.outcome == study::StudyOutcome::ok);
}

TEST_CASE("A keep-alive thread sends while the loop is away, and is silent while it runs", "[head]") {
    using namespace std::chrono_literals;
    simulate::LoopbackHub hub(3);
    const auto wire = hub.endpoint(base::head_rank);
    const auto peer = hub.endpoint(base::Rank{2});
    comm::SharedTransport transport(*wire);
    {
        KeepAlive keep_alive(transport, Alive{}, worker_ranks(3), 2ms);
        keep_alive.set_peers({base::Rank{2}});
        int heard = 0;
        while (heard < 3) { // the loop is away
            if (const auto message = peer->poll()) {
                Message what;
                decode_message(message->bytes, what);
                CHECK(std::holds_alternative<Alive>(what));
                ++heard;
            }
            std::this_thread::sleep_for(1ms);
        }
        CHECK(keep_alive.loop_is_here() >= 2ms);
    }
    while (peer->poll()) {
    }
    CHECK(hub.in_flight() == 0); // nothing for rank 1
    KeepAlive patient(transport, Alive{}, worker_ranks(3), 1h);
    patient.loop_is_here();
    patient.stop();
    CHECK(hub.in_flight() == 0);
}

TEST_CASE("A disk that hangs for longer than the heartbeat time-out costs a study nothing", "[head]") {
    using namespace std::chrono_literals;
    const TemporaryDirectory there;
    // The first write of a report's record hangs for longer than the time-out.
    static constexpr auto timeout = 4s;
    struct Freeze {
        std::atomic<int> frames{0};
        std::atomic<bool> froze{false};
        void operator()(Call call, const std::string& path) {
            if (call != Call::write || path.find("/journal/") == std::string::npos || ++frames != 6) return;
            std::this_thread::sleep_for(timeout + 2s);
            froze = true;
        }
    } freeze;
    HookedFileSystem files(storage::posix_file_system(), std::ref(freeze));
    RunOptions options = local_options(small_study, there.path() + "/study");
    options.spec.output.heartbeat_timeout = timeout;
    options.files = &files;
    const LocalStudy study = run_local_study(std::move(options), 2);
    CHECK(freeze.froze);
    CHECK(study.head.outcome == study::StudyOutcome::ok);
    CHECK(study.head.clean);
    for (const WorkerEnd& worker : study.workers) CHECK_FALSE(worker.lost_head);
}

} // namespace ranktune::testing
