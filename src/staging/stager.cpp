// SPDX-License-Identifier: Apache-2.0
#include "staging/stager.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <utility>

#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/data/source.hpp"

namespace ranktune::staging {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Stopped {};

constexpr std::string_view lock_ending = ".lock";
constexpr std::string_view part_ending = ".part";

std::string decoded_name(const std::string& name) { return fs::path(name).replace_extension(".safetensors").string(); }

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", seconds);
    return text;
}

/// Copies that nobody uses any more: their processes were killed. `keep` is about to be used.
void sweep(storage::FileSystem& files, const std::string& folder, const std::string& keep) {
    for (const std::string& name : files.list(folder)) {
        if (!name.ends_with(lock_ending) || name == keep) continue;
        try {
            auto lock = CopyLock::take_unused(folder + "/" + name);
            if (!lock) continue;
            const std::string copy = folder + "/" + name.substr(0, name.size() - lock_ending.size());
            files.remove_all(copy);
            files.remove_all(copy + std::string(part_ending));
            lock->remove_file();
        } catch (const base::IoError&) { // another start has swept it
        }
    }
}

} // namespace

Stager::Stager(const study::StudySpec& spec, Nodes nodes, comm::BlockExchange* exchange, Log log,
               std::function<void()> wake, StagerOptions options)
    : spec_(spec.staging),
      nodes_(std::move(nodes)),
      exchange_(exchange),
      log_(std::move(log)),
      wake_(std::move(wake)),
      options_(std::move(options)),
      files_(spec.data),
      offered_(std::make_shared<Offered>()) {
    if (exchange_ != nullptr)
        exchange_->offer([offered = offered_](std::string_view name) -> std::optional<comm::BlockExchange::Offer> {
            const std::scoped_lock lock(offered->mutex);
            for (const auto& table : offered->tables)
                if (auto offer = table->offer(name)) return offer;
            return std::nullopt;
        });
    thread_ = std::thread([this] { main(); });
}

Stager::~Stager() {
    stop_.store(true);
    thread_.join();
    {
        const std::scoped_lock lock(offered_->mutex);
        offered_->tables.clear();
    }
    for (Used& used : used_) {
        try {
            if (!used.lock.is_last()) continue;
            options_.copies.files.remove_all(used.folder);
            used.lock.remove_file();
        } catch (const base::IoError&) { // the next start sweeps it
        }
    }
}

Figures Stager::figures() const {
    const std::scoped_lock lock(mutex_);
    return figures_;
}

const std::vector<study::DataFile>& Stager::files() const {
    if (!problem_.empty()) throw base::Error(problem_);
    return files_;
}

void Stager::check() const {
    if (stop_.load()) throw Stopped{};
}

void Stager::main() {
    try {
        for (study::DataFile& file : files_) stage(file);
    } catch (const Stopped&) {
        return;
    } catch (const std::exception& error) {
        problem_ = error.what();
    }
    {
        const std::scoped_lock lock(mutex_);
        figures_.over = true;
    }
    wake_();
}

void Stager::stage(study::DataFile& file) {
    const FileList list = list_files(file);
    Places places = options_.places(spec_.directory);
    std::vector<std::string> whys = std::move(places.refused);
    for (const Place& place : places.usable) {
        if (spec_.directory.empty() && !file.decode && !is_network(file.path) &&
            same_file_system(file.path, place.folder))
            return log_("data." + file.name + " lies on a disk of this node and is read there");
        std::string why;
        if (stage_in(place, list, file, why)) return;
        whys.push_back(std::move(why));
    }
    const std::string text = "data." + file.name + ": there is no room on this node for a copy of '" + file.path +
                             "' (" + base::bytes_text(list.bytes) + "): " + base::join(whys, "; ");
    if (spec_.must_fit)
        throw base::Error(text + "; give it room or another data.directory, or set data.must_fit = false");
    if (file.decode) throw base::Error(text + "; decoded rows need a copy: give it room or another data.directory");
    log_(text + "; every rank reads the original");
}

CopyLock Stager::wait_for_lock(const std::string& path) const {
    auto nap = std::chrono::milliseconds(1);
    while (true) {
        check();
        if (auto lock = CopyLock::take(path)) return std::move(*lock);
        std::this_thread::sleep_for(nap);
        nap = std::min(2 * nap, std::chrono::milliseconds(128));
    }
}

bool Stager::stage_in(const Place& place, const FileList& list, study::DataFile& file, std::string& why) {
    const std::string folder = place.folder + "/" + list.copy_name();
    const std::string lock_name = list.copy_name() + std::string(lock_ending);
    storage::FileSystem& files = options_.copies.files;
    try {
        sweep(files, place.folder, lock_name);
        while (true) {
            CopyLock lock = wait_for_lock(place.folder + "/" + lock_name);
            const bool there = files.exists(folder);
            if (!there && lock.held() == CopyLock::Held::together) continue; // whoever made it gave up just now
            if (!there && list.bytes > place.room) {
                lock.remove_file();
                why = base::bytes_text(place.room) + " " + place.shortage;
                return false;
            }
            if (!there) {
                try {
                    make(place, list, file);
                } catch (...) {
                    files.remove_all(folder + std::string(part_ending));
                    lock.remove_file();
                    throw;
                }
            }
            if (there && lock.held() == CopyLock::Held::alone)
                log_("data." + file.name + ": found a copy of an earlier start, " + folder);
            if (lock.held() == CopyLock::Held::alone && !lock.share()) continue;
            use(folder, list, file, std::move(lock));
            return true;
        }
    } catch (const base::IoError& error) {
        why = error.what();
        return false;
    }
}

/// The lock is held alone.
void Stager::make(const Place& place, const FileList& list, const study::DataFile& file) {
    const std::string folder = place.folder + "/" + list.copy_name();
    const std::string part = folder + std::string(part_ending);
    storage::FileSystem& files = options_.copies.files;
    const auto begin = Clock::now();
    std::uint64_t read = 0;
    const CopyEvents events{[this, &read](std::uint64_t copied, std::uint64_t from_original) {
                                const std::scoped_lock lock(mutex_);
                                figures_.copied += copied;
                                figures_.read += from_original;
                                read += from_original;
                            },
                            [this] { check(); }, log_};
    files.remove_all(part); // of a process that was killed
    files.make_directories(part);
    {
        const std::scoped_lock lock(mutex_);
        figures_.bytes += list.bytes;
    }
    CopyMaker maker(list, part, options_.copies, events);
    {
        const std::scoped_lock lock(offered_->mutex);
        offered_->tables.push_back(maker.table());
    }
    maker.fill(nodes_, exchange_);
    if (list_files(file).key != list.key)
        throw base::IoError("changed while it was copied:", file.path, std::make_error_code(std::errc::io_error));
    if (file.decode) {
        data::SourceOptions how;
        how.group = file.group;
        data::decode_rows(part + "/" + list.name, how, part + "/" + decoded_name(list.name));
        files.remove(part + "/" + list.name); // other nodes still read it through the table
    }
    files.rename(part, folder);
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    log_("data." + file.name + ": " + base::bytes_text(list.bytes) + " copied to " + folder + " in " +
         seconds_text(seconds) + ", " + base::bytes_text(read) + " of them from the original");
}

void Stager::use(const std::string& folder, const FileList& list, study::DataFile& file, CopyLock lock) {
    file.path = folder + "/" + list.name;
    if (file.decode) {
        file.path = folder + "/" + decoded_name(list.name);
        file.group.clear();
    }
    used_.push_back({folder, std::move(lock)});
}

} // namespace ranktune::staging
