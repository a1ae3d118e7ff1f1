// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a searcher or a scheduler describes itself. The parser, the resolved file, the plan, `init` and the reference
// page use only this description.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/space/domain.hpp"
#include "ranktune/study/trainable_info.hpp"
#include "ranktune/study/vocabulary.hpp"

// Forward declarations for the factories.
namespace ranktune::schedulers {
class Scheduler;
}
namespace ranktune::searchers {
class Searcher;
}

namespace ranktune::study {

struct StudySpec;

/// An option and its value.
struct OptionValue {
    std::string option;
    space::Value value;
};

/// An option of an algorithm: a key of [searcher] or [scheduler].
struct AlgorithmOption {
    std::string name;
    OptionInfo::Kind kind = OptionInfo::Kind::number; ///< boolean, integer, number, string or path
    space::Value standard;                            ///< the default; for a number, a float
    std::string description;                          ///< sentences for the reference, in Markdown
    std::optional<double> low = {};                   ///< inclusive bounds of integers and numbers
    std::optional<double> high = {};
    std::vector<std::string> accepted = {}; ///< the allowed strings; empty: any
    /// The option applies only while another one, listed before it, applies and has this value.
    std::optional<OptionValue> only_with = {};
    /// What the option takes, for the reference, if kind and bounds do not say everything.
    std::string takes = {};
    /// What other tools call the option: (tool, name).
    std::vector<std::pair<std::string, std::string>> foreign_names = {};
    /// What other tools call the accepted strings: (theirs, ours).
    std::vector<std::pair<std::string, std::string>> foreign_words = {};
    /// A study may go on with another value. Only for options that the framework reads: an algorithm is made with the
    /// first value and does not learn of later ones.
    bool may_change = false;
};

/// What an algorithm's own check sees of a study file, and how it reports mistakes.
struct AlgorithmCheck {
    const space::Configuration& options;     ///< every option; a wrong or missing one has its default
    std::optional<Iteration> max_iterations; ///< nullopt: wrong in the file
    std::size_t coordinates = 0;             ///< parameters of the space that are neither grids nor constants
    bool several_objectives = false;         ///< study.metric names several
    /// Whether the option was left out, or has a valid value without a complaint.
    std::function<bool(std::string_view option)> is_right;
    /// True for a study file, where settings that work but make no sense are mistakes, too. (Simulations draw such
    /// settings.)
    bool reads_file = false;
    /// Reports a mistake in the value of an option, or of "type": what is wrong and what is accepted.
    std::function<void(std::string_view option, const std::string& message)> complain;
};

/// Settings with which a deterministic study would not be repeatable: refused together with study.deterministic.
struct NotDeterministic {
    /// When all of these options have these values; empty: always. A mistake is reported at the first one.
    std::vector<OptionValue> when = {};
    /// Continues the sentence "... does not go with study.deterministic", and says what to do.
    std::string why;
};

/// What every algorithm describes.
struct AlgorithmInfo {
    std::string name;        ///< the value of `type`
    std::string description; ///< a sentence for the reference, in Markdown, beginning with a small letter
    std::vector<AlgorithmOption> options = {};
    std::vector<std::string> foreign_names = {}; ///< what other tools call it
    /// Compares results by all objectives of a study (study::Score), or not at all. Otherwise a study with several is
    /// refused.
    bool several_objectives = false;
    std::optional<NotDeterministic> not_deterministic = {}; ///< nullopt: goes with study.deterministic
    /// Checks what kinds and bounds of the options cannot express; may be empty. Called for study files and for values
    /// from C++.
    std::function<void(const AlgorithmCheck& check)> check = {};
};

/// When a scheduler pauses trials and needs their checkpoints to resume them.
struct CheckpointNeed {
    /// When all of these options have these values; empty: always. A mistake is reported at the first one.
    std::vector<OptionValue> when = {};
    /// What to set instead, for a trainable that cannot save its state: "use ...", "or ..."; may be empty.
    std::string instead = {};
    /// The same after a trial had to pause and had no state: continues the sentence "pass one with each report"; may be
    /// empty.
    std::string afterwards = {};
};

/// What a scheduler is expected to do with a study; shown to users.
struct SchedulerPlan {
    std::string words; ///< the name in the plan, "ASHA promote"; empty: the algorithm's name
    struct Rung {
        Iteration iteration = 0;
        std::uint64_t trials = 0; ///< expected to train up to here
    };
    std::vector<Rung> rungs = {}; ///< ascending, the last one is the ceiling; empty: every trial trains to the ceiling
    std::uint64_t iterations = 0; ///< expected total, if there are rungs
    /// If `iterations` is an estimate: nine of ten studies train at least and at most so many; 0: not known.
    std::uint64_t fewest = 0;
    std::uint64_t most = 0;
    std::uint64_t paused_checkpoints = 0; ///< upper bound, of all paused trials at any one time
    /// Of these, as many as paused trials go on from in any case: with a smaller checkpoint.max_bytes some lose their
    /// training. 0: those that lose it may never be needed again.
    std::uint64_t needed_checkpoints = 0;
    /// exact: every trial trains to its end. at_most: trials may end earlier than planned, never later. estimate:
    /// depends on results.
    enum class Certainty : std::uint8_t { exact, at_most, estimate } certainty = Certainty::at_most;
    std::string warning = {}; ///< when the settings defeat their purpose; empty otherwise
};

/// The description of a scheduler.
struct SchedulerInfo : AlgorithmInfo {
    /// Makes it for a study whose options were checked; `study` need not outlive it.
    std::function<std::unique_ptr<schedulers::Scheduler>(const StudySpec& study)> make;
    std::optional<CheckpointNeed> needs_checkpoints; ///< nullopt: never pauses a trial
    bool has_rungs = false;                          ///< judges trials at rungs (checkpoint.at_rungs)
    bool explores = false;   ///< changes hyper-parameters during training: takes [scheduler.explore]
    bool schedules = false;  ///< changes them at given iterations: needs [scheduler.schedule]
    bool trains_all = false; ///< every trial trains to its end with its own configuration: searcher.repeats is accepted
    std::function<SchedulerPlan(const StudySpec& study)> plan; ///< may be empty: `SchedulerPlan{}`
};

/// The description of a searcher.
struct SearcherInfo : AlgorithmInfo {
    /// Makes it for a study whose options were checked; `study` must outlive it.
    std::function<std::unique_ptr<searchers::Searcher>(const StudySpec& study)> make;
    /// Suggests every configuration of the space once, so every domain needs finitely many values, and study.num_trials
    /// may be left out.
    bool whole_space = false;
    /// Works with coordinates alone: a space with a condition, or with a list of several values without an order, is
    /// refused (see `no_number`).
    bool only_numbers = false;
    /// Learns from the trials of earlier studies in the table of observations, so searcher.warm_start is accepted.
    bool uses_earlier_results = false;
    /// Asks a program of the user, which simulations do not start.
    bool runs_program = false;
};

/// How a hyper-parameter changes while a trial trains: an entry of [scheduler.explore].
struct Explored {
    std::string name;            ///< of the hyper-parameter
    std::vector<double> factors; ///< one of these is multiplied with its value; empty: a new value is drawn each time
    friend bool operator==(const Explored&, const Explored&) = default;
};
/// Factors of `NAME = "perturb"` (Jaderberg et al. 2017, section 4.1).
inline constexpr double perturb_factors[] = {0.8, 1.2};

/// The values of a hyper-parameter while a trial trains: an entry of [scheduler.schedule].
struct Scheduled {
    struct Change {
        Iteration after = 0; ///< so many iterations the trial has this value
        space::Value value;
        friend bool operator==(const Change&, const Change&) = default;
    };
    std::string name;            ///< of the hyper-parameter
    std::vector<Change> changes; ///< ascending; before the first one the value is that of the trial's configuration
    friend bool operator==(const Scheduled&, const Scheduled&) = default;
};

/// The algorithms that a study file may name. The first of each kind is the default.
struct Algorithms {
    std::vector<std::shared_ptr<const SchedulerInfo>> schedulers = {};
    std::vector<std::shared_ptr<const SearcherInfo>> searchers = {};
};

/// [scheduler]: the algorithm and its options. Every option has a value, in the order of the description, also options
/// that do not apply.
struct SchedulerSpec {
    std::shared_ptr<const SchedulerInfo> algorithm;
    space::Configuration options;
    std::vector<Explored> explore = {};   ///< in the order of the study file; empty: nothing changes, which
                                          ///< is a choice where `algorithm->explores`
    std::vector<Scheduled> schedule = {}; ///< likewise; only where `algorithm->schedules`
};
/// Results of an earlier study: an entry of searcher.warm_start.
struct WarmSource {
    std::string path;        ///< absolute: a study directory, a table (CSV), or a journal of Optuna
    std::string metric = {}; ///< what stands for this study's metric there; empty: the same name
    std::string study = {};  ///< of a journal with several studies; empty: the only one
    friend bool operator==(const WarmSource&, const WarmSource&) = default;
};

/// [searcher], likewise.
struct SearcherSpec {
    std::shared_ptr<const SearcherInfo> algorithm;
    space::Configuration options;
    bool by_default = false; ///< the study file has no searcher.type: a study that goes on keeps the one it has
    /// [[searcher.start]]: points to try first. What they lack is completed.
    std::vector<space::Configuration> start = {};
    /// So many trials in a row have the same configuration; searchers see the mean of their results.
    std::uint32_t repeats = 1;
    /// Earlier results to learn from; only where `algorithm->uses_earlier_results`.
    std::vector<WarmSource> warm_start = {};
};

/// The algorithm with `values` in place of its defaults. Throws base::UsageError for an option that it does not have or
/// a value that the option does not take; what `AlgorithmInfo::check` looks at is left to check_options.
[[nodiscard]] SchedulerSpec chosen(std::shared_ptr<const SchedulerInfo> algorithm,
                                   const std::vector<OptionValue>& values = {});
[[nodiscard]] SearcherSpec chosen(std::shared_ptr<const SearcherInfo> algorithm,
                                  const std::vector<OptionValue>& values = {});
/// Sets one option. Throws as `chosen`.
void set_option(SchedulerSpec& scheduler, const OptionValue& value);

/// Whether an algorithm with these options has the option.
[[nodiscard]] bool applies(const AlgorithmInfo& algorithm, const space::Configuration& options,
                           const AlgorithmOption& option);

/// Whether trials that this scheduler pauses must have saved their state.
[[nodiscard]] bool needs_checkpoints(const SchedulerSpec& scheduler);

/// Why an algorithm with these options does not go with study.deterministic: the option (or "type") to report, and a
/// message; nullopt: it does.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> not_deterministic(const AlgorithmInfo& algorithm,
                                                                                   const space::Configuration& options);

/// Throws base::UsageError if an option, or an explored or scheduled hyper-parameter, is wrong for this study, or if
/// there is no algorithm.
void check_options(const SchedulerSpec& scheduler, const StudySpec& study);
void check_options(const SearcherSpec& searcher, const StudySpec& study);

/// Why a searcher that works with coordinates alone (`only_numbers`) cannot have this parameter, and what to do; empty:
/// it can.
[[nodiscard]] std::string no_number(const SearcherInfo& searcher, std::string_view parameter,
                                    const space::Domain& domain, bool conditional);

/// Throws base::UsageError for an invalid description: a name that is no key, a default that the option does not take,
/// an option that depends on a later one, no factory.
void check_description(const SchedulerInfo& scheduler);
void check_description(const SearcherInfo& searcher);

} // namespace ranktune::study
