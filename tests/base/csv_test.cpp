// SPDX-License-Identifier: Apache-2.0
#include "base/csv.hpp"

#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

using ranktune::base::CsvReader;

TEST_CASE("a table is read row by row, with quotes, line ends and lines counted", "[base]") {
    const std::string text = "\xEF\xBB\xBFname, b\r\n\r\n\"a, \"\"b\"\"\nc\",\n1,2";
    CsvReader reader(text);
    std::vector<std::string> cells;
    REQUIRE(reader.next(cells));
    CHECK(cells == std::vector<std::string>{"name", "b"});
    CHECK(reader.row_line() == 1);
    REQUIRE(reader.next(cells));
    CHECK(cells == std::vector<std::string>{"a, \"b\"\nc", ""});
    CHECK(reader.row_line() == 3);
    REQUIRE(reader.next(cells));
    CHECK(cells == std::vector<std::string>{"1", "2"});
    CHECK(reader.row_line() == 5);
    CHECK_FALSE(reader.next(cells));
    const std::string open = "a\n\"b";
    CsvReader torn(open);
    REQUIRE(torn.next(cells));
    CHECK_THROWS_AS(static_cast<void>(torn.next(cells)), ranktune::base::FormatError);
    CHECK(torn.row_line() == 2);
}

TEST_CASE("blanks may follow a quoted cell, and nothing else", "[base]") {
    std::vector<std::string> cells;
    const std::string blanks = "\"a\" , \"b\"\t\n\"c\" ,d\r\n";
    CsvReader good(blanks);
    REQUIRE(good.next(cells));
    CHECK(cells == std::vector<std::string>{"a", "\"b\""}); // a cell that begins with a blank is not quoted
    REQUIRE(good.next(cells));
    CHECK(cells == std::vector<std::string>{"c", "d"});
    CHECK_FALSE(good.next(cells));
    const std::string more = "\"a\"b,c\n";
    CsvReader bad(more);
    CHECK_THROWS_AS(static_cast<void>(bad.next(cells)), ranktune::base::FormatError);
}

TEST_CASE("every row has as many cells as the first one", "[base]") {
    std::vector<std::string> cells;
    const std::string text = "a,b\n1,2\n\n3\n";
    CsvReader rows(text);
    REQUIRE(rows.next(cells));
    REQUIRE(rows.next(cells));
    CHECK_THROWS_WITH(rows.next(cells), "the row has 1 cell, and the first line names 2");
    CHECK(rows.row_line() == 4);
}

TEST_CASE("texts keep their blanks, and an empty line of one column is an empty cell", "[base]") {
    const auto rows = [](const std::string& text, std::size_t columns = 0) {
        CsvReader reader(text, CsvReader::Cells::whole, columns);
        std::vector<std::vector<std::string>> all;
        std::vector<std::string> cells;
        while (reader.next(cells)) all.push_back(cells);
        return all;
    };
    using Rows = std::vector<std::vector<std::string>>;
    CHECK(rows("a,b\n x , \ty\r\n\n\"z\" ,\n") == Rows{{"a", "b"}, {" x ", " \ty"}, {"z", ""}});
    CHECK(rows("\nx\n1\n\r\n\n2\n\n\n") == Rows{{"x"}, {"1"}, {""}, {""}, {"2"}}); // none of those at the end
    CHECK(rows("\n2\n", 1) == Rows{{""}, {"2"}});
}
