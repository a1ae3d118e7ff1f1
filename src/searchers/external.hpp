// SPDX-License-Identifier: Apache-2.0
#pragma once
// The searcher `external`: a program of the user makes the suggestions.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "models/sobol.hpp"
#include "ranktune/base/time.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

/// How the program is run, and what it is told of the study at its start.
struct ExternalSetting {
    std::string command;      ///< for /bin/sh -c
    std::string directory;    ///< working directory, absolute
    base::Duration timeout{}; ///< of an answer
    std::string study;        ///< name
    std::uint64_t seed = 0;
    study::Objective objective;
    std::uint32_t num_trials = 0;
    base::Iteration max_iterations = 0;
    space::SearchSpace space;
};

/// A trial as it was created.
struct ExternalTrial {
    space::Configuration configuration;
    std::optional<std::uint64_t> ticket; ///< nullopt: its configuration is not a prepared suggestion
    static void fields(auto&& each, auto& r) { each(r.configuration, r.ticket); }
};

/// A preparation of `external`. The head recognises it (std::function::target) and has the user's program answer it.
/// Wherever no program runs, in tests and simulations, it answers itself, with a point of a Sobol sequence.
struct ExternalQuestion {
    std::shared_ptr<const ExternalSetting> setting;
    std::uint64_t ticket = 0;
    Observations seen;
    GrowingList<ExternalTrial> trials; ///< by number; has all trials of `seen`

    [[nodiscard]] space::Configuration operator()() const;
    /// What the trial trains with from this line on: a line of kind `asked`. To rounding if the trial took the
    /// configuration over from another one.
    [[nodiscard]] space::Configuration configuration_at(std::size_t line) const;
};

/// Suggestions of a program, prepared ahead. A stopgap is a point of a Sobol sequence. After `most_failures` failed
/// suggestions in a row nothing more is prepared until the next start of the study.
class ExternalSearcher final : public Searcher {
  public:
    static constexpr std::uint32_t most_failures = 3;

    /// `spec` must outlive it, but not the preparations. Its [searcher] may change meanwhile: each preparation has the
    /// options of its time.
    explicit ExternalSearcher(const study::StudySpec& spec);

    [[nodiscard]] std::string_view name() const override { return "external"; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index, const Observations&) const override;
    /// A quarter of the groups: a program may need long for an answer.
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups, const Observations& seen) const override;
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, Observations seen) const override;

    void apply(const study::Record& record) override;
    void snapshot(study::Encoder& out) const override;
    void restore(study::Decoder& in) override;

  private:
    const study::StudySpec& spec_;
    std::optional<models::Sobol> sequence_;
    GrowingList<ExternalTrial> trials_;
    std::uint32_t failures_ = 0; ///< in a row
};

/// Whether the study stops when its searcher fails to prepare a suggestion (searcher.on_failure).
[[nodiscard]] bool stops_on_failure(const study::SearcherSpec& searcher);

} // namespace ranktune::searchers
