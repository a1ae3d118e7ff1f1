// SPDX-License-Identifier: Apache-2.0
#include "storage/checkpoints/completeness.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

namespace ranktune::storage {
namespace {

constexpr std::uint64_t longest_tag = 256;
constexpr std::string_view shard_ending = ".distcp";

bool is_digits(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// The word in a small file; nothing if there is no such file.
std::optional<std::string> word_in(FileSystem& files, const std::string& path) {
    if (files.kind(path) != FileSystem::Kind::file) return std::nullopt;
    std::string text = read_text(files, path, longest_tag);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.pop_back();
    return text;
}

/// The first file that `.metadata` names and that is not there; empty: none. It is a pickle, in which names stand as
/// plain text: `__0_0.distcp`.
std::string missing_shard(std::string_view metadata, const std::vector<std::string>& names) {
    for (std::size_t end = metadata.find(shard_ending); end != std::string_view::npos;
         end = metadata.find(shard_ending, end + 1)) {
        std::size_t begin = end;
        while (begin > 0 &&
               (std::isdigit(static_cast<unsigned char>(metadata[begin - 1])) != 0 || metadata[begin - 1] == '_'))
            --begin;
        const std::string_view name = metadata.substr(begin, end + shard_ending.size() - begin);
        if (name.starts_with("__") && std::ranges::find(names, name) == names.end()) return std::string(name);
    }
    return {};
}

std::string missing_of_dcp(FileSystem& files, const std::string& folder, const std::vector<std::string>& names) {
    const auto is_shard = [](const std::string& name) { return name.ends_with(shard_ending); };
    const bool described = std::ranges::find(names, ".metadata") != names.end() &&
                           files.kind(folder + "/.metadata") == FileSystem::Kind::file;
    if (!described && std::ranges::none_of(names, is_shard)) return {};
    if (!described) return ".metadata is missing; give report() the future of async_save";
    const std::string shard = missing_shard(read_text(files, folder + "/.metadata"), names);
    return shard.empty() ? "" : "its .metadata names " + shard + ", which is missing";
}

/// `tag`: the folder that the file `name` names.
std::string missing_tag(const std::string& name, const std::string& tag, const std::vector<std::string>& names) {
    if (std::ranges::find(names, tag) != names.end()) return {};
    return "its file " + name + " names " + tag + ", which is missing";
}

} // namespace

std::string what_is_missing(FileSystem& files, const std::string& folder, const std::vector<std::string>& names) {
    if (std::string why = missing_of_dcp(files, folder, names); !why.empty()) return why;
    for (const std::string& name : names) {
        if (name == "latest") {
            constexpr std::string_view step = "global_step";
            const auto tag = word_in(files, folder + "/" + name);
            if (tag && tag->starts_with(step) && is_digits(tag->substr(step.size())))
                if (std::string why = missing_tag(name, *tag, names); !why.empty()) return why;
        } else if (name == "latest_checkpointed_iteration.txt") {
            const auto iteration = word_in(files, folder + "/" + name);
            if (!iteration || (*iteration != "release" && (!is_digits(*iteration) || iteration->size() > 7))) continue;
            const std::string tag =
                *iteration == "release" ? *iteration : "iter_" + std::string(7 - iteration->size(), '0') + *iteration;
            if (std::string why = missing_tag(name, tag, names); !why.empty()) return why;
        }
    }
    return {};
}

} // namespace ranktune::storage
