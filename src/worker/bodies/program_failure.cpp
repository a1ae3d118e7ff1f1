// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/program_failure.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include "ranktune/base/error.hpp"
#include "storage/error_kinds.hpp"
#include "storage/unique_handle.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {
namespace {

/// As study::Failure counts.
std::uint32_t exit_code_of(const process::ChildExit& exit) {
    return static_cast<std::uint32_t>(exit.signal > 0 ? 128 + exit.signal : exit.code);
}

/// The error, with the exit code of the program.
template <class Error>
struct Ended : Error, ProgramEnd {
    Ended(Error error, std::uint32_t exit_code) : Error(std::move(error)), ProgramEnd(exit_code) {}
};

/// Why a block cannot be written in the directory, by a file without a name: of what is free, some may be kept for
/// others, and a quota shows nowhere else. 0: it can, or such files are unknown there and there is room.
int refused_block(const std::string& directory) {
    const storage::FileDescriptor file(open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (!file && (errno == ENOSPC || errno == EDQUOT)) return errno;
    if (!file) {
        std::error_code error;
        const auto room = std::filesystem::space(directory, error);
        const auto left = geteuid() == 0 ? room.free : room.available; // root may use what is kept for it
        return !error && room.capacity > 0 && left == 0 ? ENOSPC : 0;
    }
    constexpr std::array<char, 4096> block{};
    return write(file.get(), block.data(), block.size()) < 0 ? errno : 0;
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
    const int why = refused_block(works_in);
    if (why != ENOSPC && why != EDQUOT) return std::nullopt;
    return "no space is left where it works, in '" + works_in + "': " + std::generic_category().message(why);
}

void throw_failure(const process::Child& ended, const std::optional<process::ProgramFailed>& said,
                   const std::string& text, const std::optional<std::string>& refusal,
                   const std::vector<std::uint32_t>& retry_on) {
    using What = process::ProgramFailed::What;
    using study::AttemptOutcome;
    const What what = said ? said->what : What::error;
    const int signal = ended.exited()->signal;
    const std::uint32_t code = exit_code_of(*ended.exited());
    const auto fail = [&](auto error) { throw Ended<decltype(error)>(std::move(error), code); };
    const bool says = said && storage::names_refusal(said->text, what == What::saving);
    if (says || what == What::storage || signal == SIGXFSZ) fail(CheckpointError(AttemptOutcome::unsaved, text));
    if (what == What::device_memory) fail(OversizedError(said->text.empty() ? text : said->text));
    if (refusal)
        fail(CheckpointError(AttemptOutcome::unsaved,
                             text + (text.find(*refusal) == std::string::npos ? "; " + *refusal : "")));
    if (!retry_on.empty() && std::ranges::find(retry_on, code) == retry_on.end()) fail(PermanentError(text));
    // The kernel (out of memory) or a person sends SIGKILL; a page that cannot be read gives SIGBUS.
    if (signal == SIGKILL || signal == SIGBUS) fail(DisturbedError(text));
    throw Ended<base::Error>(base::Error(text), code);
}

} // namespace ranktune::worker
