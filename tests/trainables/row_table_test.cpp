// SPDX-License-Identifier: Apache-2.0
// Tables whose rows are configurations.
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "support/catch.hpp"

#include "ranktune/base/error.hpp"
#include "trainables/program/row_table.hpp"

using namespace ranktune;
using Words = std::vector<std::string>;

namespace {

class TableFile {
  public:
    explicit TableFile(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
    ~TableFile() { std::filesystem::remove(path_); }
    TableFile(const TableFile&) = delete;
    TableFile& operator=(const TableFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    std::string path_ = std::filesystem::temp_directory_path() / ("rows-" + std::to_string(getpid()) + ".csv");
};

} // namespace

TEST_CASE("a row is read by its number: quotes, line ends, UTF-8, empty cells") {
    const TableFile file("\xEF\xBB\xBFx,name\r\n1,\"a, \"\"b\"\"\"\r\n\r\n0.10,\"two\nlines\"\n,\u00fcn\u00ef");
    const trainables::RowTable table(file.path());
    CHECK(table.columns() == Words{"x", "name"});
    REQUIRE(table.rows() == 3);
    CHECK(table.cells(2) == Words{"", "\u00fcn\u00ef"});
    CHECK(table.cells(0) == Words{"1", "a, \"b\""});
    CHECK(table.cells(1) == Words{"0.10", "two\nlines"});
    CHECK_THROWS_WITH(table.cells(3), Catch::Contains("has 3, from 0 on"));
}

TEST_CASE("an empty line of one column is a row, and cells keep their blanks") {
    const TableFile file("x\n a \n\nb\n\n");
    const trainables::RowTable table(file.path());
    REQUIRE(table.rows() == 3);
    CHECK(table.cells(0) == Words{" a "});
    CHECK(table.cells(1) == Words{""});
    CHECK(table.cells(2) == Words{"b"});
}

TEST_CASE("the cells replace the number of the row, and stand beside other hyper-parameters") {
    const TableFile file("x,row\n1,first\n2,second\n");
    const trainables::RowTable table(file.path());
    space::Configuration configuration;
    configuration.set("row", space::Value(std::int64_t{1}));
    configuration.set("seed", space::Value(std::int64_t{7}));
    const auto all = trainables::with_row(configuration, table);
    CHECK(all.size() == 3);
    CHECK(all.find("x")->as_string() == "2");
    CHECK(all.find("row")->as_string() == "second");
    CHECK(all.find("seed")->as_int() == 7);
}

TEST_CASE("damaged tables are refused with file and line") {
    const auto message = [](const std::string& text) -> std::string {
        const TableFile file(text);
        try {
            const trainables::RowTable table(file.path());
        } catch (const base::FormatError& error) {
            const std::string what = error.what();
            return what.substr(what.find(".csv:") + 5);
        }
        return "accepted";
    };
    CHECK_THAT(message(""), Catch::Contains("the file is empty"));
    CHECK_THAT(message("x,y\n"), Catch::Contains("there are no rows"));
    CHECK_THAT(message("x,y\n1,2\n\n3\n"), Catch::Contains("4: the row has 1 cell, and the first line names 2"));
    CHECK_THAT(message("x, x\n1,2\n3,4\n"), Catch::Contains("1: two columns are called 'x'"));
    CHECK_THAT(message("x.1,x\n1,2\n"), Catch::Contains("the column 'x.1' would be a part of the column 'x'"));
    CHECK_THAT(message("x,\n1,2\n"), Catch::Contains("a column has no name"));
    CHECK_THAT(message("x\n\"1\n"), Catch::Contains("2: a quoted cell does not end"));
    CHECK_THROWS_AS(trainables::RowTable("/nowhere/rows.csv"), base::IoError);
}
