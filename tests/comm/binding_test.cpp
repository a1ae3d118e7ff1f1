// SPDX-License-Identifier: Apache-2.0
// Core binding for various node topologies and launchers.
#include "comm/topology/binding.hpp"

#include <set>

#include "ranktune/study/schema.hpp"
#include "support/catch.hpp"

namespace binding_test {

using namespace ranktune::comm;

namespace {

/// `domains` with `cores` each, of `threads` hardware threads, numbered as by Linux: first one thread of every core.
Machine machine(std::uint32_t domains, std::uint32_t cores, std::uint32_t threads = 1) {
    Machine result;
    for (std::uint32_t c = 0; c < domains * cores; ++c) {
        Core core{{}, c / cores};
        for (std::uint32_t t = 0; t < threads; ++t) core.cpus.push_back(c + t * domains * cores);
        result.cores.push_back(core);
    }
    return result;
}

std::vector<std::string> texts(const NodeBinding& binding) {
    std::vector<std::string> result;
    for (const CpuSet& cpus : binding.cpus) result.push_back(cpu_text(cpus));
    return result;
}
using Texts = std::vector<std::string>;

std::vector<CpuSet> all(std::size_t ranks, const std::string& cpus) {
    return std::vector<CpuSet>(ranks, cpus_of(cpus));
}

} // namespace

TEST_CASE("ranks that share a node split its cores, and the head gets one", "[comm]") {
    const auto binding = bind_node(all(3, "0-7"), 0, machine(1, 8), 1);
    CHECK(texts(binding) == Texts{"0", "1-3", "4-7"});
    CHECK(binding.words == Texts{"8 cores split: 1 for the head, 7 for 2 workers"});
    CHECK(texts(bind_node(all(2, "0-1"), 0, machine(1, 2), 1)) == Texts{"0", "1"});
    CHECK(texts(bind_node(all(5, "0-4"), 0, machine(1, 5), 1)) == Texts{"0", "1", "2", "3", "4"});
}

TEST_CASE("the head stays unbound where its workers need every core", "[comm]") {
    const auto full = bind_node(all(3, "0-3"), 0, machine(1, 4), 2);
    CHECK(texts(full) == Texts{"", "0-1", "2-3"});
    CHECK(full.words == Texts{"4 cores split among 2 workers, who share them with the head"});
    CHECK(texts(bind_node(all(5, "0-3"), 0, machine(1, 4), 1)) == Texts{"", "0", "1", "2", "3"});
}

TEST_CASE("a node without the head is split among its workers", "[comm]") {
    const auto binding = bind_node(all(4, "0-7"), std::nullopt, machine(1, 8), 2);
    CHECK(texts(binding) == Texts{"0-1", "2-3", "4-5", "6-7"});
    CHECK(binding.words == Texts{"8 cores split among 4 workers"});
}

TEST_CASE("the hardware threads of a core stay together", "[comm]") {
    CHECK(texts(bind_node(all(3, "0-7"), 0, machine(1, 4, 2), 1)) == Texts{"0,4", "1,5", "2-3,6-7"});
    // Two threads of a core satisfy two cpus.
    CHECK(texts(bind_node(all(2, "0-3"), std::nullopt, machine(1, 2, 2), 2)) == Texts{"0,2", "1,3"});
    // One thread of each core was granted.
    CHECK(texts(bind_node(all(2, "0-3"), std::nullopt, machine(1, 4, 2), 1)) == Texts{"0-1", "2-3"});
}

TEST_CASE("workers stay inside NUMA domains unless they would get too few cores", "[comm]") {
    // The head takes a core of the first domain; no share crosses the domain border at 8.
    CHECK(texts(bind_node(all(5, "0-15"), 0, machine(2, 8), 3)) == Texts{"0", "1-3", "4-7", "8-11", "12-15"});
    CHECK(texts(bind_node(all(4, "0-15"), 0, machine(2, 8), 1)) == Texts{"0", "1-7", "8-11", "12-15"});
    // Five cores for each need shares across the border.
    CHECK(texts(bind_node(all(4, "0-15"), 0, machine(2, 8), 5)) == Texts{"0", "1-5", "6-10", "11-15"});
    // A single worker gets both domains.
    CHECK(texts(bind_node(all(2, "0-15"), 0, machine(2, 8), 1)) == Texts{"0", "1-15"});
}

TEST_CASE("only granted processors are given out", "[comm]") {
    CHECK(texts(bind_node(all(3, "4-6,12"), 0, machine(2, 8), 1)) == Texts{"4", "5-6", "12"});
}

TEST_CASE("ranks bound by the launcher stay as they are", "[comm]") {
    const auto binding = bind_node({{0}, {1}, {2, 3}}, 0, machine(1, 4), 1);
    CHECK(texts(binding) == Texts{"", "", ""});
    CHECK(binding.words == Texts{"3 ranks bound by the launcher"});
    CHECK(bind_node({cpus_of("0-7")}, std::nullopt, machine(1, 8), 1).words == Texts{"alone on the node"});
}

TEST_CASE("ranks that were bound to a socket together split it", "[comm]") {
    const std::vector<CpuSet> by_socket{cpus_of("0-3"), cpus_of("4-7"), cpus_of("0-3"), cpus_of("4-7")};
    const auto binding = bind_node(by_socket, 0, machine(2, 4), 1);
    CHECK(texts(binding) == Texts{"0", "4-5", "1-3", "6-7"});
    CHECK(binding.words == Texts{"4 cores split: 1 for the head, 3 for 1 worker", "4 cores split among 2 workers"});
}

TEST_CASE("nobody is bound where cores do not suffice, and the log says why", "[comm]") {
    const auto crowded = bind_node(all(5, "0-1"), 0, machine(1, 2), 1);
    CHECK(texts(crowded) == Texts(5));
    CHECK(crowded.words == Texts{"not bound: 2 cores for 4 workers with 1 cpu each, and the head"});
    // A share would be smaller than what the study asks for.
    const auto hungry = bind_node(all(2, "0-3"), std::nullopt, machine(1, 4), 3);
    CHECK(texts(hungry) == Texts(2));
    CHECK(hungry.words == Texts{"not bound: 4 cores for 2 workers with 3 cpus each"});
}

TEST_CASE("partly overlapping masks and unknown nodes are left alone", "[comm]") {
    const auto overlap = bind_node({cpus_of("0-3"), cpus_of("2-5"), cpus_of("6"), cpus_of("7")}, 0, machine(1, 8), 1);
    CHECK(texts(overlap) == Texts(4));
    CHECK(overlap.words == Texts{"not bound: 0-3 overlaps other ranks' cores",
                                 "not bound: 2-5 overlaps other ranks' cores", "2 ranks bound by the launcher"});
    CHECK(bind_node(all(3, "0-7"), 0, {}, 1).words == Texts{"not bound: the node's cores are unknown"});
    CHECK(bind_node({{}, {}}, 0, machine(1, 8), 1).words == Texts{"not bound: the granted cores are unknown"});
}

TEST_CASE("every split hands out granted processors, none twice, and enough for each worker", "[comm]") {
    for (const std::uint32_t domains : {1U, 2U, 4U})
        for (const std::uint32_t cores : {1U, 2U, 7U, 8U})
            for (const std::uint32_t threads : {1U, 2U})
                for (std::size_t ranks = 2; ranks < 12; ++ranks)
                    for (const std::uint32_t needed : {1U, 2U, 5U})
                        for (const bool with_head : {false, true}) {
                            const Machine m = machine(domains, cores, threads);
                            const auto head = with_head ? std::optional<std::size_t>(0) : std::nullopt;
                            const auto granted = all(ranks, "0-" + std::to_string(domains * cores * threads - 1));
                            const auto binding = bind_node(granted, head, m, needed);
                            if (texts(binding) == Texts(ranks)) continue; // nobody is bound
                            std::set<std::uint32_t> given;
                            for (std::size_t r = 0; r < ranks; ++r) {
                                if (head != r) REQUIRE(binding.cpus[r].size() >= needed);
                                for (const auto cpu : binding.cpus[r]) REQUIRE(given.insert(cpu).second);
                            }
                            REQUIRE(given.size() == granted.front().size()); // no processor is unused
                        }
}

TEST_CASE("a set of processors lies in one domain or not", "[comm]") {
    const Machine two = machine(2, 4);
    CHECK(domain_of(cpus_of("4-5"), two) == 1);
    CHECK_FALSE(domain_of(cpus_of("3-4"), two).has_value());
    CHECK_FALSE(domain_of({}, two).has_value());
    CHECK_FALSE(domain_of(cpus_of("0"), {}).has_value());
}

TEST_CASE("sets are sent as text, machines in bytes", "[comm]") {
    CHECK(cpu_text(cpus_of("8,0-2,1")) == "0-2,8");
    CHECK(cpu_text({}).empty());
    CHECK(cpus_of("a,3-x,5-4,7") == CpuSet{7});
    const Machine two = machine(2, 2, 2);
    namespace study = ranktune::study;
    study::Bytes bytes;
    study::Encoder out(bytes);
    study::put(out, two);
    study::Decoder in(bytes);
    CHECK(study::decoded<Machine>(in) == two);
}

TEST_CASE("this node has the cores that this process may use", "[comm]") {
    const Machine here = read_machine();
    const CpuSet mine = granted_cpus();
    REQUIRE(!mine.empty());
    std::set<std::uint32_t> cpus;
    for (const Core& core : here.cores)
        for (const auto cpu : core.cpus) CHECK(cpus.insert(cpu).second);
    for (const auto cpu : mine) CHECK(cpus.count(cpu) == 1);
    CHECK(bind_process(mine)); // no change
    CHECK(granted_cpus() == mine);
}

} // namespace binding_test
