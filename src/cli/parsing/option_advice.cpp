// SPDX-License-Identifier: Apache-2.0
#include "cli/parsing/option_advice.hpp"

#include <algorithm>
#include <cctype>

#include "study/parse/keys.hpp"

namespace ranktune::cli {
namespace {

struct Expected {
    std::string_view options; ///< separated by blanks
    std::string_view advice;
};

constexpr Expected expected[] = {
    {"-n -np -j -w --n --np --jobs --nproc --workers --num-workers --num_workers --ranks --processes --parallel",
     "; the number of workers on this machine is --local N"},
    {"--gpus --gpu", "; the GPUs of a trial are resources.gpus=N"},
    {"-f -c --config --study --file", "; the study file stands alone: ranktune run FILE"},
    {"--resume --continue", "; the same command goes on with a study that has begun"},
    {"--force --overwrite", "; --fresh begins again, and renames the directory that is there"},
    {"--dryrun", "; it is --dry-run"},
};

/// "; keys of the study file are given as study.seed=...", for `--seed`, `--study.seed` and `--num-trials`.
std::string key_advice(std::string_view option) {
    std::string name(option.substr(option.find_first_not_of('-')));
    std::ranges::replace(name, '-', '_');
    for (const study::KeyInfo& info : study::key_infos()) {
        const std::string_view key = info.key;
        if (key == name || key.substr(key.rfind('.') + 1) == name)
            return "; keys of the study file stand without dashes: " + std::string(key) + "=...";
    }
    return {};
}

} // namespace

bool is_option(std::string_view word) {
    return word.size() > 1 && word[0] == '-' && word != "--" && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

std::string option_advice(std::string_view option, std::string_view verb) {
    if (verb != "run" && verb != "validate" && verb != "simulate" && verb != "submit") return {};
    for (const auto& [options, advice] : expected)
        if ((" " + std::string(options) + " ").find(" " + std::string(option) + " ") != std::string::npos)
            return std::string(advice);
    if (option[1] != '-' && option.size() > 2) return option_advice(option.substr(0, 2), verb); // -j4
    return option.size() > 3 ? key_advice(option) : std::string();
}

} // namespace ranktune::cli
