// SPDX-License-Identifier: Apache-2.0
#pragma once
// The live view on rank 0: a table that is drawn over on a terminal, one line a minute elsewhere.

#include <iosfwd>
#include <string>
#include <utility>

#include "cli/terminal.hpp"
#include "cli/verbs.hpp"
#include "drivers/observer.hpp"
#include "report/screens.hpp"

namespace ranktune::cli {

class LiveView final : public drivers::Observer {
  public:
    LiveView(std::ostream& out, const Terminal& terminal, Progress progress);

    void on_tick(const tuner::Tuner& tuner, const drivers::HeadFigures& figures) override;
    /// As the user would type it, for the hints below the table.
    void set_directory(std::string directory) { directory_ = std::move(directory); }
    /// Removes what will be drawn over, so that the end screen stands alone.
    void finish();

  private:
    void draw(const std::string& table);
    /// Once, as soon as the head knows: Slurm answers after the first screen has been shown.
    void show_deadline(const tuner::State& state);
    [[nodiscard]] report::Live live(const tuner::Tuner& tuner, const drivers::HeadFigures& figures) const;

    std::ostream& out_;
    Terminal terminal_;
    Progress progress_;
    std::string directory_;
    std::size_t lines_drawn_ = 0;
    bool deadline_shown_ = false;
    double next_line_s_ = 60.0;
    double next_table_s_ = 600.0;
};

/// The figures of the head in the form that the screens take.
[[nodiscard]] report::Live live_figures(const tuner::Tuner& tuner, const drivers::HeadFigures& figures);

} // namespace ranktune::cli
