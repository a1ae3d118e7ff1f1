// SPDX-License-Identifier: Apache-2.0
// Every rule of the study file: input that breaks it, and the message.
#include <string>
#include <vector>

#include "ranktune/base/text.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"

namespace mistakes_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;
using ranktune::testing::listed;
using ranktune::testing::names_of;
using ranktune::testing::options_of;
using ranktune::testing::owners_of;

namespace {

/// Lines to put into a table, and the one mistake that they make.
struct Case {
    std::string lines;
    std::string expected; ///< `line:column key: message`
};

void check(const Case& c, const std::string& text) {
    INFO(text);
    CHECK(mistake(text) == c.expected);
}

/// Replaces the line of `study` that begins with the key of `c.lines`, or adds one; positions are those of the result.
std::string with_study_line(const std::string& lines) {
    Parts parts;
    const std::string key = lines.substr(0, lines.find(' ') + 1);
    const auto at = parts.study.find(key);
    if (at == std::string::npos) {
        parts.study += lines;
    } else {
        parts.study.replace(at, parts.study.find('\n', at) + 1 - at, lines);
    }
    return parts.text();
}

void check_scheduler(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
        Parts parts;
        parts.rest = "[scheduler]\n" + c.lines;
        check(c, parts.text());
    }
}

} // namespace

TEST_CASE("mistakes of [study]", "[study]") {
    const std::vector<Case> cases = {
        {"name = 3\n", "2:8 study.name: needs a string, not an integer (3); put it in quotes: \"3\""},
        {"name = 2026-11-27\n",
         "2:8 study.name: needs a string, not a date or time (2026-11-27); put it in quotes: \"2026-11-27\""},
        {"name = \"a/b\"\n",
         "2:8 study.name: letters, digits, '_', '-' and '.' only, beginning with a letter, digit or '_', "
         "at most 100: \"a/b\""},
        {"name = \"" + std::string(101, 'n') + "\"\n",
         "2:8 study.name: has 101 characters; a name, which is also that of a folder, has at most 100"},
        {"name = \"\"\n",
         "2:8 study.name: letters, digits, '_', '-' and '.' only, beginning with a letter, digit or '_', at "
         "most 100: \"\""},
        {"name = \"..\"\n",
         "2:8 study.name: letters, digits, '_', '-' and '.' only, beginning with a letter, digit or '_', "
         "at most 100: \"..\""},
        {"metric = \"val_los\"\n",
         "3:10 study.metric: the trainable 'mlp' does not report \"val_los\"; did you mean "
         "'val_loss'?; it reports: train_loss, val_loss, val_accuracy"},
        {"metric = true\n", "3:10 study.metric: needs a string, not a boolean (true); put it in quotes: \"true\""},
        {"mode = \"minimize\"\n",
         "4:8 study.mode: unknown value \"minimize\"; accepted: \"min\" or \"max\"; here it is called \"min\""},
        {"mode = \"mim\"\n",
         "4:8 study.mode: unknown value \"mim\"; accepted: \"min\" or \"max\"; did you mean \"min\"?"},
        {"mode = true\n", "4:8 study.mode: needs \"min\" or \"max\", not a boolean (true)"},
        {"num_trials = 0\n", "5:14 study.num_trials: needs an integer >= 1, not 0"},
        {"num_trials = -1\n", "5:14 study.num_trials: needs an integer >= 1, not -1"},
        {"num_trials = 60.0\n", "5:14 study.num_trials: needs an integer >= 1, not a float (60.0)"},
        {"num_trials = 99999999999\n", "5:14 study.num_trials: needs an integer from 1 to 2147483647, not 99999999999"},
        {"num_trials = \"60\"\n", "5:14 study.num_trials: needs an integer >= 1, not a string (\"60\")"},
        {"max_iterations = 0\n", "6:18 study.max_iterations: needs an integer >= 1, not 0"},
        {"max_iterations = 9223372036854775807\n",
         "6:18 study.max_iterations: needs an integer from 1 to 1000000000000000, not 9223372036854775807"},
        {"seed = -3\n", "7:8 study.seed: needs an integer >= 0, not -3"},
        {"max_concurrent = 1.5\n", "7:18 study.max_concurrent: needs an integer >= 0, not a float (1.5)"},
        {"time_budget = 90\n",
         "7:15 study.time_budget: needs a duration in quotes, as in \"90m\" or \"02:30:00\", not an integer (90)"},
        {"time_budget = 02:30:00\n",
         "7:15 study.time_budget: needs a duration in quotes, as in \"90m\" or \"02:30:00\", not a "
         "date or time (02:30:00)"},
        {"time_budget = \"4:00\"\n",
         "7:15 study.time_budget: \"4:00\" is not a duration: Slurm reads minutes, people mean "
         "hours; write \"4:00:00\" or \"0:4:00\""},
        {"time_budget = \"0s\"\n", "7:15 study.time_budget: needs a duration longer than zero, not \"0s\""},
    };
    for (const Case& c : cases) check(c, with_study_line(c.lines));
}

TEST_CASE("unknown keys of [study], and keys that do not go together", "[study]") {
    const std::vector<Case> cases = {
        {"n_trials = 3\n", "7:1 study.n_trials: is Optuna's name; here: num_trials"},
        {"num_samples = 3\n", "7:1 study.num_samples: is Ray Tune's name; here: num_trials"},
        {"direction = \"maximize\"\n", "7:1 study.direction: is Optuna's name; here: mode"},
        {"goal = \"maximize\"\n", "7:1 study.goal: is W&B's name; here: mode"},
        {"time_budget_s = 60\n", "7:1 study.time_budget_s: is Ray Tune's name; here: time_budget"},
        {"max_concurrent_trials = 4\n", "7:1 study.max_concurrent_trials: is Ray Tune's name; here: max_concurrent"},
        {"search_alg = \"tpe\"\n", "7:1 study.search_alg: is Ray Tune's name; here: searcher.type"},
        {"pruner = \"median\"\n", "7:1 study.pruner: is Optuna's name; here: scheduler.type"},
        {"sampler = \"tpe\"\n", "7:1 study.sampler: is Optuna's name; here: searcher.type"},
        {"max_t = 3\n", "7:1 study.max_t: is Ray Tune's name; here: max_iterations"},
        {"brackets = 3\n", "7:1 study.brackets: unknown key here; it belongs to scheduler.brackets"},
        {"deterministic = true\n",
         "1:1 study.max_concurrent: is needed by a deterministic study: the number of trials side by side, which may "
         "not depend on the ranks that a start happens to have"},
        {"deterministic = true\nmax_concurrent = 4\ntime_budget = \"1h\"\n",
         "9:1 study.time_budget: does not go with study.deterministic: what a study does in a given time depends on "
         "the machine; limit num_trials instead"},
        {"unit_cost = \"{layers}\"\n",
         "7:1 study.unit_cost: is not supported by this version: in a deterministic study every unit, from one report "
         "to the next, costs 1"},
        {"colour = 3\n",
         "7:1 study.colour: unknown key; known: name, metric, mode, constraints, num_trials, max_iterations, seed, "
         "max_concurrent, time_budget, deterministic"},
        {"sead = 3\n", "7:1 study.sead: unknown key; did you mean 'seed'?"},
    };
    for (const Case& c : cases) check(c, with_study_line(c.lines));
}

TEST_CASE("mistakes of the file as a whole", "[study]") {
    const std::vector<Case> cases = {
        {"[serch]\n",
         "12:2 serch: unknown table; known: study, trainable, data, resources, space, searcher, scheduler, stop, "
         "failure, checkpoint, journal, run, slurm, predict, before, after_trial, after, hooks, inputs"},
        {"[searchers]\n", "12:2 searchers: unknown table; did you mean [searcher]?"},
        {"[checkpoints]\n", "12:2 checkpoints: unknown table; did you mean [checkpoint]?"},
        {"[tune]\n", "12:2 tune: is Ray Tune's name; here: the tables [study], [searcher] and [scheduler]"},
        {"[pruner]\n", "12:2 pruner: is Optuna's name; here: scheduler.type"},
        {"[parameters]\n", "12:2 parameters: is W&B's name; here: the table [space]"},
        {"[checkpoint_config]\n", "12:2 checkpoint_config: is Ray Tune's name; here: the table [checkpoint]"},
        {"[seed]\n", "12:2 seed: unknown table; did you mean the key study.seed?"},
        {"[[searcher]]\n", "12:1 searcher: needs a table, not a list"},
    };
    for (const Case& c : cases) {
        Parts parts;
        parts.rest = c.lines;
        check(c, parts.text());
    }
    CHECK(mistake("seed = 3\n" + Parts{}.text()) == "1:1 seed: unknown table; did you mean the key study.seed?");
    CHECK(mistake("space = 3\n[study]\n" + Parts{}.study + "[trainable]\n" + Parts{}.trainable) ==
          "1:9 space: needs a table, not an integer");
}

TEST_CASE("mistakes of [trainable]", "[study]") {
    const std::vector<Case> cases = {
        {"builtin = \"mpl\"\n",
         "8:11 trainable.builtin: unknown trainable \"mpl\"; did you mean 'mlp'?; known: mlp, curve, "
         "sleeper (one that a program of yours registers is known to that program: start the study with it)"},
        {"name = 3\n", "8:8 trainable.name: needs a string, not an integer (3); put it in quotes: \"3\""},
        {"builtin = \"curve\"\nname = \"curve\"\n", "9:1 trainable.name: is given beside builtin; give one of them"},
        {"x = 1\n",
         "7:1 trainable.builtin: missing; builtin = \"...\", command = \"...\" of a program, python = "
         "\"FILE:FUNCTION\", or name = \"...\" of a "
         "trainable that this program registers; known: mlp, curve, sleeper"},
        {"builtin = \"mlp\"\n", "7:1 trainable.data: missing; a path: HDF5 file"},
        {"builtin = \"mlp\"\ndata = 3\n", "9:8 trainable.data: the option takes a path, not 3"},
        {"builtin = \"mlp\"\ndata = \"d\"\nhiden = [3]\n", "10:1 trainable.hiden: unknown key; did you mean 'hidden'?"},
        {"builtin = \"mlp\"\ndata = \"d\"\nhidden = [3, 0]\n",
         "10:10 trainable.hidden: the option takes a list of integers, each >= 1, not [3,0]"},
        {"builtin = \"mlp\"\ndata = \"d\"\nhidden = 3\n",
         "10:10 trainable.hidden: the option takes a list of integers, each >= 1, not 3"},
        {"builtin = \"mlp\"\ndata = \"d\"\nbatch_size = 32.0\n",
         "10:14 trainable.batch_size: the option takes an integer >= 1, not 32.0"},
        {"builtin = \"mlp\"\ndata = \"d\"\ndropout = 1.5\n",
         "10:11 trainable.dropout: the option takes a number from 0 to 1, not 1.5"},
        {"builtin = \"mlp\"\ndata = \"d\"\ndropout = inf\n",
         "10:11 trainable.dropout: the option takes a number from 0 to 1, not inf"},
        {"builtin = \"mlp\"\ndata = \"d\"\ndropout = nan\n", "10:11 trainable.dropout: nan is not a value"},
        {"builtin = \"mlp\"\ndata = \"d\"\nnesterov = 1\n",
         "10:12 trainable.nesterov: the option takes true or false, not 1"},
        {"builtin = \"mlp\"\ndata = \"d\"\noptimizer = \"adamm\"\n",
         "10:13 trainable.optimizer: the option takes \"sgd\" or \"adam\", not \"adamm\"; did you mean \"adam\"?"},
        {"builtin = \"mlp\"\ndata = \"d\"\ntag = 2024-01-01\n",
         "10:7 trainable.tag: needs a boolean, number, string or list, not a date or time"},
        {"builtin = \"mlp\"\ndata = \"d\"\n\"a b\" = 1\n",
         "10:1 trainable.a b: a name has letters, digits, '_' and '-', begins with a letter or '_', and is at most 100 "
         "long"},
        {"builtin = \"mlp\"\ndata = \"d\"\nmax_epochs = 3\n",
         "10:1 trainable.max_epochs: unknown key; the ceiling is study.max_iterations (27)"},
        {"name = \"curve\"\na = [[[[[[[[[1]]]]]]]]]\n", "9:13 trainable.a: lists are nested more than 8 deep"},
    };
    for (const Case& c : cases) {
        Parts parts;
        parts.trainable = c.lines;
        parts.space = "";
        check(c, parts.text());
    }
}

TEST_CASE("mistakes of [resources]", "[study]") {
    const std::vector<Case> cases = {
        {"ranks = 0\n", "15:9 resources.ranks: needs an integer from 1 to 10000000, not 0"},
        {"ranks = 2.0\n", "15:9 resources.ranks: needs an integer from 1 to 10000000, not a float (2.0)"},
        {"ranks = \"2\"\n",
         "15:9 resources.ranks: needs an integer >= 1, or \"{name}\" for a parameter of [space], not \"2\""},
        {"ranks = \"{rank}\"\n", "15:9 resources.ranks: [space] has no parameter 'rank'; did you mean 'ranks'?"},
        {"ranks = \"{}\"\n",
         "15:9 resources.ranks: needs an integer >= 1, or \"{name}\" for a parameter of [space], not \"{}\""},
        {"ranks = \"{lr}\"\n",
         "15:9 resources.ranks: the parameter 'lr' must give integers >= 1, not uniform(0.0, 1.0)"},
        {"ranks = \"{none}\"\n", "15:9 resources.ranks: the parameter 'none' must give integers >= 1, not [0, 2]"},
        {"ranks = \"{some}\"\n", "15:9 resources.ranks: the parameter 'some' has a condition; every trial needs ranks"},
        {"cpus_per_rank = 0\n", "15:17 resources.cpus_per_rank: needs an integer from 1 to 100000, not 0"},
        {"gpus = -1\n", "15:8 resources.gpus: needs an integer from 0 to 10000000, not -1"},
        {"gpus = \"2\"\n",
         "15:8 resources.gpus: needs an integer >= 0, or \"{name}\" for a parameter of [space], not \"2\""},
        {"gpus = \"{lr}\"\n",
         "15:8 resources.gpus: the parameter 'lr' must give integers >= 0, not only 0, not uniform(0.0, 1.0)"},
        {"ranks = \"{ranks}\"\ngpus = \"{none}\"\n",
         "16:8 resources.gpus: may be 0: then resources.ranks, the ranks of trials without GPUs, is a number"},
        {"ranks = 2\ngpus = 4\n",
         "16:8 resources.gpus: means so many ranks with one GPU each; leave out resources.ranks"},
        {"gpus = 0.75\n",
         "15:8 resources.gpus: needs a whole number of GPUs, or a share of one from 0.02 to 0.5 (0.25: four trials on "
         "each GPU)"},
        {"gpus = 0.01\n",
         "15:8 resources.gpus: needs a whole number of GPUs, or a share of one from 0.02 to 0.5 (0.25: four trials on "
         "each GPU)"},
        {"gpus = -0.25\n",
         "15:8 resources.gpus: needs a whole number of GPUs, or a share of one from 0.02 to 0.5 (0.25: four trials on "
         "each GPU)"},
        {"ranks = 2\ngpus = 0.5\n",
         "16:8 resources.gpus: a share of a GPU is for trials of one rank: ranks of a trial never share a GPU; leave "
         "out resources.ranks"},
        {"num_gpus = 2\n", "15:1 resources.num_gpus: is Ray's name; here: gpus"},
        {"gpus_per_rank = 1\n",
         "15:1 resources.gpus_per_rank: is not supported by this version: a rank has one GPU; write gpus = N for N "
         "ranks with one each"},
        {"num_workers = 2\n", "15:1 resources.num_workers: is Ray Train's name; here: ranks"},
        {"bind = \"core\"\n",
         "15:8 resources.bind: unknown value \"core\"; accepted: \"auto\", \"cores\" or \"none\"; did you mean "
         "\"cores\"?"},
        {"cpu_bind = \"none\"\n", "15:1 resources.cpu_bind: is Slurm's name; here: bind"},
        {"cpus_per_task = 2\n", "15:1 resources.cpus_per_task: is Slurm's name; here: cpus_per_rank"},
        {"rank = 2\n", "15:1 resources.rank: unknown key; did you mean 'ranks'?"},
    };
    for (const Case& c : cases) {
        Parts parts = free_parts();
        parts.space =
            "lr = \"uniform(0, 1)\"\nranks = [1, 2]\nnone = [0, 2]\n"
            "some = { domain = [1, 2], condition = \"lr > 0.5\" }\n";
        parts.rest = "[resources]\n" + c.lines;
        check(c, parts.text());
    }
}

TEST_CASE("trials with and without GPUs do not wait for each other", "[study]") {
    Parts parts = free_parts();
    parts.space = "gpus = [0, 2]\nlr = \"uniform(0, 1)\"\n";
    parts.rest = "[resources]\ngpus = \"{gpus}\"\n[scheduler]\ntype = \"pbt\"\ninterval = 3\nexplore.lr = [0.8, 1.2]\n";
    CHECK(
        mistakes(parts.text()) ==
        std::vector<std::string>{"13:8 resources.gpus: may be 0, which does not go with scheduler.type = \"pbt\": its "
                                 "trials wait for each other and take over each other's states; give each of them "
                                 "GPUs, or none"});
}

TEST_CASE("mistakes of [space], whatever the trainable", "[study]") {
    const std::vector<Case> cases = {
        {"a = \"uniform(1, 0)\"\n", "10:5 space.a: uniform needs low <= high, got 1.0 > 0.0:  \"uniform(1, 0)\""},
        {"a = \"unifrom(0, 1)\"\n",
         "10:5 space.a: unknown domain 'unifrom'; did you mean 'uniform'?:  \"unifrom(0, 1)\""},
        {"a = []\n", "10:5 space.a: a choice needs at least one value"},
        {"a = [1, nan]\n", "10:9 space.a: nan is not a value"},
        {"a = nan\n", "10:5 space.a: nan is not a value"},
        {"a = 2024-01-01\n", "10:5 space.a: needs a boolean, number, string or list, not a date or time"},
        {"a = [[{ b = 1 }]]\n", "10:7 space.a: needs a boolean, number, string or list, not a table"},
        {"\"a.b\" = 1\n",
         "10:1 space.a.b: a name has letters, digits, '_' and '-', begins with a letter or '_', and is at most 100 "
         "long"},
        {"2nd = 1\n",
         "10:1 space.2nd: a name has letters, digits, '_' and '-', begins with a letter or '_', and is at most 100 "
         "long"},
        {"a = { domain = \"uniform(0, 1)\", value = 3 }\n",
         "10:33 space.a.value: is given beside domain; give one of them"},
        {"a = { domain = 3 }\n",
         "10:16 space.a.domain: needs a call such as \"uniform(0.0, 1.0)\" or a list, not an integer; "
         "a constant is written value = ..."},
        {"a = { domain = \"sgd\" }\n",
         "10:16 space.a.domain: needs a call such as \"uniform(0.0, 1.0)\" or a list, not "
         "\"sgd\"; a constant is written value = ..."},
        {"a = { value = 3, condition = 4 }\n",
         "10:30 space.a.condition: needs a string, as in \"optimizer == 'sgd'\", not an integer"},
        {"a = { value = 3, condition = \"b == 1\" }\n",
         "10:30 space.a.condition: unknown parameter 'b' (there is no other):  \"b == 1\""},
        {"opt = [1, 2]\na = { value = 3, condition = \"ops == 1\" }\n",
         "11:30 space.a.condition: unknown parameter 'ops'; did you mean 'opt'?:  \"ops == 1\""},
        {"a = {}\n", "10:5 space.a: a nested table without parameters"},
        {"b = 1\n[space.a]\ncondition = \"b == 1\"\n", "11:1 space.a: a nested table without parameters"},
        {"b = 1\n[space.a]\ncondition = \"c == 1\"\nd = 1\n",
         "12:13 space.a.condition: unknown parameter 'c' (known: b, a.d):  \"c == 1\""},
        {"b = 1\ncondition = \"b == 1\"\n",
         "11:1 space.condition: a condition belongs to a parameter or to a nested table, not to the whole space; a "
         "hyper-parameter of this name is written condition = { value = ... }"},
        {"[space.a]\nb = \"randint(3, 3)\"\n",
         "11:5 space.a.b: randint needs low < high (the upper bound is exclusive), got 3 and 3:  \"randint(3, 3)\""},
    };
    for (const Case& c : cases) {
        Parts parts = free_parts();
        parts.space = c.lines;
        check(c, parts.text());
    }
}

TEST_CASE("mistakes between [space] and the trainable", "[study]") {
    const std::vector<Case> cases = {
        {"data = [\"a\", \"b\"]\n", "11:1 space.data: is also given in [trainable]; give it in one place"},
        {"lrr = \"uniform(0, 1)\"\n", "11:1 space.lrr: the trainable 'mlp' does not read it; did you mean 'lr'?"},
        {"epochs = [1, 2]\n",
         "11:1 space.epochs: the trainable 'mlp' does not read it; the ceiling is study.max_iterations"},
        {"lr = \"randn()\"\n",
         "11:6 space.lr: the option takes a number >= 0, not a normal distribution, which has no bounds"},
        {"lr = \"uniform(-1.0, 1)\"\n", "11:6 space.lr: the option takes a number >= 0, not values from -1 to 1"},
        {"lr = [0.1, \"x\"]\n", "11:6 space.lr: the option takes a number >= 0, not \"x\""},
        {"dropout = \"uniform(0.0, 1.5)\"\n",
         "11:11 space.dropout: the option takes a number from 0 to 1, not values from 0 to 1.5"},
        {"dropout = [0.0, 1.5]\n", "11:11 space.dropout: the option takes a number from 0 to 1, not 1.5"},
        {"dropout = \"randint(0, 3)\"\n",
         "11:11 space.dropout: the option takes a number from 0 to 1, not integers from 0 to 2"},
        {"batch_size = \"uniform(16, 64)\"\n",
         "11:14 space.batch_size: the option takes an integer >= 1, not floats; integers are drawn by randint, "
         "lograndint, qrandint and qlograndint"},
        {"batch_size = \"randint(0, 64)\"\n",
         "11:14 space.batch_size: the option takes an integer >= 1, not integers from 0 to 63"},
        {"batch_size = [32, 64.0]\n", "11:14 space.batch_size: the option takes an integer >= 1, not 64.0"},
        {"batch_size = \"grid([0, 8])\"\n", "11:14 space.batch_size: the option takes an integer >= 1, not 0"},
        {"optimizer = [\"sgd\", \"adamm\"]\n",
         "11:13 space.optimizer: the option takes \"sgd\" or \"adam\", not \"adamm\"; did you mean \"adam\"?"},
        {"optimizer = \"uniform(0, 1)\"\n", "11:13 space.optimizer: the option takes \"sgd\" or \"adam\", not floats"},
        {"optimizer = \"randint(0, 2)\"\n",
         "11:13 space.optimizer: the option takes \"sgd\" or \"adam\", not integers"},
        {"nesterov = [true, \"no\"]\n", "11:12 space.nesterov: the option takes true or false, not \"no\""},
        {"hidden = [64, 128]\n", "11:10 space.hidden: the option takes a list of integers, each >= 1, not 64"},
        {"hidden = [[64], [0]]\n", "11:10 space.hidden: the option takes a list of integers, each >= 1, not [0]"},
        {"hidden = \"randn()\"\n", "11:10 space.hidden: the option takes a list of integers, each >= 1, not floats"},
        {"[space.sgd]\ndecays = [1, 2]\n",
         "12:1 space.sgd.decays: the trainable 'mlp' does not read it; did you mean 'sgd.decay'?"},
    };
    for (const Case& c : cases) {
        Parts parts;
        parts.space = c.lines;
        check(c, parts.text());
    }
    // A parameter that the trainable does not read may serve resources.ranks or a condition.
    Parts parts;
    parts.space =
        "r = [1, 2]\nkind = [\"a\", \"b\"]\nlr = { domain = \"uniform(0, 1)\", condition = \"kind == 'a'\" }\n";
    parts.rest = "[resources]\nranks = \"{r}\"\n";
    CHECK(mistake(parts.text()) == "");
    // A required option may be tuned, but must then always be there.
    parts = Parts{};
    parts.trainable = "builtin = \"mlp\"\n";
    parts.space = "kind = [1, 2]\ndata = { domain = [\"a\", \"b\"], condition = \"kind == 1\" }\n";
    CHECK(mistake(parts.text()) == "11:8 space.data: the option is required, so the parameter cannot have a condition");
}

TEST_CASE("mistakes of [scheduler]", "[study]") {
    const std::string types = listed(names_of(schedulers::built_in(), [](const auto&) { return true; }));
    const std::vector<Case> cases = {
        {"type = \"genetic\"\n", "13:8 scheduler.type: unknown value \"genetic\"; accepted: " + types},
        {"type = \"genetic\"\n[scheduler.explore]\nlr = \"perturb\"\n",
         "13:8 scheduler.type: unknown value \"genetic\"; accepted: " + types +
             "\n14:12 scheduler.explore: another scheduler.type has it"},
        {"type = \"HyperBandScheduler\"\n", "13:8 scheduler.type: unknown value \"HyperBandScheduler\"; accepted: " +
                                                types + "; here it is called \"hyperband\""},
        {"type = \"asynchyperband\"\n",
         "13:8 scheduler.type: unknown value \"asynchyperband\"; accepted: " + types + "; here it is called \"asha\""},
        {"eta = 3\n", "12:1 scheduler.type: missing; " + types},
        {"type = \"fifo\"\neta = 3\n",
         "14:1 scheduler.eta: is a key of type " + listed(owners_of(schedulers::built_in(), "eta")) + " only"},
        {"type = \"fifo\"\ngrace = 3\n", "14:1 scheduler.grace: is a key of type \"median\" only"},
        {"type = \"median\"\nbrackets = 3\n", "14:1 scheduler.brackets: is a key of type \"asha\" only"},
        {"type = \"asha\"\nhard_stop = true\n", "14:1 scheduler.hard_stop: is a key of type \"median\" only"},
        {"type = \"asha\"\nrule = \"floor\"\n", "14:1 scheduler.rule: is a key of variant \"stop\" only"},
        {"type = \"asha\"\nstop_last_trials = true\n",
         "14:1 scheduler.stop_last_trials: is a key of rule \"ray\" only"},
        {"type = \"asha\"\nvariant = \"stop\"\nfinish_top = 1\n",
         "15:1 scheduler.finish_top: is a key of variant \"promote\" only"},
        {"type = \"asha\"\nvariant = \"stop\"\nrestart_paused = true\n",
         "15:1 scheduler.restart_paused: is a key of variant \"promote\" only"},
        {"type = \"asha\"\nvariant = \"stop\"\nstop_last_trials = true\n",
         "15:1 scheduler.stop_last_trials: is a key of rule \"ray\" only"},
        {"type = \"asha\"\nvariant = \"promotion\"\n",
         "14:11 scheduler.variant: unknown value \"promotion\"; accepted: "
         "\"promote\" or \"stop\"; here it is called \"promote\""},
        {"type = \"asha\"\ngrace_period = 1\n",
         "14:1 scheduler.grace_period: is Ray Tune's name; here: "
         "scheduler.first_rung (asha) or scheduler.grace (median)"},
        {"type = \"asha\"\nreduction_factor = 4\n", "14:1 scheduler.reduction_factor: is Ray Tune's name; here: eta"},
        {"type = \"asha\"\nmax_t = 81\n", "14:1 scheduler.max_t: is Ray Tune's name; here: study.max_iterations"},
        {"type = \"asha\"\nmin_resource = 1\n", "14:1 scheduler.min_resource: is Optuna's name; here: first_rung"},
        {"type = \"asha\"\nmetric = \"x\"\n",
         "14:1 scheduler.metric: unknown key here; it belongs to study.metric or stop.metric or stop.plateau.metric"},
        {"type = \"median\"\nmin_samples_required = 3\n",
         "14:1 scheduler.min_samples_required: is Ray Tune's name; here: min_samples"},
        {"type = 3\neta = 3\ncolor = 2\n", "13:8 scheduler.type: needs " + types +
                                               ", not an integer (3)\n15:1 scheduler.color: unknown key; "
                                               "known: type, " +
                                               base::join(options_of(schedulers::built_in())) + ", explore, schedule"},
    };
    check_scheduler(cases);
}

TEST_CASE("values of [scheduler] out of range", "[study]") {
    check_scheduler({
        {"type = \"asha\"\neta = 1\n", "14:7 scheduler.eta: needs a number > 1: one in eta goes on"},
        {"type = \"asha\"\neta = 0.5\n", "14:7 scheduler.eta: needs a number from 1 to 1000000, not 0.5"},
        {"type = \"asha\"\neta = 2.5\n",
         "14:7 scheduler.eta: needs a whole number, not 2.5 (only rule \"ray\" takes fractions)"},
        {"type = \"asha\"\neta = inf\n", "14:7 scheduler.eta: needs a number from 1 to 1000000, not inf"},
        {"type = \"asha\"\neta = \"3\"\n",
         "14:7 scheduler.eta: needs a number from 1 to 1000000, not a string (\"3\")"},
        {"type = \"asha\"\nfirst_rung = 1.5\n",
         "14:14 scheduler.first_rung: needs a whole number, not 1.5 (only rule \"ray\" takes fractions)"},
        {"type = \"asha\"\nfirst_rung = 0\n", "14:14 scheduler.first_rung: needs a number >= 1, not 0"},
        {"type = \"asha\"\nvariant = \"stop\"\nrule = \"ray\"\nfirst_rung = 0\n",
         "16:14 scheduler.first_rung: needs a number > 0"},
        {"type = \"asha\"\nfirst_rung = 28\n",
         "14:14 scheduler.first_rung: 28 is above the ceiling study.max_iterations (27)"},
        {"type = \"asha\"\nvariant = \"stop\"\nrule = \"ray\"\nfirst_rung = 27.5\n",
         "16:14 scheduler.first_rung: 27.5 is above the ceiling study.max_iterations (27)"},
        {"type = \"asha\"\nbrackets = 4\n",
         "14:12 scheduler.brackets: bracket 4 would have its first rung at 27, not below "
         "study.max_iterations (27); at most 3"},
        {"type = \"asha\"\nvariant = \"stop\"\nrule = \"ray\"\neta = 1.01\n",
         "16:7 scheduler.eta: gives more than 64 rungs up to study.max_iterations (27)"},
        {"type = \"asha\"\nbrackets = 0\n", "14:12 scheduler.brackets: needs an integer from 1 to 64, not 0"},
        {"type = \"asha\"\nfinish_top = -1\n", "14:14 scheduler.finish_top: needs an integer >= 0, not -1"},
        {"type = \"median\"\ngrace = 28\n",
         "14:9 scheduler.grace: 28 is above the ceiling study.max_iterations (27); it counts iterations"},
        {"type = \"median\"\ngrace = -1\n", "14:9 scheduler.grace: needs a number >= 0, not -1"},
        {"type = \"median\"\nmin_samples = 0\n", "14:15 scheduler.min_samples: needs an integer >= 1, not 0"},
    });
}

TEST_CASE("the edges of rungs and brackets are accepted", "[study]") {
    for (const std::string lines :
         {"first_rung = 27\n", "brackets = 3\n", "eta = 2.0\n", "first_rung = 3.0\nbrackets = 2\n",
          "variant = \"stop\"\nrule = \"ray\"\nbrackets = 64\n"}) {
        Parts parts;
        parts.rest = "[scheduler]\ntype = \"asha\"\n" + lines;
        CHECK(mistake(parts.text()) == "");
    }
    Parts parts;
    parts.rest = "[scheduler]\ntype = \"median\"\ngrace = 27\n";
    CHECK(mistake(parts.text()) == "");
}

TEST_CASE("schedulers that pause need checkpoints", "[study]") {
    Parts parts = free_parts();
    parts.trainable = "name = \"sleeper\"\n";
    const auto with = [&](const std::string& lines) {
        parts.rest = "[scheduler]\n" + lines;
        return mistake(parts.text());
    };
    const std::string advice =
        "\"promote\" pauses trials, and the trainable 'sleeper' cannot save checkpoints; use variant = "
        "\"stop\", or restart_paused = true to train promoted trials from the beginning";
    CHECK(with("type = \"asha\"\n") == "11:1 scheduler.variant: " + advice);
    CHECK(with("type = \"asha\"\nvariant = \"promote\"\n") == "13:11 scheduler.variant: " + advice);
    CHECK(with("type = \"asha\"\nrestart_paused = true\n") == "");
    CHECK(with("type = \"asha\"\nvariant = \"stop\"\n") == "");
    CHECK(with("type = \"median\"\n") == "");
    CHECK(with("type = \"median\"\nhard_stop = false\n") ==
          "13:13 scheduler.hard_stop: false pauses trials, and the trainable 'sleeper' cannot save checkpoints");
}

TEST_CASE("mistakes of [stop]", "[study]") {
    const std::string wanted = "needs a comparison in quotes, METRIC >= NUMBER or METRIC <= NUMBER, not ";
    const std::vector<Case> cases = {
        {"metric = \"val_loss > 3\"\n", "13:10 stop.metric: " + wanted + "\"val_loss > 3\""},
        {"metric = \"val_loss >= x\"\n", "13:10 stop.metric: " + wanted + "\"val_loss >= x\""},
        {"metric = \"val_loss >= inf\"\n", "13:10 stop.metric: " + wanted + "\"val_loss >= inf\""},
        {"metric = \">= 3\"\n", "13:10 stop.metric: " + wanted + "\">= 3\""},
        {"metric = \"val_loss >=\"\n", "13:10 stop.metric: " + wanted + "\"val_loss >=\""},
        {"metric = \"val_loss >\"\n", "13:10 stop.metric: " + wanted + "\"val_loss >\""},
        {"metric = \"\"\n", "13:10 stop.metric: " + wanted + "\"\""},
        {"metric = { val_loss = 3 }\n", "13:10 stop.metric: " + wanted + "a table"},
        {"metric = [\"val_loss <= 1\", 3]\n", "13:28 stop.metric: " + wanted + "an integer"},
        {"metric = \"loss <= 1\"\n",
         "13:10 stop.metric: the trainable 'mlp' does not report \"loss\"; it reports: "
         "train_loss, val_loss, val_accuracy"},
        {"time = \"0m\"\n", "13:8 stop.time: needs a duration longer than zero, not \"0m\""},
        {"plateau = true\n", "13:11 stop.plateau: needs a table, not a boolean"},
        {"[stop.plateau]\nresults = 1\n", "14:11 stop.plateau.results: needs an integer from 2 to 10000, not 1"},
        {"[stop.plateau]\nstd = 0\n", "14:7 stop.plateau.std: needs a number > 0"},
        {"[stop.plateau]\nstd = -0.1\n", "14:7 stop.plateau.std: needs a number >= 0, not -0.1"},
        {"[stop.study]\ntarget = \"high\"\n", "14:10 stop.study.target: needs a number, not a string (\"high\")"},
        {"[stop.study]\nno_better_in = 0\n", "14:16 stop.study.no_better_in: needs an integer >= 1, not 0"},
        {"[stop.study]\ntrials = 5\n", "14:1 stop.study.trials: unknown key; did you mean 'trials_ok'?"},
        {"[stop.plateau]\nmetric = \"x\"\n",
         "14:10 stop.plateau.metric: the trainable 'mlp' does not report \"x\"; it reports: "
         "train_loss, val_loss, val_accuracy"},
        {"[stop.plateau]\ngrace_period = 1\n", "14:1 stop.plateau.grace_period: is Ray Tune's name; here: grace"},
        {"[stop.plateau]\nmetric_threshold = 1\n",
         "14:1 stop.plateau.metric_threshold: is Ray Tune's name; here: threshold"},
        {"training_iteration = 10\n", "13:1 stop.training_iteration: is Ray Tune's name; here: study.max_iterations"},
        {"max_iterations = 10\n", "13:1 stop.max_iterations: unknown key here; it belongs to study.max_iterations"},
        {"time_total_s = 10\n", "13:1 stop.time_total_s: is Ray Tune's name; here: time"},
    };
    for (const Case& c : cases) {
        Parts parts;
        parts.rest = "[stop]\n" + c.lines;
        check(c, parts.text());
    }
}

TEST_CASE("mistakes of [checkpoint]", "[study]") {
    const std::string with_rungs =
        listed(names_of(schedulers::built_in(), [](const SchedulerInfo& info) { return info.has_rungs; }));
    const std::string accepted = "a number of iterations, a duration such as \"10m\", \"auto\" or \"none\"";
    const std::vector<Case> cases = {
        {"[checkpoint]\ninterval = 0\n", "13:12 checkpoint.interval: needs an integer >= 1, not 0"},
        {"[checkpoint]\ninterval = 1.5\n", "13:12 checkpoint.interval: needs " + accepted + ", not a float"},
        {"[checkpoint]\ninterval = \"never\"\n", "13:12 checkpoint.interval: needs " + accepted + ", not \"never\""},
        {"[checkpoint]\ninterval = \"5:00\"\n",
         "13:12 checkpoint.interval: \"5:00\" is not a duration: Slurm reads minutes, people mean hours; write "
         "\"5:00:00\" or \"0:5:00\""},
        {"[checkpoint]\ninterval = 5\nmean_time_between_failures = \"1d\"\n",
         "14:1 checkpoint.mean_time_between_failures: only goes with interval = \"auto\""},
        {"[checkpoint]\nfrequency = 5\n",
         "13:1 checkpoint.frequency: unknown key; known: interval, mean_time_between_failures, at_rungs, "
         "supported, keep, every_trial, max_bytes, direct"},
        {"[checkpoint]\nat_rungs = true\n",
         "13:1 checkpoint.at_rungs: only scheduler.type = " + with_rungs + " has rungs"},
        {"[checkpoint]\nsupported = false\n",
         "13:13 checkpoint.supported: the trainable 'mlp' can save its state; leave this key out"},
        {"[checkpoint]\nkeep = 0\n", "13:8 checkpoint.keep: needs an integer from 1 to 1000, not 0"},
        {"[checkpoint]\nnum_to_keep = 2\n", "13:1 checkpoint.num_to_keep: is Ray Tune's name; here: keep"},
        {"[checkpoint]\nmax_bytes = \"500 apples\"\n",
         "13:13 checkpoint.max_bytes: needs a number of bytes, or text with one of the units KB, MB, GB, TB, KiB, MiB, "
         "GiB, TiB, as in \"500GB\", not \"500 apples\""},
        {"[checkpoint]\nmax_bytes = 0\n", "13:13 checkpoint.max_bytes: needs an integer >= 1, not 0"},
        {"[checkpoint]\ndirect = 1\n", "13:10 checkpoint.direct: needs true or false, not an integer (1)"},
    };
    for (const Case& c : cases) {
        Parts parts;
        parts.rest = c.lines;
        check(c, parts.text());
    }
}

TEST_CASE("mistakes of [failure], [journal], [run] and [slurm]", "[study]") {
    const std::vector<Case> cases = {
        {"[failure]\ntolerate = 5\n", "13:12 failure.tolerate: needs a number from 0 to 1, not 5"},
        {"[failure]\nmax_losses = 0\n", "13:14 failure.max_losses: needs an integer from 1 to 1000000, not 0"},
        {"[failure]\nmax_failures = -1\n", "13:16 failure.max_failures: needs an integer from 0 to 1000000, not -1"},
        {"[failure]\nreport_timeout = \"0s\"\n",
         "13:18 failure.report_timeout: needs a duration longer than zero, not \"0s\""},
        {"[journal]\ncommit_interval = \"0s\"\n",
         "13:19 journal.commit_interval: needs a duration longer than zero, not \"0s\""},
        {"[run]\nheartbeat_timeout = \"900ms\"\n",
         "13:21 run.heartbeat_timeout: needs a duration of at least 3s, not \"900ms\"; ranks give a sign of life each "
         "second, and one that is late by a moment is not dead"},
        {"[journal]\ncommit = \"1s\"\n", "13:1 journal.commit: unknown key; did you mean 'commit_interval'?"},
        {"[run]\nabort_grace = 30\n",
         "13:15 run.abort_grace: needs a duration in quotes, as in \"90m\" or \"02:30:00\", not an integer (30)"},
        {"[run]\nheartbeat_timout = \"1m\"\n",
         "13:1 run.heartbeat_timout: unknown key; did you mean 'heartbeat_timeout'?"},
        {"[slurm]\nrequeue = \"yes\"\n", "13:11 slurm.requeue: needs true or false, not a string (\"yes\")"},
        {"[slurm]\nmax_requeues = 0\n", "13:16 slurm.max_requeues: needs an integer from 1 to 1000000, not 0"},
        {"[slurm]\npoll_interval = \"9s\"\n",
         "13:17 slurm.poll_interval: needs a duration of at least 10s, not \"9s\"; many studies that ask more often "
         "are a load for Slurm's controller"},
        {"[slurm]\nlead_tim = \"1m\"\n", "13:1 slurm.lead_tim: unknown key; did you mean 'lead_time'?"},
    };
    for (const Case& c : cases) {
        Parts parts;
        parts.rest = c.lines;
        check(c, parts.text());
    }
}

TEST_CASE("long values and control characters are shortened and escaped in messages", "[study]") {
    Parts parts;
    parts.rest = "[stop]\nmetric = \"" + std::string(500, 'x') + "\"\n";
    CHECK(mistake(parts.text()).size() < 250);
    parts.rest = "[stop]\nmetric = \"a\\u001B[31m\"\n";
    CHECK(mistake(parts.text()).find('\x1B') == std::string::npos);
    parts.rest = "[stop]\nmetric = \"" + std::string(59, 'x') + "\xC3\xA9\xC3\xA9\"\n";
    CHECK(mistake(parts.text()).find(std::string(59, 'x') + "...\"") != std::string::npos);
}

} // namespace mistakes_test
