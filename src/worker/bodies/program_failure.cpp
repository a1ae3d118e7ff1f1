// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_failure.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <system_error>

#include "ranktune/base/error.hpp"
#include "storage/error_kinds.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {
namespace {

/// As a shell counts: 128 + N for signal N.
bool is_listed(const process::ChildExit& exit, const std::vector<std::uint32_t>& codes) {
    const int code = exit.signal > 0 ? 128 + exit.signal : exit.code;
    return codes.empty() || std::ranges::find(codes, static_cast<std::uint32_t>(code)) != codes.end();
}

} // namespace

/// Many programs print their error on standard output and then exit with a code. The output of a killed program is only
/// its usual progress.
std::string failure_text(const process::Child& ended, const std::optional<process::ProgramFailed>& said) {
    const process::ChildExit& exit = *ended.exited();
    std::string words = ended.last_words();
    const char* where = "error";
    if (words.empty() && exit.signal == 0) {
        words = ended.last_output();
        where = "output";
    }
    const bool says = said && !said->text.empty() && exit.signal != SIGKILL && exit.signal != SIGBUS;
    const std::string text = says ? said->text : exit.text();
    if (words.empty()) return text;
    const auto last = words.rfind('\n');
    if (last == std::string::npos && !says) return text + ": " + words;
    return text + (says ? "" : ": " + words.substr(last + 1)) + "\nlast lines of its standard " + where + ":\n" + words;
}

std::optional<std::string> full_disk(const std::string& works_in) {
    std::error_code error;
    const auto room = std::filesystem::space(works_in, error);
    if (!error && room.capacity > 0 && room.free == 0) return "no space is left where it works, in '" + works_in + "'";
    return std::nullopt;
}

void throw_failure(const process::Child& ended, const std::optional<process::ProgramFailed>& said,
                   const std::string& text, const std::optional<std::string>& refusal,
                   const std::vector<std::uint32_t>& retry_on) {
    using What = process::ProgramFailed::What;
    using study::AttemptOutcome;
    const What what = said ? said->what : What::error;
    const int signal = ended.exited()->signal;
    const bool says = said && storage::names_refusal(said->text, what == What::saving);
    if (says || what == What::storage || signal == SIGXFSZ) throw CheckpointError(AttemptOutcome::unsaved, text);
    if (what == What::device_memory) throw OversizedError(said->text.empty() ? text : said->text);
    if (refusal)
        throw CheckpointError(AttemptOutcome::unsaved,
                              text + (text.find(*refusal) == std::string::npos ? "; " + *refusal : ""));
    if (!is_listed(*ended.exited(), retry_on)) throw PermanentError(text);
    // The kernel (out of memory) or a person sends SIGKILL; a page that cannot be read gives SIGBUS.
    if (signal == SIGKILL || signal == SIGBUS) throw DisturbedError(text);
    throw base::Error(text);
}

} // namespace ranktune::worker
