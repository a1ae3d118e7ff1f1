// SPDX-License-Identifier: Apache-2.0
#pragma once
// The verbs as the help lists them: by what a user wants to do. A test compares with those that the program has.

namespace ranktune::cli {

struct VerbEntry {
    const char* group;
    const char* name;
    const char* example; ///< a line to type, for a study called digits; verbs with a footer have theirs there
};

/// Verbs of a group stand together.
inline constexpr VerbEntry verb_list[] = {
    {"Begin", "init", "ranktune init digits"},
    {"Begin", "validate", "ranktune validate digits.toml"},
    {"Begin", "keys", "ranktune keys failure"},
    {"Begin", "algorithms", "ranktune algorithms"},
    {"Run", "run", ""},
    {"Run", "map", ""},
    {"Run", "predict", ""},
    {"Run", "submit", ""},
    {"Run", "supervise", ""},
    {"Run", "stop", "ranktune stop digits"},
    {"Run", "simulate", ""},
    {"Run", "extend", "ranktune extend digits best 3 --max-iterations 200"},
    {"Steer", "pause", "ranktune pause digits 17"},
    {"Steer", "resume", "ranktune resume digits 17"},
    {"Steer", "cancel", "ranktune cancel digits 18"},
    {"Steer", "add", "ranktune add digits lr=0.01"},
    {"Steer", "set", "ranktune set digits study.num_trials=120"},
    {"Look", "ls", "ranktune ls"},
    {"Look", "status", "ranktune status digits --watch"},
    {"Look", "best", "ranktune best digits"},
    {"Look", "explain", "ranktune explain digits best"},
    {"Look", "report", "ranktune report digits"},
    {"Look", "serve", "ranktune serve digits"},
    {"Look", "compare", "ranktune compare digits digits-pbt"},
    {"Look", "logs", "ranktune logs digits 7"},
    {"Look", "note", "ranktune note digits 7 \"overfits early\" --tag odd"},
    {"Take out", "export", "ranktune export digits --format csv -o digits.csv"},
    {"Take out", "checkpoint", "ranktune checkpoint digits best"},
    {"When something is wrong", "doctor", "ranktune doctor digits"},
    {"When something is wrong", "replay", "ranktune replay digits --verify"},
    {"When something is wrong", "support", "ranktune support digits"},
};

} // namespace ranktune::cli
