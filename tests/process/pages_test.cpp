// SPDX-License-Identifier: Apache-2.0
// The pages that messages name exist.
#include "process/pages.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/files.hpp"

namespace pages_test {

using namespace ranktune::process;
using ranktune::process::documentation_page;

namespace {

namespace fs = std::filesystem;

void touch(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "text\n";
}

} // namespace

TEST_CASE("a page is found beside the library, in an installation and in a clone", "[process]") {
    const ranktune::testing::TemporaryDirectory directory;
    const fs::path root = fs::canonical(directory.path());
    const fs::path installed = root / "apps/ranktune/0.1.0";
    touch(installed / "lib/x86_64-linux-gnu/libranktune.so.0.1.0");
    touch(installed / "share/doc/ranktune/docs/guides/programs.md");
    const std::string page = (installed / "share/doc/ranktune/docs/guides/programs.md").string();
    CHECK(documentation_page("guides/programs.md", installed / "lib/x86_64-linux-gnu/libranktune.so.0.1.0") == page);
    // By a link, as `ldconfig` makes them, and as centres put programs on the PATH.
    fs::create_directories(root / "bin");
    fs::create_symlink(installed / "lib/x86_64-linux-gnu/libranktune.so.0.1.0", root / "bin/libranktune.so");
    CHECK(documentation_page("guides/programs.md", root / "bin/libranktune.so") == page);

    touch(root / "clone/build/release/src/cli/libranktune.so");
    touch(root / "clone/docs/guides/programs.md");
    CHECK(documentation_page("guides/programs.md", root / "clone/build/release/src/cli/libranktune.so") ==
          (root / "clone/docs/guides/programs.md").string());
}

TEST_CASE("for a page that is not installed, the name of its source is given", "[process]") {
    const ranktune::testing::TemporaryDirectory directory;
    touch(directory.path() + "/bin/ranktune");
    const std::string elsewhere = "docs/guides/none.txt of ranktune's sources";
    CHECK(documentation_page("guides/none.txt", directory.path() + "/bin/ranktune") == elsewhere);
    CHECK(documentation_page("guides/none.txt", "/nowhere/at/all") == elsewhere);
    CHECK(documentation_page("guides/none.txt") == elsewhere);
}

TEST_CASE("this build finds the pages of its own sources", "[process]") {
    CHECK(fs::is_regular_file(documentation_page("guides/programs.md")));
}

} // namespace pages_test
