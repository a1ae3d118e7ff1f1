// SPDX-License-Identifier: Apache-2.0
#include "report/screens/trial_table.hpp"

#include <regex>
#include <string>

#include "golden.hpp"
#include "ranktune/base/error.hpp"
#include "report/view/trial_filter.hpp"
#include "screens_by_hand.hpp"
#include "support/error_of.hpp"

namespace trial_table_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;

namespace {

/// Six trials of which 0 to 5 have reported once or twice, with a metric `loss/val` beside the objective `score`.
struct TwoMetrics {
    TwoMetrics() : study(small_study(9)) {
        study.began(4);
        for (std::uint32_t trial = 0; trial < 4; ++trial) report(trial, 1);
        report(2, 2);
        for (const auto& record : study.records)
            if (const auto* reported = std::get_if<study::Reported>(&record)) metrics.add(*reported);
    }
    void report(std::uint32_t trial, base::Iteration iteration) {
        const auto step = static_cast<double>(iteration);
        study.report(trial, iteration, {{"score", rising(trial, iteration)}, {"loss/val", 10.0 - trial - 0.5 * step}});
    }
    [[nodiscard]] std::string text(const TableRequest& request, const Style& style = {}) const {
        return TrialTable(study.tuner, request, false, style).text(metrics, "small");
    }
    /// Numbers of the trials in the rows.
    [[nodiscard]] std::string trials(const TableRequest& request) const {
        const std::string shown = text(request);
        std::string numbers;
        const std::regex row("\n[ *]*#([0-9]+)");
        for (std::sregex_iterator at(shown.begin(), shown.end(), row), end; at != end; ++at) numbers += (*at)[1].str();
        return numbers;
    }
    [[nodiscard]] std::string mistake(const TableRequest& request) const {
        return ranktune::testing::error_of<base::UsageError>([&] { return text(request); });
    }
    StudyByHand study;
    LastMetrics metrics;
};

TableRequest filtered(const std::string& filter) {
    TableRequest request;
    request.filter = filter;
    return request;
}

TableRequest sorted(const std::string& sort) {
    TableRequest request;
    request.sort = sort;
    return request;
}

std::string condition_mistake(const std::string& text) {
    return ranktune::testing::error_of<base::UsageError>(
        [&] { const TrialFilter filter(text, [](const std::string&, const std::string&) {}); });
}

} // namespace

TEST_CASE("a filter takes words without quotes and names of metrics, and knows the column of a mistake", "[report]") {
    std::string names;
    const TrialFilter filter("not (state in [running, 'paused'] or val/acc@5 >= 1e-3) and x == -2.5e3",
                             [&](const std::string& name, const std::string& at) { names += name + " " + at + "; "; });
    CHECK(names == "state at column 6; val/acc@5 at column 38; x at column 61; ");
    std::string words;
    const auto note = [&](const std::string& name, const std::string& word, const std::string& at) {
        words += name + " " + word + " " + at + "; ";
    };
    const TrialFilter other(
        "state not in [running, 'paused'] and x > 2 or y == \"a b\"", [](const auto&, const auto&) {}, note);
    CHECK(words == "state running at column 15; state paused at column 24; y a b at column 52; ");
    words.clear();
    const TrialFilter tagged(
        "state == running and 'odd' in tags and x > -inf", [](const auto&, const auto&) {}, note);
    CHECK(words == "state running at column 10; ");
    const auto holds = [&](std::optional<space::Value> state, std::optional<space::Value> accuracy, double x) {
        return filter.holds([&](const std::string& name) -> std::optional<space::Value> {
            return name == "state" ? state : name == "x" ? space::Value(x) : accuracy;
        });
    };
    CHECK(holds("stopped", 1e-4, -2500.0));
    CHECK(holds("stopped", std::nullopt, -2500.0));
    CHECK_FALSE(holds("running", 1e-4, -2500.0));
    CHECK_FALSE(holds("paused", 1e-4, -2500.0));
    CHECK_FALSE(holds("stopped", 0.5, -2500.0));
    CHECK_FALSE(holds("stopped", 1e-4, 1.0));

    CHECK_THAT(condition_mistake("state == running and"), Catch::Contains("at column 21"));
    CHECK_THAT(condition_mistake("größe == gut und x"), Catch::Contains("at column"));
    CHECK_THAT(condition_mistake("val/x == running lr < 2"), Catch::Contains("at column 18"));
    CHECK_THAT(condition_mistake("lr =< 2"), Catch::Contains("at column 4"));
    CHECK(condition_mistake("a == 'it is == not' and b == \"x\\\" y\" or c != true").empty());
}

TEST_CASE("the table of trials is filtered by state, metric, hyper-parameter and facts", "[report]") {
    const TwoMetrics two;
    const std::string all = two.trials({});
    CHECK(all.size() == two.study.tuner.state().trials.size());
    CHECK(two.trials(filtered("score > 0.2")) == "32");
    CHECK(two.trials(filtered("best > 0.2 and loss/val < 6.8")) == "3");
    CHECK(two.trials(filtered("loss/val >= 7.0")).find('3') == std::string::npos);
    CHECK(two.trials(filtered("trial in [0, 2] and attempts == 1")).size() == 2);
    CHECK_THAT(two.text(filtered("lr > 100")), Catch::Contains("no trial is selected"));
    CHECK(two.mistake(filtered("score > 0.1 and lrr < 0.1"))
              .find("--filter: at column 17: 'lrr' is no metric, hyper-parameter or column of this study; did you mean "
                    "'lr'? "
                    "(trial, state, ") == 0);
    CHECK(two.mistake(filtered("lr < 1 and state == runing")) ==
          "--filter: at column 21: 'runing' is no state of a trial; did you mean 'running'?; known: interrupted, "
          "waiting, running, paused, finished, stopped, failed");
    CHECK_THAT(two.mistake(filtered("lr < 0.1 or (")), Catch::StartsWith("--filter: ") && Catch::Contains("column 14"));
}

TEST_CASE("the table of trials is sorted by any column, trials without a value last", "[report]") {
    const TwoMetrics two;
    CHECK(two.trials(sorted("trial")).substr(0, 3) == "012");
    CHECK(two.trials(sorted("trial:desc")).back() == '0');
    CHECK(two.trials(sorted("loss/val")).substr(0, 4) == "3210");
    CHECK(two.trials(sorted("loss/val:desc")).substr(0, 4) == "0123"); // those that have not reported stay last
    CHECK(two.trials(sorted("metric.loss/val:asc")).substr(0, 4) == "3210");
    CHECK_THAT(two.mistake(sorted("score:down")), Catch::Contains("accepted: NAME, NAME:asc, NAME:desc"));
    CHECK_THAT(two.mistake(sorted("scroe")), Catch::Contains("--sort: 'scroe'") && Catch::Contains("'score'?"));
}

TEST_CASE("a metric that is called like a hyper-parameter or a column has one name of its own", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    LastMetrics metrics;
    for (std::uint32_t trial = 0; trial < 2; ++trial)
        study.report(trial, 1, {{"score", 0.5}, {"lr", 100.0 + trial}, {"time", 7.0}});
    for (const auto& record : study.records)
        if (const auto* reported = std::get_if<study::Reported>(&record)) metrics.add(*reported);
    TableRequest request;
    request.more_columns = true;
    const std::string wide = TrialTable(study.tuner, request, false, columns(160)).text(metrics, "small");
    CHECK_THAT(wide, Catch::Contains("not shown: metric.lr, metric.time; --columns"));
    const auto selected = [&](const std::string& filter) {
        TableRequest asked = filtered(filter);
        asked.columns = {"trial", "lr", "metric.lr"};
        return TrialTable(study.tuner, asked, false, columns(80)).text(metrics, "small");
    };
    CHECK_THAT(selected("lr < 50"), Catch::Contains("#0") && Catch::Contains("#1"));
    CHECK_THAT(selected("metric.lr < 50"), Catch::Contains("no trial is selected"));
    CHECK_THAT(selected("metric.lr > 100.5"), Catch::Contains("#1") && !Catch::Contains("#0"));
}

TEST_CASE("chosen columns are all shown; otherwise as many as fit, and the others are named", "[report]") {
    const TwoMetrics two;
    TableRequest chosen;
    chosen.columns = {"trial", "loss/val", "last", "best_it", "reason", "parameter.lr"};
    const std::string wide = two.text(chosen, columns(20));
    CHECK_THAT(wide, Catch::Contains("loss/val") && Catch::Contains("best_it") && Catch::Contains(" lr"));
    CHECK(TrialTable(two.study.tuner, chosen, false, {}).needs_metrics());
    CHECK_THAT(two.mistake({{"trial", "lost"}}), Catch::StartsWith("--columns: 'lost' is no metric"));

    TableRequest usual;
    usual.more_columns = true;
    CHECK(TrialTable(two.study.tuner, usual, false, columns(120)).needs_metrics());
    CHECK_THAT(two.text(usual, columns(120)), Catch::Contains("loss/val") && !Catch::Contains("not shown"));
    CHECK_FALSE(TrialTable(two.study.tuner, usual, false, columns(50)).needs_metrics());
    const std::string narrow = two.text(usual, columns(50));
    CHECK_THAT(narrow, Catch::Contains("not shown: lr, loss/val") && Catch::Contains("--columns"));
    CHECK(widest(narrow) <= 50);

    const StudyByHand half = half_way();
    const std::string table = TrialTable(half.tuner, usual, false, Style{}).text({}, "digits");
    CHECK(table == golden("status-80", table));
    CHECK_FALSE(TrialTable(half.tuner, usual, false, Style{}).needs_metrics()); // it has one metric
    for (std::size_t width = 20; width <= 130; ++width)
        CHECK(widest(TrialTable(half.tuner, usual, false, columns(width)).text({}, "digits")) <= width);
}

} // namespace trial_table_test
