// SPDX-License-Identifier: Apache-2.0
// The live table on a terminal whose size changes, byte by byte.

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/ioctl.h>

#include "cli/terminal/live.hpp"
#include "report/study_by_hand.hpp"
#include "storage/unique_handle.hpp"
#include "support/catch.hpp"

namespace ranktune::cli::testing {
namespace {

/// A pseudo-terminal of which only the size is used.
class SizedTerminal {
  public:
    explicit SizedTerminal(unsigned short columns) {
        REQUIRE(parent_);
        REQUIRE(grantpt(parent_.get()) == 0);
        REQUIRE(unlockpt(parent_.get()) == 0);
        unsetenv("COLUMNS");
        setenv(device_variable, ptsname(parent_.get()), 1);
        resize(columns);
    }
    ~SizedTerminal() { unsetenv(device_variable); }
    SizedTerminal(const SizedTerminal&) = delete;
    SizedTerminal& operator=(const SizedTerminal&) = delete;

    void resize(unsigned short columns) const {
        const winsize size{60, columns, 0, 0};
        REQUIRE(ioctl(parent_.get(), TIOCSWINSZ, &size) == 0);
    }

  private:
    storage::FileDescriptor parent_{posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
};

/// The drawn lines of a table, without escape sequences; `up`: rows that the cursor moved up before.
struct Drawn {
    std::size_t up = 0;
    std::vector<std::string> lines = {};

    [[nodiscard]] std::size_t rows_on(std::size_t columns) const {
        std::size_t rows = 0;
        for (const auto& line : lines)
            rows += std::max<std::size_t>(1, (report::display_width(line) + columns - 1) / columns);
        return rows;
    }
    [[nodiscard]] std::size_t widest() const {
        std::size_t width = 0;
        for (const auto& line : lines) width = std::max(width, report::display_width(line));
        return width;
    }
};

Drawn read_drawing(const std::string& text) {
    Drawn drawn;
    std::string line;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n') {
            drawn.lines.push_back(line);
            line.clear();
        } else if (text[i] != '\x1b') {
            line += text[i];
        } else {
            const auto end = text.find_first_of("AJKm", i);
            REQUIRE(end != std::string::npos);
            if (text[end] == 'A') drawn.up = std::stoul(text.substr(i + 2));
            if (text[end] == 'K') CHECK(line.empty()); // a line is cleared before it is written
            i = end;
        }
    }
    CHECK(line.empty());
    return drawn;
}

/// A running study, and the output of its live view at each tick.
struct Scene {
    explicit Scene(unsigned short columns) : terminal(columns) {
        study.began(2);
        for (std::uint32_t trial = 0; trial < 4; ++trial) study.train(trial, 1, 0.1 * trial);
        style.interactive = true;
        style.style.colour = true;
        style.style.width = style.columns = columns;
    }
    std::string look(LiveView& view) {
        out.str("");
        view.on_tick(study.tuner, figures);
        return out.str();
    }

    SizedTerminal terminal;
    report::testing::StudyByHand study{report::testing::small_study(9)};
    Terminal style;
    head::HeadFigures figures;
    std::ostringstream out;
};

} // namespace

TEST_CASE("after the terminal has become narrower the whole old table is drawn over", "[cli]") {
    Scene scene(100);
    LiveView view(scene.out, scene.style, Progress::table);
    const Drawn first = read_drawing(scene.look(view));
    CHECK(first.up == 0);
    REQUIRE(first.widest() > 40);
    scene.terminal.resize(40);
    const std::string text = scene.look(view);
    const Drawn second = read_drawing(text);
    CHECK(second.up == first.rows_on(40)); // the terminal has rewrapped its lines
    CHECK(second.up > first.lines.size());
    CHECK(second.widest() <= 40);
    CHECK(text.ends_with("\x1b[J")); // the rest of the old table below is cleared, too
    CHECK(read_drawing(scene.look(view)).up == second.lines.size());
    scene.terminal.resize(120);
    const Drawn wider = read_drawing(scene.look(view));
    CHECK(wider.up == second.lines.size());
    CHECK(wider.widest() > 40);
}

TEST_CASE("a table that was made narrower just before the end goes away as a whole", "[cli]") {
    Scene scene(100);
    LiveView view(scene.out, scene.style, Progress::table);
    const Drawn first = read_drawing(scene.look(view));
    scene.terminal.resize(30);
    scene.out.str("");
    view.finish();
    CHECK(scene.out.str() == "\x1b[" + std::to_string(first.rows_on(30)) + "A\x1b[J");
    scene.out.str("");
    view.finish();
    CHECK(scene.out.str().empty());
}

TEST_CASE("a terminal that becomes too narrow for a table is cleared of it and gets lines", "[cli]") {
    Scene scene(100);
    LiveView view(scene.out, scene.style, Progress::table);
    const Drawn first = read_drawing(scene.look(view));
    scene.terminal.resize(15);
    CHECK(scene.look(view) == "\x1b[" + std::to_string(first.rows_on(15)) + "A\x1b[J");
    scene.figures.elapsed_s = 10.0;
    CHECK(scene.look(view).find('\x1b') == std::string::npos);
    scene.terminal.resize(100);
    CHECK(read_drawing(scene.look(view)).up == 0);
}

TEST_CASE("lines for a log come soon, then rarer, at last one a minute", "[cli]") {
    Scene scene(100);
    LiveView view(scene.out, scene.style, Progress::lines);
    std::vector<double> times;
    for (int half = 0; half < 2 * 400; ++half) {
        scene.figures.elapsed_s = 0.5 * half;
        if (!scene.look(view).empty()) times.push_back(scene.figures.elapsed_s);
    }
    CHECK(times == std::vector<double>{2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 140.0, 200.0, 260.0, 320.0, 380.0});
}

} // namespace ranktune::cli::testing
