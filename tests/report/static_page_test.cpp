// SPDX-License-Identifier: Apache-2.0
#include "report/page/page.hpp"

#include <sstream>

#include "support/catch.hpp"
#include "view_by_hand.hpp"

namespace static_page_test {

using namespace ranktune;
using namespace ranktune::report;
using namespace ranktune::report::testing;
using Catch::Matchers::Contains;

namespace {

PageStudy played() {
    StudyByHand study(small_study(9));
    study.began(2);
    study.play_out(rising);
    return {view_of(study), "small", "finished, exit 0"};
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

} // namespace

TEST_CASE("text in HTML cannot become markup", "[report]") {
    CHECK(html("a < b & \"c\" > 'd'") == "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
    CHECK(html(std::string("\xff")) == "\\xff");
    CHECK(html("größer") == "größer");
}

TEST_CASE("the static part has the best result, pictures and the trials", "[report]") {
    const PageStudy study = played();
    const std::string text = static_page({&study, 1}, false);
    CHECK_THAT(text, Contains("<h1>small</h1>") && Contains("Best result") && Contains("Learning curves") &&
                         Contains("Rungs") && Contains("How it ran"));
    CHECK(count(text, "<svg") == 2);
    CHECK(count(text, "class=\"best\"") == 2); // the best value so far, and the best curve
    CHECK_THAT(text, !Contains("built without d3"));
    CHECK_THAT(static_page({&study, 1}, true), Contains("built without d3"));
    // A table row for each of six trials.
    const std::string trials = text.substr(text.find("<h2>Trials</h2>"));
    for (int i = 0; i < 6; ++i) CHECK_THAT(trials, Contains("<td class=\"text\">#" + std::to_string(i) + "</td>"));
}

TEST_CASE("the static part says whose weights there are, and what failed, by its message", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    study.report(0, 1, 0.5);
    study.over(0, study::AttemptOutcome::failed, {"lr = 0.1 is <bad>"});
    study.over(1, study::AttemptOutcome::failed, {"lr = 0.2 is <bad>"});
    PageStudy page{view_of(study), "small", "run by pid 1 on n0"};
    CHECK_THAT(
        static_page({&page, 1}, false),
        Contains("Failed: #0 #1: lr = 0.1 is &lt;bad&gt; (the others with other values)") && !Contains("weights of"));
    page.view.by_mean = "#1  score 0.4 +- 0.1, by a model of 60 results";
    CHECK_THAT(static_page({&page, 1}, false),
               Contains("Best by mean: #1  score 0.4 +- 0.1, by a model of 60 results."));
    page.view.other_weights = "weights of iteration 3 (0.25)";
    CHECK_THAT(static_page({&page, 1}, false), Contains("at iteration 1 of 9; weights of iteration 3 (0.25)"));
}

TEST_CASE("a study without a value has a static part, too", "[report]") {
    StudyByHand study(small_study(9));
    study.began(2);
    const PageStudy page{view_of(study), "small", "run by pid 1 on n0"};
    const std::string text = static_page({&page, 1}, false);
    CHECK_THAT(text, Contains("No trial has reported a finite score") && Contains("Not ended"));
    CHECK(count(text, "<svg") == 0);
}

TEST_CASE("a page is one document with its data, and every place in it is filled", "[report]") {
    PageStudy study = played();
    study.view.name = "<b>bold</b>";
    std::ostringstream out;
    write_page({&study, 1}, "2026-11-20T00:00:00Z", out);
    const std::string page = out.str();
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK_THAT(page, Contains("<title>&lt;b&gt;bold&lt;/b&gt;</title>") && !Contains("<b>bold</b>"));
    CHECK(count(page, "</html>") == 1);
    for (const char* place :
         {"@TITLE@", "@STATIC@", "@DATA@", "@STYLE@", "@SCRIPTS@", "@SCRIPT_HASHES@", "@STYLE_HASH@"})
        CHECK_THAT(page, !Contains(place));
    CHECK_THAT(page, Contains("Content-Security-Policy") && Contains("default-src 'none'"));
    CHECK_THAT(page, !Contains("src=\"http") && !Contains("href=\"http"));
}

TEST_CASE("another page may have the style, and nothing else", "[report]") {
    const std::string style = page_style();
    CHECK_THAT(style, Contains("default-src 'none'; style-src 'sha256-") && Contains("--paper:"));
    CHECK(style.ends_with("</style>\n"));
    CHECK(count(style, "<") == 3); // meta, style and its end
}

} // namespace static_page_test
