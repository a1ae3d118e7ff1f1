// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/lease.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/journal/journal.hpp"

namespace ranktune::storage {

namespace {

constexpr std::string_view lease_title = "ranktune lease 1";

constexpr std::uint64_t most_bytes = std::uint64_t{64} * 1024; ///< read at most this much; a lease is smaller

bool missing(const base::IoError& error) { return error.code() == std::errc::no_such_file_or_directory; }

/// Several heads may write at once, so each has its own temporary file.
std::string aside(const std::string& path, const LeaseHolder& me) { return path + "." + me.nonce + ".tmp"; }

void write_aside(FileSystem& files, const std::string& path, const LeaseHolder& me) {
    const std::string name = aside(path, me);
    files.remove(name);
    const std::string text = lease_text(me);
    files.open(name, FileSystem::Open::create_new)->write_at(0, std::as_bytes(std::span(text)));
}

/// This user may not write to the directory, or nobody may.
bool not_permitted(const base::IoError& error) {
    return error.code() == std::errc::permission_denied || error.code() == std::errc::operation_not_permitted ||
           error.code() == std::errc::read_only_file_system;
}

/// False: there is a lease already, or its taker has swept this temporary file; the caller tries again.
bool link_aside(FileSystem& files, const std::string& path, const LeaseHolder& me) {
    write_aside(files, path, me);
    try {
        return files.link(aside(path, me), path);
    } catch (const base::IoError& error) {
        if (missing(error)) return false;
        throw;
    }
}

/// Removes temporary files that failed or killed starts left beside the lease.
void sweep(FileSystem& files, const std::string& study_directory) {
    for (const std::string& name : files.list(study_directory)) {
        if (!name.starts_with("lease.") || !name.ends_with(".tmp")) continue;
        try {
            files.remove(study_directory + "/" + name);
        } catch (const base::IoError&) { // harmless: a few bytes
        }
    }
}

[[noreturn]] void refuse(const std::string& directory, const LeaseHolder& holder) {
    throw base::UsageError("'" + directory + "' is being run already: " + describe(holder) +
                           "; nothing was started. Look at it with `ranktune status`, end it with `ranktune stop`, or "
                           "give another directory with -o");
}

} // namespace

LeaseHolder this_holder(const std::string& job, std::uint32_t restart_count) {
    LeaseHolder me;
    me.writer = this_writer();
    std::array<char, 64> link{};
    if (const auto size = ::readlink("/proc/self/ns/pid", link.data(), link.size()); size > 0)
        me.pid_namespace.assign(link.data(), static_cast<std::size_t>(size));
    me.process_started = process_start(me.writer.pid).value_or(0);
    me.job = job;
    me.restart_count = restart_count;
    std::random_device device;
    std::ostringstream nonce;
    nonce << std::hex << device() << device();
    me.nonce = nonce.str();
    return me;
}

std::string describe(const LeaseHolder& holder) {
    return "host " + holder.writer.host + ", pid " + std::to_string(holder.writer.pid) +
           (holder.job.empty() ? std::string() : ", job " + holder.job);
}

std::string lease_text(const LeaseHolder& holder) {
    std::ostringstream out;
    out << lease_title << "\nhost=" << holder.writer.host << "\nboot=" << holder.writer.boot_id
        << "\npid=" << holder.writer.pid << "\nnamespace=" << holder.pid_namespace
        << "\nstarted=" << holder.process_started << "\njob=" << holder.job << "\nrestart=" << holder.restart_count
        << "\nnonce=" << holder.nonce << "\ncounter=" << holder.counter << "\n";
    const std::string text = out.str();
    return text + "check=" + std::to_string(base::crc32c(std::as_bytes(std::span(text)))) + "\n";
}

std::optional<LeaseHolder> parse_lease(const std::string& text) {
    const std::size_t check = text.rfind("check=");
    if (!text.starts_with(lease_title) || check == std::string::npos) return {};
    const auto crc = base::crc32c(std::as_bytes(std::span(text).first(check)));
    if (text.substr(check) != "check=" + std::to_string(crc) + "\n") return {};
    LeaseHolder holder;
    std::istringstream lines(text.substr(0, check));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t at = line.find('=');
        if (at == std::string::npos) continue;
        const std::string key = line.substr(0, at);
        const std::string value = line.substr(at + 1);
        const auto number = [&] { return std::strtoull(value.c_str(), nullptr, 10); };
        if (key == "host") holder.writer.host = value;
        if (key == "boot") holder.writer.boot_id = value;
        if (key == "pid") holder.writer.pid = number();
        if (key == "namespace") holder.pid_namespace = value;
        if (key == "started") holder.process_started = number();
        if (key == "job") holder.job = value;
        if (key == "restart") holder.restart_count = static_cast<std::uint32_t>(number());
        if (key == "nonce") holder.nonce = value;
        if (key == "counter") holder.counter = number();
    }
    return holder;
}

std::string lease_path(const std::string& study_directory) { return study_directory + "/lease"; }

std::optional<LeaseHolder> read_lease(FileSystem& files, const std::string& study_directory) {
    try {
        return parse_lease(read_text(files, lease_path(study_directory), most_bytes));
    } catch (const base::IoError& error) {
        if (missing(error)) return {};
        throw;
    }
}

LeaseState judge(const LeaseHolder& holder, const LeaseHolder& me,
                 const std::function<std::optional<std::uint64_t>(std::uint64_t pid)>& process) {
    // Slurm has requeued this job: its earlier run is over.
    if (!me.job.empty() && holder.job == me.job && holder.restart_count < me.restart_count) return LeaseState::stale;
    const bool same_machine = !me.writer.boot_id.empty() && holder.writer.boot_id == me.writer.boot_id &&
                              holder.writer.host == me.writer.host;
    // A rebooted machine has another boot id, and host names need not be unique: watch the counter instead.
    if (!same_machine || holder.pid_namespace != me.pid_namespace) return LeaseState::unknown;
    const auto started = process(holder.writer.pid);
    if (!started) return LeaseState::stale;
    return *started == holder.process_started ? LeaseState::held : LeaseState::stale;
}

std::optional<std::uint64_t> process_start(std::uint64_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    if (!std::getline(file, text)) return {};
    // The process name in parentheses may contain anything. The state follows it; the start time is field 22.
    const std::size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) return {};
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    for (int i = 3; i <= 22; ++i) {
        if (!(fields >> field)) return {};
        if (i == 3 && (field == "Z" || field == "X")) return {}; // dead, not yet reaped
    }
    return std::strtoull(field.c_str(), nullptr, 10);
}

LeaseWait real_wait(std::function<void(const std::string&)> say) {
    return {
        [] { return std::chrono::duration_cast<base::Duration>(std::chrono::steady_clock::now().time_since_epoch()); },
        [](base::Duration duration) { std::this_thread::sleep_for(duration); }, std::move(say)};
}

namespace {

/// Watches a holder in state unknown. Returns its new lease if it renewed it; nothing: stale.
std::optional<LeaseHolder> watch(FileSystem& files, const std::string& directory, const LeaseHolder& holder,
                                 const LeaseWait& wait) {
    const base::Duration limit = lease_period * lease_periods;
    if (wait.say)
        wait.say("'" + directory + "' was being run by " + describe(holder) + ": watching for up to " +
                 std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) +
                 " s whether that still lives");
    const base::Duration since = wait.now();
    while (wait.now() - since < limit) {
        wait.sleep(std::chrono::milliseconds(500));
        const auto now = read_lease(files, directory);
        if (!now) return {}; // released or being written: take() reads it again
        if (*now != holder) return now;
    }
    return {};
}

/// Throws when the holder is alive.
void refuse_living(FileSystem& files, const std::string& directory, const LeaseHolder& holder, LeaseState state,
                   const LeaseWait& wait) {
    if (state == LeaseState::held) refuse(directory, holder);
    if (state != LeaseState::unknown) return;
    if (const auto now = watch(files, directory, holder, wait)) refuse(directory, *now);
}

/// Calls link_aside. When permissions forbid the write, a live holder is the more useful error.
bool link_or_refuse(FileSystem& files, const std::string& directory, const LeaseHolder& me, const LeaseWait& wait) {
    try {
        return link_aside(files, lease_path(directory), me);
    } catch (const base::IoError& error) {
        if (!not_permitted(error)) throw;
        std::optional<LeaseHolder> holder;
        try {
            holder = read_lease(files, directory);
        } catch (const base::IoError&) { // not readable either
        }
        if (holder) refuse_living(files, directory, *holder, judge(*holder, me, process_start), wait);
        throw;
    }
}

} // namespace

std::optional<LeaseHolder> possible_writer(FileSystem& files, const std::string& study_directory) {
    auto holder = read_lease(files, study_directory);
    if (holder && judge(*holder, this_holder("", 0), process_start) == LeaseState::stale) return {};
    return holder;
}

bool writer_lives(FileSystem& files, const std::string& study_directory, const LeaseWait& wait) {
    const auto holder = possible_writer(files, study_directory);
    if (!holder) return false;
    return judge(*holder, this_holder("", 0), process_start) == LeaseState::held ||
           watch(files, study_directory, *holder, wait).has_value();
}

Lease Lease::take(FileSystem& files, const std::string& study_directory, const LeaseHolder& me, const LeaseWait& wait) {
    Lease lease(files, lease_path(study_directory), me);
    try {
        for (int attempt = 0; attempt < 8; ++attempt) {
            if (link_or_refuse(files, study_directory, me, wait)) {
                sweep(files, study_directory);
                return lease;
            }
            const auto holder = read_lease(files, study_directory);
            if (!holder) {
                // Not a valid lease: left by a full disk or a killed writer.
                if (files.exists(lease.path_)) files.remove(lease.path_);
                continue;
            }
            refuse_living(files, study_directory, *holder, judge(*holder, me, process_start), wait);
            // Another head may have judged the same: remove the lease only if it is still the stale one.
            if (read_lease(files, study_directory) == holder) files.remove(lease.path_);
        }
    } catch (...) {
        try {
            files.remove(aside(lease.path_, me));
        } catch (const base::IoError&) { // harmless: a few bytes
        }
        throw;
    }
    files.remove(aside(lease.path_, me));
    throw base::UsageError("other heads are taking '" + study_directory + "' over at the same time: try again");
}

Renewal Lease::renew() {
    std::optional<LeaseHolder> found;
    try {
        found = parse_lease(read_text(*files_, path_, most_bytes));
    } catch (const base::IoError& error) {
        if (!missing(error)) throw;
    }
    if (!found) return Renewal::gone;
    if (found->nonce != me_.nonce) return Renewal::taken;
    ++me_.counter;
    write_aside(*files_, path_, me_);
    files_->rename(aside(path_, me_), path_);
    return Renewal::renewed;
}

void Lease::release() noexcept {
    try {
        const auto found = parse_lease(read_text(*files_, path_, most_bytes));
        if (found && found->nonce == me_.nonce) files_->remove(path_);
        files_->remove(aside(path_, me_));
    } catch (const std::exception&) { // the next head finds this process dead and the lease stale
    }
}

WriterIdentity this_writer() {
    WriterIdentity writer;
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) == 0) writer.host = host.data();
    std::ifstream("/proc/sys/kernel/random/boot_id") >> writer.boot_id;
    writer.pid = static_cast<std::uint64_t>(::getpid());
    return writer;
}

} // namespace ranktune::storage
