// SPDX-License-Identifier: Apache-2.0
// The campaign of crashes: random studies on simulated clusters, with journal and checkpoints in a file system that
// logs every operation. Each life of a study is cut at chosen operations, by the death of all processes or a power
// failure; the remaining files are opened, checked and run to the end. Every other study is deterministic: its result
// must be that of a run without a crash.
//
//   campaign_crashes [CRASHES] [--from NUMBER]      (defaults 10000, 0)
//
// Prints every crash with a wrong result, then one line with the figures. Exits 1 when there is any.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "head/head_observer.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/replay/replay.hpp"
#include "simulate/cluster/campaign.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/hdf5/thread.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"
#include "support/crash_file_system.hpp"

namespace {

using namespace ranktune;
using base::RngStream;
using simulate::Case;
using test::CrashFileSystem;
using Kind = CrashFileSystem::Kind;

const std::string home = "/study";

/// The operation at which a life is cut.
enum class Window { start_up, frame, commit, publication, checkpoint, rename, unlink, shutdown, count };
constexpr const char* window_names[] = {"start-up",         "frame write", "journal commit", "segment publication",
                                        "checkpoint write", "rename",      "unlink",         "shutdown"};

/// The journal of a life, with real checkpoint files: written before their record, unlinked once their release is
/// synced.
class RecordedLife final : public study::RecordSink {
  public:
    RecordedLife(CrashFileSystem& files, storage::Journal& journal, const tuner::Tuner& tuner, std::uint64_t records,
                 RngStream& rng)
        : files_(files), journal_(journal), tuner_(tuner), store_(files, home), records_(records), rng_(rng) {
        note();
    }

    void append(const std::vector<study::Record>& batch) override {
        for (const auto& record : batch)
            if (const auto* saved = std::get_if<study::CheckpointCommitted>(&record)) write(*saved);
        journal_.append(batch);
        // Take the count from the journal: it may have added a snapshot to the batch.
        records_ = journal_.first_record() + journal_.statistics().records;
        note();
        for (const auto& record : batch) {
            const auto* released = std::get_if<study::CheckpointReleased>(&record);
            if (released != nullptr && !released->stays)
                journal_.when_synced([this, path = home + "/" + released->path] { files_.remove(path); });
            if (std::holds_alternative<study::StudyEnded>(record)) ended_at = files_.operations();
        }
        if (rng_.below(6) == 0) {
            journal_.sync();
            synced.push_back({files_.operations(), records_});
        }
        // As in the head: the claimed number of synced records may never exceed what a crash leaves.
        if (rng_.below(2) == 0)
            studydir::publish_text(files_, studydir::StudyDirectory{home}.status_file(),
                                   head::status_json(tuner_, {}, journal_.statistics().synced, {}), false);
    }

    struct Known {
        std::size_t operations = 0;
        std::uint64_t records = 0;
    };
    /// Number of records that must survive a crash at operation `cut`.
    [[nodiscard]] static std::uint64_t known_at(const std::vector<Known>& known, std::size_t cut) {
        std::uint64_t records = 0;
        for (const Known& k : known)
            if (k.operations <= cut) records = std::max(records, k.records);
        return records;
    }

    std::vector<Known> written;
    std::vector<Known> synced;
    std::size_t ended_at = SIZE_MAX;

  private:
    void note() { written.push_back({files_.operations(), records_}); }

    /// A simulated trial has no state: the checkpoint holds its position instead, under the name in the record.
    void write(const study::CheckpointCommitted& saved) {
        study::MemoryState state;
        const std::string what = saved.checkpoint.path;
        state.blob("where", std::as_bytes(std::span(what)));
        const std::string name = what.substr(what.rfind('/') + 1);
        storage::CheckpointKey key;
        unsigned incarnation = 0;
        unsigned attempt = 0;
        unsigned long long iteration = 0;
        if (std::sscanf(name.c_str(), "%llu-%u.%u.h5", &iteration, &incarnation, &attempt) != 3)
            throw std::runtime_error("a checkpoint is called " + name);
        key = {saved.trial, iteration, base::Incarnation{incarnation}, base::AttemptId{attempt}};
        static_cast<void>(store_.save(key, state));
    }

    CrashFileSystem& files_;
    storage::Journal& journal_;
    const tuner::Tuner& tuner_;
    storage::CheckpointStore store_;
    std::uint64_t records_;
    RngStream& rng_;
};

/// The remaining files of a study, and how often it has been cut.
struct Left {
    std::unique_ptr<CrashFileSystem> files;
    std::uint64_t at_least = 0; ///< records that must exist
    std::uint32_t incarnation = 0;
};

class Campaign {
  public:
    void run(std::uint64_t crashes, std::uint64_t seed) {
        for (; total_ < crashes; ++seed) {
            seed_ = seed;
            try {
                run_case(seed);
            } catch (const std::exception& error) {
                wrong(error.what());
                ++total_; // count it, or a case that cannot be drawn would be tried for ever
            }
        }
    }

    [[nodiscard]] int report() const {
        std::printf(
            "%llu crashes (%llu of them losses of power, %llu of those followed by a life that was cut again), %llu "
            "wrong; "
            "%llu deterministic studies compared with the run without a crash; %llu lives, %llu records, %llu "
            "checkpoints "
            "verified, %llu orphans removed; windows:",
            ull(total_), ull(power_), ull(cut_again_), ull(wrong_), ull(compared_), ull(lives_), ull(records_),
            ull(verified_), ull(orphans_));
        for (std::size_t w = 0; w < static_cast<std::size_t>(Window::count); ++w)
            std::printf("%s %s %llu", w == 0 ? "" : ",", window_names[w], ull(windows_[w]));
        std::printf("\n");
        return wrong_ == 0 ? 0 : 1;
    }

  private:
    static unsigned long long ull(std::uint64_t value) { return value; }

    void wrong(const std::string& what) {
        ++wrong_;
        std::printf("case %llu (%s), crash %llu: %s\n", ull(seed_), description_.c_str(), ull(total_), what.c_str());
    }

    static void make_deterministic(study::StudySpec& spec, std::uint64_t seed) {
        spec.deterministic = true;
        spec.max_concurrent = 1 + static_cast<std::uint32_t>(seed / 2 % 6);
        spec.stop.trial_time.reset();
        spec.failure.max_losses = 1'000'000;
    }

    /// Reports and ends of the trials are then the same, however often the study is cut.
    static void as_in_every_life(simulate::ClusterOptions& life, const simulate::ClusterOptions& front,
                                 const study::StudySpec& spec, std::uint64_t seed) {
        life.curve.fate = seed;
        life.curve.throw_rate = front.curve.throw_rate;
        life.curve.nan_rate = front.curve.nan_rate;
        life.curve.done_rate = front.curve.done_rate;
        // Whether a donor's state can be read changes what becomes of a population.
        if (spec.scheduler.algorithm->name == "pbt") life.curve.unreadable_rate = life.curve.unreachable_rate = 0.0;
    }

    static std::uint64_t logical_digest(CrashFileSystem& files) {
        report::LogicalDigest digest;
        storage::read_journal(files, home, [&digest](study::Record&& record) { digest.add(record); });
        return digest.value();
    }

    void run_case(std::uint64_t seed) {
        Case drawn = simulate::draw_case(seed);
        drawn.spec.num_trials = std::min(drawn.spec.num_trials, 12U);
        drawn.spec.time_budget.reset();
        if (seed % 2 == 1) make_deterministic(drawn.spec, seed);
        drawn.spec.seed >>= 1U; // a study file holds signed integers
        try {                   // round trip through a study file: rounds durations, refuses invalid cases
            drawn.spec =
                study::parse_resolved_study(study::resolved_toml(drawn.spec), "case", trainables::known_algorithms());
        } catch (const study::StudyFileError&) {
            return;
        }
        deterministic_ = seed % 2 == 1;
        description_ = drawn.description;
        for (auto& life : drawn.lives) {
            if (deterministic_) as_in_every_life(life, drawn.lives.front(), drawn.spec, seed);
            life.workers = std::min(life.workers, 8U);
            life.workers = std::max(life.workers, drawn.spec.max_ranks_per_trial() + drawn.spec.resources.helpers);
            std::erase_if(life.deaths, [&](const auto& d) { return d.first.value() > life.workers; });
            life.curve.stuck_rate = 0.0;
        }
        drawn.lives.front().deaths.clear();
        drawn.lives.front().stop_at.reset();
        drawn.lives.front().stop_at_once_at.reset();
        RngStream rng(seed, base::Purpose::fault, 77);
        CrashFileSystem first;
        first.make_directories(home + "/checkpoints");
        const auto life = live(first, drawn, 1, rng);
        undisturbed_ = logical_digest(first);
        for (int n = 0; n < 20; ++n) crash_and_go_on(first, life, drawn, 1, rng);
    }

    struct Lived {
        std::vector<RecordedLife::Known> written;
        std::vector<RecordedLife::Known> synced;
        std::size_t began_at = 0; ///< operations before the first append
        std::size_t ended_at = SIZE_MAX;
        bool over = false;
    };

    /// One life: opens the study, resumes it, and runs it as far as possible.
    Lived live(CrashFileSystem& files, const Case& drawn, std::uint32_t number, RngStream& rng) {
        ++lives_;
        const std::size_t before = files.operations();
        studydir::OpenedStudy opened = studydir::open_study(files, home, drawn.spec, {});
        storage::JournalOptions options;
        options.directory = home;
        options.uuid = opened.uuid.empty() ? "00000000-0000-4000-8000-000000000000" : opened.uuid;
        options.incarnation = opened.incarnation.value();
        options.writer = {"sim", "boot", number};
        options.first_segment_bytes = 8 * 1024;
        options.max_segment_bytes = 32 * 1024;
        options.commit_interval = std::chrono::hours(1);
        options.snapshot = [&] { return studydir::snapshot_of(*opened.tuner); };
        storage::Journal journal(files, options, log_);
        if (opened.is_new) {
            opened.tuner = std::make_unique<tuner::Tuner>(drawn.spec);
            tuner::Output out;
            opened.tuner->create(options.uuid, opened.resolved, "sim", out);
            journal.append(out.records);
        } else {
            if (journal.first_record() != opened.journal.records) throw std::runtime_error("the journal has changed");
            journal.append(studydir::take_up(opened, {}, "sim"));
            journal.sync();
            orphans_ += studydir::remove_orphans(files, home, opened.tuner->state());
            check_checkpoints(files, opened.tuner->state());
        }
        RecordedLife sink(files, journal, *opened.tuner, journal.first_record() + journal.statistics().records, rng);
        Lived lived;
        lived.began_at = before;
        simulate::ClusterOptions cluster = drawn.lives[std::min<std::size_t>(number, drawn.lives.size()) - 1];
        if (number > 1) cluster = drawn.lives.back();
        cluster.incarnation = opened.incarnation;
        std::set<std::string> there;
        for (const std::string& name : files.list_below(home + "/checkpoints"))
            there.insert(name.substr(home.size() + 1));
        if (!opened.finished) {
            const auto result = simulate::run_cluster(cluster, *opened.tuner, sink, there);
            for (const auto& problem : result.problems) throw std::runtime_error(problem);
        }
        journal.close();
        lived.written = sink.written;
        lived.synced = sink.synced;
        lived.ended_at = sink.ended_at;
        lived.over = opened.tuner->state().ended && opened.tuner->state().outcome != study::StudyOutcome::resumable;
        check_journal(files, *opened.tuner);
        return lived;
    }

    void check_journal(CrashFileSystem& files, const tuner::Tuner& live) {
        const auto again = studydir::open_study(files, home, live.spec(), {});
        if (again.tuner->digest() != live.digest()) throw std::runtime_error("the journal gives another state");
        again.tuner->check_invariants();
        records_ += again.journal.records;
        const auto verified = report::verify_journal(files, home);
        if (!verified.difference.empty())
            throw std::runtime_error("record " + std::to_string(verified.difference_at) + ": " + verified.difference);
    }

    /// Every checkpoint that the state names exists and is intact, and there are no others but damaged ones.
    void check_checkpoints(CrashFileSystem& files, const tuner::State& state) {
        storage::CheckpointStore store(files, home);
        std::size_t named = 0;
        for (const auto& trial : state.trials) {
            for (const auto& checkpoint : trial.checkpoints) {
                ++named;
                study::CheckpointRef reference = checkpoint;
                study::MemoryState expected;
                expected.blob("where", std::as_bytes(std::span(checkpoint.path)));
                reference.digest = expected.digest();
                const auto state_there = store.load(reference);
                const auto& blobs = state_there.stored_blobs();
                if (blobs.size() != 1 || blobs[0].bytes.size() != checkpoint.path.size())
                    throw std::runtime_error("checkpoint " + checkpoint.path + " holds something else");
                ++verified_;
            }
        }
        // Damaged ones that a donor has released, and that others will try to read.
        std::set<std::string> released;
        for (const auto& trial : state.trials)
            for (const auto& takeover : tuner::depends_on(trial)) released.insert(takeover.donor.checkpoint.path);
        for (const auto& trial : state.trials)
            for (const auto& checkpoint : trial.checkpoints) released.erase(checkpoint.path);
        std::size_t there = 0;
        for (const auto& name : files.list_below(home + "/checkpoints"))
            if (!released.contains(name.substr(home.size() + 1))) ++there;
        if (there != named)
            throw std::runtime_error(std::to_string(there) + " checkpoint files, but " + std::to_string(named) +
                                     " named");
    }

    Window window_of(const CrashFileSystem& files, std::size_t cut, const Lived& life) const {
        const auto next = files.operation(cut);
        const bool checkpoint = next.path.find("/checkpoints/") != std::string::npos;
        if (!life.written.empty() && cut < life.written.front().operations) return Window::start_up;
        if (cut >= life.ended_at) return Window::shutdown;
        if (next.kind == Kind::remove && checkpoint) return Window::unlink;
        if (checkpoint) return next.kind == Kind::rename ? Window::rename : Window::checkpoint;
        if (next.kind == Kind::write && files.linked_before(next.inode, cut)) return Window::frame;
        if (next.kind == Kind::sync && files.linked_before(next.inode, cut)) return Window::commit;
        return Window::publication;
    }

    /// An operation of this life in the window that was hit least so far.
    std::size_t choose(const CrashFileSystem& files, const Lived& life, RngStream& rng) {
        std::map<Window, std::vector<std::size_t>> places;
        for (std::size_t cut = life.began_at; cut < files.operations(); ++cut)
            places[window_of(files, cut, life)].push_back(cut);
        if (places.empty()) return files.operations();
        auto rarest = places.begin();
        for (auto at = places.begin(); at != places.end(); ++at)
            if (windows_[static_cast<std::size_t>(at->first)] < windows_[static_cast<std::size_t>(rarest->first)])
                rarest = at;
        ++windows_[static_cast<std::size_t>(rarest->first)];
        return rarest->second[rng.below(rarest->second.size())];
    }

    void crash_and_go_on(CrashFileSystem& files, const Lived& life, const Case& drawn, std::uint32_t number,
                         RngStream& rng) {
        const std::size_t cut = choose(files, life, rng);
        const bool power = rng.below(4) == 0;
        const auto left = power ? files.after_power_cut(cut, rng) : files.after_kill(cut, rng.below(40));
        const std::uint64_t at_least = RecordedLife::known_at(power ? life.synced : life.written, cut);
        ++total_;
        if (power) ++power_;
        try {
            std::uint64_t found = 0;
            if (storage::has_journal(*left, home))
                found = storage::read_journal_tail(*left, home, storage::Check::everything).summary.records;
            if (found < at_least)
                throw std::runtime_error(std::to_string(found) + " records are left of " + std::to_string(at_least));
            const Lived next = live(*left, drawn, number + 1, rng);
            if (!next.over) throw std::runtime_error("the study did not end");
            if (deterministic_ && ++compared_ && logical_digest(*left) != undisturbed_)
                throw std::runtime_error("the deterministic study is not what it is without the crash");
            // Records that a power failure rolled back must not reappear when the next life is cut, too.
            const bool again = power && number == 1;
            if (again) ++cut_again_;
            if (again || (number < 3 && rng.below(4) == 0)) crash_and_go_on(*left, next, drawn, number + 1, rng);
        } catch (const std::exception& error) {
            wrong(std::string(power ? "power lost" : "killed") + " before operation " + std::to_string(cut) + " (" +
                  window_names[static_cast<std::size_t>(window_of(files, cut, life))] + ") of life " +
                  std::to_string(number) + ": " + error.what());
        }
    }

    base::NullLog log_;
    std::uint64_t seed_ = 0;
    std::string description_;
    bool deterministic_ = false;    ///< whether this case is
    std::uint64_t undisturbed_ = 0; ///< logical digest of its run without a crash
    std::uint64_t cut_again_ = 0, compared_ = 0;
    std::uint64_t total_ = 0, power_ = 0, wrong_ = 0, lives_ = 0, records_ = 0, verified_ = 0, orphans_ = 0;
    std::uint64_t windows_[static_cast<std::size_t>(Window::count)] = {};
};

std::uint64_t number(const char* text) {
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text, &end, 10);
    if (end == text || *end != '\0') {
        std::fprintf(stderr, "campaign_crashes: '%s' is no number\n", text);
        std::exit(2);
    }
    return value;
}

} // namespace

int main(int argc, char** argv) {
    std::uint64_t crashes = 10000;
    std::uint64_t from = 0;
    for (int i = 1; i < argc; ++i) {
        if (std::string(argv[i]) == "--from" && i + 1 < argc)
            from = number(argv[++i]);
        else
            crashes = number(argv[i]);
    }
    Campaign campaign;
    campaign.run(crashes, from);
    return campaign.report();
}
