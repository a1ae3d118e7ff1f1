// SPDX-License-Identifier: Apache-2.0
#include "ranktune/study/parse.hpp"

#include <filesystem>

#include "ranktune/study/change.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace parse_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;
using namespace std::chrono_literals;

namespace {
const std::string golden = RANKTUNE_SOURCE_ROOT "/tests/study/golden/";
} // namespace

TEST_CASE("the screen of three mistakes", "[study]") {
    const std::string text = read_file(golden + "three_mistakes.toml");
    REQUIRE(!text.empty());
    std::string message;
    try {
        static_cast<void>(parse_study(text, "digits.toml", {}, known()));
    } catch (const StudyFileError& error) {
        message = error.what();
    }
    CHECK(message + "\n" == read_file(golden + "three_mistakes.txt"));
}

TEST_CASE("a small study gets every default", "[study]") {
    const StudySpec spec = parse(Parts{}.text());
    CHECK(spec.name == "s");
    CHECK((spec.objective == Objective{"val_loss", Mode::min}));
    CHECK(spec.num_trials == 10);
    CHECK(spec.max_iterations == 27);
    CHECK(spec.seed == 0);
    CHECK(spec.max_concurrent == 0);
    CHECK(!spec.time_budget);
    CHECK(spec.trainable.name == "mlp");
    CHECK(spec.resources.ranks == 1);
    CHECK(spec.resources.cpus_per_rank == 1);
    CHECK(spec.resources.bind == Bind::automatic);
    CHECK(spec.searcher.algorithm->name == "auto");
    CHECK(spec.scheduler.algorithm->name == "fifo");
    CHECK(spec.stop.metrics.empty());
    CHECK(!spec.stop.plateau);
    CHECK(!spec.stop.trial_time);
    CHECK(spec.failure.tolerate == 0.05);
    CHECK(spec.failure.max_failures == 0);
    CHECK(spec.failure.max_losses == 3);
    CHECK(spec.output.commit_interval == 1s);
    CHECK(spec.output.abort_grace == 30s);
    CHECK(spec.output.heartbeat_timeout == 60s);
    CHECK(!spec.slurm.requeue);
    CHECK(spec.slurm.max_requeues == 20);
    CHECK(spec.slurm.lead_time == 30s);
    CHECK(spec.slurm.poll_interval == 1min);
}

TEST_CASE("every key arrives where it belongs", "[study]") {
    Parts parts;
    parts.study =
        "name = \"all\"\nmetric = \"val_accuracy\"\nmode = \"max\"\nnum_trials = 100\nmax_iterations = 81\n"
        "seed = 7\nmax_concurrent = 5\ntime_budget = \"1-02:00:00\"\n";
    parts.space += "ranks = [1, 2]\n";
    parts.rest =
        "[resources]\nranks = \"{ranks}\"\ncpus_per_rank = 4\n"
        "[searcher]\ntype = \"sobol\"\nscramble = false\n"
        "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\nrule = \"ray\"\neta = 2.5\nfirst_rung = 1.5\n"
        "brackets = 2\nstop_last_trials = false\n"
        "[stop]\nmetric = [\"val_accuracy >= 0.99\", \"train_loss<=1e-3\"]\ntime = \"30m\"\n"
        "[stop.plateau]\nmetric = \"val_loss\"\nstd = 0.5\nresults = 6\ngrace = 8\nthreshold = 0.25\n"
        "[failure]\ntolerate = 0.5\nmax_failures = 2\nmax_losses = 9\n[checkpoint]\nmean_time_between_failures = "
        "\"6h\"\n[journal]\ncommit_interval = \"2s\"\n"
        "[run]\nabort_grace = \"5s\"\nheartbeat_timeout = \"90s\"\n"
        "[slurm]\nrequeue = true\nmax_requeues = 3\nlead_time = \"2m\"\npoll_interval = \"5m\"\n";
    const StudySpec spec = parse(parts.text());
    CHECK(spec.seed == 7);
    CHECK(spec.max_concurrent == 5);
    CHECK(spec.time_budget == 26h);
    CHECK(spec.resources.ranks_parameter == "ranks");
    CHECK(spec.max_ranks_per_trial() == 2);
    CHECK(spec.resources.cpus_per_rank == 4);
    CHECK(spec.searcher.algorithm->name == "sobol");
    CHECK(!spec.searcher.options.at("scramble").as_bool());
    CHECK(spec.scheduler.algorithm->name == "asha");
    CHECK(spec.scheduler.options.at("variant") == "stop");
    CHECK(spec.scheduler.options.at("rule") == "ray");
    CHECK(spec.scheduler.options.at("eta") == 2.5);
    CHECK(spec.scheduler.options.at("first_rung") == 1.5);
    CHECK(spec.scheduler.options.at("brackets") == 2);
    CHECK(!spec.scheduler.options.at("stop_last_trials").as_bool());
    REQUIRE(spec.stop.metrics.size() == 2);
    CHECK(spec.stop.metrics[0].metric == "val_accuracy");
    CHECK(spec.stop.metrics[0].threshold == 0.99);
    CHECK(spec.stop.metrics[0].mode == Mode::max);
    CHECK(spec.stop.metrics[1].metric == "train_loss");
    CHECK(spec.stop.metrics[1].threshold == 1e-3);
    CHECK(spec.stop.metrics[1].mode == Mode::min);
    CHECK(spec.stop.trial_time == 30min);
    REQUIRE(spec.stop.plateau);
    CHECK(spec.stop.plateau->metric == "val_loss");
    CHECK(spec.stop.plateau->std == 0.5);
    CHECK(spec.stop.plateau->results == 6);
    CHECK(spec.stop.plateau->grace == 8);
    CHECK(spec.stop.plateau->threshold == 0.25);
    CHECK(spec.failure.tolerate == 0.5);
    CHECK(spec.failure.max_failures == 2);
    CHECK(spec.failure.max_losses == 9);
    CHECK(spec.checkpoint.interval == CheckpointSpec::Interval::automatic);
    CHECK(spec.checkpoint.mean_time_between_failures == 6h);
    CHECK(spec.output.commit_interval == 2s);
    CHECK(spec.output.abort_grace == 5s);
    CHECK(spec.output.heartbeat_timeout == 90s);
    CHECK(spec.slurm.requeue);
    CHECK(spec.slurm.max_requeues == 3);
    CHECK(spec.slurm.lead_time == 2min);
    CHECK(spec.slurm.poll_interval == 5min);
}

TEST_CASE("checkpoint.max_bytes is a number of bytes or text with a unit", "[study]") {
    const auto with = [](const std::string& lines) {
        Parts parts;
        parts.rest = (lines.starts_with("[") ? "" : "[checkpoint]\n") + lines + "\n";
        return parse(parts.text()).checkpoint;
    };
    CHECK(!with("").max_bytes);
    CHECK(with("").keep == 1);
    CHECK(with("").direct);
    CHECK(!with("").at_rungs);
    CHECK(with("[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\n[checkpoint]\nat_rungs = true").at_rungs);
    CHECK(with("max_bytes = 12345").max_bytes == 12345);
    CHECK(with("max_bytes = \"500GB\"").max_bytes == 500'000'000'000);
    CHECK(with("max_bytes = \"1.5 GiB\"").max_bytes == 1'610'612'736);
    CHECK(with("keep = 3").keep == 3);
    CHECK(!with("direct = false").direct);
}

TEST_CASE("the resolved file says of each list of numbers whether it has an order; one that does not has none",
          "[study]") {
    Parts parts = free_parts();
    parts.space = "lr = [0.1, 0.01]\nbatch = \"choice([8, 16], ordered=false)\"\nkind = ['a', 'b']\n";
    const StudySpec spec = parse(parts.text());
    const auto is_ordered = [](const StudySpec& of, std::string_view name) {
        return std::get<space::Choice>(of.space.find(std::string(name))->domain).ordered;
    };
    CHECK(is_ordered(spec, "lr"));
    CHECK_FALSE(is_ordered(spec, "batch"));
    std::string resolved = resolved_toml(spec);
    const std::string of_rates = "lr = \"choice([0.1, 0.01], ordered=true)\"\n";
    CHECK(resolved.find(of_rates) != std::string::npos);
    CHECK(resolved.find("batch = \"choice([8, 16], ordered=false)\"\n") != std::string::npos);
    CHECK(is_ordered(parse_resolved(resolved), "lr"));
    CHECK_FALSE(is_ordered(parse_resolved(resolved), "batch"));
    // As in studies of before there was such an order.
    resolved.replace(resolved.find(of_rates), of_rates.size(), "lr = [0.1, 0.01]\n");
    CHECK_FALSE(is_ordered(parse_resolved(resolved), "lr"));
}

TEST_CASE("the resolved file says whether the trainable can save", "[study]") {
    Parts parts;
    CHECK(resolved_toml(parse(parts.text())).find("supported") == std::string::npos);
    parts.trainable = "builtin = \"sleeper\"\n";
    const StudySpec spec = parse(parts.text());
    CHECK(!spec.checkpoint.supported);
    CHECK(!parse_resolved(resolved_toml(spec), "resolved.toml").checkpoint.supported);
    CHECK(!parse(resolved_toml(spec)).checkpoint.supported);
    // A study of a version that did not write it goes on, and has it from then on.
    StudySpec before = spec;
    before.checkpoint.supported = true;
    const auto changes = differences(before, spec);
    REQUIRE(changes.size() == 1);
    CHECK((changes[0].key == "checkpoint.supported" && changes[0].may_change));
    CHECK(!changes_what_is_decided(changes));
}

TEST_CASE("checkpoints are taken by iterations, by time, by what they cost, or not while a trial runs", "[study]") {
    const auto with = [](const std::string& value) {
        Parts parts;
        parts.rest = "[checkpoint]\ninterval = " + value + "\n";
        return parse(parts.text()).checkpoint;
    };
    using Interval = CheckpointSpec::Interval;
    CHECK(with("3").interval == Interval::iterations);
    CHECK(with("3").iterations == 3);
    CHECK(with("\"90m\"").interval == Interval::time);
    CHECK(with("\"90m\"").time == 90min);
    CHECK(with("\"none\"").interval == Interval::none);
    CHECK(with("\"auto\"").interval == Interval::automatic);
    CHECK(with("\"auto\"").mean_time_between_failures == 24h);
}

TEST_CASE("the median rule has its own keys, promotion too", "[study]") {
    Parts parts;
    parts.rest = "[scheduler]\ntype = \"median\"\ngrace = 2.5\nmin_samples = 5\nhard_stop = false\n";
    const StudySpec median = parse(parts.text());
    CHECK(median.scheduler.algorithm->name == "median");
    CHECK(median.scheduler.options.at("grace") == 2.5);
    CHECK(median.scheduler.options.at("min_samples") == 5);
    CHECK(!median.scheduler.options.at("hard_stop").as_bool());

    parts.rest = "[scheduler]\ntype = \"asha\"\neta = 4\nfirst_rung = 2\nfinish_top = 0\nrestart_paused = true\n";
    const StudySpec promote = parse(parts.text());
    CHECK(promote.scheduler.options.at("variant") == "promote");
    CHECK(promote.scheduler.options.at("eta") == 4.0);
    CHECK(promote.scheduler.options.at("first_rung") == 2.0);
    CHECK(promote.scheduler.options.at("finish_top") == 0);
    CHECK(promote.scheduler.options.at("restart_paused").as_bool());
}

TEST_CASE("a plateau without a metric watches the study's", "[study]") {
    Parts parts;
    parts.rest = "[stop]\nplateau = {}\n";
    const StudySpec spec = parse(parts.text());
    REQUIRE(spec.stop.plateau);
    CHECK(spec.stop.plateau->metric == "val_loss");
    CHECK(spec.stop.plateau->std == 0.01);
    CHECK(spec.stop.plateau->results == 4);
    CHECK(spec.stop.plateau->grace == 4);
    CHECK(!spec.stop.plateau->threshold);
}

TEST_CASE("paths are relative to the study file, options keep their values", "[study]") {
    Parts parts;
    parts.trainable =
        "builtin = \"mlp\"\ndata = \"../data/d.h5\"\nhidden = [64, 32]\nnesterov = true\nlr = 1\n"
        "sgd.decay = 0.5\n";
    parts.space = "dropout = [0, 0.5]\n";
    const StudySpec spec = parse(parts.text());
    const auto& options = spec.trainable.options;
    CHECK(options.at("data").as_string() == "/data/d.h5");
    CHECK((options.at("hidden") == space::Value::List{64, 32}));
    CHECK(options.at("nesterov").as_bool());
    CHECK((options.at("lr") == space::Value(1)));
    CHECK(options.at("sgd.decay").as_double() == 0.5);

    parts.trainable = "builtin = \"mlp\"\ndata = \"/abs/d.h5\"\n";
    CHECK(parse(parts.text()).trainable.options.at("data").as_string() == "/abs/d.h5");

    parts.trainable = "builtin = \"mlp\"\ndata = \"d.h5\"\n";
    const StudySpec here = parse_study(parts.text(), "s.toml", {}, known());
    CHECK(here.trainable.options.at("data").as_string() == (std::filesystem::current_path() / "d.h5").string());
}

TEST_CASE("a path that is searched over is relative to the study file, too", "[study]") {
    Parts parts;
    parts.trainable = "builtin = \"mlp\"\n";
    parts.space = "data = [\"a.h5\", \"/b.h5\"]\n";
    const auto domain = parse(parts.text()).space.parameters()[0].domain;
    CHECK((std::get<space::Choice>(domain).values == std::vector<space::Value>{"/studies/a.h5", "/b.h5"}));
}

TEST_CASE("a grid search without num_trials runs the whole grid", "[study]") {
    Parts parts;
    parts.study = "name = \"s\"\nmetric = \"val_loss\"\nmode = \"min\"\nmax_iterations = 1\n";
    parts.space = "lr = \"grid([0.1, 0.2, 0.3])\"\nbatch_size = [32, 64]\ndropout = \"quniform(0.0, 0.5, 0.25)\"\n";
    parts.rest = "[searcher]\ntype = \"grid\"\n";
    CHECK(parse(parts.text()).num_trials == 18);
    const std::string whole = parts.study;
    parts.study = whole + "num_trials = 4\n";
    CHECK(parse(parts.text()).num_trials == 4);
    parts.study = whole + "num_trials = 60\n"; // there are no more
    CHECK(parse(parts.text()).num_trials == 18);
}

TEST_CASE("overrides are taken over before anything is checked", "[study]") {
    const std::string text = Parts{}.text();
    CHECK(parse(text, {"study.num_trials=120"}).num_trials == 120);
    CHECK(parse(text, {"study.num_trials=120", "study.num_trials = 7"}).num_trials == 7);
    CHECK(parse(text, {"study.name=other"}).name == "other");
    CHECK(parse(text, {"study.name=\"quoted\""}).name == "quoted");
    CHECK(parse(text, {"study.time_budget=2h30m"}).time_budget == 150min);
    CHECK(parse(text, {"scheduler.type=asha", "scheduler.eta=4"}).scheduler.options.at("eta") == 4.0);
    CHECK(parse(text, {"stop.plateau.std=0.5"}).stop.plateau->std == 0.5);
    CHECK(parse(text, {"stop.metric=val_loss <= 0.1"}).stop.metrics.at(0).threshold == 0.1);
    CHECK(parse(text, {"trainable.hidden=[8, 8]"}).trainable.options.at("hidden").as_list().size() == 2);
    CHECK(space::text(parse(text, {"space.lr=uniform(0.1,0.2)"}).space.parameters()[0].domain) == "uniform(0.1, 0.2)");
    CHECK(parse(text, {"space.lr={domain = \"uniform(0.1, 0.2)\"}"}).space.parameters().size() == 1);
    CHECK(parse(text, {"space.dropout=0.5"}).space.parameters().size() == 2);
    CHECK(parse(text, {"trainable.tag=a=b"}).trainable.options.at("tag").as_string() == "a=b");
}

TEST_CASE("mistakes in overrides name the override", "[study]") {
    const std::string text = Parts{}.text();
    CHECK(mistake(text, {"study.num_trials=0"}) ==
          "0:0 study.num_trials: needs an integer >= 1, not 0  (override \"study.num_trials=0\")");
    CHECK(mistake(text, {"study.num_trial=5"}) ==
          "0:0 study.num_trial: unknown key; did you mean 'num_trials'?  (override \"study.num_trial=5\")");
    CHECK(mistake(text, {"studdy.seed=5"}) ==
          "0:0 studdy: unknown table; did you mean [study]?  (override \"studdy.seed=5\")");
    CHECK(mistake(text, {"num_trials"}) ==
          "0:0 : override 'num_trials': the form is table.key=value, as in study.num_trials=120");
    CHECK(mistake(text, {"study.name.first=x"}) ==
          "0:0 : override 'study.name.first=x': study.name is a string, not a table");
    CHECK(mistake(text, {"=3"}) == "0:0 : override '=3': '' is not a dotted key");
    CHECK(mistake(text, {"a b=3"}) == "0:0 : override 'a b=3': 'a b' is not a dotted key");
    CHECK(mistake(text, {"study.seed="}) == "0:0 : override 'study.seed=': the value is missing");
    CHECK(mistake(text, {"trainable.hidden=[8"}).find("0:0 : override 'trainable.hidden=[8': ") == 0);
    CHECK(mistakes(text, {"study.seed=1\nstudy.name=2", "x"}).size() == 2);
    // A wrong key of the file stays where it is, whatever the override makes of its value.
    Parts parts;
    parts.study += "num_samples = 3\n";
    CHECK(mistake(parts.text(), {"study.num_samples=4"}) ==
          "7:1 study.num_samples: is Ray Tune's name; here: num_trials");
}

TEST_CASE("invalid TOML is one mistake at its position", "[study]") {
    const auto unfinished = mistakes("[study]\nname = \"x\nmode = 3\n");
    REQUIRE(unfinished.size() == 1);
    CHECK(unfinished[0].find("2:") == 0);
    CHECK(unfinished[0].find("not valid TOML: ") != std::string::npos);
    CHECK(mistake("[study]\nname = \"a\"\nname = \"b\"\n").find("3:") == 0);
    CHECK(mistake("[study]\ntime_budget = 4:00\n").find("2:") == 0);
    CHECK(mistakes(std::string("\0", 1)).size() == 1);
}

TEST_CASE("a domain without quotes is reported with its position and a correction", "[study]") {
    const auto with = [](const std::string& line) { return mistake("[space]\n" + line + "\n"); };
    CHECK(with("lr = loguniform(1e-4, 1.0)") == "2:6 : not valid TOML: put it in quotes:  \"loguniform(1e-4, 1.0)\"");
    CHECK(with("n = int(1, 5)  # (few)") == "2:5 : not valid TOML: put it in quotes:  \"int(1, 5)\"");
    CHECK(with("lr = { domain = uniform(0, (1)), condition = \"a == 1\" }") ==
          "2:17 : not valid TOML: put it in quotes:  \"uniform(0, (1))\"");
    CHECK(with("a = [\"b (=\", uniform(0, 1), normal(0, 1)]") ==
          "2:14 : not valid TOML: put it in quotes:  \"uniform(0, 1)\"");
    CHECK(with("a = choice([\"x\", \"y\"])") == "2:5 : not valid TOML: put it in quotes:  'choice([\"x\", \"y\"])'");
    // Only in the line of the mistake, and only where a value begins.
    CHECK(with("a = 1 # = uniform(0, 1)\nb =").find("quotes") == std::string::npos);
    CHECK(with("a = \"x\" uniform(0, 1)").find("quotes") == std::string::npos);
    CHECK(with("a = uniform(0, 1").find("quotes") == std::string::npos);
    CHECK(mistake(Parts().text(), {"space.lr={domain=uniform(0,1)}"}).find("put it in quotes:  \"uniform(0,1)\"") !=
          std::string::npos);
}

TEST_CASE("an empty file lacks everything that is required", "[study]") {
    CHECK(mistakes("") == std::vector<std::string>{
                              "0:0 study.name: missing; a short name, which is also the folder of the results",
                              "0:0 study.metric: missing; the name of the metric to optimise",
                              "0:0 study.mode: missing; \"min\" or \"max\"",
                              "0:0 study.max_iterations: missing; the ceiling of iterations that a trial may train",
                              "0:0 trainable.builtin: missing; builtin = \"...\", command = \"...\" of a program, "
                              "python = \"FILE:FUNCTION\", or name = "
                              "\"...\" of a trainable that this program registers; known: mlp, curve, sleeper",
                              "0:0 study.num_trials: missing; the number of configurations to try (a grid search can "
                              "leave it out)",
                          });
}

TEST_CASE("a resolved study is read without knowing its trainable", "[study]") {
    Parts parts;
    parts.space = "batch_size = [32, 64]\n";
    parts.rest = "[scheduler]\ntype = \"asha\"\n[stop]\nmetric = \"val_accuracy >= 1\"\n";
    const StudySpec spec = parse(parts.text());
    const StudySpec again = parse_resolved(resolved_toml(spec), "elsewhere/resolved.toml");
    CHECK(resolved_toml(again) == resolved_toml(spec));
    CHECK(again.trainable.name == "mlp");
    CHECK(again.trainable.options.at("data").as_string() == "/studies/d.h5");
    CHECK_THROWS_AS(parse_resolved("[study]\nmode = 3\n", "resolved.toml"), StudyFileError);
}

const char* const many_tables[] = {
    "[scheduler]\ntype = \"asha\"\n",
    "[scheduler]\ntype = \"asha\"\neta = 4\nfirst_rung = 2\nbrackets = 2\nfinish_top = 0\nrestart_paused = "
    "true\n",
    "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\nbrackets = 3\n",
    "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\nrule = \"ray\"\neta = 2.7\nfirst_rung = 0.3\nbrackets "
    "= 9\n",
    "[scheduler]\ntype = \"median\"\ngrace = 0\n",
    "[searcher]\ntype = \"sobol\"\nscramble = false\n",
    "[searcher]\ntype = \"random\"\n",
    "[resources]\nranks = 3\ncpus_per_rank = 8\nbind = \"none\"\n",
    "[resources]\ngpus = 4\n",
    "[resources]\ngpus = 0.25\ngpu_metrics = true\n",
    "[resources]\nranks = 1\ngpus = 0.333\n",
    "[resources]\nranks = 2\ngpus = 0\n",
    "gpus = [0, 1, 2]\n[resources]\nranks = 3\ngpus = \"{gpus}\"\n",
    "[stop]\ntime = \"1.5h\"\n",
    "[stop]\nmetric = \"val_loss <= -1e-300\"\nplateau = { threshold = -0.1 }\n",
    "[stop.plateau]\nmetric = \"train_loss\"\nstd = 1e-9\nresults = 2\ngrace = 0\n",
    "[checkpoint]\ninterval = 5\n",
    "[checkpoint]\ninterval = \"none\"\n",
    "[scheduler]\ntype = \"asha\"\nvariant = \"stop\"\n[checkpoint]\nat_rungs = true\n",
    "[checkpoint]\ninterval = \"10m\"\n",
    "[checkpoint]\ninterval = \"auto\"\nmean_time_between_failures = \"36h\"\n",
    "[failure]\ntolerate = 1\n[journal]\ncommit_interval = \"1ms\"\n[run]\nabort_grace = \"0.5s\"\n",
};

const char* const many_spaces[] = {
    "a = \"uniform(-1, 1)\"\nb = \"quniform(0.0, 1.0, 0.1)\"\nc = \"qloguniform(1e-3, 1.0, 1e-3)\"\n",
    "a = \"randint(0, 10)\"\nb = \"qrandint(0, 10, 5)\"\nc = \"lograndint(1, 1000)\"\nd = \"qlograndint(8, "
    "64, 8)\"\n",
    "a = \"randn(0.0, 1.0)\"\nb = \"qrandn(3.0, 0.5, 0.25)\"\nc = \"randn()\"\n",
    "a = \"choice([1, 2, 'x'])\"\nb = \"choice([1, 2], ordered=true)\"\nc = \"grid([true, false])\"\n",
    "a = 1\nb = 1.0\nc = true\nd = \"text\"\ne = \"\"\nf = \"it's \\\"odd\\\" \\\\ \\t \\u0001 \\u00e9\"\ng = "
    "inf\n",
    "a = { value = [1, 2] }\nb = { value = \"f(x)\" }\nc = { value = \"uniform(0, 1)\" }\n",
    "a = [[1], [], [[2.5, \"x\"], true]]\nb = { domain = [\"uniform(0, 1)\", \"it's\"] }\n",
    "opt = [\"sgd\", \"adam\"]\nm = { domain = \"uniform(0.1, 0.9)\", condition = \"opt == 'sgd'\" }\n"
    "v = { value = \"x\", condition = \"not (opt in ['sgd', \\\"adam\\\"]) or m < 0.5\" }\n",
    "a.x = 1\na.y.z = [1, 2]\nb = 2\n[space.c]\ncondition = \"b == 2\"\nd = 3\n[space.c.e]\ncondition = \"c.d "
    "> 1\"\n"
    "f = { domain = \"uniform(0.0, 1.0)\", condition = \"a.x == 1\" }\n",
    "type = 1\nname = \"x\"\nvalue = 3\ndomain = \"y\"\ncondition = { value = 3 }\n[space.n]\nvalue = "
    "1\nother = 2\n"
    "condition = [1, 2]\n",
    "condition = { domain = \"uniform(0.0, 1.0)\" }\nn = { a = 1, condition = { value = \"c\" } }\n",
};

TEST_CASE("the resolved study reads back as the same study", "[study]") {
    std::vector<std::string> texts{Parts{}.text(), free_parts().text()};
    for (const char* rest : many_tables) {
        Parts parts;
        parts.rest = rest;
        texts.push_back(parts.text());
    }
    for (const char* space : many_spaces) {
        Parts parts = free_parts();
        parts.space = space;
        texts.push_back(parts.text());
    }
    Parts options = free_parts();
    options.trainable += "a = [1, [2.5, 'x']]\nb.c = \"deep\"\nd = 'it''s'\n";
    options.trainable = "name = \"curve\"\na = [1, [2.5, 'x']]\nb.c = \"deep\"\nd = \"it's\"\n";
    texts.push_back(options.text());

    for (const std::string& text : texts) {
        INFO(text);
        REQUIRE(mistake(text) == "");
        const std::string resolved = resolved_toml(parse(text));
        INFO(resolved);
        REQUIRE(mistake(resolved) == "");
        const StudySpec first = parse(text);
        const StudySpec again = parse(resolved);
        CHECK(resolved_toml(again) == resolved);
        REQUIRE(again.space.parameters().size() == first.space.parameters().size());
        for (std::size_t i = 0; i < first.space.parameters().size(); ++i) {
            CHECK(again.space.parameters()[i].name == first.space.parameters()[i].name);
            CHECK((again.space.parameters()[i].domain == first.space.parameters()[i].domain));
        }
        CHECK((again.trainable.options == first.trainable.options));
        for (unsigned trial = 0; trial < 20; ++trial)
            CHECK((again.space.sample(1, TrialId(trial)) == first.space.sample(1, TrialId(trial))));
    }
}

} // namespace parse_test
