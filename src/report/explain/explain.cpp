// SPDX-License-Identifier: Apache-2.0
#include "report/explain/explain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ranktune/study/command_template.hpp"
#include "report/explain/next_steps.hpp"
#include "report/explain/origin_text.hpp"
#include "report/screens/text_table.hpp"

namespace ranktune::report {
namespace {

using study::TrialPhase;

/// Which records of the journal a line rests on; nothing unless a user wants to know.
class Sources {
  public:
    explicit Sources(bool shown) : shown_(shown) {}
    /// " [record 17]", " [records 17, 30]"; 0 stands for none.
    [[nodiscard]] std::string operator()(std::initializer_list<std::uint64_t> records) const {
        std::vector<std::string> numbers;
        for (const std::uint64_t each : records)
            if (each > 0) numbers.push_back(std::to_string(each));
        if (!shown_ || numbers.empty()) return {};
        return fmt::format(" [{} {}]", plural(numbers.size(), "record"), base::join(numbers));
    }
    [[nodiscard]] bool shown() const { return shown_; }

  private:
    bool shown_;
};

std::string first_line_of(const StudyView& view, study::TrialId id) {
    const TrialView& trial = view.trials[id.value()];
    std::string text = fmt::format("#{}: {} at iteration {} of {}", id.value(), study::name(trial.phase),
                                   trial.iterations, view.max_iterations);
    if (std::isfinite(trial.best)) text += fmt::format(", best {} {}", view.metric, metric_text(trial.best));
    for (std::size_t i = 0; i < trial.others.size(); ++i)
        text += fmt::format(", {} {}", view.others[i].metric, metric_text(trial.others[i]));
    if (std::isfinite(trial.best)) text += fmt::format(" at iteration {}", trial.best_iteration);
    if (std::ranges::find(view.front, id) != view.front.end())
        text += "; on the Pareto front";
    else if (view.best == id && view.others.empty())
        text += "; the best trial of the study";
    return text;
}

/// Where its configuration came from, and later ones with the states that it took over.
std::string origins_explained(const StudyView& view, study::TrialId id, const Style& style, const Sources& sources) {
    constexpr std::size_t shown = 8;
    const std::uint64_t told = view.origins.of(id, view.trials[id.value()].origin, view.mode).record;
    std::string text = prose("origin", origin_text(view, id) + sources({told}), style);
    const auto& generations = view.trials[id.value()].generations;
    if (generations.size() > shown + 1)
        text += prose("earlier", counted(generations.size() - shown - 1, "takeover"), style);
    for (std::size_t i = 1; i < generations.size(); ++i) {
        if (i + shown < generations.size()) continue;
        const GenerationView& own = generations[i];
        const bool itself = own.donor == id;
        const std::string whose = itself ? "its own" : fmt::format("#{}'s", own.donor->value());
        text += prose(itself ? "changed" : "took over",
                      fmt::format("{} iteration {}, at iteration {}{}", whose, own.donor_iteration, own.from,
                                  changes_text(generations[i - 1].configuration, own.configuration)) +
                          sources({own.record}),
                      style);
    }
    return text;
}

/// The trial among those that it was compared with at a rung.
std::string place_text(const RungView& rung, std::size_t place, const StudyView& view) {
    const RungView::Entry& own = rung.entries[place];
    const bool several = !view.others.empty(); // entries are in the order of the first objective
    const std::string first = several ? " in " + view.metric : "";
    std::string text =
        fmt::format("{}, place {} of {}{}", metric_text(own.value), place + 1, rung.entries.size(), first);
    if (rung.iteration >= view.max_iterations) return text + "; trained to the end";
    if (rung.went_on() == 0) return text + "; none went on";
    const auto last = std::ranges::find(rung.entries.rbegin(), rung.entries.rend(), true, &RungView::Entry::went_on);
    text += several ? fmt::format("; {} went on, by all objectives", grouped(rung.went_on()))
                    : fmt::format("; {} went on, the worst of them with {}", grouped(rung.went_on()),
                                  metric_text(last->value));
    if (own.went_on) return text + ": it went on";
    return text + ": it did not";
}

std::string rungs_explained(const StudyView& view, study::TrialId id, const Style& style, const Sources& sources) {
    std::string text;
    for (const RungView& rung : view.rungs) {
        const auto own = std::ranges::find(rung.entries, id, &RungView::Entry::trial);
        if (own == rung.entries.end()) continue;
        const auto place = static_cast<std::size_t>(own - rung.entries.begin());
        text += prose(fmt::format("rung {}", rung.iteration),
                      place_text(rung, place, view) + sources({own->record, own->promotion}), style);
    }
    return text;
}

/// Decisions that compared it with nobody at a rung: medians, exploits, turns, limits.
std::string others_explained(const StudyView& view, study::TrialId id, const Style& style, const Sources& sources) {
    constexpr std::size_t shown = 12;
    std::vector<const Decision*> own;
    for (const Decision& decision : view.decisions) {
        const bool at_rung = std::ranges::any_of(view.rungs, [&](const RungView& rung) {
            return rung.iteration == decision.iteration &&
                   std::ranges::find(rung.entries, id, &RungView::Entry::trial) != rung.entries.end();
        });
        if (decision.trial == id && !at_rung) own.push_back(&decision);
    }
    std::string text;
    if (own.size() > shown) text += prose("earlier", counted(own.size() - shown, "decision"), style);
    for (std::size_t i = own.size() - std::min(own.size(), shown); i < own.size(); ++i) {
        const Decision& decision = *own[i];
        const std::string value = std::isnan(decision.value) ? "" : " (" + metric_text(decision.value) + ")";
        text +=
            prose(fmt::format("at {}", decision.iteration),
                  study::describe(decision.reason, decision.a, decision.b) + value + sources({decision.record}), style);
    }
    return text;
}

std::string attempts_explained(const StudyView& view, study::TrialId id, const Style& style, const Sources& sources) {
    std::string text;
    for (const AttemptView& attempt : view.attempts) {
        if (attempt.trial != id) continue;
        const std::string whose = attempt.whose == id ? "" : fmt::format(" of #{}", attempt.whose.value());
        const std::string from = attempt.from == 0 ? "scratch" : fmt::format("iteration {}{}", attempt.from, whose);
        std::string line =
            fmt::format("{} from {}, {} from {} to {}, ", attempt.attempt, from, ranks_text(attempt.ranks),
                        short_duration(attempt.begin_s), short_duration(attempt.end_s));
        line += attempt.outcome ? std::string(study::name(*attempt.outcome)) : attempt.runs ? "trains" : "interrupted";
        if (!attempt.message.empty()) line += ": " + first_line(attempt.message);
        text += prose("attempt", printable(line) + sources({attempt.start_record, attempt.end_record}), style);
    }
    return text;
}

std::uint64_t ranks_of(const StudyView& view, study::WorkerKind kind) {
    if (kind == study::WorkerKind::any) return view.ranks;
    return kind == study::WorkerKind::with_gpu ? view.ranks_with_gpu : view.ranks - view.ranks_with_gpu;
}

/// Workers of this kind that no attempt holds. (Trials that can use one kind alone hold no others.)
std::uint64_t free_ranks(const StudyView& view, study::WorkerKind kind = study::WorkerKind::any) {
    std::uint64_t held = 0;
    for (const AttemptView& attempt : view.attempts)
        if (attempt.runs && (kind == study::WorkerKind::any || view.trials[attempt.trial.value()].workers == kind))
            held += attempt.ranks.size();
    const std::uint64_t all = ranks_of(view, kind);
    return all - std::min(all, held);
}

/// "note      2026-11-29 ada@login1: looks overfitted"
std::string notes_explained(const TrialView& trial, const Style& style) {
    std::string text;
    if (!trial.tags.empty()) text += prose("tags", base::join(trial.tags), style);
    for (const std::string& note : trial.notes) text += prose("note", unbroken(printable(first_line(note))), style);
    return text;
}

std::string waiting_text(const StudyView& view, const TrialView& trial) {
    using study::WorkerKind;
    std::uint64_t waiting = 0;
    for (const TrialView& each : view.trials)
        waiting += each.phase == TrialPhase::waiting && each.workers == trial.workers ? 1 : 0;
    const char* kind = trial.workers == WorkerKind::any        ? ""
                       : trial.workers == WorkerKind::with_gpu ? " with a GPU"
                                                               : " without a GPU";
    return fmt::format("waits for {}{}; {} free of {}, {} wait{}{}", counted(trial.ranks, "rank"), kind,
                       free_ranks(view, trial.workers), ranks_of(view, trial.workers), counted(waiting, "trial"),
                       waiting == 1 ? "s" : "", *kind == 0 ? "" : " for such");
}

/// Why it does not train now, or that it does.
std::string now_text(const StudyView& view, study::TrialId id, const std::string& directory, bool is_run) {
    const TrialView& trial = view.trials[id.value()];
    if (study::is_final(trial.phase)) return "over: " + trial.why;
    if (trial.on_hold)
        return "paused by a user; it goes on with: " +
               unbroken(command_text({"resume", directory, std::to_string(id.value())}));
    if (!is_run) return "nobody runs the study; it goes on with: " + unbroken(going_on(directory));
    switch (trial.phase) {
        case TrialPhase::waiting:
            return waiting_text(view, trial);
        case TrialPhase::paused:
            return trial.why + "; its scheduler has not chosen it to go on";
        default:
            return "trains";
    }
}

/// Why trials do not train now, or which do.
std::string study_now_text(const StudyView& view, const std::string& directory, bool is_run) {
    if (view.ended && view.exit_code != 75) return "over" + (view.end.empty() ? "" : ": " + printable(view.end));
    if (!is_run)
        return (view.end.empty() ? "nobody runs it" : printable(view.end)) +
               "; it goes on with: " + unbroken(going_on(directory));
    std::array<std::uint64_t, study::phase_count> in{};
    std::uint64_t held = 0;
    for (const TrialView& each : view.trials) {
        if (each.on_hold)
            ++held;
        else
            ++in[static_cast<std::size_t>(each.phase)];
    }
    const auto count = [&](TrialPhase phase) { return in[static_cast<std::size_t>(phase)]; };
    std::string text = fmt::format("{} on {} of {}", counted(count(TrialPhase::running), "trial"),
                                   view.ranks - free_ranks(view), counted(view.ranks, "rank"));
    if (count(TrialPhase::waiting) > 0) text += fmt::format("; {} wait for ranks", count(TrialPhase::waiting));
    if (count(TrialPhase::paused) > 0) text += fmt::format("; {} paused by the scheduler", count(TrialPhase::paused));
    if (held > 0) text += fmt::format("; {} paused by users", held);
    if (view.trials.size() < view.num_trials)
        text += fmt::format("; {} not begun", view.num_trials - view.trials.size());
    return text;
}

std::string lost_time_table(const StudyView& view, double all, const Style& style) {
    const auto& spent = view.cost.spent_s;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < spent.size(); ++i)
        if (spent[i] > 0.0) order.push_back(i);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        const bool training = static_cast<Spent>(a) == Spent::training;
        return training != (static_cast<Spent>(b) == Spent::training) ? training : spent[a] > spent[b];
    });
    std::vector<TextColumn> columns{{"ranks were", true, {}, 40}, {"rank time", false, {}}, {"share", false, {}}};
    for (const std::size_t i : order) {
        columns[0].cells.emplace_back(spent_words(static_cast<Spent>(i)));
        columns[1].cells.push_back(short_duration(spent[i]));
        columns[2].cells.push_back(fmt::format("{:.1f} %", 100.0 * spent[i] / all));
    }
    return TextRows(columns).all(style);
}

/// Advice with commands that can be copied: the study named, never broken into lines.
std::string completed_advice(Spent what, const std::string& directory) {
    const std::string_view advice = spent_advice(what);
    std::string text;
    bool command = false;
    for (std::size_t at = 0; at < advice.size();) {
        const std::size_t end = std::min(advice.find('`', at), advice.size());
        std::string part(advice.substr(at, end - at));
        constexpr std::string_view study = "STUDY";
        if (const auto found = part.find(study); command && found != std::string::npos)
            part.replace(found, study.size(), study::shell_text({directory}));
        text += command ? unbroken(part) : part;
        command = !command;
        at = end + 1;
    }
    return text;
}

/// The largest cause of waiting for data stands for all of them.
std::array<double, spent_count> with_one_wait_for_data(std::array<double, spent_count> spent) {
    const auto causes = std::span(spent).subspan(static_cast<std::size_t>(Spent::data), data_cause_count);
    const double all = std::accumulate(causes.begin(), causes.end(), 0.0);
    double& largest = *std::ranges::max_element(causes);
    for (double& each : causes) each = &each == &largest ? all : 0.0;
    return spent;
}

/// For the largest losses: two per cent are not worth a change.
std::string advice_on_losses(const StudyView& view, const std::string& directory, double all, const Style& style) {
    constexpr double worth = 0.02;
    const auto spent = with_one_wait_for_data(view.cost.spent_s);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < spent.size(); ++i)
        if (spent[i] >= worth * all && !spent_advice(static_cast<Spent>(i)).empty()) order.push_back(i);
    std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return spent[i]; });
    if (order.size() > 2) order.resize(2);
    std::string text;
    for (const std::size_t i : order)
        text += prose(
            "next",
            std::string(spent_words(static_cast<Spent>(i))) + ": " + completed_advice(static_cast<Spent>(i), directory),
            style);
    return text;
}

} // namespace

std::string study_explanation(const StudyView& view, const std::string& directory, bool is_run, const Style& style) {
    std::string text = view.simulated.empty() ? "" : paragraph(view.simulated, style);
    text += prose("study",
                  fmt::format("{}: {} of {}, {}", view.name, grouped(view.trials.size()),
                              counted(view.num_trials, "trial"), counted(view.starts.size(), "start")),
                  style);
    text += prose("now", study_now_text(view, directory, is_run && view.simulated.empty()), style);
    text += prose("beside", view.beside, style);
    text += prose("lost", view.lost_ranks, style);
    if (!view.out_of_service.empty())
        text += prose("left out", view.out_of_service + ": trials failed there one after the other", style);
    double all = 0.0;
    for (const double each : view.cost.spent_s) all += each;
    if (all <= 0.0) return encoded(std::move(text), style);
    text += "\n" + lost_time_table(view, all, style) + "\n" + advice_on_losses(view, directory, all, style);
    return encoded(std::move(text), style);
}

std::string explanation(const StudyView& view, study::TrialId trial, const std::string& directory, bool is_run,
                        const Style& style, bool records) {
    const Sources sources(records);
    std::string text = view.simulated.empty() ? "" : paragraph(view.simulated, style);
    text += prose("trial", first_line_of(view, trial), style);
    text += origins_explained(view, trial, style, sources) + rungs_explained(view, trial, style, sources) +
            others_explained(view, trial, style, sources) + attempts_explained(view, trial, style, sources);
    const std::string& message = view.trials[trial.value()].message;
    if (!message.empty()) text += prose("message", unbroken(printable(first_line(message))), style);
    text += prose("after", view.trials[trial.value()].after, style);
    text += notes_explained(view.trials[trial.value()], style);
    text += prose("now",
                  now_text(view, trial, directory, is_run && view.simulated.empty()) +
                      sources({view.trials[trial.value()].closed}),
                  style);
    if (sources.shown())
        text += prose("records",
                      "counted from 0; the study as it was before record N: " +
                          unbroken(command_text({"replay", directory, "--until", "N"})),
                      style);
    return encoded(std::move(text), style);
}

} // namespace ranktune::report
