// SPDX-License-Identifier: Apache-2.0
// Manual pages in roff, with the macros of man(7).

#include <algorithm>

#include <fmt/format.h>

#include "cli/help/exit_codes.hpp"
#include "cli/manual/manual.hpp"
#include "ranktune/base/text.hpp"
#include "report/explain/reference.hpp"
#include "report/screens/text.hpp"
#include "study/parse/keys.hpp"

namespace ranktune::cli {
namespace {

/// Text that roff prints as it is.
std::string roff_text(std::string_view text) {
    std::string out = report::replaced(report::without_marks(text),
                                       {{'\\', "\\[rs]"}, {'-', "\\-"}, {'~', "\\[ti]"}, {'^', "\\[ha]"}});
    for (std::size_t at = 0; at < out.size(); ++at) // at the beginning of a line they would begin a request
        if ((out[at] == '.' || out[at] == '\'') && (at == 0 || out[at - 1] == '\n')) out.insert(at, "\\&");
    return out;
}

std::string page_head(const std::string& name, int section, const std::string& version, std::string_view description) {
    std::string upper = name;
    std::ranges::transform(upper, upper.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return fmt::format(".TH {} {} \"\" \"ranktune {}\" \"ranktune\"\n.SH NAME\n{} \\- {}\n", roff_text(upper), section,
                       roff_text(version), roff_text(name), roff_text(description));
}

std::string tagged(std::string_view tag, std::string_view text) {
    return fmt::format(".TP\n.B {}\n{}\n", roff_text(tag), roff_text(text));
}

std::string example_block(std::string_view text) {
    std::string block(text);
    while (block.ends_with('\n')) block.pop_back();
    return fmt::format(".nf\n{}\n.fi\n", roff_text(block));
}

std::string option_lines(const std::vector<OptionWords>& options) {
    std::string text;
    for (const OptionWords& option : options) {
        std::string words = option.description;
        if (!option.accepted.empty()) words += ". Values: " + base::join(option.accepted) + ".";
        text += tagged(heading_of(option), words);
    }
    return text;
}

std::string exit_status() {
    std::string text = ".SH EXIT STATUS\n";
    for (const ExitCode& code : exit_codes) text += tagged(std::to_string(code.code), code.meaning);
    return text;
}

} // namespace

std::string program_manual(const CommandLine& line, const std::string& version) {
    std::string text =
        page_head("ranktune", 1, version, "hyper-parameter optimisation and distributed training over MPI") +
        ".SH SYNOPSIS\n.B ranktune\n.I VERB\n[OPTIONS] ...\n.SH DESCRIPTION\n" + roff_text(line.description) +
        "\nA study is described by one file, see\n.BR ranktune\\-study (5).\nEach verb has a page of its own, such "
        "as\n.BR ranktune\\-run (1).\n.SH VERBS\n";
    std::string group;
    for (const VerbWords& verb : line.verbs) {
        if (group != verb.group) text += fmt::format(".SS {}\n", roff_text(verb.group));
        group = verb.group;
        text += tagged(verb.name, verb.description);
    }
    return text + ".SH OPTIONS\n" + option_lines(line.options) + exit_status() + ".SH EXAMPLES\n" +
           example_block(line.footer) + ".SH SEE ALSO\n.BR ranktune\\-study (5),\n.BR srun (1),\n.BR mpirun (1)\n";
}

std::string verb_manual(const VerbWords& verb, const std::string& version) {
    std::string text = page_head("ranktune-" + verb.name, 1, version, verb.description) +
                       fmt::format(".SH SYNOPSIS\n{}\n.SH OPTIONS\n", roff_text(verb.usage())) +
                       option_lines(verb.options);
    if (!verb.footer.empty()) text += ".SH EXAMPLES AND NOTES\n" + example_block(verb.footer);
    return text + exit_status() + ".SH SEE ALSO\n.BR ranktune (1),\n.BR ranktune\\-study (5)\n";
}

std::string study_manual(const study::Algorithms& algorithms, const std::string& version) {
    std::string text =
        page_head("ranktune-study", 5, version, "the study file of ranktune") +
        ".SH DESCRIPTION\nA study is described by one TOML file. All mistakes are reported together before anything "
        "starts;\n.B ranktune validate\nchecks a file. Only the tables study and trainable are always needed.\n";
    for (const study::TableInfo& table : study::table_infos()) {
        text += fmt::format(".SH \"[{}]\"\n{}\n", roff_text(table.name), roff_text(table.meaning));
        for (const study::KeyInfo& key : study::key_infos())
            if (key.key.starts_with(std::string(table.name) + "."))
                text += tagged(key.key.substr(table.name.size() + 1),
                               fmt::format("{}; default {}. {}", key.takes, key.standard, key.meaning));
        if (table.name == "space")
            for (const study::DomainInfo& domain : study::domain_infos()) text += tagged(domain.call, domain.values);
        if (!table.example.empty()) text += ".PP\n" + example_block(table.example);
    }
    const auto add = [&](std::string_view kind, const study::AlgorithmInfo& info) {
        text += fmt::format(".SS \"{} {}\"\n{}\n", roff_text(kind), roff_text(info.name), roff_text(info.description));
        for (const study::AlgorithmOption& option : info.options) text += tagged(option.name, option.description);
    };
    text += ".SH ALGORITHMS\n.B ranktune algorithms\nshows kinds and defaults of these options.\n";
    for (const auto& searcher : algorithms.searchers) add("searcher", *searcher);
    for (const auto& scheduler : algorithms.schedulers) add("scheduler", *scheduler);
    return text + ".SH SEE ALSO\n.BR ranktune (1),\n.BR ranktune\\-keys (1),\n.BR ranktune\\-validate (1)\n";
}

} // namespace ranktune::cli
