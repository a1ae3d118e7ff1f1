// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_line.hpp"

#include <algorithm>
#include <string_view>

#include "base/number_in.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::launch {
namespace {

using Words = std::vector<std::string>;

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Launcher launcher_of(std::string_view program) {
    const auto name = base_name(program);
    if (name == "srun") return Launcher::srun;
    for (const std::string_view start : {"mpirun", "mpiexec", "orterun", "prterun"})
        if (name.rfind(start, 0) == 0) return Launcher::mpirun;
    return Launcher::other;
}

std::optional<std::uint32_t> number(std::string_view digits) { return base::number_in<std::uint32_t>(digits); }

/// An option with a value among the launcher's words: `--name value`, `--name=value`, `-n4`.
struct Option {
    std::size_t at = 0;
    std::size_t length = 1; ///< words
    std::string value;
};

/// The last option in [1, end) with one of these names. An option of one dash and one letter may have its value
/// attached.
std::optional<Option> find_option(const Words& words, std::size_t end, std::initializer_list<std::string_view> names) {
    std::optional<Option> found;
    for (std::size_t i = 1; i < end; ++i) {
        const std::string_view word = words[i];
        for (const std::string_view name : names) {
            if (word == name && i + 1 < end)
                found = Option{i, 2, words[i + 1]};
            else if (word.size() > name.size() + 1 && word.rfind(name, 0) == 0 && word[name.size()] == '=')
                found = Option{i, 1, std::string(word.substr(name.size() + 1))};
            else if (name.size() == 2 && word.size() > 2 && word.rfind(name, 0) == 0 && number(word.substr(2)))
                found = Option{i, 1, std::string(word.substr(2))};
        }
    }
    return found;
}

std::optional<Option> hosts_option(const Words& words, std::size_t end) {
    return find_option(words, end, {"--hostfile", "-hostfile", "--machinefile", "-machinefile"});
}

bool contains(const Words& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// "n2 slots=4" or "n2:4" -> n2
std::string host_of(std::string_view line) { return std::string(line.substr(0, line.find_first_of(" \t:"))); }

/// Slots on a line of a hosts file: "n2 slots=4" -> 4.
std::uint32_t slots_in(std::string_view line) {
    const auto at = line.find("slots=");
    if (at == std::string_view::npos) return 1;
    const auto digits = line.substr(at + 6);
    return number(digits.substr(0, digits.find_first_not_of("0123456789"))).value_or(1);
}

class Reduction {
  public:
    Reduction(const LaunchLine& line, const StepNodes& nodes, const std::string& hosts_path)
        : nodes_(nodes), hosts_path_(hosts_path), words_(line.words), end_(*line.program) {
        for (std::size_t i = 0; i < nodes.all.size(); ++i) {
            if (contains(nodes.gone, nodes.all[i])) continue;
            living_.push_back(nodes.all[i]);
            room_.push_back(i < nodes.tasks.size() ? nodes.tasks[i] : 1);
        }
        reduce_hosts();
    }

    [[nodiscard]] bool possible() const { return !living_.empty(); }

    ReducedLine srun() {
        // Later options win, so append them. A node list with lost nodes would contradict them: remove it.
        const std::uint32_t tasks = hosts_.empty() ? srun_tasks() : static_cast<std::uint32_t>(hosts_.size());
        for (auto named = find_option(words_, end_, {"--nodelist", "-w"}); named;
             named = find_option(words_, end_, {"--nodelist", "-w"}))
            erase(*named);
        if (hosts_.empty()) insert({"--exclude=" + base::join(nodes_.gone, ",")});
        insert({"--nodes=" + std::to_string(living_.size()), "--ntasks=" + std::to_string(tasks)});
        return {std::move(words_), std::move(hosts_)};
    }

    ReducedLine mpirun() {
        std::uint32_t room = 0;
        if (!hosts_.empty()) {
            for (const auto& host : hosts_) room += slots_in(host);
            if (auto option = hosts_option(words_, end_)) replace(*option, hosts_path_);
        } else if (const auto option = find_option(words_, end_, {"--host", "-host", "-H"})) {
            room = keep_hosts(*option);
        } else {
            std::vector<std::string> hosts;
            for (std::size_t i = 0; i < living_.size(); ++i) {
                hosts.push_back(living_[i] + ":" + std::to_string(room_[i]));
                room += room_[i];
            }
            insert({"--host", base::join(hosts, ",")});
        }
        if (const auto ranks = find_option(words_, end_, {"-n", "-np", "--n", "--np", "-c"}))
            replace(*ranks, std::to_string(std::min(number(ranks->value).value_or(room), room)));
        return {std::move(words_), std::move(hosts_)};
    }

  private:
    void reduce_hosts() {
        if (nodes_.hosts.empty() || living_.empty()) return;
        for (const auto& line : nodes_.hosts)
            if (!line.empty() && !contains(nodes_.gone, host_of(line))) hosts_.push_back(line);
        const bool seq = slots_in(nodes_.hosts.front()) == 1;
        if (seq && contains(nodes_.gone, host_of(nodes_.hosts.front()))) hosts_.insert(hosts_.begin(), living_.front());
    }

    /// The living nodes' share of the tasks, at least the head and one worker.
    [[nodiscard]] std::uint32_t srun_tasks() const {
        std::uint32_t all = static_cast<std::uint32_t>(nodes_.all.size());
        if (const auto tasks = find_option(words_, end_, {"--ntasks", "-n"}))
            all = number(tasks->value).value_or(all);
        else if (const auto per_node = find_option(words_, end_, {"--ntasks-per-node"}))
            all *= number(per_node->value).value_or(1);
        else
            all = nodes_.job_tasks.value_or(all);
        const auto share = static_cast<std::uint64_t>(all) * living_.size() / nodes_.all.size();
        return std::max(2U, static_cast<std::uint32_t>(share));
    }

    /// Removes the lost nodes from `--host a,b:4`; returns the slots on the others.
    std::uint32_t keep_hosts(const Option& option) {
        std::vector<std::string> kept;
        std::uint32_t room = 0;
        for (std::string_view rest = option.value; !rest.empty();) {
            const auto comma = rest.find(',');
            const std::string item(rest.substr(0, comma));
            rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
            if (contains(nodes_.gone, host_of(item))) continue;
            const auto colon = item.find(':');
            room += colon == std::string::npos ? 1 : number(std::string_view(item).substr(colon + 1)).value_or(1);
            kept.push_back(item);
        }
        replace(option, base::join(kept, ","));
        return room;
    }

    void insert(std::initializer_list<std::string> more) {
        words_.insert(words_.begin() + static_cast<std::ptrdiff_t>(end_), more);
        end_ += more.size();
    }
    void erase(const Option& option) {
        const auto first = words_.begin() + static_cast<std::ptrdiff_t>(option.at);
        words_.erase(first, first + static_cast<std::ptrdiff_t>(option.length));
        end_ -= option.length;
    }
    void replace(const Option& option, const std::string& value) {
        std::string& word = words_[option.at + option.length - 1];
        if (option.length == 2)
            word = value;
        else if (const auto equals = word.find('='); equals != std::string::npos)
            word = word.substr(0, equals + 1) + value;
        else
            word = word.substr(0, 2) + value;
    }

    const StepNodes& nodes_;
    const std::string& hosts_path_;
    Words words_;
    std::size_t end_; ///< position of the program
    std::vector<std::string> living_;
    std::vector<std::uint32_t> room_; ///< tasks per living node
    std::vector<std::string> hosts_;
};

} // namespace

bool LaunchLine::has_ulfm() const {
    const auto option = find_option(words, program.value_or(words.size()), {"--with-ft"});
    return launcher == Launcher::mpirun && option && (option->value == "ulfm" || option->value == "mpi");
}

std::vector<std::string> LaunchLine::run_arguments() const {
    if (!program) return {};
    return {words.begin() + static_cast<std::ptrdiff_t>(*program) + 2, words.end()};
}

LaunchLine launch_line(std::vector<std::string> words) {
    LaunchLine line{std::move(words), Launcher::other, std::nullopt};
    const auto run = std::find(line.words.begin() + 1, line.words.end(), "run");
    if (run != line.words.end() && (run - 1)->front() != '-')
        line.program = static_cast<std::size_t>(run - line.words.begin()) - 1;
    line.launcher = line.program == std::size_t{0} ? Launcher::none : launcher_of(line.words.front());
    return line;
}

std::string hosts_file(const LaunchLine& line, const std::string& variable) {
    if (!line.program) return {};
    if (line.launcher == Launcher::mpirun) {
        const auto option = hosts_option(line.words, *line.program);
        return option ? option->value : std::string();
    }
    if (line.launcher != Launcher::srun) return {};
    const auto order = find_option(line.words, *line.program, {"--distribution", "-m"});
    return order && order->value.rfind("arbitrary", 0) == 0 ? variable : std::string();
}

std::optional<ReducedLine> without_nodes(const LaunchLine& line, const StepNodes& nodes,
                                         const std::string& hosts_path) {
    if (!line.program || (line.launcher != Launcher::srun && line.launcher != Launcher::mpirun)) return std::nullopt;
    Reduction reduction(line, nodes, hosts_path);
    if (!reduction.possible()) return std::nullopt;
    return line.launcher == Launcher::srun ? reduction.srun() : reduction.mpirun();
}

} // namespace ranktune::launch
