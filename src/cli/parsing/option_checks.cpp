// SPDX-License-Identifier: Apache-2.0
#include "cli/parsing/option_checks.hpp"

#include <utility>

namespace ranktune::cli {

std::string words_text(const std::vector<std::string>& words) { return "{" + base::join(words, ",") + "}"; }

CLI::Validator usually(const std::vector<std::string>& words) {
    return CLI::Validator([](std::string&) { return std::string(); }, words_text(words));
}

CLI::Validator whole_number(std::uint32_t low, const std::string& what) {
    const auto check = [low, what](std::string& word) -> std::string {
        std::string digits = word.rfind('#', 0) == 0 ? word.substr(1) : word;
        const bool number =
            !digits.empty() && digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
        if (!number || static_cast<std::uint32_t>(std::stoul(digits)) < low)
            return "needs " + what + ", not '" + word + "'";
        word = std::move(digits);
        return {};
    };
    return CLI::Validator(check, "");
}

CLI::Validator no_empty_path() {
    return CLI::Validator(
        [](std::string& word) {
            return word.empty() ? std::string("needs a path, not ''; is the variable unset that should hold it?")
                                : std::string();
        },
        "");
}

CLI::Validator trial_or_best() {
    const auto number = whole_number(0, "the number of a trial, or best");
    return CLI::Validator([number](std::string& word) mutable { return word == "best" ? std::string() : number(word); },
                          "");
}

CLI::Option* add_study(CLI::App* verb, std::string& study) {
    return verb->add_option("STUDY", study, "Study file (TOML), or the directory of a study")
        ->required()
        ->type_name("");
}

CLI::Option* add_trial(CLI::App* verb, std::string& trial) {
    return verb->add_option("TRIAL", trial, "Number of the trial, or best")
        ->required()
        ->type_name("")
        ->transform(trial_or_best());
}

void add_text_or_json(CLI::App* verb, Format& format) {
    auto* option =
        verb->add_option("-f,--format", format, "text or json")->transform(one_of(text_formats))->type_name("FORMAT");
    verb->add_flag_callback(
            "--json", [&format] { format = Format::json; }, "The same as --format json")
        ->excludes(option);
}

} // namespace ranktune::cli
