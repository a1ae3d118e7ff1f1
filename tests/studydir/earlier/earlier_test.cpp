// SPDX-License-Identifier: Apache-2.0
// Tables and journals of earlier studies: what is read, what is left out, and what is refused. (Study directories, and
// journals that Optuna wrote, are in tests/cli/warm_start_test.py.)
#include <cmath>
#include <functional>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/study/parse.hpp"
#include "studydir/earlier/earlier_results.hpp"
#include "studydir/earlier/found.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/known.hpp"

namespace earlier_test {

using namespace ranktune;
using namespace ranktune::studydir;
using Result = study::EarlierTrial::Result;

namespace {

const char* const space_text =
    "lr = \"loguniform(1e-4, 1.0)\"\nlayers = \"randint(1, 5)\"\nkind = [\"sgd\", \"adam\"]\n"
    "momentum = { domain = \"uniform(0, 1)\", condition = \"kind == 'sgd'\" }\nwidth = 64\n";

study::StudySpec spec_of(const std::string& mode = "max", const std::string& parameters = space_text) {
    return study::parse_study("[study]\nname = \"s\"\nmetric = \"score\"\nmode = \"" + mode +
                                  "\"\nnum_trials = 4\nmax_iterations = 9\n[trainable]\nname = \"any\"\n[space]\n" +
                                  parameters,
                              "/s.toml", {}, ranktune::testing::known({ranktune::testing::any_trainable("any")}));
}

struct Outcome {
    study::WarmStarted::Source source;
    std::vector<study::EarlierTrial> trials;
};

using Reader = Found (*)(const std::string&, const study::WarmSource&, const study::StudySpec&);

Outcome outcome_of(Reader read, const std::string& text, const study::WarmSource& source = {"old", "", ""},
                   const study::StudySpec& spec = spec_of()) {
    Outcome outcome;
    outcome.source = fit(read(text, source, spec), source, spec, outcome.trials);
    return outcome;
}

std::string refusal(const std::function<void()>& act) { return ranktune::testing::error_of<base::UsageError>(act); }

std::string table_refusal(const std::string& text, const std::string& metric = "") {
    return refusal([&] { outcome_of(read_table, text, {"old.csv", metric, ""}); });
}

} // namespace

TEST_CASE("a plain table is mapped by the names of its columns", "[earlier]") {
    const Outcome outcome = outcome_of(read_table,
                                       "id,score,lr,layers,kind,momentum,note\n"
                                       "0,0.5,0.01,3,sgd,0.9,x\n"
                                       "1,0.25,1e-3,2.0,adam,,\n"
                                       "2,nan,0.1,4,adam,0.5,\n");
    REQUIRE(outcome.trials.size() == 3);
    CHECK(outcome.trials[0].configuration.text() == "lr=0.01 layers=3 kind=sgd momentum=0.9 width=64");
    CHECK(outcome.trials[0].results == std::vector{Result{9, 0.5}});
    CHECK(outcome.trials[1].configuration.text() == "lr=0.001 layers=2 kind=adam width=64");
    CHECK(outcome.trials[2].configuration.text() == "lr=0.1 layers=4 kind=adam width=64"); // momentum does not exist
    CHECK(std::isnan(outcome.trials[2].results.at(0).value));
    CHECK(outcome.source.trials == 3);
    CHECK(outcome.source.why.empty());
}

TEST_CASE("a table may have iterations, states, another metric, and Optuna's prefix", "[earlier]") {
    const Outcome outcome =
        outcome_of(read_table,
                   "number,value,params_lr,params_layers,params_kind,params_momentum,iteration,state\n"
                   "0,0.5,0.01,3,sgd,0.9,3,COMPLETE\n"
                   "1,,0.01,3,sgd,0.9,0,FAIL\n"
                   "2,,0.01,3,sgd,0.9,0,RUNNING\n"
                   "3,0.5,0.01,3,sgd,0.9,27,COMPLETE\n",
                   {"old", "value", ""});
    REQUIRE(outcome.trials.size() == 2);
    CHECK(outcome.trials[0].results == std::vector{Result{3, 0.5}});
    CHECK(outcome.trials[1].failed);
    CHECK(outcome.source.left_out == 2);
    CHECK(outcome.source.why == "left out: 1 trial (no result), 1 trial (no result at iterations 1 to 9)");
}

TEST_CASE("our own table of trials counts with the last value of each trial", "[earlier]") {
    const bool several = GENERATE(false, true);
    const std::string rank = several ? ",pareto_rank" : "";
    const std::string one = several ? ",1" : "";
    const std::string header =
        "trial,state,reason,iterations,best,best_iteration,last,seconds,attempts,ranks,start,end,message" + rank +
        ",lr,layers,kind,momentum,width,parameter.state\r\n";
    const auto spec = spec_of("max", std::string(space_text) + "state = \"uniform(0, 1)\"\n");
    const Outcome outcome = outcome_of(read_table,
                                       header + "0,finished,\"done, all\",9,0.75,3,0.5,1.0,1,1,0.0,1.0," + one +
                                           ",0.01,3,sgd,0.9,64,0.25\r\n"
                                           "1,failed,it threw,0,,,,1.0,1,1,0.0,1.0,it threw" +
                                           one + ",0.1,3,adam,,64,0.5\r\n",
                                       {"old", "", ""}, spec);
    REQUIRE(outcome.trials.size() == 2);
    CHECK(outcome.trials[0].configuration.text() == "lr=0.01 layers=3 kind=sgd momentum=0.9 width=64 state=0.25");
    CHECK(outcome.trials[0].results == std::vector{Result{9, 0.5}});
    CHECK(outcome.trials[1].failed);
}

TEST_CASE("values outside the space are left out and said", "[earlier]") {
    const Outcome outcome = outcome_of(read_table,
                                       "score,lr,layers,kind,momentum,width\n"
                                       "0.5,10,3,sgd,0.9,64\n"
                                       "0.5,0.1,3,sgd,,64\n"
                                       "0.5,0.1,3,lion,0.5,64\n"
                                       "0.5,0.1,3,adam,0.5,128\n"
                                       "0.5,0.1,7,adam,0.5,64\n"
                                       "0.5,20,7,adam,0.5,64\n");
    CHECK(outcome.trials.empty());
    CHECK(outcome.source.left_out == 6);
    CHECK(outcome.source.why ==
          "left out: 1 trial (kind outside ['sgd', 'adam']), 1 trial (layers outside randint(1, 5)), 2 trials (lr "
          "outside loguniform(0.0001, 1.0)), 1 trial (width outside 64), 1 trial (without momentum)");
}

TEST_CASE("a table that means something else is refused with file, line and column", "[earlier]") {
    const std::string begin = "searcher.warm_start: old.csv:";
    CHECK(table_refusal("") == begin + " is empty: it needs the names of its columns");
    CHECK(table_refusal("lr,layers,kind\n") ==
          begin +
              "1: there is no column 'score', the study's metric; name the column that stands for it: { path = "
              "..., metric = \"COLUMN\" }");
    CHECK(table_refusal("loss,lr,layers,kind\n", "los") == begin + "1: there is no column 'los'; did you mean 'loss'?");
    CHECK(table_refusal("score,lr,lr\n") == begin + "1: two columns have the name 'lr'");
    CHECK(table_refusal("score,lr,kind\n1,0.1,sgd\n") ==
          begin + " has no values of layers, which [space] has; names must be the same; the file has kind, lr");
    CHECK(table_refusal("score,lr,layers,kind\n1,0.1,2,adam\nx,0.1,2,adam\n") ==
          begin + "3: column 'score' needs a number, not 'x'");
    CHECK(table_refusal("score,lr,layers,kind\n1,fast,2,adam\n") ==
          begin + "2: column 'lr' needs a number, not 'fast'");
    CHECK(table_refusal("score,lr,layers,kind\n1,0.1\n") ==
          begin + "2: the row has 2 cells, and the first line names 4");
    CHECK(table_refusal("score,lr,layers,kind,iteration\n1,0.1,2,adam,1.5\n") ==
          begin + "2: column 'iteration' needs a whole number, not '1.5'");
}

namespace {

/// As Optuna 3.1 writes it.
const std::string journal =
    R"({"op_code": 0, "worker_id": "w", "study_name": "first", "directions": [2]}
{"op_code": 2, "worker_id": "w", "study_id": 0, "user_attr": {"a": NaN}}
{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-11-20T14:02:11.000000"}
{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "lr", "param_value_internal": 0.01, "distribution": "{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0001, \"high\": 1.0, \"log\": true}}"}
{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "layers", "param_value_internal": 3.0, "distribution": "{\"name\": \"IntDistribution\", \"attributes\": {\"log\": false, \"step\": 1, \"low\": 1, \"high\": 4}}"}
{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "kind", "param_value_internal": 1, "distribution": "{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"sgd\", \"adam\"]}}"}
{"op_code": 5, "worker_id": "w", "trial_id": 0, "param_name": "dropout", "param_value_internal": 0.5, "distribution": "{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}"}
{"op_code": 7, "worker_id": "w", "trial_id": 0, "step": 0, "intermediate_value": 0.1}
{"op_code": 7, "worker_id": "w", "trial_id": 0, "step": 3, "intermediate_value": 0.25}
{"op_code": 7, "worker_id": "w", "trial_id": 0, "step": 9, "intermediate_value": NaN}
{"op_code": 6, "worker_id": "w", "trial_id": 0, "state": 1, "values": [0.5], "datetime_complete": "2026-11-20T14:02:12.000000"}
{"op_code": 6, "worker_id": "v", "trial_id": 0, "state": 3, "values": [7.5], "datetime_complete": "2026-11-20T14:02:13.000000"}
{"op_code": 4, "worker_id": "w", "study_id": 9, "datetime_start": "2026-11-20T14:02:11.000000"}
{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": null, "state": 1, "value": 0.75, "values": null, "distributions": {"lr": "{\"name\": \"FloatDistribution\", \"attributes\": {}}", "layers": "{\"name\": \"IntDistribution\", \"attributes\": {}}", "kind": "{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"sgd\", \"adam\"]}}"}, "params": {"lr": 0.1, "layers": 2.0, "kind": 1}, "user_attrs": {}, "system_attrs": {}, "intermediate_values": {}}
{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2026-11-20T14:02:11.000000"}
{"op_code": 6, "worker_id": "w", "trial_id": 2, "state": 3, "values": null, "datetime_complete": "2026-11-20T14:02:12.000000"}
)";
const std::string second_study =
    R"({"op_code": 0, "worker_id": "w", "study_name": "second", "directions": [1, 2]}
)";

std::string journal_refusal(const std::string& text, const study::WarmSource& source, const char* mode = "max") {
    return refusal([&] { outcome_of(read_optuna_journal, text, source, spec_of(mode)); });
}

} // namespace

TEST_CASE("a journal of Optuna is read with categories, steps, states and trials that were added", "[earlier]") {
    const Outcome outcome = outcome_of(read_optuna_journal, journal + R"({"op_code": 4, "worker_id")");
    REQUIRE(outcome.trials.size() == 2);
    CHECK(outcome.trials[0].configuration.text() == "lr=0.01 layers=3 kind=adam width=64");
    CHECK(outcome.trials[0].results == std::vector{Result{3, 0.25}, Result{9, 0.5}});
    CHECK_FALSE(outcome.trials[0].failed);
    CHECK(outcome.trials[1].configuration.text() == "lr=0.1 layers=2 kind=adam width=64");
    CHECK(outcome.trials[1].results == std::vector{Result{9, 0.75}});
    CHECK(outcome.source.why ==
          "left out: 1 trial (without lr); ignored, because [space] lacks it: dropout"); // it failed at once
}

TEST_CASE("a journal of Optuna with several studies, values or another direction", "[earlier]") {
    const std::string begin = "searcher.warm_start: j.log: ";
    const std::string both = journal + second_study;
    CHECK(outcome_of(read_optuna_journal, both, {"j.log", "", "first"}).trials.size() == 2);
    CHECK(journal_refusal(both, {"j.log", "", ""}) ==
          begin + "has several studies: first, second; choose one: { path = ..., study = \"NAME\" }");
    CHECK(journal_refusal(both, {"j.log", "", "frist"}) ==
          begin + "has no study 'frist'; did you mean 'first'?; it has first, second");
    CHECK(journal_refusal(both, {"j.log", "", "second"}) ==
          begin +
              "study 'second' has 2 values without names; choose one by its position: { path = ..., metric = \"0\" }");
    CHECK(journal_refusal(both, {"j.log", "0", "second"}) ==
          begin +
              "study 'second' minimises, and this one does the opposite with score; the values cannot mean the same");
    CHECK(journal_refusal(both, {"j.log", "1", "second"}).empty());
    CHECK(journal_refusal(journal, {"j.log", "", ""}, "min") ==
          begin +
              "study 'first' maximises, and this one does the opposite with score; the values cannot mean the same");
    CHECK(journal_refusal("{\"a\": 1}\n", {"j.log", "", ""}) ==
          "searcher.warm_start: j.log:1: is no line of a journal of Optuna: there is no op_code");
    CHECK(journal_refusal(second_study + "hello\n", {"j.log", "", ""}) ==
          "searcher.warm_start: j.log:2: is no line of a journal of Optuna: there is no op_code");
    CHECK(
        journal_refusal(R"({"op_code": 0, "directions": [1]})"
                        "\n",
                        {"j.log", "", ""})
            .starts_with("searcher.warm_start: j.log:1: is no line of a journal of Optuna that this version reads: "));
    CHECK(journal_refusal(second_study + R"({"op_code": 1, "study_id": 0})" + "\n", {"j.log", "", ""}) ==
          begin + "there is no study in this journal");
}

TEST_CASE("a file that is missing or of another kind is named", "[earlier]") {
    auto spec = spec_of();
    CHECK_FALSE(read_earlier_results(storage::posix_file_system(), spec, {}));
    const auto refused = [&](const std::string& path) {
        spec.searcher.warm_start = {{path, "", ""}};
        return refusal([&] { (void)read_earlier_results(storage::posix_file_system(), spec, {}); });
    };
    CHECK(refused("/nowhere/old.csv") ==
          "searcher.warm_start: /nowhere/old.csv: there is no such file; it is needed until the study has begun");
    CHECK(refused("/") ==
          "searcher.warm_start: /: is a directory without a study in it; give the directory of a study, or a file");
    CHECK(refused("/dev/null").starts_with("searcher.warm_start: /dev/null: "));
}

} // namespace earlier_test
