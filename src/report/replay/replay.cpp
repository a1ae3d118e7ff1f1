// SPDX-License-Identifier: Apache-2.0
#include "report/replay/replay.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "ranktune/study/schema.hpp"
#include "ranktune/trainables/algorithms.hpp"
#include "report/explain/next_steps.hpp"
#include "tuner/resume.hpp"
#include "tuner/retell.hpp"

namespace ranktune::report {
namespace {

using study::Record;

constexpr std::string_view kinds[] = {"StudyCreated",
                                      "IncarnationBegan",
                                      "MetricDefined",
                                      "TrialCreated",
                                      "TrialStarted",
                                      "Reported",
                                      "CheckpointCommitted",
                                      "CheckpointReleased",
                                      "AttemptEnded",
                                      "TrialPromoted",
                                      "TrialClosed",
                                      "RankLost",
                                      "DrainBegan",
                                      "StudyEnded",
                                      "Snapshot",
                                      "StudyChanged",
                                      "TrialReopened",
                                      "DeadlineSet",
                                      "ReportHeld",
                                      "JobDied",
                                      "HostRetired",
                                      "YieldAsked",
                                      "Exploited",
                                      "ExploitUndone",
                                      "TicketOpened",
                                      "TicketPrepared",
                                      "Steered",
                                      "WarmStarted",
                                      "SideStarted",
                                      "SideReported",
                                      "SideEnded"};
static_assert(std::size(kinds) == std::variant_size_v<Record>);

std::string digest_text(const Record& record) {
    study::Bytes bytes;
    study::encode(record, bytes);
    base::Digest digest;
    digest.add(bytes);
    return std::to_string(digest.value());
}

/// A short description: kind, trial, and the verdict of a report.
std::string describe_record(const Record& record) {
    std::string text(kinds[record.index()]);
    std::visit(
        [&](const auto& r) {
            if constexpr (requires { r.task; }) text += " " + study::describe(r.task);
            if constexpr (requires { r.trial.value(); }) text += " #" + std::to_string(r.trial.value());
            if constexpr (requires { r.iteration; }) text += " at " + std::to_string(r.iteration);
        },
        record);
    if (const auto* report = std::get_if<study::Reported>(&record)) {
        (text += ": ") += study::name(report->verdict.verb);
        const auto why = study::describe(report->verdict.reason, report->verdict.a, report->verdict.b);
        if (!why.empty()) text += " (" + why + ")";
    } else if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
        for (const auto& entry : created->configuration.entries()) text += " " + entry.name + "=" + entry.value.text();
    } else {
        text += " (digest " + digest_text(record) + ")";
    }
    return text;
}

/// Tolerance for libraries that round a logarithm differently on other processors.
bool within_one_ulp(double a, double b) { return a == b || std::nextafter(a, b) == b; }

bool same_value(const space::Value& a, const space::Value& b) {
    if (a == b) return true;
    return a.is_double() && b.is_double() && within_one_ulp(a.as_double(), b.as_double());
}

bool same_values(const space::Configuration& a, const space::Configuration& b) {
    return std::ranges::equal(a.entries(), b.entries(), [](const auto& left, const auto& right) {
        return left.name == right.name && same_value(left.value, right.value);
    });
}

bool same_but_for_rounding(const Record& a, const Record& b) {
    const auto* one = std::get_if<study::TrialCreated>(&a);
    const auto* other = std::get_if<study::TrialCreated>(&b);
    return one != nullptr && other != nullptr && one->ranks == other->ranks && one->bracket == other->bracket &&
           same_values(one->configuration, other->configuration);
}

/// Compares encoded bytes too, so that NaN equals itself.
bool same(const Record& a, const Record& b) {
    if (a == b) return true;
    study::Bytes left;
    study::Bytes right;
    study::encode(a, left);
    study::encode(b, right);
    return left == right;
}

/// A model needs up to 50 ms for a suggestion.
constexpr std::uint64_t most_computed = 1000;

class Verifier {
  public:
    Verifier(std::vector<Record> records, std::string file) : records_(std::move(records)), file_(std::move(file)) {}

    Verification run() {
        while (at_ < records_.size() && result_.difference.empty()) {
            if (const auto* snapshot = std::get_if<study::Snapshot>(&records_[at_])) {
                check_snapshot(*snapshot);
                continue;
            }
            tuner::Output out;
            replay_one(out);
            if (at_ < records_.size()) compare(out.records);
            compute_again(out.records);
        }
        result_.records = std::min<std::uint64_t>(at_, records_.size());
        return result_;
    }

  private:
    void check_snapshot(const study::Snapshot& snapshot) {
        if (!tuner::is_of_this_version(snapshot)) {
            ++result_.foreign;
            ++at_;
            return;
        }
        ++result_.snapshots;
        // A rounded suggestion makes the digests differ.
        if (result_.rounded == 0 && tuner_ && tuner_->digest() != snapshot.digest)
            differs("the snapshot was taken of another state than its records make");
        ++at_;
    }

    void differs(const std::string& what) {
        result_.difference = what;
        result_.difference_at = at_;
    }

    /// Gives the tuner the event again whose step wrote the current record.
    void replay_one(tuner::Output& out) {
        const Record& record = records_[at_];
        if (const auto* created = std::get_if<study::StudyCreated>(&record)) {
            tuner_ = std::make_unique<tuner::Tuner>(
                study::parse_resolved_study(created->spec, file_, trainables::known_algorithms()));
            tuner_->create(created->uuid, created->spec, created->version, out, created->simulation);
            return;
        }
        if (!tuner_) throw base::FormatError("the journal does not begin with its study");
        if (const auto* earlier = std::get_if<study::WarmStarted>(&record)) {
            tuner_->warm_start(*earlier, out);
        } else if (const auto* changed = std::get_if<study::StudyChanged>(&record)) {
            tuner_->change(changed->spec, changed->version, changed->at, out);
        } else if (const auto* again = std::get_if<study::TrialReopened>(&record)) {
            tuner_->reopen(again->trial, again->from_scratch, again->at, out);
        } else if (const auto* task = std::get_if<study::SideEnded>(&record);
                   task != nullptr && tuner::reopens(tuner_->state(), *task)) {
            tuner_->reopen(unit_of(task->task), false, task->at, out);
        } else {
            step_again(out);
        }
    }

    void step_again(tuner::Output& out) {
        const std::span<const Record> rest = std::span(records_).subspan(at_);
        const tuner::Retold told = tuner::retell(rest, tuner_->state());
        if (told.event)
            tuner_->step(*told.event, out);
        else if (told.cut_short) // the rest of its step lies after --until, or was never written
            at_ = records_.size();
        else
            differs("recorded " + describe_record(rest.front()) + ", but nothing that was recorded before leads to it");
    }

    void compare(const std::vector<Record>& decided) {
        if (!result_.difference.empty()) return;
        if (decided.empty()) return differs("recorded " + describe_record(records_[at_]) + ", decided again: nothing");
        for (const Record& now : decided) {
            if (at_ >= records_.size()) return; // cut by --until
            const Record& then = records_[at_];
            if (!same(then, now)) {
                if (!same_but_for_rounding(then, now))
                    return differs("recorded " + describe_record(then) + ", decided again: " + describe_record(now));
                ++result_.rounded;
            }
            if (std::holds_alternative<study::Reported>(now) || std::holds_alternative<study::TrialCreated>(now) ||
                std::holds_alternative<study::TrialPromoted>(now) || std::holds_alternative<study::TrialStarted>(now))
                ++result_.decisions;
            ++at_;
        }
    }

    /// Prepares the suggestions of opened tickets again, and compares those that have come.
    void compute_again(const std::vector<Record>& decided) {
        if (!result_.difference.empty()) return;
        const study::SearcherSpec& searcher = tuner_->spec().searcher;
        const bool can = searcher.algorithm && !study::not_deterministic(*searcher.algorithm, searcher.options);
        for (const Record& record : decided) {
            if (const auto* opened = std::get_if<study::TicketOpened>(&record)) {
                if (!can || result_.prepared.computed + expected_.size() >= most_computed) continue;
                if (const auto preparation = tuner_->preparation(opened->ticket))
                    expected_.emplace(opened->ticket, (*preparation)().configuration);
            } else if (const auto* prepared = std::get_if<study::TicketPrepared>(&record)) {
                ++result_.prepared.recorded;
                const auto expected = expected_.extract(prepared->ticket);
                if (expected.empty() || !prepared->configuration) continue;
                ++result_.prepared.computed;
                if (!same_values(expected.mapped(), *prepared->configuration)) ++result_.prepared.otherwise;
            }
        }
    }

    std::vector<Record> records_;
    std::string file_;
    std::map<std::uint64_t, space::Configuration> expected_; ///< of tickets whose suggestion has not come
    std::size_t at_ = 0;
    std::unique_ptr<tuner::Tuner> tuner_;
    Verification result_;
};

} // namespace

Verification verify_journal(storage::FileSystem& files, const std::string& directory, std::uint64_t until) {
    std::vector<Record> records;
    storage::read_journal(files, directory, [&](Record&& record) {
        if (records.size() < until) records.push_back(std::move(record));
    });
    return Verifier(std::move(records), directory + "/resolved.toml").run();
}

std::string verified_text(const Verification& found) {
    std::string text = "verified: " + std::to_string(found.records) + " records, " + std::to_string(found.decisions) +
                       " decisions made again, " + std::to_string(found.snapshots) + " snapshots\n";
    const auto& prepared = found.prepared;
    if (prepared.recorded > 0)
        text += "computed again: " + grouped(prepared.computed) + " of " + counted(prepared.recorded, "suggestion") +
                " that were prepared ahead" +
                (prepared.otherwise > 0 ? "; " + grouped(prepared.otherwise) +
                                              " came out otherwise (another version, processor or library)"
                                        : "") +
                "\n";
    if (found.foreign > 0) text += counted(found.foreign, "snapshot") + " of another version not compared\n";
    if (found.rounded > 0)
        text += counted(found.rounded, "suggestion") + " with another last bit (another processor or library)\n";
    return text;
}

std::string difference_text(const Verification& found, const std::string& wrote, const std::string& version,
                            const std::string& directory, const Style& style) {
    const std::string who =
        wrote == version
            ? "This version (" + version + ") created the study, and decides otherwise now"
            : "This version (" + version + ") decides otherwise than " + wrote + ", which created the study";
    std::string text =
        paragraph("record " + grouped(found.difference_at) + " differs: " + found.difference, style) +
        prose("meaning",
              who +
                  ", or the journal was changed. What was recorded counts all the same: status, export and the next "
                  "start follow it and decide none of it again, so the study is readable and can be resumed",
              style);
    if (wrote != version)
        text += prose("next",
                      "verify it with the version that wrote these records (logs/*.env.json name that of each start); "
                      "when it differs there too, report it with what this packs:",
                      style);
    else
        text += prose("next", "report it, with what this packs:", style);
    return text + labelled("", command_text({"support", directory}));
}

void LogicalDigest::add(const Record& record) {
    if (const auto* metric = std::get_if<study::MetricDefined>(&record)) {
        metrics_.push_back(metric->name);
    } else if (const auto* created = std::get_if<study::TrialCreated>(&record)) {
        trials_.emplace_back().configuration = created->configuration;
    } else if (const auto* report = std::get_if<study::Reported>(&record)) {
        Trial& trial = trials_.at(report->trial.value());
        // Skip iterations trained again after a loss: they were reported before.
        if (!trial.reports.empty() && trial.reports.back().iteration >= report->iteration) return;
        trial.reports.push_back({report->iteration, report->metrics});
        const auto& verdict = report->verdict;
        const bool decided = verdict.reason != study::Reason::below_rung && verdict.reason != study::Reason::none;
        if (!decided) return;
        study::Encoder out(trial.decisions);
        out.varint(report->iteration);
        out.u8(static_cast<std::uint8_t>(verdict.verb));
        out.u8(static_cast<std::uint8_t>(verdict.reason));
    } else if (const auto* promoted = std::get_if<study::TrialPromoted>(&record)) {
        study::Encoder out(trials_.at(promoted->trial.value()).decisions);
        out.varint(promoted->from);
        out.varint(promoted->target);
    } else if (const auto* takeover = std::get_if<study::Exploited>(&record)) {
        study::Encoder out(trials_.at(takeover->trial.value()).decisions);
        out.varint(takeover->iteration);
        out.varint(takeover->donor.trial.value());
        out.varint(takeover->donor.checkpoint.iteration);
        study::put(out, takeover->configuration);
    } else if (const auto* undone = std::get_if<study::ExploitUndone>(&record)) {
        study::Encoder(trials_.at(undone->trial.value()).decisions).varint(undone->generation);
    } else if (const auto* closed = std::get_if<study::TrialClosed>(&record)) {
        trials_.at(closed->trial.value()).phase = closed->phase;
        trials_.at(closed->trial.value()).reason = closed->reason;
    } else if (const auto* again = std::get_if<study::TrialReopened>(&record)) {
        trials_.at(again->trial.value()).phase = study::TrialPhase::waiting;
    }
}

std::uint64_t LogicalDigest::value() const {
    study::Bytes bytes;
    study::Encoder out(bytes);
    for (const Trial& trial : trials_) {
        study::put(out, trial.configuration);
        for (const auto& report : trial.reports) {
            out.varint(report.iteration);
            for (const auto& metric : report.metrics) {
                out.string(metrics_.at(metric.id.value()));
                out.f64(metric.value);
            }
        }
        out.bytes(trial.decisions);
        out.u8(static_cast<std::uint8_t>(trial.phase));
        out.u8(static_cast<std::uint8_t>(trial.reason));
    }
    base::Digest digest;
    digest.add(bytes);
    return digest.value();
}

} // namespace ranktune::report
