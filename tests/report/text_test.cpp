// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <vector>

#include "report/screens/text.hpp"
#include "support/catch.hpp"

namespace text_test {

using namespace ranktune;
using namespace ranktune::report;

TEST_CASE("the width of a text is what a terminal gives it", "[report]") {
    CHECK(display_width("") == 0);
    CHECK(display_width("loss") == 4);
    CHECK(display_width("Größe") == 5);
    CHECK(display_width("e\u0301tude") == 5); // e and a combining acute accent
    CHECK(display_width("学習率") == 6);      // East Asian wide
    CHECK(display_width("한글") == 4);        //
    CHECK(display_width("ｌｒ") == 4);        // full width Latin
    CHECK(display_width("\U0001F680") == 2);  // an emoji
    CHECK(display_width("\u200b") == 1);      // zero width space, shown as "?"
    CHECK(pad_right("l\u200br\u202e", 5) == "l?r? ");
    CHECK(display_width("lr \u00b7 0.1") == 8); // the separator of the screens
}

TEST_CASE("bytes that are not UTF-8 take one column each and are never passed on", "[report]") {
    const std::vector<std::string> bad = {"\xff",         "\x80",         "\xc0\xaf",         "\xe4\xb8",
                                          "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80"};
    for (const auto& text : bad) {
        CHECK(display_width(text) == text.size());
        CHECK(printable(text) == std::string(text.size(), '?'));
    }
    CHECK(printable("a\xff"
                    "b") == "a?b");
    CHECK(printable("\x1b[31mred\x7f\n\t") == "?[31mred???");
    CHECK(printable("\u009b") == "?"); // CSI as one character, which terminals execute
}

TEST_CASE("a text is cut at whole characters, and the cut is marked", "[report]") {
    CHECK(fit("momentum", 8) == "momentum");
    CHECK(fit("momentum", 7) == "moment~");
    CHECK(fit("momentum", 1) == "~");
    CHECK(fit("momentum", 0).empty());
    CHECK(fit_ends("cannot write x: no space", 24) == "cannot write x: no space");
    CHECK(fit_ends("cannot write x: no space", 16) == "cannot ~no space");
    CHECK(fit_ends("cannot write x: no space", 3) == "c~e");
    CHECK(fit_ends("cannot", 1) == "~");
    CHECK(fit_ends("cannot", 0).empty());
    CHECK(fit_ends("学習率の初期", 6) == "学~期");
    CHECK(fit("学習率", 6) == "学習率");
    CHECK(fit("学習率", 5) == "学習~");
    CHECK(fit("学習率", 4) == "学~"); // leaves a column free rather than cut a character
    CHECK(fit("e\u0301e\u0301e\u0301", 2) == "e\u0301~");
    CHECK(pad_left("学", 4) == "  学");
    CHECK(pad_right("学", 4) == "学  ");
    CHECK(pad_left("学習率", 4) == " 学~");
    for (std::size_t width = 0; width < 12; ++width) {
        CHECK(display_width(pad_left("a学b習\xff率c", width)) == width);
        CHECK(display_width(pad_right("a学b習\xff率c", width)) == width);
    }
}

TEST_CASE("prose is broken at spaces", "[report]") {
    CHECK(wrap("", 10) == std::vector<std::string>{""});
    CHECK(wrap("one two three", 20) == std::vector<std::string>{"one two three"});
    CHECK(wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
    CHECK(wrap("one two three", 1) == std::vector<std::string>{"one", "two", "three"});
    CHECK(wrap("a-word-that-is-too-long b", 4) == std::vector<std::string>{"a-word-that-is-too-long", "b"});
    CHECK(wrap("学習 率", 4) == std::vector<std::string>{"学習", "率"});
    CHECK(wrap("one  two   three", 5) ==
          std::vector<std::string>{"one", "two", "three"}); // no gap at the end of a line
    CHECK(wrap("one  two", 8) == std::vector<std::string>{"one  two"});
}

TEST_CASE("a path with spaces in it is not broken, and has a line of its own when it is long", "[report]") {
    Style style;
    style.width = 24;
    const std::string path = "/some folder/of studies/digits";
    CHECK(prose("study", unbroken(path) + " (a new one)", style) ==
          "study     /some folder/of studies/digits\n          (a new one)\n");
    CHECK(paragraph("it is in " + unbroken("a b c d") + " and nowhere else", style) ==
          "it is in a b c d and\nnowhere else\n");
    CHECK(unbroken("a\x1fz\n") == "a?z?");
}

TEST_CASE("metrics keep four decimals where those say something", "[report]") {
    CHECK(metric_text(0.97224) == "0.9722");
    CHECK(metric_text(0.0) == "0.0000");
    CHECK(metric_text(-0.5) == "-0.5000");
    CHECK(metric_text(0.01) == "0.0100");
    CHECK(metric_text(0.00999) == "9.990e-03");
    CHECK(metric_text(1.2344e-5) == "1.234e-05");
    CHECK(metric_text(999.9) == "999.9000");
    CHECK(metric_text(1000.0) == "1000.0");
    CHECK(metric_text(123456.78) == "123456.8");
    CHECK(metric_text(1e6) == "1.000e+06");
    CHECK(metric_text(std::numeric_limits<double>::quiet_NaN()) == "-");
    CHECK(metric_text(std::numeric_limits<double>::infinity()) == "inf");
    CHECK(metric_text(-std::numeric_limits<double>::infinity()) == "-inf");
}

TEST_CASE("hyper-parameters in a table are short", "[report]") {
    CHECK(value_text(space::Value(0.0311987)) == "0.0312");
    CHECK(value_text(space::Value(3.2e-5)) == "3.2e-05");
    CHECK(value_text(space::Value(std::int64_t{64})) == "64");
    CHECK(value_text(space::Value(true)) == "true");
    CHECK(value_text(space::Value(std::string("adam"))) == "adam");
    CHECK(value_text(space::Value(std::vector<space::Value>{space::Value(std::int64_t{256}),
                                                            space::Value(std::int64_t{128})})) == "256,128");
    CHECK(value_text(space::Value(std::vector<space::Value>{})) == "[]");
}

TEST_CASE("counts, durations and sizes as people write them", "[report]") {
    CHECK(grouped(0) == "0");
    CHECK(grouped(999) == "999");
    CHECK(grouped(1000) == "1,000");
    CHECK(grouped(48112) == "48,112");
    CHECK(grouped(123456789) == "123,456,789");

    CHECK(short_duration(0.0) == "0.0s");
    CHECK(short_duration(14.24) == "14.2s");
    CHECK(short_duration(59.94) == "59.9s");
    CHECK(short_duration(59.96) == "1m00s"); // never 60.0s
    CHECK(short_duration(72.0) == "1m12s");
    CHECK(short_duration(3599.6) == "1h00m");
    CHECK(short_duration(7500.0) == "2h05m");
    CHECK(short_duration(86399.7) == "1d00h");
    CHECK(short_duration(3.0 * 86400 + 4.5 * 3600) == "3d04h");
    CHECK(short_duration(-1.0) == "-");
    CHECK(short_duration(std::numeric_limits<double>::quiet_NaN()) == "-");

    CHECK(place_text("n1", "") == "host n1");
    CHECK(place_text("n1", "GPU-5ca1") == "GPU-5ca1 of n1");
    CHECK(place_text("n1", "MIG-5ca1") == "MIG-5ca1 of n1");
    CHECK(place_text("n1", "2") == "GPU 2 of n1");
    CHECK(bytes_text(0) == "0 B");
    CHECK(bytes_text(999) == "999 B");
    CHECK(bytes_text(3'140'000) == "3.1 MB");
    CHECK(bytes_text(9'960) == "10 kB");
    CHECK(bytes_text(999'499) == "999 kB");
    CHECK(bytes_text(999'600) == "1.0 MB");
    CHECK(bytes_text(12'000'000'000'000) == "12 TB");
}

TEST_CASE("one is singular, everything else plural", "[report]") {
    CHECK(counted(1, "rank") == "1 rank");
    CHECK(counted(0, "rank") == "0 ranks");
    CHECK(counted(1620, "iteration") == "1,620 iterations");
    CHECK(plural(1, "byte") == "byte");
}

TEST_CASE("what a program wrote is shown to a terminal without its control characters, and none is lost", "[report]") {
    CHECK(escaped("10 %\r\x1b[31mred\x1b[0m\ttab\nnext") == "10 %\\x0d\\x1b[31mred\\x1b[0m\ttab\nnext");
    CHECK(escaped("Größe\x7f\xff") == "Größe\\x7f\\xff");
    CHECK(escaped("\xc2\x9b") == "\\xc2\\x9b"); // CSI as one character
    CHECK(first_line("one\ntwo\n") == "one");
    CHECK(first_line("one") == "one");
}

TEST_CASE("ranks are written as ranges", "[report]") {
    const auto text = [](std::initializer_list<std::uint32_t> ranks) {
        std::vector<study::Rank> list;
        for (const auto rank : ranks) list.emplace_back(rank);
        return ranks_text(list);
    };
    CHECK(text({}) == "-");
    CHECK(text({3}) == "w3");
    CHECK(text({3, 4}) == "w3-4");
    CHECK(text({1, 5, 6}) == "w1,5-6");
    CHECK(text({1, 3, 5}) == "w1,3,5");
}

TEST_CASE("colour and other characters than ASCII only where the terminal has them", "[report]") {
    Style style;
    CHECK(paint("x", Tone::bad, style) == "x");
    style.colour = true;
    CHECK(paint("x", Tone::bad, style) == "\x1b[31mx\x1b[0m");
    CHECK(paint("x", Tone::good, style) == "\x1b[32mx\x1b[0m");
    CHECK(paint("x", Tone::plain, style) == "x");
    CHECK(encoded("a\u00b7学e\u0301\xff", style) == "a\u00b7学e\u0301\xff");
    style.utf8 = false;
    CHECK(encoded("a\u00b7学e\u0301\xff", style) == "a???e?");
    CHECK(style.dot() == " - ");
}

} // namespace text_test
