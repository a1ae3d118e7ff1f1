// SPDX-License-Identifier: Apache-2.0
// [data]: files by name.
#include "ranktune/study/change.hpp"
#include "ranktune/study/command_template.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace data_test {

using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

constexpr const char* text_file = "text = { path = \"../c.bin\", dtype = \"uint16\", tokens = 2048 }\n";

std::string with_data(const std::string& data) {
    Parts parts = free_parts();
    parts.rest = "[data]\n" + data;
    return parts.text();
}

std::string with_command(const std::string& command, const std::string& data, const std::string& space = {}) {
    Parts parts;
    parts.trainable = "command = \"" + command + "\"\n";
    parts.space += space;
    parts.rest = "[data]\n" + data;
    return parts.text();
}

std::string mistake_of(const std::string& text, const PathChecks& paths = {}, const Known& names = known()) {
    try {
        static_cast<void>(parse_study(text, "/studies/s.toml", {}, names, paths));
        return {};
    } catch (const StudyFileError& error) {
        const Mistake& first = error.mistakes().front();
        return std::to_string(first.line) + ":" + std::to_string(first.column) + " " + first.key + ": " + first.message;
    }
}

/// A study whose files have this content.
StudySpec holding(const std::string& data, const std::string& content) {
    PathChecks paths;
    paths.content = [content](const std::string&) { return content; };
    return parse_study(with_data(data), "/studies/s.toml", {}, known(), paths);
}

} // namespace

TEST_CASE("[data] has files by names that the user chooses, with options for their format", "[study]") {
    const StudySpec spec = parse(with_data("train = \"a/train.h5\"\n" + std::string(text_file) +
                                           "raw = { path = \"/r\", dtype = \"float32\", shape = [28, 28] }\n"
                                           "part = { path = \"p.h5\", group = \"train\" }\n"));
    REQUIRE(spec.data.size() == 4);
    CHECK(spec.data[0] == DataFile{.name = "train", .path = "/studies/a/train.h5"});
    CHECK(spec.data[1] == DataFile{.name = "text", .path = "/c.bin", .dtype = "uint16", .tokens = 2048});
    CHECK(spec.data[2] == DataFile{.name = "raw", .path = "/r", .dtype = "float32", .shape = {28, 28}});
    CHECK(spec.data[3] == DataFile{.name = "part", .path = "/studies/p.h5", .group = "train"});
    CHECK(spec.data_file("part") == &spec.data[3]);
    CHECK(spec.data_file("path") == nullptr);
    CHECK(parse_resolved(resolved_toml(spec)).data == spec.data);
    CHECK(parse(resolved_toml(spec)).data == spec.data);
}

TEST_CASE("mistakes in [data] say where they are and what to write", "[study]") {
    const std::string forms =
        "needs a path, as in \"train.h5\", a table, as in { path = \"train.bin\", dtype = \"uint16\", tokens = 2048 }, "
        "or a mixture, as in [{ source = \"web\", weight = 3 }, { source = \"code\" }], not ";
    CHECK(mistake_of(with_data("train = 1\n")) == "12:9 data.train: " + forms + "an integer");
    CHECK(mistake_of(with_data("train = \"\"\n")) == "12:9 data.train: " + forms + "\"\"");
    CHECK_THAT(mistake_of(with_data("train = { dtype = \"uint8\" }\n")), Catch::Contains("data.train.path: missing"));
    CHECK(mistake_of(with_data("train = { path = \"t\", token = 2 }\n")) ==
          "12:23 data.train.token: unknown key; did you mean 'tokens'?");
    CHECK_THAT(mistake_of(with_data("train = { path = \"t\", tokens = 0 }\n")), Catch::Contains("data.train.tokens"));
    CHECK_THAT(mistake_of(with_data("train = { path = \"t\", shape = [2, 0] }\n")),
               Catch::Contains("data.train.shape: needs the extents of a sample, integers >= 1, as in [28, 28]"));
    CHECK_THAT(mistake_of(with_data("\"a.b\" = \"t\"\n")), Catch::Contains("a name has letters, digits, '_' and '-'"));
    CHECK(mistake_of("data = 3\n" + free_parts().text()) == "1:8 data: needs a table, not an integer");
}

TEST_CASE("[data] says whether trials read copies, and where these lie; a later start may say something else",
          "[study]") {
    const std::string where = "stage = true\ndirectory = \"/local\"\nmust_fit = true\n";
    const StudySpec spec = parse(with_data(where + "train = { path = \"t.csv\", decode = true }\n"));
    REQUIRE(spec.data.size() == 1);
    CHECK(spec.data[0].decode);
    CHECK(spec.staging.stage);
    CHECK(spec.staging.directory == "/local");
    CHECK(spec.staging.must_fit);
    const StudySpec again = parse_resolved(resolved_toml(spec));
    CHECK(again.data == spec.data);
    CHECK(resolved_toml(again) == resolved_toml(spec));
    CHECK_FALSE(parse(with_data("train = \"t\"\n")).staging.stage);

    for (const KeyChange& change :
         differences(holding(where + "train = \"t\"\n", "5"), holding("train = \"t\"\n", "5")))
        CHECK(change.may_change);
    CHECK(mistake_of(with_data("directory = \"local\"\nstage = false\ntrain = \"t\"\n")) ==
          "12:13 data.directory: needs an absolute path, as in \"/local/scratch\", not \"local\"");
    CHECK_THAT(mistake_of(with_data("train = { path = \"t.csv\", decode = true }\n")),
               Catch::Contains("data.train.decode: is done while a file is copied: set data.stage = true"));
    CHECK_THAT(mistake_of(with_data("stage = true\ntrain = { path = \"t.npy\", decode = true }\n")),
               Catch::Contains("data.train.decode: makes plain rows of tables (.csv) and of HDF5"));
    CHECK_THAT(mistake_of(with_data("stage = \"t\"\n")), Catch::Contains("data.stage: needs"));
    CHECK(mistake_of(with_data("must_fit = true\ntrain = \"t\"\n")) ==
          "12:12 data.must_fit: is about copies; they need stage = true");
    CHECK(mistake_of(with_data("directory = \"/local\"\ntrain = \"t\"\n")) ==
          "12:13 data.directory: is about copies; they need stage = true");
    CHECK_THAT(mistake_of(with_data("stage = true\n")),
               Catch::Contains("12:9 data.stage: copies the files of [data], and there is none: name one, as in"));
    const StudySpec off = parse(with_data("stage = false\ndirectory = \"/local\"\nmust_fit = true\ntrain = \"t\"\n"));
    CHECK(parse_resolved(resolved_toml(off)).staging.directory == "/local");
}

TEST_CASE("entries of [data] say in which order their samples are trained, and what is mixed", "[study]") {
    const std::string files =
        "web = { path = \"w.npy\", shuffle = \"none\", drop_last = true }\n"
        "code = { path = \"c.h5\", shuffle = \"lanes\", shuffle_memory = \"2GiB\" }\n";
    const std::string mix = "mix = [{ source = \"web\", weight = 3 }, { source = \"code\", from = 5000 }]\n";
    const StudySpec spec = parse(with_data(mix + files));
    REQUIRE(spec.data.size() == 3);
    CHECK(spec.data[0] == DataFile{.name = "mix", .parts = {{"web", 3.0, 0}, {"code", 1.0, 5000}}});
    CHECK(spec.data[1] == DataFile{.name = "web", .path = "/studies/w.npy", .shuffle = "none", .drop_last = true});
    CHECK(spec.data[2] ==
          DataFile{
              .name = "code", .path = "/studies/c.h5", .shuffle = "lanes", .shuffle_memory = std::uint64_t{2} << 30U});
    CHECK(parse_resolved(resolved_toml(spec)).data == spec.data);
    CHECK(parse(with_data(files + "[[data.mix]]\nsource = \"web\"\nweight = 3\n[[data.mix]]\nsource = "
                                  "\"code\"\nfrom = 5000\n"))
              .data_file("mix")
              ->parts == spec.data[0].parts);
    StudySpec heavier = spec;
    heavier.data[0].parts[0].weight = 4.0;
    const auto changes = differences(spec, heavier);
    REQUIRE(changes.size() == 1);
    CHECK(changes.front().key == "data.mix");
    CHECK_FALSE(changes.front().may_change);

    CHECK_THAT(mistake_of(with_data(files + "mix = [{ source = \"wbe\" }]\n")),
               Catch::Contains("data.mix: has the source \"wbe\", which is no file of [data]; did you mean 'web'?"));
    CHECK_THAT(mistake_of(with_data(files + mix + "all = [{ source = \"mix\" }]\n")),
               Catch::Contains("data.all: has the source \"mix\", which is no file"));
    CHECK_THAT(mistake_of(with_data(files + "mix = [{ source = \"web\", from = 1 }]\n")),
               Catch::Contains("data.mix: needs a source that takes part from position 0 on"));
    CHECK_THAT(mistake_of(with_data(files + "mix = [{ source = \"web\", weight = 0 }]\n")),
               Catch::Contains("data.mix.weight: needs a number above 0"));
    CHECK_THAT(mistake_of(with_data(files + "mix = [{ weight = 1 }]\n")), Catch::Contains("data.mix.source: missing"));
    CHECK_THAT(mistake_of(with_data("w = { path = \"w\", shuffle = \"lane\" }\n")), Catch::Contains("data.w.shuffle"));
    CHECK_THAT(mistake_of(with_data("w = { path = \"w\", shuffle_memory = \"2Gi\" }\n")),
               Catch::Contains("data.w.shuffle_memory: needs a number of bytes, or text with one of the units KB"));
    CHECK_THAT(mistake_of(with_data("w = { path = \"w\", shuffle = \"none\", shuffle_memory = 9 }\n")),
               Catch::Contains("data.w.shuffle_memory: only goes with shuffle = \"lanes\""));
    CHECK_THAT(mistake_of(with_command("p {data.mix} {lr}", files + mix)),
               Catch::Contains("unknown placeholder {data.mix}"));
}

TEST_CASE("files of [data] are looked at before anything starts, with options by who opens them", "[study]") {
    PathChecks paths;
    std::vector<std::string> opened;
    paths.file = [](const std::string& path) {
        return path == "/studies/no" ? "there is no file \"/studies/no\"" : "";
    };
    paths.data = [&opened](const DataFile& file) {
        opened.push_back(file.name);
        return file.dtype == "int99" ? "dtype is unknown" : "";
    };
    CHECK(mistake_of(with_data("train = \"no\"\n"), paths) == "12:9 data.train: there is no file \"/studies/no\"");
    CHECK(mistake_of(with_data("a = \"a\"\nb = { path = \"b\", dtype = \"int99\" }\n"), paths) ==
          "13:5 data.b: dtype is unknown");
    CHECK(opened == std::vector<std::string>{"b"});
}

TEST_CASE("{data.NAME} is the path of a file of [data]", "[study]") {
    const StudySpec spec = parse(with_command("p --text={data.text} {lr}", text_file));
    CHECK(trial_command_text(spec, ranktune::space::Configuration({{"lr", 0.5}}), ranktune::base::TrialId{0}) ==
          "p --text=/c.bin 0.5");
    CHECK_THAT(mistake_of(with_command("p {data.texts} {lr}", text_file)),
               Catch::Contains("unknown placeholder {data.texts}; did you mean 'data.text'?"));
    CHECK_THAT(mistake_of(with_command("p {data.text}", text_file, "data.text = [1, 2]\n")),
               Catch::Contains("{data.text} means something else than the hyper-parameter of that name"));
}

TEST_CASE("an option that reads a file by rules of its own takes the path of a file of [data] alone", "[study]") {
    PathChecks paths;
    paths.file = [](const std::string&) { return ""; };
    Known reading = known();
    reading.trainables.front().options.front().check = [](const std::string&) { return ""; };
    for (const char* keys : {"dtype = \"uint8\"", "shape = [2]", "tokens = 2", "group = \"g\"", "shuffle = \"full\"",
                             "shuffle_memory = \"2GiB\"", "drop_last = true"}) {
        Parts parts;
        parts.trainable = "builtin = \"mlp\"\ndata = \"{data.train}\"\n";
        parts.rest = "[data]\ntrain = { path = \"d.h5\", " + std::string(keys) + " }\n";
        CHECK(mistake_of(parts.text(), paths).empty());
        const std::string key = std::string(keys).substr(0, std::string(keys).find(' '));
        CHECK(mistake_of(parts.text(), paths, reading) ==
              "9:8 trainable.data: stands for the path of data.train alone; remove `" + key + "` there");
    }
}

TEST_CASE("a file of [data] may move if its content is the same, and files may be added", "[study]") {
    const std::string train = "train = \"old.h5\"\n";
    StudySpec now = holding(train, "5 bytes");
    CHECK(now.data[0].content == "5 bytes");
    CHECK_THAT(resolved_toml(now), Catch::Contains("[inputs]\n\"data.train\" = \"5 bytes\"\n"));
    CHECK(parse_resolved(resolved_toml(now)).data == now.data);

    const auto other = differences(now, holding(train, "6 bytes"));
    CHECK(other == std::vector<KeyChange>{{"inputs.\"data.train\"", "\"5 bytes\"", "\"6 bytes\"", false}});
    for (const KeyChange& change : differences(now, holding("train = \"new.h5\"\n", "6 bytes")))
        CHECK_FALSE(change.may_change);
    for (const KeyChange& change :
         differences(now, holding("train = { path = \"old.h5\", group = \"g\" }\n", "5 bytes")))
        CHECK_FALSE(change.may_change);
    for (const KeyChange& change : differences(now, holding("other = \"old.h5\"\n", "5 bytes")))
        if (change.key == "data.train") CHECK_FALSE(change.may_change);

    const StudySpec moved = holding("train = \"new.h5\"\nextra = \"e\"\n", "5 bytes");
    const auto changes = differences(now, moved);
    REQUIRE(changes.size() == 3);
    for (const KeyChange& change : changes) CHECK(change.may_change);
    CHECK_FALSE(changes_what_is_decided(changes));
    take_over(now, moved);
    CHECK(now.data == moved.data);

    // What is known does not become unknown.
    for (const KeyChange& change : differences(now, holding("train = \"folder\"\n", "")))
        CHECK_FALSE(change.may_change);

    // A folder: its content is unknown, and may be another one elsewhere.
    const auto folder = differences(holding("images = \"a\"\n", ""), holding("images = \"b\"\n", ""));
    CHECK(folder == std::vector<KeyChange>{{"data.images", "\"/studies/a\"", "\"/studies/b\"", false}});
}

} // namespace data_test
