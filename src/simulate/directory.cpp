// SPDX-License-Identifier: Apache-2.0
#include "simulate/directory.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/finished_study.hpp"
#include "studydir/open_study.hpp"
#include "studydir/study_directory.hpp"

namespace ranktune::simulate {
namespace {

constexpr std::size_t records_of_a_frame = 4096;
constexpr std::uint64_t smallest_segment = std::uint64_t{256} * 1024;

/// Keeps the records in memory. Written at the end, when their size is known, they fit into one segment of the journal,
/// whose bytes do not depend on when it was synced.
class Kept final : public study::RecordSink {
  public:
    void append(const std::vector<study::Record>& records) override {
        study::encode(records, bytes_);
        count_ += records.size();
        for (const auto& record : records)
            if (const auto* ended = std::get_if<study::StudyEnded>(&record)) end_ = *ended;
    }

    void write(storage::FileSystem& files, const std::string& directory, const std::string& uuid,
               std::uint32_t jobs) const {
        base::NullLog log;
        storage::JournalOptions options;
        options.directory = directory;
        options.uuid = uuid;
        options.incarnation = jobs;
        options.writer = {"simulated", "", 0};
        const std::uint64_t frames = 2 + count_ / records_of_a_frame;
        options.first_segment_bytes = std::max(smallest_segment, std::bit_ceil(bytes_.size() + 64 * frames + 8192));
        options.max_segment_bytes = options.first_segment_bytes;
        options.commit_interval = std::chrono::hours(24);
        storage::Journal journal(files, options, log);
        study::Decoder in(bytes_);
        std::vector<study::Record> frame;
        while (!in.empty()) {
            frame.push_back(study::decode_record(in));
            if (frame.size() < records_of_a_frame && !in.empty()) continue;
            journal.append(frame);
            frame.clear();
        }
        journal.close();
    }

    [[nodiscard]] const study::StudyEnded& end() const { return end_; }
    [[nodiscard]] std::uint64_t count() const { return count_; }

  private:
    study::Bytes bytes_;
    std::uint64_t count_ = 0;
    study::StudyEnded end_{{}, study::StudyOutcome::resumable, study::Reason::lost, "the last job failed"};
};

/// The same for the same study.
std::string uuid_of(const std::string& text) {
    const std::uint64_t high = base::digest_of(text);
    const std::uint64_t low = base::digest_of("simulated " + text);
    char uuid[37];
    std::snprintf(uuid, sizeof uuid, "%08x-%04x-8%03x-%04x-%012llx", static_cast<unsigned>(high >> 32U),
                  static_cast<unsigned>(high >> 16U & 0xFFFFU), static_cast<unsigned>(high & 0xFFFU),
                  static_cast<unsigned>((low >> 48U & 0x3FFFU) | 0x8000U),
                  static_cast<unsigned long long>(low & 0xFFFF'FFFF'FFFFU));
    return uuid;
}

/// An empty directory, or one that is not there yet.
void make_place(storage::FileSystem& files, const DirectoryRequest& request) {
    files.make_directories(request.directory);
    if (studydir::holds_study(files, request.directory)) {
        if (!request.fresh)
            throw base::UsageError("'" + request.directory +
                                   "' holds a study already: --fresh moves it aside, -o takes another directory");
        const std::string real = files.resolve(request.directory);
        static_cast<void>(studydir::move_aside(files, real));
        files.make_directories(real);
    }
    if (const std::string name = studydir::foreign_entry(files, {request.directory}); !name.empty())
        throw base::UsageError("'" + request.directory + "' is not empty (there is '" + name +
                               "'); a simulated study needs a directory of its own: choose another with -o");
}

} // namespace

Figures simulate_to(storage::FileSystem& files, const Setup& setup, const DirectoryRequest& request,
                    const Progressing& progress) {
    make_place(files, request);
    const studydir::StudyDirectory place{request.directory};
    const std::string resolved = study::resolved_toml(setup.spec);
    const std::string curves = setup.recordings ? setup.recordings->identity : "";
    const std::string uuid = uuid_of(description(setup) + resolved + request.model_text + request.fault_text + curves);
    Kept kept;
    const Figures figures = simulate(setup, uuid, request.version, &kept, progress);

    studydir::create_study_directory(files, place, request.study_text, true);
    studydir::publish_text(files, place.resolved_file(), resolved, false);
    if (!request.model_text.empty())
        studydir::publish_text(files, place.path + "/model.toml", request.model_text, false);
    if (!request.fault_text.empty())
        studydir::publish_text(files, place.path + "/faults.toml", request.fault_text, false);
    kept.write(files, request.directory, uuid, figures.jobs);
    studydir::OutcomeFile outcome;
    outcome.outcome = figures.outcome;
    outcome.reason = studydir::end_words(kept.end().reason, kept.end().message) + " (simulated)";
    outcome.progress = figures.reports > 0;
    outcome.reports = figures.reports;
    outcome.start = figures.jobs;
    outcome.time = "1970-01-01T00:00:00Z";
    outcome.cause = studydir::end_cause(figures.outcome, kept.end().reason);
    outcome.records = kept.count();
    studydir::publish_text(files, place.outcome_file(), studydir::outcome_text(outcome), true);
    return figures;
}

} // namespace ranktune::simulate
