// SPDX-License-Identifier: Apache-2.0
#include "slurm/lists.hpp"
#include "support/catch.hpp"

namespace lists_test {

using namespace ranktune::slurm;
using Names = std::vector<std::string>;
using Counts = std::vector<std::uint32_t>;

TEST_CASE("A list of hosts is expanded in its order", "[slurm]") {
    CHECK(expand_hostlist("n1") == Names{"n1"});
    CHECK(expand_hostlist("n1,login-2") == Names{"n1", "login-2"});
    CHECK(expand_hostlist("n[1-3]") == Names{"n1", "n2", "n3"});
    CHECK(expand_hostlist("n[3,1-2],m") == Names{"n3", "n1", "n2", "m"});
    CHECK(expand_hostlist("nid[000998-001001]") == Names{"nid000998", "nid000999", "nid001000", "nid001001"});
    CHECK(expand_hostlist("n[09-11].site.org") == Names{"n09.site.org", "n10.site.org", "n11.site.org"});
    CHECK(expand_hostlist("r[1-2]n[7-8]") == Names{"r1n7", "r1n8", "r2n7", "r2n8"});
}

TEST_CASE("A text that is not a list of hosts gives no value", "[slurm]") {
    for (const char* text : {"", ",", "n[", "n]", "n[1-", "n[]", "n[3-1]", "n[a-b]", "n[1-2", "n[[1]]", "n[1-9999999]",
                             "a[1-1000]b[1-1001]"}) {
        CAPTURE(text);
        CHECK_FALSE(expand_hostlist(text));
    }
}

TEST_CASE("Counts by node are expanded", "[slurm]") {
    CHECK(expand_counts("5") == Counts{5});
    CHECK(expand_counts("5,4(x2)") == Counts{5, 4, 4});
    CHECK(expand_counts("16(x3)") == Counts{16, 16, 16});
    for (const char* text : {"", "a", "4(x", "4(x2", "4x2", "4(x9999999)", "-1"}) {
        CAPTURE(text);
        CHECK_FALSE(expand_counts(text));
    }
}

TEST_CASE("Lists of devices keep names and expand ranges", "[slurm]") {
    CHECK(expand_devices("") == Names{});
    CHECK(expand_devices("0,2, 5") == Names{"0", "2", "5"});
    CHECK(expand_devices("0-3") == Names{"0", "1", "2", "3"});
    CHECK(expand_devices("GPU-5ca1-e,MIG-GPU-1/2/3") == Names{"GPU-5ca1-e", "MIG-GPU-1/2/3"});
    CHECK(expand_devices("0-99999999") == Names{"0-99999999"});
}

} // namespace lists_test
