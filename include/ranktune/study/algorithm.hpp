// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a searcher or a scheduler describes itself. Parser, resolved file, plan, `init` and the reference page know an
// algorithm by its description alone.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ranktune/space/configuration.hpp"
#include "ranktune/study/trainable_info.hpp"
#include "ranktune/study/vocabulary.hpp"

// Only named: the factories of the descriptions make them.
namespace ranktune::schedulers {
class Scheduler;
}
namespace ranktune::searchers {
class Searcher;
}

namespace ranktune::study {

struct StudySpec;

/// An option that has this value.
struct OptionValue {
    std::string option;
    space::Value value;
};

/// An option of an algorithm: a key of [searcher] or [scheduler].
struct AlgorithmOption {
    std::string name;
    OptionInfo::Kind kind = OptionInfo::Kind::number; ///< boolean, integer, number or string
    space::Value standard;                            ///< the default; of a number a float
    std::string description;                          ///< sentences for the reference, in Markdown
    std::optional<double> low = {};                   ///< inclusive bounds of integers and numbers
    std::optional<double> high = {};
    std::vector<std::string> accepted = {}; ///< the allowed strings; empty: any
    /// The algorithm has the option only while another one, listed before, has this value. (And only while it has that
    /// other one.)
    std::optional<OptionValue> only_with = {};
    /// What the option takes, for the reference, where kind and bounds do not tell all.
    std::string takes = {};
    /// What other tools call the option: (tool, name).
    std::vector<std::pair<std::string, std::string>> foreign_names = {};
    /// What other tools call the accepted strings: (theirs, ours).
    std::vector<std::pair<std::string, std::string>> foreign_words = {};
    /// A study may go on with another value. Only for what the framework reads: an algorithm is made with the first
    /// value and not told of later ones.
    bool may_change = false;
};

/// What an algorithm's own check sees of a study file, and how it says what is wrong.
struct AlgorithmCheck {
    const space::Configuration& options;     ///< every option; one that is wrong or not there has its default
    std::optional<Iteration> max_iterations; ///< nothing: not known, because it is wrong
    std::size_t coordinates = 0;             ///< parameters of the space that are neither grids nor constants
    /// Whether the option was left out, or has a value that it takes and that was not complained of.
    std::function<bool(std::string_view option)> is_right;
    /// A study file is read: what works but makes no sense is a mistake, too. (Simulations draw such settings.)
    bool reads_file = false;
    /// A mistake in the value of an option, or of "type": what is wrong and what is accepted.
    std::function<void(std::string_view option, const std::string& message)> complain;
};

/// What every algorithm says of itself.
struct AlgorithmInfo {
    std::string name;        ///< what `type` says
    std::string description; ///< a sentence for the reference, in Markdown, beginning with a small letter
    std::vector<AlgorithmOption> options = {};
    std::vector<std::string> foreign_names = {}; ///< what other tools call it
    /// What kinds and bounds of the options do not say; may be empty. Called for study files and for values from C++.
    std::function<void(const AlgorithmCheck& check)> check = {};
};

/// When a scheduler pauses trials and needs their checkpoints to go on with them.
struct CheckpointNeed {
    /// All of these options have these values; none: always. The first one is what a mistake is about.
    std::vector<OptionValue> when = {};
    /// What to set instead, for a trainable that cannot save its state: "use ...", "or ..."; may be empty.
    std::string instead = {};
    /// The same after a trial was to pause and had no state: goes on from "pass one with each report"; may be empty.
    std::string afterwards = {};
};

/// What a scheduler is expected to do with a study, for people.
struct SchedulerPlan {
    std::string words; ///< in the plan's line, "ASHA promote"; empty: the algorithm's name
    struct Rung {
        Iteration iteration = 0;
        std::uint64_t trials = 0; ///< expected to train up to here
    };
    std::vector<Rung> rungs = {};         ///< ascending, the last one is the ceiling; empty: every trial gets there
    std::uint64_t iterations = 0;         ///< expected in all, when there are rungs
    std::uint64_t paused_checkpoints = 0; ///< of all paused trials together, at any one time, at most
    /// exact: every trial to its end. at_most: trials may end earlier, and none is trained for longer than planned.
    /// estimate: more or fewer, as results come in.
    enum class Certainty : std::uint8_t { exact, at_most, estimate } certainty = Certainty::at_most;
    std::string warning = {}; ///< when the settings defeat their purpose; empty otherwise
};

/// A scheduler's description of itself.
struct SchedulerInfo : AlgorithmInfo {
    /// For a study whose options were checked; `study` need not outlive what is made.
    std::function<std::unique_ptr<schedulers::Scheduler>(const StudySpec& study)> make;
    std::optional<CheckpointNeed> needs_checkpoints; ///< nothing: never pauses a trial
    bool has_rungs = false;                          ///< judges trials at rungs (checkpoint.at_rungs)
    bool explores = false; ///< changes hyper-parameters while a trial trains: [scheduler.explore] names them
    std::function<SchedulerPlan(const StudySpec& study)> plan; ///< may be empty: `SchedulerPlan{}`
};

/// A searcher's description of itself.
struct SearcherInfo : AlgorithmInfo {
    /// For a study whose options were checked; `study` outlives what is made.
    std::function<std::unique_ptr<searchers::Searcher>(const StudySpec& study)> make;
    /// Suggests every configuration of a finite space once: every domain needs finitely many values, and
    /// study.num_trials may be left out.
    bool whole_space = false;
};

/// How a hyper-parameter changes while a trial trains: an entry of [scheduler.explore].
struct Explored {
    std::string name;            ///< of the hyper-parameter
    std::vector<double> factors; ///< one of these is multiplied with its value; empty: a new value is drawn each time
    friend bool operator==(const Explored&, const Explored&) = default;
};
/// Factors of `NAME = "perturb"` (Jaderberg et al. 2017, section 4.1).
inline constexpr double perturb_factors[] = {0.8, 1.2};

/// What a study file may name. The first of each kind is the default.
struct Algorithms {
    std::vector<std::shared_ptr<const SchedulerInfo>> schedulers = {};
    std::vector<std::shared_ptr<const SearcherInfo>> searchers = {};
};

/// [scheduler]: the algorithm and its options. Each option has a value, in the order of the description, also one that
/// does not apply.
struct SchedulerSpec {
    std::shared_ptr<const SchedulerInfo> algorithm;
    space::Configuration options;
    std::vector<Explored> explore = {}; ///< in the order of the study file; only where `algorithm->explores`
};
/// [searcher], likewise.
struct SearcherSpec {
    std::shared_ptr<const SearcherInfo> algorithm;
    space::Configuration options;
};

/// The algorithm with its defaults, but for `values`. Throws base::UsageError for an option that it does not have or a
/// value that the option does not take; what `AlgorithmInfo::check` looks at is left to
/// check_options.
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

/// Throws base::UsageError naming what is wrong in the options, or in what is explored, for this study, or that there
/// is no algorithm.
void check_options(const SchedulerSpec& scheduler, const StudySpec& study);
void check_options(const SearcherSpec& searcher, const StudySpec& study);

/// Throws base::UsageError for a description that cannot be used: a name that is no key, a default that the option does
/// not take, an option that depends on a later one, no factory.
void check_description(const SchedulerInfo& scheduler);
void check_description(const SearcherInfo& searcher);

} // namespace ranktune::study
