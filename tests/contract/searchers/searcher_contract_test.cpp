// SPDX-License-Identifier: Apache-2.0
// The contract, for every searcher of the library; and that a searcher that breaks it is found out.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ranktune/study/spec.hpp"
#include "ranktune/testing/contract.hpp"
#include "searchers/built_in.hpp"
#include "support/catch.hpp"
#include "support/toy_algorithms.hpp"

namespace searcher_contract_test {

using namespace ranktune;
using searchers::Observations;

namespace {

enum class Fault { none, answers_anew, forgets, leaves_the_space, ends_late, prepares_anew, prepares_outside, name };

/// Prepares its suggestions ahead, and remembers how many trials there are; right but for its fault.
class Slow final : public searchers::Searcher {
  public:
    Slow(const space::SearchSpace& space, std::uint64_t seed, Fault fault) : toy_(space, seed), fault_(fault) {}

    [[nodiscard]] std::string_view name() const override { return fault_ == Fault::name ? "other" : "toy"; }
    [[nodiscard]] std::optional<space::Configuration> suggest(std::uint64_t index,
                                                              const Observations& seen) const override {
        if (fault_ == Fault::answers_anew) index += asked_++;
        if (fault_ == Fault::forgets) index += 100 * trials_;
        auto suggestion = toy_.suggest(index, seen);
        if (fault_ == Fault::leaves_the_space) suggestion->set("width", 7);
        return suggestion;
    }
    [[nodiscard]] bool exhausted(std::uint64_t index) const override { return fault_ == Fault::ends_late && index > 5; }
    [[nodiscard]] bool learns() const override { return true; }
    [[nodiscard]] std::uint32_t prepares_ahead(std::uint32_t groups, const Observations& /*seen*/) const override {
        return groups;
    }
    [[nodiscard]] Preparation prepare(std::uint64_t ticket, Observations seen) const override {
        if (fault_ == Fault::prepares_anew) ticket += asked_++;
        Preparation work = toy_.prepare(ticket, std::move(seen));
        if (fault_ != Fault::prepares_outside) return work;
        return [work = std::move(work)] {
            space::Configuration configuration = work().configuration;
            configuration.set("opt.kind", "none");
            return configuration;
        };
    }
    void apply(const study::Record& record) override { trials_ += std::holds_alternative<study::TrialCreated>(record); }
    void snapshot(study::Encoder& out) const override {
        if (fault_ != Fault::forgets) out.varint(trials_);
    }
    void restore(study::Decoder& in) override {
        if (fault_ != Fault::forgets) trials_ = in.varint();
    }

  private:
    ranktune::testing::ToySlowSearcher toy_;
    Fault fault_;
    std::uint64_t trials_ = 0;
    mutable std::uint64_t asked_ = 0;
};

study::SearcherInfo slow(Fault fault) {
    study::SearcherInfo info;
    info.name = "toy";
    info.description = "a step from the best point towards a corner.";
    info.make = [fault](const study::StudySpec& study) {
        return std::make_unique<Slow>(study.space, study.seed, fault);
    };
    return info;
}

} // namespace

TEST_CASE("every searcher keeps the contract", "[searchers][contract]") {
    for (const auto& searcher : searchers::built_in()) {
        INFO(searcher->name);
        CHECK(ranktune::testing::check_searcher(*searcher) == std::vector<std::string>{});
    }
}

TEST_CASE("a searcher that breaks a rule is found out", "[searchers][contract]") {
    const auto finds = [](Fault fault, const std::string& rule) {
        std::string all;
        for (const std::string& broken : ranktune::testing::check_searcher(slow(fault))) all += broken + "\n";
        INFO(all);
        CHECK(all.find(rule) != std::string::npos);
    };
    CHECK(ranktune::testing::check_searcher(slow(Fault::none)) == std::vector<std::string>{});
    finds(Fault::answers_anew, "suggest changes nothing");
    finds(Fault::forgets, "a restored searcher suggests the same");
    finds(Fault::leaves_the_space, "a suggestion lies in the space");
    finds(Fault::ends_late, "a searcher that suggests something is not exhausted");
    finds(Fault::prepares_anew, "a preparation is a function of ticket and observations");
    finds(Fault::prepares_outside, "a prepared suggestion lies in the space");
    finds(Fault::name, "the searcher has the name of its description");
}

} // namespace searcher_contract_test
