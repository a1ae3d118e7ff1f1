// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "report/export/export.hpp"
#include "study_by_hand.hpp"
#include "support/catch.hpp"

namespace export_test {

using namespace ranktune;
using namespace ranktune::report;
using ranktune::report::testing::StudyByHand;

namespace {

constexpr const char* odd = R"toml([study]
name = "odd"
metric = "score"
mode = "max"
num_trials = 5
max_iterations = 2
seed = 1
[trainable]
name = "any"
[space]
lr = "uniform(0.0, 1.0)"
layers = [[64, 32], [16]]
note = ["plain", "a \"quoted\", text", "学習"]
used = { domain = "uniform(0.0, 1.0)", condition = "note == 'plain'" }
start = "uniform(0.0, 1.0)"
)toml";

/// Stands in for load_study and read_reports, without files.
struct Loaded : LoadedStudy {
    std::vector<study::Reported> reports;
    [[nodiscard]] EachReport each_report() const {
        return [this](const auto& visit) {
            for (const auto& report : reports) visit(report);
        };
    }
};

Loaded loaded(StudyByHand&& study) {
    Loaded result;
    for (std::uint64_t number = 0; number < study.records.size(); ++number) {
        const auto& record = study.records[number];
        result.add(record, number);
        if (const auto* report = std::get_if<study::Reported>(&record)) result.reports.push_back(*report);
    }
    result.tuner = std::move(study.owned);
    return result;
}

std::string json_text(Loaded study) {
    std::ostringstream out;
    const Loaded reports{{}, study.reports};
    export_json(std::move(study), reports.each_report(), out);
    return out.str();
}

Loaded odd_study() {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    constexpr double inf = std::numeric_limits<double>::infinity();
    StudyByHand study(odd);
    study.began(2);
    study.report(0, 1, {{"score", 0.5}, {"loss, total", inf}});
    study.report(0, 2, {{"score", 0.75}, {"loss, total", -inf}});
    study.saved(0, 2);
    study.over(0, study::AttemptOutcome::finished);
    study.report(1, 1, {{"score", nan}});
    study.over(1, study::AttemptOutcome::failed, {"bytes \xff\xfe, a \"quote\"\r\nand a second line", 1});
    study.report(2, 1, {{"score", 0.25}, {"loss, total", 1.5}, {"time", 7}});
    return loaded(std::move(study));
}

/// An independent reader of RFC 4180.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
    std::vector<std::vector<std::string>> rows;
    std::vector<std::string> row;
    std::string cell;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c != '"') {
                cell += c;
            } else if (i + 1 < text.size() && text[i + 1] == '"') {
                cell += text[++i];
            } else {
                quoted = false;
            }
        } else if (c == '"') {
            REQUIRE(cell.empty()); // a quote begins its field
            quoted = true;
        } else if (c == ',') {
            row.push_back(std::exchange(cell, {}));
        } else if (c == '\r') {
            REQUIRE(text.at(++i) == '\n');
            row.push_back(std::exchange(cell, {}));
            rows.push_back(std::exchange(row, {}));
        } else {
            REQUIRE(c != '\n');
            cell += c;
        }
    }
    CHECK(cell.empty()); // the last line has a line end, too
    return rows;
}

std::size_t column(const std::vector<std::string>& header, const std::string& name) {
    const auto at = std::find(header.begin(), header.end(), name);
    REQUIRE(at != header.end());
    return static_cast<std::size_t>(at - header.begin());
}

} // namespace

TEST_CASE("the JSON export has every trial and every report", "[report]") {
    const Loaded study = odd_study();
    const auto root = nlohmann::json::parse(json_text(odd_study())); // strict: no NaN, valid UTF-8
    const auto& state = study.tuner->state();
    CHECK(root["schema"] == 1);
    CHECK(root["study"]["name"] == "odd");
    CHECK(root["study"]["metric"] == "score");
    CHECK(root["study"]["mode"] == "max");
    CHECK(root["study"]["num_trials"] == 5);
    CHECK(root["study"]["starts"] == nlohmann::json{"2026-11-20T14:02:11Z"});
    CHECK(root["study"]["ended"] == false);
    CHECK(root["study"]["exit_code"].is_null());
    CHECK(root["study"]["best_trial"] == 0);
    REQUIRE(root["trials"].size() == state.trials.size());
    REQUIRE(root["reports"].size() == state.reports);
    for (std::size_t i = 0; i < state.trials.size(); ++i) {
        CHECK(root["trials"][i]["id"] == i);
        CHECK(root["trials"][i]["configuration"].contains("lr"));
        CHECK(root["trials"][i]["configuration"]["layers"].is_array());
    }
    const auto& first = root["trials"][0];
    CHECK(first["state"] == "finished");
    CHECK(first["best"] == nlohmann::json{{"value", 0.75}, {"iteration", 2}, {"checkpoint_iteration", 2}});
    CHECK(first["checkpoints"][0]["path"] == "checkpoints/0/2-1.1.h5");
    CHECK(first["checkpoints"][0]["digest"] == "0000000000000abc");
    CHECK(first["attempts"][0]["ranks"] == nlohmann::json{1});
    CHECK(first["attempts"][0]["hosts"] == nlohmann::json{"n0"});
    CHECK(first["end"].is_number());
    CHECK(root["trials"][2]["end"].is_null());
}

TEST_CASE("the JSON export has the form that a dump of the whole would have", "[report]") {
    const std::string text = json_text(odd_study());
    CHECK(text == nlohmann::ordered_json::parse(text).dump(1) + "\n");
    const std::string none = json_text(loaded(StudyByHand(odd)));
    CHECK(none == nlohmann::ordered_json::parse(none).dump(1) + "\n");
}

namespace {

/// Discards output, and records the largest write and the total size.
class Pieces : public std::streambuf {
  public:
    std::size_t largest = 0;
    std::size_t total = 0;

  protected:
    std::streamsize xsputn(const char*, std::streamsize size) override {
        largest = std::max(largest, static_cast<std::size_t>(size));
        total += static_cast<std::size_t>(size);
        return size;
    }
    int overflow(int c) override {
        ++total;
        return c;
    }
};

} // namespace

TEST_CASE("an export is written trial by trial and report by report", "[report]") {
    const Loaded study = odd_study();
    constexpr std::size_t many = 20'000;
    constexpr std::size_t large = 2048; // bytes: of one trial or report
    const auto check = [&](const char* what, const auto& write) {
        CAPTURE(what);
        Pieces pieces;
        std::ostream out(&pieces);
        std::size_t before = 0;
        std::size_t held_back = 0;
        write(out, [&](const auto& visit) {
            for (std::size_t i = 0; i < many; ++i) {
                visit(study.reports[i % study.reports.size()]);
                if (i > 0 && pieces.total == before) ++held_back;
                before = pieces.total;
            }
        });
        CHECK(held_back == 0); // each report is written before the next one is read
        CHECK(pieces.total > many * 10);
        CHECK(pieces.largest < large);
    };
    check("json", [&](std::ostream& out, const EachReport& each) { export_json(odd_study(), each, out); });
    check("csv", [&](std::ostream& out, const EachReport& each) {
        export_reports_csv(study.tuner->state().metrics, each, out);
    });
}

TEST_CASE("the JSON export writes what is not finite as strings", "[report]") {
    const auto root = nlohmann::json::parse(json_text(odd_study()));
    const auto& reports = root["reports"];
    CHECK(reports[0]["metrics"] == nlohmann::json{{"score", 0.5}, {"loss, total", "inf"}});
    CHECK(reports[1]["metrics"]["loss, total"] == "-inf");
    CHECK(reports[2]["metrics"] == nlohmann::json{{"score", "nan"}}); // metrics that a report lacks are absent
    CHECK(root["trials"][1]["best"].is_null());                       // nan is never a best value
    CHECK(root["trials"][1]["last"]["value"] == "nan");
    CHECK(json_of(space::Value(std::numeric_limits<double>::infinity())) == "inf");
}

TEST_CASE("a message that is not UTF-8 does not break the JSON export", "[report]") {
    const auto root = nlohmann::json::parse(json_text(odd_study()));
    CHECK(root["trials"][1]["state"] == "failed");
    CHECK(root["trials"][1]["message"] == "rank 1: bytes \uFFFD\uFFFD, a \"quote\"\r\nand a second line");
}

TEST_CASE("CSV fields are quoted where RFC 4180 asks for it", "[report]") {
    const Loaded study = odd_study();
    std::ostringstream out;
    export_trials_csv(*study.tuner, study.each_report(), out);
    const auto rows = parse_csv(out.str());
    const auto& state = study.tuner->state();
    REQUIRE(rows.size() == state.trials.size() + 1);
    const auto& header = rows[0];
    for (const auto& row : rows) CHECK(row.size() == header.size());
    for (std::size_t i = 0; i < state.trials.size(); ++i) {
        const auto& row = rows[i + 1];
        const auto& configuration = state.trials[i].configuration;
        CHECK(row[0] == std::to_string(i));
        CHECK(row[column(header, "layers")] == configuration.find("layers")->text());
        CHECK(row[column(header, "note")] == configuration.find("note")->as_string());
        const auto* used = configuration.find("used");
        CHECK(row[column(header, "used")] == (used == nullptr ? "" : used->text()));
        // Round trip: the text of a double gives the double back.
        CHECK(std::stod(row[column(header, "lr")]) == configuration.find("lr")->as_double());
    }
    CHECK(rows[1][column(header, "best")] == "0.75");
    CHECK(rows[1][column(header, "last")] == "0.75");
    // As in the JSON: nan can be a last value, but no best value; a trial without reports has neither.
    CHECK(rows[2][column(header, "best")].empty());
    CHECK(rows[2][column(header, "best_iteration")].empty());
    CHECK(rows[2][column(header, "last")] == "nan");
    REQUIRE_FALSE(state.trials[3].reported);
    for (const char* name : {"best", "best_iteration", "last"}) CHECK(rows[4][column(header, name)].empty());
    CHECK(rows[2][column(header, "message")] == "rank 1: bytes \\xff\\xfe, a \"quote\"\r\nand a second line");
    CHECK(rows[3][column(header, "end")].empty());
    CHECK(rows[1][column(header, "loss, total")] == "-inf"); // the newest, and that of the best iteration
    CHECK(rows[1][column(header, "loss, total.at_best")] == "-inf");
    CHECK(rows[3][column(header, "loss, total.at_best")] == "1.5");
    CHECK(rows[3][column(header, "time")] == "7.0");
    CHECK(rows[4][column(header, "loss, total")].empty());
    const auto* start = state.trials[0].configuration.find("start"); // clashes with a column of the table
    CHECK(std::stod(rows[1][column(header, "parameter.start")]) == start->as_double());
    CHECK(std::count(header.begin(), header.end(), "start") == 1);
}

TEST_CASE("the CSV of reports has a column a metric", "[report]") {
    const Loaded study = odd_study();
    std::ostringstream out;
    export_reports_csv(study.tuner->state().metrics, study.each_report(), out);
    const auto rows = parse_csv(out.str());
    REQUIRE(rows.size() == study.reports.size() + 1);
    CHECK(rows[0] == std::vector<std::string>{"trial", "attempt", "iteration", "seconds", "time", "score",
                                              "loss, total", "metric.time"});
    const auto tail = [&](std::size_t i) { return std::vector<std::string>{rows[i][5], rows[i][6]}; };
    CHECK(tail(1) == std::vector<std::string>{"0.5", "inf"});
    CHECK(tail(2) == std::vector<std::string>{"0.75", "-inf"});
    CHECK(tail(3) == std::vector<std::string>{"nan", ""});
    CHECK(rows[2][2] == "2");
    CHECK(rows[4][7] == "7.0");
}

} // namespace export_test
