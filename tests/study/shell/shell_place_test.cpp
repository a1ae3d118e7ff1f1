// SPDX-License-Identifier: Apache-2.0
// Shell commands with values, run by the shells of this machine: what the command receives is the value.

#include <filesystem>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "ranktune/base/error.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/command_template.hpp"

namespace ranktune::study {
namespace {

/// What a command prints; "rc N" behind it when that is not 0.
std::string printed(const std::string& shell, const std::string& command) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(shell.c_str(), "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
        _exit(127);
    }
    close(ends[1]);
    std::string text;
    char bytes[4096];
    for (ssize_t size = 0; (size = read(ends[0], bytes, sizeof bytes)) > 0;)
        text.append(bytes, static_cast<std::size_t>(size));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? text : text + "rc " + std::to_string(WEXITSTATUS(status));
}

const std::vector<std::string>& shells() {
    static const std::vector<std::string> found = [] {
        std::vector<std::string> paths{"/bin/sh"};
        if (std::filesystem::exists("/bin/bash")) paths.emplace_back("/bin/bash");
        return paths;
    }();
    return found;
}

const std::string nasty[] = {
    "it's \"a\" b", "$(echo run)`echo run`", "a # b", "a}'b\"c)d`e#", "{a,b} * ~; x", "\\", "\\'\"$HOME", "F", "E", ")",
    "esac",         "  <<E && exit ",        ""};

std::string with(const std::string& command, const std::string& value) {
    space::Configuration configuration;
    configuration.set("x", value);
    return CommandTemplate(command, true).expand({configuration, "", 1})[2];
}

} // namespace

TEST_CASE("what a shell passes on is the value, whatever stands before it", "[study]") {
    const std::string befores[] = {
        "",
        "cat <<E >/dev/null\nbody $(echo a)\nE\n# don't\n",
        "cat <<E >/dev/null\n`echo a`\nE\n# don't\n",
        ": \\\n# it's\n",
        "(:)#it's\n",
        "(:) # it's\n",
        "v=a; : ${v% #*} ; ",
        "v=a; : ${x:-it\\'s} \"${v#'a'}\" \"${v:-\"b c\"}\" ${v:-'}'\"}\"}; ",
        "( (cat <<E >/dev/null\nit's\nE\n) )\n",
        "cat <<E<<'F' - >/dev/null\nit's `echo $(echo \"a\")`\nE\n$( \"'\nF\n",
        ": $(case a in a) echo \"it's\";; (b) :;; esac) \"$(case a in a|b) : ;;\nesac)\"; ",
        ": $((1 << 2)) \"$(( (1 + 2) * 3 ))\" $(echo $(( 4 )) # it's\n); ",
        "f() { : \"it's\"; }; f # 'a\n",
        ": $$ \"$$'\" $# a#b \\# \\' ; ",
        "cat <<E >/dev/null\na\\\nb's\nE\n: $(cat <<\"F\"\n$(it's\nF\n)\n",
        "cat <<-E >/dev/null\n\tit's ${v:-a}\n\tE\n",
        "if (: 'a)') ; then : \"$(: \"$(: ')' # it's )\n)\")\"; fi\n",
        ": \"`echo '\\\"'`\" `: \"#\"`#it\"'\"s; ",
        "v=$(cat <<E\n$(echo ')' # it's\n)\nE\n); ",
    };
    const std::string places[] = {"printf '[%s]' {x}",
                                  "printf '[%s]' \"{x}\"",
                                  "printf '[%s]' '{x}'",
                                  "printf '[%s]' a{x}b\"{x}\"'{x}' # {x}",
                                  "printf '[%s]' \"$(printf '%s.' {x})\"",
                                  "printf '[%s]' \"$(printf '%s.' \"{x}\")\"",
                                  "printf '[%s]' ${{none:-\"{x}\"}}",
                                  "v={x}; printf '[%s]' \"${{v}}\"",
                                  "case {x} in \"{x}\") printf '[%s]' '{x}';; esac",
                                  "cat <<E\n[{x}]\nE",
                                  "cat <<F <<'E'\nit's\nF\n[{x}]\nE\n",
                                  "cat <<E\n$(printf '%s.' {x} # it's\n)\nE\nprintf '[%s]' {x}"};
    for (const std::string& before : befores) {
        for (const std::string& place : places) {
            std::string start;
            for (const char c : before) start += std::string(c == '{' || c == '}' ? 2 : 1, c);
            std::string commands;
            std::string expected;
            for (const std::string& value : nasty) {
                commands += with(start + place, value) + "\n";
                if (place.find("a{x}b") != std::string::npos)
                    expected += "[a" + value + "b" + value + value + "]";
                else if (place.find("# it's") != std::string::npos)
                    expected += value + ".\n[" + value + "]";
                else if (place.find("%s.") != std::string::npos)
                    expected += "[" + value + ".]";
                else
                    expected += "[" + value + "]" + (place.starts_with("cat") ? "\n" : "");
            }
            for (const std::string& shell : shells()) {
                INFO(shell << ": " << before << place);
                CHECK(printed(shell, commands) == expected);
            }
        }
    }
}

TEST_CASE("what shells may read otherwise is refused, and named", "[study]") {
    const auto refusal = [](const std::string& command, const std::string& value = "5") -> std::string {
        try {
            return "written: " + with(command, value);
        } catch (const base::UsageError& error) {
            return error.what();
        }
    };
    const auto why = [](const std::string& reason) {
        return "a value cannot be quoted where {x} stands: " + reason +
               "; put it into a variable before: v={x}; echo \"$v\"";
    };
    CHECK(refusal("echo 1\necho `cat {x}`") ==
          why("it stands between backticks, in what begins with '`cat ' in line 2"));
    CHECK(refusal("f a$'it\\'s' {x}") ==
          why("what begins with '$'it\\' cannot be followed: a backslash between $'...' quotes"));
    CHECK(refusal("f \"${{v:-it's}}\" {x}") ==
          why("what begins with ''s}' cannot be followed: such quotes within ${...} between quotes"));
    CHECK(refusal("f $(function g {{ case a in a) :;; esac; }}; {x})") ==
          why("what begins with '$(function g { case ' cannot be followed: the word 'case'"));
    CHECK(refusal("((a) || (b)); f {x}") == why("what begins with '((a) ' cannot be followed: '((' without '))'"));
    CHECK(refusal("f $a{x}") == why("it stands directly behind '$', the name of a variable or a backslash"));
    CHECK(refusal("f \"{x}") == "values cannot be quoted in this command: what begins with '\"' does not end");
    for (const std::string command :
         {"cat <<E\n$(echo\nE\n)\n{x}\nE\n", "cat <<E\n${{v\nE\n{x}", "cat <<E 'a\nb'\n{x}\nE",
          "cat <<E $(f\n{x}\nE\n)", "f()#it's {x}", "echo $[ 1 # 2 ] {x}", "cat <<$(f)\n{x}",
          "cat <<E\na\\\nE\n{x}\nE\n", "echo $(cat <<E)\n{x}\nE", "f ${{ f; }} {x}", "f \"$$(it's)\" {x}",
          "((cat <<E))\n{x}", "f $$'a\\' {x}", "((# it's\n f {x}))"}) {
        INFO(command);
        CHECK_THAT(refusal(command), Catch::Contains("{x} stands: what begins with '"));
    }
    // Arithmetic is expanded between quotes, too.
    CHECK(refusal("echo $(({x} + 1))") == "written: echo $((5 + 1))");
    CHECK_THAT(refusal("echo $(({x} + 1))", "$(date)"), Catch::Contains("stands in $((...))"));
    CHECK_THAT(refusal("cat <<E\n{x}\nE\n", "E"), Catch::Contains("a line of a here-document as its end"));
    CHECK(refusal("cat <<E\n{x}\nE\n", "EE") == "written: cat <<E\nEE\nE\n");
}

} // namespace ranktune::study
