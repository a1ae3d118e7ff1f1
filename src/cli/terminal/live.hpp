// SPDX-License-Identifier: Apache-2.0
#pragma once
// The live view on rank 0: on a terminal, a table that is redrawn in place; elsewhere lines, at growing intervals of at
// most a minute.

#include <iosfwd>
#include <string>

#include "cli/terminal/picture.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/verbs/verbs.hpp"
#include "head/observer.hpp"
#include "report/screens/screens.hpp"

namespace ranktune::cli {

class LiveView final : public head::Observer {
  public:
    LiveView(std::ostream& out, const Terminal& terminal, Progress progress);

    void on_tick(const tuner::Tuner& tuner, const head::HeadFigures& figures) override;
    /// The study directory as the user would type it, for the hints below the table.
    void set_directory(std::string directory) { directory_ = std::move(directory); }
    /// Erases the table, so that the end screen stands alone.
    void finish();

  private:
    /// Prints the deadline once, as soon as the head knows it: Slurm answers after the first screen.
    void show_deadline(const tuner::State& state);
    [[nodiscard]] report::Live live(const tuner::Tuner& tuner, const head::HeadFigures& figures);

    void show_line(const tuner::Tuner& tuner, const head::HeadFigures& figures);

    static constexpr double first_line_s = 2.0;

    std::ostream& out_;
    Terminal terminal_;
    Progress progress_;
    std::string directory_;
    report::SteadyTotal total_;
    Picture picture_; ///< the table on the terminal
    bool deadline_shown_ = false;
    double next_line_s_ = first_line_s;
    double next_table_s_ = 600.0;
};

/// The head's figures as the screens take them. `total`: iterations expected earlier (SteadyTotal); 0: none.
[[nodiscard]] report::Live live_figures(const tuner::Tuner& tuner, const head::HeadFigures& figures,
                                        std::uint64_t total = 0);

} // namespace ranktune::cli
