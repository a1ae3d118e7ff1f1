// SPDX-License-Identifier: Apache-2.0
// Programs in study files: the command and its placeholders, and the keys beside it.

#include "ranktune/base/error.hpp"
#include "ranktune/study/command_template.hpp"
#include "study_files.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace program_test {

using namespace ranktune;
using namespace ranktune::study;
using namespace ranktune::study::testing;

namespace {

using Words = std::vector<std::string>;

space::Configuration sample() {
    space::Configuration configuration;
    configuration.set("lr", 3.2e-05);
    configuration.set("batch_size", 32);
    configuration.set("hidden", space::Value(space::Value::List{64, 32}));
    configuration.set("sgd.nesterov", true);
    configuration.set("tag", "it's a b");
    return configuration;
}

Words words(const std::string& command, bool shell = false) {
    const auto configuration = sample();
    return CommandTemplate(command, shell).expand({configuration, "/s/config.json", 27});
}

std::string refusal(const std::string& command, bool shell = false) {
    return ranktune::testing::error_of<base::UsageError>([&] { return CommandTemplate(command, shell); });
}

/// A correct study with a program.
Parts program_parts(const std::string& keys = "", const std::string& command = "python3 train.py {args}") {
    Parts parts;
    parts.trainable = "command = \"" + command + "\"\n" + keys;
    return parts;
}

} // namespace

TEST_CASE("a command is split into words as a shell would split it", "[study]") {
    CHECK(words("python3  train.py\t--quiet") == Words{"python3", "train.py", "--quiet"});
    CHECK(words("a 'b c' \"d e\" f' 'g h\\ i") == Words{"a", "b c", "d e", "f g", "h i"});
    CHECK(words("a '' \"\"") == Words{"a", "", ""});
    CHECK(words("a \"x\\\"y\\\\z\\n\" 'it\\s'") == Words{"a", "x\"y\\z\\n", "it\\s"});
    CHECK(words("awk '{{print $1}}'") == Words{"awk", "{print $1}"});
}

TEST_CASE("placeholders are filled in for each trial", "[study]") {
    CHECK(words("p {args}") ==
          Words{"p", "--lr=3.2e-05", "--batch_size=32", "--hidden=[64,32]", "--sgd.nesterov=true", "--tag=it's a b"});
    const Words hydra{"p", "lr=3.2e-05", "batch_size=32", "hidden=[64,32]", "sgd.nesterov=true", "tag='it\\'s a b'",
                      "-x"};
    CHECK(words("p {args_hydra} -x") == hydra);
    CHECK(words("p {args_plain} -x") == hydra); // the older name
    CHECK(words("p {args:py} {sgd.nesterov:py} {hidden:py} {lr:py}{momentum:py}") ==
          Words{"p", "--lr=3.2e-05", "--batch_size=32", "--hidden=[64, 32]", "--sgd.nesterov=True", "--tag=it's a b",
                "True", "[64, 32]"});
    CHECK(words("p --config={config} {iterations} '{lr} {tag}'") ==
          Words{"p", "--config=/s/config.json", "27", "3.2e-05 it's a b"});
    CHECK(words("p --momentum={momentum} {lr}") == Words{"p", "3.2e-05"}); // this trial has no momentum
    CHECK(CommandTemplate("p {b} {a} {b:py} {args} {config} {args:py}", false).placeholders() ==
          Words{"b", "a", "args", "config", "args:py"});
}

TEST_CASE("strings are quoted for Hydra where its grammar would read something else", "[study]") {
    const auto word = [](const space::Value& value) {
        space::Configuration configuration;
        configuration.set("s", value);
        return CommandTemplate("p {args_hydra}", false).expand({configuration, "", 1})[1];
    };
    for (const std::string plain : {"adam", "resnet-50", "a/b.c", "_x", "nullable", "e5"})
        CHECK(word(plain) == "s=" + plain);
    for (const std::string other :
         {"a,b", "a=b", "true", "NULL", "Inf", "1e-5", "3", "", "a b", "[1]", "a:b", "*", "ä", "-x"})
        CHECK(word(other) == "s='" + other + "'");
    CHECK(word("it's") == "s='it\\'s'");
    CHECK(word("a\\b") == "s='a\\b'");
    CHECK(word("a\\") == "s='a\\\\'");
    CHECK(word("a\\'") == "s='a\\\\\\''");
    CHECK(word("${x}") == "s='\\${x}'");
    CHECK(word("\\${x}") == "s='\\\\\\${x}'");
    CHECK(word(space::Value(space::Value::List{"a", "a,b", 1, true, space::Value(space::Value::List{"1"})})) ==
          "s=[a,'a,b',1,true,['1']]");
}

TEST_CASE("values look as Python prints them", "[study]") {
    const auto text = [](const space::Value& value) {
        space::Configuration configuration;
        configuration.set("x", value);
        return CommandTemplate("p {x:py}", false).expand({configuration, "", 1})[1];
    };
    CHECK(text(true) == "True");
    CHECK(text(false) == "False");
    CHECK(text("None") == "None");
    CHECK(text("it's") == "it's");
    CHECK(text(1e-5) == "1e-05");
    CHECK(text(space::Value(space::Value::List{"it's", true, 2.0, space::Value(space::Value::List{})})) ==
          "['it\\'s', True, 2.0, []]");
}

TEST_CASE("each trial gets its number and a folder of its own where the study file asks for them", "[study]") {
    const base::TrialId seven{7};
    const auto configuration = sample();
    const auto words = CommandTemplate("p --out={folder}/x --seed={trial}", false)
                           .expand({configuration, "/s/config.json", 27, seven, "/s/trials/7"});
    CHECK(words == Words{"p", "--out=/s/trials/7/x", "--seed=7"});
    const auto program = [](const std::string& keys, const std::string& command = "p {args}") {
        return *parse(program_parts(keys, command).text()).trainable.program;
    };
    const auto works_in = [&](const std::string& keys) {
        return working_directory(program(keys), seven, "/s/trials/7");
    };
    CHECK(works_in("cwd = \"trial\"\n") == "/s/trials/7");
    CHECK(works_in("directory = \"{folder}\"\n") == "/s/trials/7");
    CHECK(works_in("directory = \"{folder}/out\"\n") == "/s/trials/7/out");
    CHECK(works_in("directory = \"runs/{trial}\"\n") == "/studies/runs/7");
    CHECK(works_in("directory = \"runs\"\n") == "/studies/runs");
    CHECK(works_in("directory = \"{x}\"\n") == "/studies/{x}");
    CHECK(common_directory(program("cwd = \"trial\"\n")) == "/studies");
    CHECK(common_directory(program("cwd = \"trial\"\ndirectory = \"code\"\n")) == "/studies/code");
    CHECK(common_directory(program("directory = \"runs/{trial}\"\n")) == "/studies/runs");
    CHECK_FALSE(works_apart(program("directory = \"runs\"\n")));
    CHECK_FALSE(uses_trial_folder(program("directory = \"runs/{trial}\"\n", "p {trial}")));
    CHECK(uses_trial_folder(program("cwd = \"trial\"\n")));
    CHECK(uses_trial_folder(program("", "p {folder}")));
    CHECK(uses_trial_folder(program("env = { OUT = \"{folder}/x\" }\n")));
    CHECK(fill_in_trial("{folder}/{trial}-{trial}{{}", seven, "/s/{trial}") == "/s/{trial}/7-7{{}");
    CHECK(fill_in_trial("{{trial}} {{folder}}/{trial}{{trial}", seven, "/s/7") == "{trial} {folder}/7{7");
    CHECK(works_in("directory = \"runs/{{trial}}\"\n") == "/studies/runs/{trial}");
    CHECK_FALSE(works_apart(program("directory = \"runs\"\nenv = { A = \"{{trial}}\" }\n")));
    CHECK_FALSE(uses_trial_folder(program("env = { OUT = \"{{folder}}\" }\n")));
    CHECK(resolved_toml(parse(program_parts("cwd = \"trial\"\n").text())).find("directory = \"/studies/{folder}\"") !=
          std::string::npos);
    CHECK(mistake(program_parts("cwd = \"here\"\n").text()) ==
          "9:7 trainable.cwd: needs \"trial\", not \"here\"; for another folder say directory");
    CHECK(mistake(program_parts("cwd = \"trial\"\ndirectory = \"{folder}/x\"\n").text()) ==
          "9:7 trainable.cwd: directory gives each trial a folder already; give one of them");
}

TEST_CASE("booleans are written as flags where the program wants flags", "[study]") {
    space::Configuration configuration;
    configuration.set("amp", true);
    configuration.set("sgd.nesterov", false);
    configuration.set("hidden", space::Value(space::Value::List{true, false}));
    configuration.set("mode", "true");
    const auto words = [&](Flags flags, const std::string& command = "p {args}", bool shell = false) {
        return CommandTemplate(command, shell, flags).expand({configuration, "/s/config.json", 27});
    };
    CHECK(words(Flags::off) ==
          Words{"p", "--amp=true", "--sgd.nesterov=false", "--hidden=[true,false]", "--mode=true"});
    CHECK(words(Flags::set) == Words{"p", "--amp", "--hidden=[true,false]", "--mode=true"});
    CHECK(words(Flags::both) == Words{"p", "--amp", "--no-sgd.nesterov", "--hidden=[true,false]", "--mode=true"});
    // Named placeholders and {args_plain} still get values.
    CHECK(words(Flags::set, "p {args_plain} {amp}") ==
          Words{"p", "amp=true", "sgd.nesterov=false", "hidden=[true,false]", "mode='true'", "true"});
    CHECK(words(Flags::both, "p {args}", true)[2] == "p --amp --no-sgd.nesterov '--hidden=[true,false]' --mode=true");
    configuration = {};
    configuration.set("amp", false);
    CHECK(words(Flags::set) == Words{"p"});
    CHECK(words(Flags::set, "p {args} -x", true)[2] == "p  -x");
}

TEST_CASE("for a shell the text stays as it is and values are quoted", "[study]") {
    CHECK(words("cd $HOME && ./p --tag={tag} --lr={lr} {{x}} | tee log", true) ==
          Words{"/bin/sh", "-c", "cd $HOME && ./p --tag='it'\\''s a b' --lr=3.2e-05 {x} | tee log"});
    CHECK(words("p{args}", true)[2].starts_with("p--lr=3.2e-05 --batch_size=32 "));
    CHECK(words("p -m {momentum}", true)[2] == "p -m ");
    CHECK(shell_text({"a b", "c", "", "d'e"}) == "'a b' c '' 'd'\\''e'");
}

TEST_CASE("between quotes of a shell command a value is written for them", "[study]") {
    space::Configuration configuration;
    configuration.set("v", "a\"b'c $(d) `e` \\f");
    configuration.set("lines", "a\nEND");
    const auto text = [&](const std::string& command) {
        return CommandTemplate(command, true).expand({configuration, "", 1})[2];
    };
    const std::string plain = "'a\"b'\\''c $(d) `e` \\f'";
    const std::string twice = "a\\\"b'c \\$(d) \\`e\\` \\\\f";
    const std::string single = "a\"b'\\''c $(d) `e` \\f";
    CHECK(text("echo {v}") == "echo " + plain);
    CHECK(text("echo \"-{v}-\" {v}") == "echo \"-" + twice + "-\" " + plain);
    CHECK(text("echo '-{v}-' {v}") == "echo '-" + single + "-' " + plain);
    CHECK(text("echo \"it's {v}\" '\"' {v} \\' {v}") == "echo \"it's " + twice + "\" '\"' " + plain + " \\' " + plain);
    CHECK(text("x=\"$(f {v} \"{v}\")-{v}\"") == "x=\"$(f " + plain + " \"" + twice + "\")-" + twice + "\"");
    CHECK(text("# it's {v}\necho {v} $# a#'b {v}'") == "# it's \necho " + plain + " $# a#'b " + single + "'");
    CHECK(text("cat <<END\nit's {v} $(f {v})\nEND\necho {v}") ==
          "cat <<END\nit's a\"b'c \\$(d) \\`e\\` \\\\f $(f " + plain + ")\nEND\necho " + plain);
    CHECK(text("cat <<-'END' | f\n\"{v}\n\tEND\necho {v}") ==
          "cat <<-'END' | f\n\"a\"b'c $(d) `e` \\f\n\tEND\necho " + plain);
    CHECK(text("x=$((1 << 2)); f <<< 'a'\necho '{v}'") == "x=$((1 << 2)); f <<< 'a'\necho '" + single + "'");
    CHECK(text("case x in a) f {v};; esac; echo \"${{H}}\" {v}") ==
          "case x in a) f " + plain + ";; esac; echo \"${H}\" " + plain);
    CHECK(text("f \"$1{v} $#{v}\" $(f $(f\ncat <<E\n{v}\nE\n))") ==
          "f \"$1" + twice + " $#" + twice + "\" $(f $(f\ncat <<E\n" + "a\"b'c \\$(d) \\`e\\` \\\\f\nE\n))");
    CHECK(text("ssh h \"p {args}\"") == "ssh h \"p '--v=a\\\"b'\\\\''c \\$(d) \\`e\\` \\\\f' '--lines=a\nEND'\"");
    CHECK_THROWS_WITH(text("cat <<END\n{lines}\nEND"), Catch::Contains("a value with several lines"));
    for (const std::string command : {"`f {v}`", "f ${v}", "f \\{v}", "f \"${v}\"", "f $'{v}'", "f \"${{x:-{v}}}\"",
                                      "cat <<{v}\n", "f \"$a{v}\""}) {
        INFO(command);
        CHECK_THAT(refusal(command, true), Catch::Contains("a value cannot be quoted where {v} stands"));
    }
}

TEST_CASE("a command with mistakes is refused", "[study]") {
    CHECK(refusal("") == "the command is empty");
    CHECK(refusal("  ", true) == "the command is empty");
    CHECK(refusal("p 'x") == "the quote ' is never closed");
    CHECK(refusal("p \\") == "a backslash at the end of the command");
    CHECK(refusal("p {lr") == "a '{' without its '}'; a brace is written '{{'");
    CHECK(refusal("p lr}") == "a lone '}'; a brace is written '}}'");
    CHECK(refusal("p x{args}") == "{args} stands for several words, so it must be a word of its own");
    CHECK(refusal("p x{args} } 'y").find("; a lone '}'; a brace is written '}}'; the quote ' is never closed") !=
          std::string::npos); // all mistakes at once
    for (const std::string command : {"cd x && p", "p > log", "p $HOME", "p \"$HOME\"", "p `x`", "a | b", "a; b"}) {
        INFO(command);
        CHECK(refusal(command).find("say shell = true") != std::string::npos);
        CHECK(refusal(command, true).empty());
    }
}

TEST_CASE("an unquoted home directory is refused, and a quoted one stays as it is", "[study]") {
    for (const std::string command : {"~/bin/p", "p ~", "p ~/x", "p ~user/x", "p --data=~/x", "p {lr} ~/x"}) {
        INFO(command);
        CHECK(refusal(command) ==
              "'~' is the home directory to a shell, but the command is run without one; write the whole path, or put "
              "it between single quotes if it is meant as it stands");
        CHECK(refusal(command, true).empty());
    }
    CHECK(words("p '~/x' \"~\" a~/b --bound=~5 {lr}~/x \\~/x") ==
          Words{"p", "~/x", "~", "a~/b", "--bound=~5", "3.2e-05~/x", "~/x"});
    // Views read commands that an earlier version accepted.
    const std::string resolved = resolved_toml(parse(program_parts("", "p x").text()));
    const auto at = resolved.find("\"p x\"");
    REQUIRE(at != std::string::npos);
    CHECK(parse_resolved(std::string(resolved).replace(at, 5, "\"p ~\""), "/s/resolved.toml")
              .trainable.program->command == "p ~");
}

TEST_CASE("a program with all its keys comes back from the resolved file", "[study]") {
    const Parts parts = program_parts(
        "shell = true\nflags = \"both\"\ndirectory = \"code\"\ncheckpoints = false\nkeep_env = [\"SLURM_JOB_ID\", "
        "\"PMI_*\"]\n"
        "tf_config = true\njax = true\nenv = { A = \"x y\", B = 3, C = true }\n",
        "p {args}; q {lr}");
    const StudySpec spec = parse(parts.text() + "[failure]\nreport_timeout = \"10m\"\n");
    REQUIRE(spec.trainable.program);
    const ProgramSpec& program = *spec.trainable.program;
    CHECK(program.command == "p {args}; q {lr}");
    CHECK(program.shell);
    CHECK(program.flags == Flags::both);
    CHECK(program.directory == "/studies/code");
    CHECK_FALSE(program.checkpoints);
    CHECK(program.keep_env == Words{"SLURM_JOB_ID", "PMI_*"});
    CHECK(program.env == std::vector<ProgramSpec::Variable>{{"A", "x y"}, {"B", "3"}, {"C", "true"}});
    CHECK(program.tf_config);
    CHECK(program.jax);
    CHECK(spec.failure.report_timeout == base::Duration(std::chrono::minutes(10)));
    const std::string resolved = resolved_toml(spec);
    CHECK(resolved_toml(parse_study(resolved, "/elsewhere/resolved.toml", {}, ranktune::testing::known())) == resolved);
    CHECK(resolved_toml(parse_resolved(resolved, "/elsewhere/resolved.toml")) == resolved);
    CHECK(resolved.find("directory = \"/studies/code\"") != std::string::npos);
}

TEST_CASE("variables have the text of the file, and overrides of strings need no quotes", "[study]") {
    const auto env = [](const std::string& value, const std::vector<std::string>& overrides = {}) {
        const auto parts = program_parts("env = { A = \"größe\", V = " + value + ", W = 1 }\n");
        return parse(parts.text(), overrides).trainable.program->env.at(1).value;
    };
    for (const std::string text :
         {"3.10", "1e-3", "+5", "2026-11-27", "2026-11-27 10:30:00", "10:30:00", "inf", "nan", "true", "-0.0", "1.0"})
        CHECK(env(text) == text);
    CHECK(env("\"3.10\"") == "3.10");
    CHECK(env("1", {"trainable.env.V=3.10"}) == "3.10");
    for (const std::string name : {"123456", "2026-11-27", "1e5", "true", "007"})
        CHECK(parse(program_parts().text(), {"study.name=" + name}).name == name);
}

TEST_CASE("a program runs in the directory of the study file and may save checkpoints", "[study]") {
    const StudySpec spec = parse(program_parts().text());
    CHECK(spec.trainable.program->directory == "/studies");
    CHECK(spec.trainable.program->checkpoints);
    CHECK_FALSE(spec.failure.report_timeout);
    CHECK(spec.trainable.program->flags == Flags::off);
    CHECK(parse(program_parts("flags = false\n").text()).trainable.program->flags == Flags::off);
    CHECK(parse(program_parts("flags = true\n").text()).trainable.program->flags == Flags::set);
}

TEST_CASE("mistakes about programs say where they are and what to write", "[study]") {
    CHECK(mistake(program_parts("", "p {lrr}").text()) ==
          "8:11 trainable.command: unknown placeholder {lrr}; did you mean 'lr'?; known: args, args_hydra, "
          "args_plain, args:py, config, iterations, trial, folder, lr; a brace is written '{{'");
    CHECK_THAT(mistake(program_parts("", "p {iterations:py}").text()),
               Catch::Contains("unknown placeholder {iterations:py}"));
    CHECK(mistake(program_parts("", "p 'x").text()) == "8:11 trainable.command: the quote ' is never closed");
    Parts shadowed = program_parts("", "p {config} {iterations} {args}");
    shadowed.space = "config = \"uniform(0, 1)\"\niterations = \"randint(1, 9)\"\n";
    CHECK(mistake(shadowed.text()) ==
          "8:11 trainable.command: {config} means something else than the hyper-parameter of that name; give that "
          "another name in [space]\n8:11 trainable.command: {iterations} means something else than the "
          "hyper-parameter of that name; give that another name in [space]");
    CHECK(mistake(program_parts("", "p x{args} {lrr} }").text()).find("{args} stands for several words") !=
          std::string::npos); // and the others
    CHECK(mistake(program_parts("", "p x{args} {lrr} }").text()).find("unknown placeholder {lrr}") !=
          std::string::npos);
    CHECK(mistake(program_parts("builtin = \"mlp\"\n").text()) ==
          "9:1 trainable.builtin: is given beside command; give one of them");
    CHECK(mistake(program_parts("momentum = 0.9\n").text()) ==
          "9:1 trainable.momentum: unknown key; the hyper-parameters of a program belong in [space]");
    CHECK(mistake(program_parts("checkpoint = false\n").text()) ==
          "9:1 trainable.checkpoint: unknown key; did you mean 'checkpoints'?");
    CHECK(mistake(program_parts("env = { RANKTUNE_FD = \"3\" }\n").text()) ==
          "9:9 trainable.env.RANKTUNE_FD: names that begin with RANKTUNE_ are ranktune's own");
    CHECK(mistake(program_parts("env = { A = [1] }\n").text()) ==
          "9:13 trainable.env.A: needs a string, number or boolean, not a list");
    CHECK(mistake(program_parts("env = { A = 1_000 }\n").text()) ==
          "9:13 trainable.env.A: is a number that programs may not read as written; put it in quotes: \"1_000\" or "
          "\"1000\"");
    CHECK_THAT(mistake(program_parts("env = { A = 0x10 }\n").text()), Catch::Contains("\"0x10\" or \"16\""));
    CHECK_THAT(mistake(program_parts("launcher_variables = false\n").text() + "[resources]\nranks = 2\n"),
               Catch::Contains("trainable.launcher_variables: false is for trials of one rank"));
    CHECK(mistake(program_parts("launcher_variables = false\n").text()).empty());
    const std::string flags = "9:9 trainable.flags: needs true, false or \"both\" (--amp and --no-amp), not ";
    CHECK(mistake(program_parts("flags = \"no\"\n").text()) == flags + "\"no\"");
    CHECK(mistake(program_parts("flags = 1\n").text()) == flags + "an integer");
    CHECK(mistake(program_parts("flag = true\n").text()) == "9:1 trainable.flag: unknown key; did you mean 'flags'?");
    CHECK(mistake(program_parts("flags = true\n", "p {args_plain} {lr}").text()) ==
          "9:9 trainable.flags: says how {args} writes booleans, but the command has no {args}");
    CHECK(mistake(program_parts("flags = false\n", "p {lr}").text()).empty());
    CHECK(mistake(program_parts("keep_env = \"A\"\n").text()).starts_with("9:12 trainable.keep_env: needs a list"));
    CHECK(mistake(program_parts("keep_env = [\"A*B\"]\n").text()).ends_with("not \"A*B\""));
}

TEST_CASE("a kept program is for tasks of one rank, with the same command for all of them", "[study]") {
    const std::string kept = "result = \"success\"\nkept = true\n";
    const auto said = [&](const std::string& keys, const std::string& command = "p", const std::string& rest = "") {
        return mistake(program_parts(keys, command).text() + rest);
    };
    const StudySpec spec = parse(program_parts(kept + "restart_after = 9\n", "p {iterations}").text());
    CHECK(spec.trainable.program->kept);
    CHECK(spec.trainable.program->restart_after == 9);
    CHECK_FALSE(spec.trainable.program->launcher_variables);
    CHECK_THAT(said("kept = true\n"), Catch::Contains("and for trials that only have to succeed"));
    CHECK_THAT(said("restart_after = 9\n"), Catch::Contains("is for a program with kept = true"));
    CHECK_THAT(said(kept, "p --lr={lr}"), Catch::Contains("trainable.command: a kept program is started once for many"
                                                          " trials, so its command has no {lr}"));
    CHECK_THAT(said(kept + "cwd = \"trial\"\n"), Catch::Contains("does not go with a folder for each trial"));
    for (const char* value : {"{lr}", "/t/{trial}", "{folder}/x"})
        CHECK_THAT(said(kept + "env = { A = \"" + value + "\" }\n"), Catch::Contains("and A would differ"));
    for (const char* key : {"jax", "tf_config", "launcher_variables"})
        CHECK_THAT(said(kept + key + " = true\n"),
                   Catch::Contains("trainable." + std::string(key) + ": true does not go with kept"));
    CHECK_THAT(said(kept, "p", "[resources]\nranks = 2\n"),
               Catch::Contains("trainable.kept: is for trials of one rank"));
}

TEST_CASE("an interpreter of a function may be kept, for any number of ranks, within limits", "[study]") {
    const auto text = [](const std::string& keys) {
        std::string all = program_parts(keys, "COMMAND").text();
        const std::string command = "command = \"COMMAND\"";
        return all.replace(all.find(command), command.size(), "python = \"train.py:train\"");
    };
    const std::string keys = "kept = true\nrestart_after = 9\nrestart_growth = \"2GB\"\n";
    const StudySpec spec = parse(text(keys) + "[resources]\nranks = 2\n");
    const ProgramSpec& program = *spec.trainable.program;
    CHECK(program.kept);
    CHECK_FALSE(program.keeps_for_tasks());
    CHECK(program.restart_after == 9);
    CHECK(program.restart_growth == 2'000'000'000);
    CHECK(program.launcher_variables);
    CHECK(parse(resolved_toml(spec)).trainable.program->restart_growth == 2'000'000'000);
    const StudySpec other = parse(text("kept = true\nrestart_growth = 5\n"));
    StudySpec changed = spec;
    take_over(changed, other);
    CHECK(changed.trainable.program->restart_growth == 5);
    CHECK(changed.trainable.program->restart_after == 0);
    CHECK_THAT(mistake(text("kept = true\nfresh = true\n")), Catch::Contains("give one of them"));
    CHECK_THAT(mistake(text("restart_growth = \"1GB\"\n")), Catch::Contains("is for a function with kept = true"));
    CHECK_THAT(mistake(text("kept = true\nrestart_growth = \"much\"\n")), Catch::Contains("needs a number of bytes"));
    CHECK_THAT(mistake(program_parts("restart_growth = 1\n").text()), Catch::Contains("is for python = "));
}

TEST_CASE("failure.retry_on is a list of exit codes of programs that are tried again", "[study]") {
    const auto text = [](const std::string& failure) { return program_parts().text() + "[failure]\n" + failure; };
    const StudySpec spec = parse(text("max_failures = 1\nretry_on = [75, 137]\n"));
    CHECK(spec.failure.retry_on == std::vector<std::uint32_t>{75, 137});
    CHECK(resolved_toml(spec).find("retry_on = [75, 137]\n") != std::string::npos);
    CHECK(resolved_toml(parse(text(""))).find("retry_on") == std::string::npos);
    CHECK_THAT(mistake(text("retry_on = [75]\n")), Catch::Contains("says what failure.max_failures is for"));
    for (const char* wrong : {"75", "[]", "[0]", "[256]", "[\"75\"]"})
        CHECK_THAT(mistake(text("max_failures = 1\nretry_on = " + std::string(wrong) + "\n")),
                   Catch::Contains("failure.retry_on: needs a list of integers from 1 to 255, as in [1, 255]"));
    Parts other;
    CHECK_THAT(mistake(other.text() + "[failure]\nmax_failures = 1\nretry_on = [75]\n"),
               Catch::Contains("failure.retry_on: is for programs"));
}

TEST_CASE("a program that cannot be paused goes with promote only when it may start again", "[study]") {
    Parts parts = program_parts("checkpoints = false\n");
    parts.rest = "[scheduler]\ntype = \"asha\"\n";
    CHECK(mistake(parts.text())
              .find("\"promote\" pauses trials, and the program cannot save checkpoints "
                    "(trainable.checkpoints = false); use variant = \"stop\", or restart_paused") != std::string::npos);
    CHECK(mistake(parts.text() + "restart_paused = true\n").empty());
    CHECK(mistake(parts.text() + "variant = \"stop\"\n").empty());
}

TEST_CASE("the program that predicts is checked like one that trains", "[study]") {
    const auto with = [](const std::string& lines) {
        Parts parts = program_parts();
        parts.rest = "[predict]\n" + lines;
        return parts.text();
    };
    CHECK(mistake(with("directory = \"d\"\n")) ==
          "11:1 predict.command: missing; a program that predicts, as in \"python3 predict.py {checkpoint}\", or a "
          "class or function: python = \"predict.py:predict\"");
    CHECK(mistake(with("command = 3\n")) ==
          "12:11 predict.command: needs a string, not an integer (3); put it in quotes: \"3\"");
    CHECK(mistake(with("command = \"\"\n")) == "12:11 predict.command: the command is empty");
    CHECK(
        mistake(with("command = \"p {checkpont}\"\n")) ==
        "12:11 predict.command: unknown placeholder {checkpont}; did you mean 'checkpoint'?; known: checkpoint, args, "
        "args_hydra, args:py, iterations, trial, lr; a brace is written '{{'");
    CHECK(mistake(with("command = \"p | q\"\n")) ==
          "12:11 predict.command: '|' means something to a shell, but the command is run without one; write sh -c "
          "'...', or put it between single quotes");
    CHECK(mistake(with("command = \"p\"\nshell = true\n")) ==
          "13:1 predict.shell: unknown key here; it belongs to trainable.shell");
    // It works where the program that trains does, unless it says otherwise.
    const StudySpec beside = parse(with("command = \"p {checkpoint} {lr}\"\n"));
    CHECK(beside.predict.directory == "/studies");
    const StudySpec elsewhere = parse(with("command = \"p\"\ndirectory = \"d\"\n"));
    CHECK(elsewhere.predict.directory == "/studies/d");
    CHECK(resolved_toml(elsewhere).find("[predict]\ncommand = \"p\"\ndirectory = \"/studies/d\"\n") !=
          std::string::npos);
    CHECK(mistake(with("command = \"p\"\npython = \"p.py:f\"\n")) ==
          "12:1 predict.command: does not go with python, which names a class or function; give one of them");
    CHECK(mistake(with("python = \"p.py\"\n")) ==
          "12:10 predict.python: needs a file and one of its functions, as in \"train.py:train\", not \"p.py\"");
    CHECK(mistake(with("command = \"p\"\ninterpreter = \"python3.12\"\n")) ==
          "13:1 predict.interpreter: is for python = \"FILE:FUNCTION\"");
    const StudySpec function = parse(with("python = \"d/p.py:f\"\ninterpreter = \"venv/bin/python\"\n"));
    CHECK(function.predict.function == "/studies/d/p.py:f");
    CHECK(function.predict.interpreter == "/studies/venv/bin/python");
    CHECK(resolved_toml(function).find(
              "[predict]\npython = \"/studies/d/p.py:f\"\ninterpreter = \"/studies/venv/bin/python\"\n"
              "directory = \"/studies\"\n") != std::string::npos);
    const space::Configuration configuration({{"lr", 0.5}});
    CHECK(CommandTemplate(beside.predict.command, false)
              .expand({.configuration = configuration, .config_path = {}, .checkpoint = "/c"}) ==
          Words{"p", "/c", "0.5"});
}

} // namespace program_test
