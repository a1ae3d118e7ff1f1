// SPDX-License-Identifier: Apache-2.0
// What others wrote, as screens show it.
#include "ranktune/base/utf8.hpp"

#include "support/catch.hpp"

using namespace ranktune::base;

TEST_CASE("what a screen obeys, or shows nothing for, is shown", "[base]") {
    struct Case {
        std::string_view text;
        std::string_view bytes;
    };
    for (const Case& one :
         {Case{"\x1b", "\\x1b"}, Case{"\x7f", "\\x7f"}, Case{"\u0085", "\\xc2\\x85"},
          Case{"\u009b", "\\xc2\\x9b"}, // CSI
          Case{"\u00ad", "\\xc2\\xad"}, Case{"\u061c", "\\xd8\\x9c"}, Case{"\u200b", "\\xe2\\x80\\x8b"},
          Case{"\u200d", "\\xe2\\x80\\x8d"}, Case{"\u200e", "\\xe2\\x80\\x8e"}, Case{"\u2028", "\\xe2\\x80\\xa8"},
          Case{"\u202a", "\\xe2\\x80\\xaa"}, Case{"\u202e", "\\xe2\\x80\\xae"}, Case{"\u2066", "\\xe2\\x81\\xa6"},
          Case{"\u2069", "\\xe2\\x81\\xa9"}, Case{"\u3164", "\\xe3\\x85\\xa4"}, Case{"\ufeff", "\\xef\\xbb\\xbf"},
          Case{"\U000e0041", "\\xf3\\xa0\\x81\\x81"}}) {
        CHECK(escaped(one.text) == one.bytes);
        CHECK(printable(one.text) == "?");
        CHECK(printable("a" + std::string(one.text) + "b") == "a?b");
    }
    CHECK(escaped("\xff\xe2\x80") == "\\xff\\xe2\\x80");
    CHECK(escaped("a\tb\n") == "a\tb\n");
    CHECK(printable("a\tb\n") == "a?b?");
    for (const std::string_view text : {"Größe", "e\u0301", "学习率", "\U0001F680", "\u2764\ufe0f", "नमस्ते", "שלום",
                                        "a\u00a0b", "\ufffd", "\U0002f800"}) {
        CHECK(escaped(text) == text);
        CHECK(printable(text) == text);
    }
}

TEST_CASE("characters are escaped as in TOML", "[base]") {
    CHECK(toml_escape(0x1B) == "\\u001b");
    CHECK(toml_escape(0x202E) == "\\u202e");
    CHECK(toml_escape(0xE0001) == "\\U000e0001");
}
