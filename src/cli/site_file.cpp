// SPDX-License-Identifier: Apache-2.0
#include "cli/site_file.hpp"

#include <filesystem>

#include "process/environment.hpp"
#include "ranktune/study/command_template.hpp"
#include "simulate/file_keys.hpp"
#include "storage/file_system.hpp"

namespace ranktune::cli {
namespace {

using slurm::ScriptLine;
using study::Node;
using study::TableReader;

const std::vector<std::string> site_keys{"slurm.launcher", "slurm.mpi",       "slurm.gpus",
                                         "slurm.account",  "slurm.partition", "slurm.lead_time",
                                         "slurm.options",  "slurm.modules",   "environment.NAME"};

class SiteReader {
  public:
    SiteReader(const std::string& file, SiteSettings& settings) : file_(file), settings_(settings) {}

    void job(TableReader table) {
        line(table, "mpi", settings_.mpi);
        line(table, "account", settings_.account);
        line(table, "partition", settings_.partition);
        if (line(table, "launcher", settings_.launcher))
            if (const std::string& text = settings_.launcher->text; text != "srun" && text != "mpirun")
                table.complain("launcher", "needs \"srun\" or \"mpirun\", not " + study::in_quotes(text));
        if (line(table, "gpus", settings_.gpus))
            if (const std::string& text = settings_.gpus->text;
                text.find("{gpus}") == std::string::npos || !text.starts_with("--"))
                table.complain("gpus", "needs an option of sbatch with {gpus} in it, as in \"--gres=gpu:{gpus}\"");
        lead_time(table);
        for (ScriptLine& option : list(table, "options")) {
            if (!option.text.starts_with("-"))
                table.complain("options", "needs options of sbatch, as in \"--constraint=gpu\", not " +
                                              study::in_quotes(option.text));
            settings_.options.push_back(std::move(option));
        }
        for (const ScriptLine& module : list(table, "modules"))
            settings_.commands.push_back({"module load " + module.text, module.from});
        table.finish();
    }

    void environment(TableReader table) {
        if (table.table() == nullptr) return;
        for (const auto& [name, node] : table.table()->members) {
            const bool good =
                name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
                    std::string::npos &&
                (name[0] < '0' || name[0] > '9');
            if (!good) table.refuse(name, "is no name of a variable");
            if (auto text = text_of(table, name, node, true); text && good)
                settings_.commands.push_back({"export " + name + "=" + study::shell_text({*text}), place(node)});
        }
    }

  private:
    [[nodiscard]] std::string place(const Node& node) const { return file_ + ":" + std::to_string(node.key_at.line); }

    /// The string in one line; nothing when the value is wrong.
    static std::optional<std::string> text_of(TableReader& table, const std::string& key, const Node& node,
                                              bool may_be_empty = false) {
        const auto wrong = [&](const std::string& why) { table.mistakes().value(node, table.dotted(key), why); };
        if (!node.is(Node::Kind::string))
            wrong("needs a string of one line, not " + std::string(study::kind_text(node)));
        else if (node.text.find_first_of("\n\r") != std::string::npos)
            wrong("needs a string of one line; this one has several");
        else if (node.text.empty() && !may_be_empty)
            wrong("is empty; leave the key out, or give it a value");
        else
            return node.text;
        return std::nullopt;
    }

    /// Whether the file has the key, and a string.
    bool line(TableReader& table, const char* key, std::optional<ScriptLine>& into) const {
        const Node* node = table.take(key);
        auto text = node == nullptr ? std::nullopt : text_of(table, key, *node);
        if (text) into = ScriptLine{std::move(*text), place(*node)};
        return text.has_value();
    }

    std::vector<ScriptLine> list(TableReader& table, const char* key) const {
        std::vector<ScriptLine> lines;
        const Node* node = table.take(key);
        if (node == nullptr) return lines;
        if (!node->is(Node::Kind::array))
            table.complain(key, "needs a list of strings, not " + std::string(study::kind_text(*node)));
        for (const Node& item : node->items)
            if (auto text = text_of(table, key, item)) lines.push_back({std::move(*text), place(*node)});
        return lines;
    }

    void lead_time(TableReader& table) {
        const auto time = table.duration("lead_time", std::chrono::seconds(1));
        if (!time) return;
        if (*time > std::chrono::seconds(65'535))
            table.complain("lead_time", "needs a duration from 1s to 65535s, the most that Slurm knows");
        settings_.lead_time = std::chrono::duration_cast<std::chrono::seconds>(*time);
        settings_.lead_time_from = place(*table.take("lead_time"));
    }

    const std::string& file_;
    SiteSettings& settings_;
};

/// Merges a site file into `settings`: its values replace earlier ones, its lists are appended. Throws
/// study::StudyFileError with every mistake.
void read_site_file(const std::string& file, bool required, SiteSettings& settings) {
    std::error_code error;
    if (!std::filesystem::exists(file, error) && !required) return;
    std::string text;
    try {
        text = storage::read_text(storage::posix_file_system(), file);
    } catch (const base::IoError& failure) {
        throw base::UsageError("cannot read the site file '" + file + "': " + failure.what());
    }
    SiteReader reader(file, settings);
    simulate::read_tables(text, file, site_keys, [&](const simulate::TableNamed& table) {
        reader.job(table("slurm"));
        reader.environment(table("environment"));
    });
}

} // namespace

SiteSettings site_settings() {
    SiteSettings settings;
    const std::string named = process::environment_variable("RANKTUNE_SITE");
    read_site_file(named.empty() ? "/etc/ranktune/site.toml" : named, !named.empty(), settings);
    std::string home = process::environment_variable("XDG_CONFIG_HOME");
    if (home.empty() && !process::environment_variable("HOME").empty())
        home = process::environment_variable("HOME") + "/.config";
    if (!home.empty()) read_site_file(home + "/ranktune/site.toml", false, settings);
    return settings;
}

} // namespace ranktune::cli
