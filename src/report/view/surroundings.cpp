// SPDX-License-Identifier: Apache-2.0
#include "report/view/surroundings.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "ranktune/base/text.hpp"

namespace ranktune::report {
namespace {

using Facts = nlohmann::json;

/// Empty: it cannot be read.
std::string text_of_file(storage::FileSystem& files, const std::string& path) {
    try {
        return storage::read_text(files, path);
    } catch (const base::IoError&) {
        return {};
    }
}

/// The text at a path of keys; empty where there is none.
std::string text_at(const Facts& facts, const char* path) {
    const Facts::json_pointer pointer(path);
    return facts.contains(pointer) && facts[pointer].is_string() ? facts[pointer].get<std::string>() : "";
}

std::string software_of(const Facts& facts) {
    std::vector<std::string> parts;
    const auto take = [&](const std::string& name, const char* path) {
        if (const std::string text = text_at(facts, path); !text.empty()) parts.push_back(name + text);
    };
    take("ranktune ", "/ranktune");
    take("", "/mpi");
    take("HDF5 ", "/hdf5");
    take("", "/blas");
    take("", "/build/compiler");
    take("", "/build/type");
    return base::join(parts);
}

} // namespace

std::vector<Surroundings> surroundings_of(storage::FileSystem& files, const std::string& directory) {
    const std::string logs = directory + "/logs";
    std::vector<Surroundings> all;
    if (!files.exists(logs)) return all;
    for (const std::string& name : files.list(logs)) {
        if (!name.ends_with(".env.json")) continue;
        const Facts facts = Facts::parse(text_of_file(files, logs + "/" + name), nullptr, false);
        if (!facts.is_object() || !facts.contains("start") || !facts["start"].is_number_unsigned()) continue;
        std::string code = text_at(facts, "/code/commit");
        if (!code.empty()) code += " in " + text_at(facts, "/code/directory");
        all.push_back({facts["start"].get<std::uint64_t>(), text_at(facts, "/machine/host"),
                       text_at(facts, "/variables/SLURM_JOB_ID"), software_of(facts), std::move(code)});
    }
    std::ranges::sort(all, {}, &Surroundings::start);
    return all;
}

} // namespace ranktune::report
