// SPDX-License-Identifier: Apache-2.0
// Job scripts as commands of tasks: what their #SBATCH lines ask for is asked of nobody.

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/number_in.hpp"
#include "cli/checks/remarks.hpp"
#include "ranktune/base/text.hpp"

namespace ranktune::cli {
namespace {

/// What a line asks for.
struct Asked {
    std::string option; ///< "--ntasks"
    std::uint32_t count = 0;
};

/// `--ntasks=4`, `--ntasks 4`, `-n 4`, `-n4`, `--gres=gpu:a100:2`. `value`: the next word. nullopt: it asks for nothing
/// that counts.
std::optional<Asked> asked_by(std::string option, std::string value) {
    if (!option.starts_with('-')) return std::nullopt;
    if (const std::size_t equals = option.find('='); equals != std::string::npos) {
        value = option.substr(equals + 1);
        option.resize(equals);
    } else if (!option.starts_with("--") && option.size() > 2) {
        value = option.substr(2);
        option.resize(2);
    }
    if (option == "--gres" && !value.starts_with("gpu")) return std::nullopt;
    const std::string_view last = std::string_view(value).substr(value.rfind(':') + 1);
    const auto count = base::number_in<std::uint32_t>(last);
    if (!count && option != "--gres") return std::nullopt;
    return Asked{option, count.value_or(1)}; // --gres=gpu
}

/// By all options of the line.
std::vector<Asked> asked_in(const std::string& line) {
    std::istringstream text(line);
    const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
    std::vector<Asked> asked;
    if (words.empty() || words[0] != "#SBATCH") return asked;
    for (std::size_t i = 1; i < words.size() && !words[i].starts_with('#'); ++i)
        if (auto one = asked_by(words[i], i + 1 < words.size() ? words[i + 1] : "")) asked.push_back(*std::move(one));
    return asked;
}

/// The setting that gives a task so much; empty: it has that.
std::string setting_for(const Asked& asked, const study::ResourceSpec& resources) {
    const auto is_one_of = [&](std::initializer_list<std::string_view> options) {
        return std::ranges::find(options, asked.option) != options.end();
    };
    if (is_one_of({"-n", "--ntasks"}) && asked.count > resources.ranks)
        return fmt::format("resources.ranks={}", asked.count);
    if (is_one_of({"-c", "--cpus-per-task"}) && asked.count > resources.cpus_per_rank)
        return fmt::format("resources.cpus_per_rank={}", asked.count);
    const bool given = resources.gpus == study::GpuUse::one_per_rank && resources.ranks >= asked.count;
    const bool one = resources.gpus != study::GpuUse::none && asked.count == 1;
    if (is_one_of({"-G", "--gpus", "--gres", "--gpus-per-node", "--gpus-per-task"}) && asked.count > 0 && !given &&
        !one)
        return fmt::format("resources.gpus={}", asked.count);
    return {};
}

} // namespace

std::string job_script_warning(const std::string& script, const study::ResourceSpec& resources) {
    std::string head(std::size_t{1} << 16U, '\0'); // the command may be a large program
    std::ifstream file(script, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    std::istringstream text_of_script(head);
    const std::string name = script.substr(script.rfind('/') + 1);
    std::vector<std::string> lines;
    std::vector<std::string> settings;
    std::string line;
    for (std::size_t number = 1; std::getline(text_of_script, line); ++number) {
        const std::string_view text = base::trimmed(line);
        if (!text.empty() && !text.starts_with('#')) break; // sbatch reads no further
        bool is_more = false;
        for (const Asked& asked : asked_in(line)) {
            const std::string setting = setting_for(asked, resources);
            is_more = is_more || !setting.empty();
            if (!setting.empty() && std::ranges::find(settings, setting) == settings.end()) settings.push_back(setting);
        }
        if (is_more) lines.push_back(fmt::format("{}:{} ({})", name, number, text));
    }
    if (lines.empty()) return {};
    return fmt::format("a task has less than these lines ask for: {}; in a command they are comments: set {}",
                       base::join(lines), base::join(settings));
}

} // namespace ranktune::cli
