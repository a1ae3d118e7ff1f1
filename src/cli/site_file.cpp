// SPDX-License-Identifier: Apache-2.0
#include "cli/site_file.hpp"
#include "process/environment.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include "cli/terminal/terminal.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/study/command_template.hpp"
#include "ranktune/study/parse.hpp"
#include "storage/file_system.hpp"
#include "study/parse/checker.hpp"

namespace ranktune::cli {
namespace {

using slurm::ScriptLine;
using study::Node;

const std::vector<std::string> tables{"slurm", "environment"};
const std::vector<std::string> keys{"launcher",  "mpi",       "gpus",    "account",
                                    "partition", "lead_time", "options", "modules"};

class SiteReader {
  public:
    SiteReader(const Node& root, const std::string& file, study::Mistakes& mistakes, SiteSettings& settings)
        : root_(root), file_(file), mistakes_(mistakes), settings_(settings) {}

    void read() {
        for (const auto& [name, node] : root_.members) {
            refuse_unknown(node, name, "", tables);
            if (!node.is(Node::Kind::table)) mistakes_.value(node, name, "needs a table: [" + name + "]");
        }
        if (const Node* table = root_.find("slurm"); table != nullptr && table->is(Node::Kind::table)) job(*table);
        if (const Node* table = root_.find("environment"); table != nullptr && table->is(Node::Kind::table))
            environment(*table);
    }

  private:
    [[nodiscard]] std::string place(const Node& node) const { return file_ + ":" + std::to_string(node.key_at.line); }

    void refuse_unknown(const Node& node, const std::string& key, const std::string& table,
                        const std::vector<std::string>& known) {
        if (std::find(known.begin(), known.end(), key) != known.end()) return;
        mistakes_.key(
            node, table + key,
            "unknown" + base::suggestion(key, std::span<const std::string>(known)) + " (" + base::join(known) + ")");
    }

    /// The string of a key, in one line; nothing when the key is missing or its value wrong.
    std::optional<std::string> line(const Node& table, const std::string& key) {
        const Node* node = table.find(key);
        if (node == nullptr) return std::nullopt;
        return text_of(*node, "slurm." + key);
    }
    std::optional<std::string> text_of(const Node& node, const std::string& key, bool may_be_empty = false) {
        if (!node.is(Node::Kind::string))
            mistakes_.value(node, key, "needs a string of one line, not " + std::string(study::kind_text(node)));
        else if (node.text.find_first_of("\n\r") != std::string::npos)
            mistakes_.value(node, key, "needs a string of one line; this one has several");
        else if (node.text.empty() && !may_be_empty)
            mistakes_.value(node, key, "is empty; leave the key out, or give it a value");
        else
            return node.text;
        return std::nullopt;
    }
    void line(const Node& table, const std::string& key, std::optional<ScriptLine>& into) {
        if (auto text = line(table, key)) into = ScriptLine{std::move(*text), place(*table.find(key))};
    }

    std::vector<std::string> list(const Node& table, const std::string& key) {
        std::vector<std::string> texts;
        const Node* node = table.find(key);
        if (node == nullptr) return texts;
        if (!node->is(Node::Kind::array)) {
            mistakes_.value(*node, "slurm." + key,
                            "needs a list of strings, not " + std::string(study::kind_text(*node)));
            return texts;
        }
        for (const Node& item : node->items)
            if (auto text = text_of(item, "slurm." + key)) texts.push_back(std::move(*text));
        return texts;
    }

    void job(const Node& table) {
        for (const auto& [name, node] : table.members) refuse_unknown(node, name, "slurm.", keys);
        line(table, "launcher", settings_.launcher);
        line(table, "mpi", settings_.mpi);
        line(table, "gpus", settings_.gpus);
        line(table, "account", settings_.account);
        line(table, "partition", settings_.partition);
        if (const Node* node = table.find("launcher");
            node != nullptr && node->is(Node::Kind::string) && node->text != "srun" && node->text != "mpirun")
            mistakes_.value(*node, "slurm.launcher",
                            "needs \"srun\" or \"mpirun\", not " + study::in_quotes(node->text));
        if (const Node* node = table.find("gpus");
            node != nullptr && node->is(Node::Kind::string) &&
            (node->text.find("{gpus}") == std::string::npos || !node->text.starts_with("--")))
            mistakes_.value(*node, "slurm.gpus",
                            "needs an option of sbatch with {gpus} in it, as in \"--gres=gpu:{gpus}\"");
        lead_time(table);
        for (auto& text : list(table, "options")) option(*table.find("options"), std::move(text));
        for (const auto& text : list(table, "modules"))
            settings_.commands.push_back({"module load " + text, place(*table.find("modules"))});
    }

    void option(const Node& node, std::string text) {
        if (!text.starts_with("-"))
            return mistakes_.value(
                node, "slurm.options",
                "needs options of sbatch, as in \"--constraint=gpu\", not " + study::in_quotes(text));
        settings_.options.push_back({std::move(text), place(node)});
    }

    void lead_time(const Node& table) {
        const auto text = line(table, "lead_time");
        if (!text) return;
        const Node& node = *table.find("lead_time");
        try {
            const auto time = std::chrono::duration_cast<std::chrono::seconds>(study::parse_duration(*text));
            if (time < std::chrono::seconds(1) || time > std::chrono::seconds(65'535))
                throw base::UsageError("needs a duration from 1s to 65535s, the most that Slurm knows");
            settings_.lead_time = time;
            settings_.lead_time_from = place(node);
        } catch (const base::UsageError& error) {
            mistakes_.value(node, "slurm.lead_time", error.what());
        }
    }

    void environment(const Node& table) {
        for (const auto& [name, node] : table.members) {
            const bool good =
                name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
                    std::string::npos &&
                (name[0] < '0' || name[0] > '9');
            if (!good) mistakes_.key(node, "environment." + name, "is no name of a variable");
            if (auto text = text_of(node, "environment." + name, true); text && good)
                settings_.commands.push_back({"export " + name + "=" + study::shell_text({*text}), place(node)});
        }
    }

    const Node& root_;
    const std::string& file_;
    study::Mistakes& mistakes_;
    SiteSettings& settings_;
};

void read_site_file(const std::string& file, bool required, SiteSettings& settings) {
    std::error_code error;
    if (!std::filesystem::exists(file, error) && !required) return;
    std::string text;
    try {
        text = storage::read_text(storage::posix_file_system(), file);
    } catch (const base::IoError& failure) {
        throw base::UsageError("cannot read the site file '" + file + "': " + failure.what());
    }
    read_site_text(text, file, settings);
}

} // namespace

void read_site_text(const std::string& text, const std::string& file, SiteSettings& settings) {
    study::Mistakes mistakes;
    try {
        const Node root = study::parse_toml(text);
        SiteReader(root, file, mistakes, settings).read();
    } catch (const study::TomlError& error) {
        mistakes.add(error.at(), "", "not valid TOML: " + std::string(error.what()));
    }
    if (!mistakes.empty()) throw study::StudyFileError(file, mistakes.sorted());
}

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
