// SPDX-License-Identifier: Apache-2.0
// The lease of a study directory, with simulated time and processes; tests/cli uses real ones.
#include "storage/journal/lease.hpp"

#include <cerrno>

#include "support/catch.hpp"
#include "support/crash_file_system.hpp"
#include "support/error_of.hpp"

namespace ranktune::storage::lease_test {
namespace {

using namespace std::chrono_literals;
using ranktune::test::CrashFileSystem;

const std::string home = "/study";

LeaseHolder holder(const std::string& host, std::uint64_t pid, const std::string& nonce) {
    LeaseHolder h;
    h.writer = {host, "boot-of-" + host, pid};
    h.pid_namespace = "pid:[1]";
    h.process_started = 100;
    h.nonce = nonce;
    return h;
}

/// A clock that advances only by sleeping.
struct Waiting {
    base::Duration now{0};
    int said = 0;
    std::function<void()> meanwhile = [] {};
    LeaseWait wait() {
        return {[this] { return now; },
                [this](base::Duration d) {
                    now += d;
                    meanwhile();
                },
                [this](const std::string&) { ++said; }};
    }
};

struct Study {
    CrashFileSystem files;
    Waiting waiting;
    Study() { files.make_directories(home); }
    Lease take(const LeaseHolder& me) { return Lease::take(files, home, me, waiting.wait()); }
};

std::string refusal(Study& study, const LeaseHolder& me) {
    return ranktune::testing::error_of<base::UsageError>([&] { return study.take(me); });
}

} // namespace

TEST_CASE("Failed starts leave no temporary files, and the next taker removes those of killed starts", "[storage]") {
    Study study;
    const auto left = [&] {
        std::vector<std::string> names = study.files.list(home);
        std::erase(names, "lease");
        return names;
    };
    study.files.set_fault(
        [](auto kind, const std::string&) { return kind == CrashFileSystem::Kind::write ? ENOSPC : 0; });
    CHECK_THROWS_AS(study.take(holder("nid1", 1, "a")), base::IoError);
    study.files.set_fault({});
    CHECK(left().empty());
    const std::byte bytes[3]{};
    study.files.open(home + "/lease.killed.tmp", FileSystem::Open::create_new)->write_at(0, bytes);
    static_cast<void>(study.take(holder("nid1", 1, "b")));
    CHECK(left().empty());
}

TEST_CASE("A lease reads back, and a truncated lease is not valid", "[storage]") {
    LeaseHolder h = holder("nid1", 4711, "ab");
    h.job = "81234";
    h.restart_count = 2;
    h.counter = 17;
    const std::string text = lease_text(h);
    REQUIRE(parse_lease(text) == h);
    for (std::size_t size = 0; size < text.size(); ++size) CHECK(!parse_lease(text.substr(0, size)));
    CHECK(!parse_lease("counter=9" + text));
    CHECK(describe(h) == "host nid1, pid 4711, job 81234");
}

TEST_CASE("A holder known to be stale or alive is judged without waiting", "[storage]") {
    const LeaseHolder me = holder("nid1", 9, "me");
    LeaseHolder other = holder("nid1", 8, "other");
    const auto alive = [](std::uint64_t) { return std::optional<std::uint64_t>(100); };
    const auto dead = [](std::uint64_t) { return std::optional<std::uint64_t>(); };
    CHECK(judge(other, me, alive) == LeaseState::held);
    CHECK(judge(other, me, dead) == LeaseState::stale);
    other.process_started = 99; // the pid was reused
    CHECK(judge(other, me, alive) == LeaseState::stale);
    other.pid_namespace = "pid:[2]"; // a container on the same machine
    CHECK(judge(other, me, dead) == LeaseState::unknown);
    CHECK(judge(holder("nid2", 8, "other"), me, dead) == LeaseState::unknown);

    LeaseHolder requeued = holder("nid2", 9, "me");
    requeued.job = "5";
    requeued.restart_count = 1;
    LeaseHolder before = holder("nid1", 8, "other");
    before.job = "5";
    CHECK(judge(before, requeued, alive) == LeaseState::stale);
    before.restart_count = 1; // a second step of the same run of the job
    CHECK(judge(before, requeued, alive) == LeaseState::unknown);
}

TEST_CASE("A free directory is taken without waiting, and released again", "[storage]") {
    Study study;
    Lease lease = study.take(holder("nid1", 1, "a"));
    CHECK(study.waiting.now == 0s);
    CHECK(lease.renew() == Renewal::renewed);
    CHECK(read_lease(study.files, home)->counter == 1);
    lease.release();
    CHECK(!read_lease(study.files, home));
    CHECK(study.files.list(home).empty());
    CHECK(lease.renew() == Renewal::gone); // nobody else has taken it
}

TEST_CASE("A holder on another node whose counter changes keeps the lease", "[storage]") {
    Study study;
    Lease held = study.take(holder("nid1", 1, "a"));
    study.waiting.meanwhile = [&] {
        if (study.waiting.now == 4s) REQUIRE(held.renew() == Renewal::renewed);
    };
    const std::string why = refusal(study, holder("nid2", 2, "b"));
    CHECK(why.find("'/study' is being run already: host nid1, pid 1; nothing was started") == 0);
    CHECK(study.waiting.now == 4s);
    CHECK(study.waiting.said == 1);
    CHECK(held.renew() == Renewal::renewed);
    CHECK(study.files.list(home) == std::vector<std::string>{"lease"});
}

TEST_CASE("A holder on another node whose counter does not change for three periods loses the lease, and notices",
          "[storage]") {
    Study study;
    Lease held = study.take(holder("nid1", 1, "a"));
    Lease taken = study.take(holder("nid2", 2, "b"));
    CHECK(study.waiting.now >= 15s);
    CHECK(study.waiting.now < 17s);
    CHECK(held.renew() == Renewal::taken);
    held.release(); // another head holds it now
    CHECK(read_lease(study.files, home)->nonce == "b");
    CHECK(taken.renew() == Renewal::renewed);
}

TEST_CASE("A holder that ends while it is watched frees the lease", "[storage]") {
    Study study;
    Lease held = study.take(holder("nid1", 1, "a"));
    study.waiting.meanwhile = [&] {
        if (study.waiting.now == 2s) held.release();
    };
    CHECK(study.take(holder("nid2", 2, "b")).renew() == Renewal::renewed);
    CHECK(study.waiting.now == 2s);
}

TEST_CASE("Whether the writer of a study lives is known at once on its machine, and elsewhere by watching",
          "[storage]") {
    const auto lives = [](Study& study) { return writer_lives(study.files, home, study.waiting.wait()); };
    {
        Study nobody;
        CHECK_FALSE(possible_writer(nobody.files, home));
        CHECK_FALSE(lives(nobody));
    }
    {
        Study here;
        const Lease held = here.take(this_holder("", 0));
        CHECK(possible_writer(here.files, home));
        CHECK(lives(here));
        CHECK(here.waiting.now == 0s);
    }
    {
        Study killed;
        LeaseHolder gone = this_holder("", 0);
        gone.process_started += 1; // the pid was reused
        const Lease left = killed.take(gone);
        CHECK_FALSE(possible_writer(killed.files, home));
        CHECK_FALSE(lives(killed));
        CHECK(killed.waiting.now == 0s);
    }
    {
        Study elsewhere;
        Lease held = elsewhere.take(holder("nid1", 1, "a"));
        elsewhere.waiting.meanwhile = [&] {
            if (elsewhere.waiting.now == 4s) REQUIRE(held.renew() == Renewal::renewed);
        };
        CHECK(possible_writer(elsewhere.files, home));
        CHECK(lives(elsewhere));
        CHECK(elsewhere.waiting.now == 4s);
        elsewhere.waiting.meanwhile = [] {};
        CHECK_FALSE(lives(elsewhere)); // its counter does not change
        CHECK(elsewhere.waiting.now >= 19s);
        CHECK(elsewhere.waiting.said == 2);
    }
}

TEST_CASE("Without write permission the error names a live holder, and the permissions otherwise", "[storage]") {
    for (const int error : {EACCES, EPERM, EROFS}) {
        Study study;
        const auto forbid = [&] {
            study.files.set_fault(
                [error](auto kind, const std::string&) { return kind == CrashFileSystem::Kind::create ? error : 0; });
        };
        LeaseHolder here = this_holder("", 0); // alive, on this machine
        Lease held = study.take(here);
        forbid();
        here.nonce = "b";
        CHECK(refusal(study, here).find("is being run already: host") != std::string::npos);
        CHECK(study.waiting.now == 0s);
        // A holder on another node must be watched.
        CHECK_THROWS_AS(study.take(holder("nid2", 2, "c")), base::IoError);
        CHECK(study.waiting.now >= 15s);
        study.waiting.now = 0s;
        study.waiting.meanwhile = [&] {
            if (study.waiting.now != 4s) return;
            study.files.set_fault({});
            REQUIRE(held.renew() == Renewal::renewed);
            forbid();
        };
        CHECK(refusal(study, holder("nid2", 2, "c")).find("is being run already") != std::string::npos);
        study.files.set_fault({});
        held.release();
        forbid();
        CHECK_THROWS_AS(study.take(here), base::IoError);
    }
}

TEST_CASE("A removed lease is told from one that another head took", "[storage]") {
    Study study;
    Lease held = study.take(holder("nid1", 1, "a"));
    study.files.remove(lease_path(home));
    CHECK(held.renew() == Renewal::gone);
    CHECK_FALSE(study.files.exists(lease_path(home)));
}

TEST_CASE("A truncated lease keeps nobody out", "[storage]") {
    Study study;
    const std::string half = "ranktune lease 1\nhost=ni";
    study.files.open(lease_path(home), FileSystem::Open::create_new)->write_at(0, std::as_bytes(std::span(half)));
    CHECK(study.take(holder("nid2", 2, "b")).renew() == Renewal::renewed);
}

TEST_CASE("This process is alive, and its start time is known", "[storage]") {
    const LeaseHolder me = this_holder("", 0);
    CHECK(me.process_started > 0);
    CHECK(process_start(me.writer.pid) == me.process_started);
    CHECK(!process_start(0x7FFFFFFF));
    CHECK(this_holder("", 0).nonce != me.nonce);
}

} // namespace ranktune::storage::lease_test
