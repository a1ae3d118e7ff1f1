// SPDX-License-Identifier: Apache-2.0
#include "data/staging/stager.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "data/formats.hpp"
#include "process/environment.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "ranktune/data/source.hpp"

namespace ranktune::data {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Stopped {};

/// A file has rows in other files, which a copy would not have.
class RowsElsewhere : public base::Error {
    using Error::Error;
};

constexpr std::string_view lock_ending = ".lock";
constexpr std::string_view part_ending = ".part";

std::string decoded_name(const std::string& name) { return fs::path(name).replace_extension(".safetensors").string(); }

std::string seconds_text(double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", seconds);
    return text;
}

/// A removal that is cut short must not leave a folder that counts as a whole copy.
void remove_copy(storage::FileSystem& files, const std::string& folder) {
    const std::string part = folder + std::string(part_ending);
    files.remove_all(part);
    if (!files.exists(folder)) return;
    files.rename(folder, part);
    files.remove_all(part);
}

} // namespace

std::size_t sweep(storage::FileSystem& files, const std::string& folder, std::span<const std::string> keep) {
    std::size_t removed = 0;
    for (const std::string& name : files.list(folder)) {
        if (!name.ends_with(lock_ending)) continue;
        const std::string copy = name.substr(0, name.size() - lock_ending.size());
        if (std::ranges::find(keep, copy) != keep.end()) continue;
        try {
            auto lock = CopyLock::take_unused(folder + "/" + name);
            if (!lock) continue;
            remove_copy(files, folder + "/" + copy);
            lock->remove_file();
            ++removed;
        } catch (const base::IoError&) { // another start has swept it
        }
    }
    return removed;
}

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
            for (const std::uint64_t key : offered->no_part)
                if (name.starts_with(name_of_bytes(key))) return offer_of_no_part();
            return std::nullopt;
        });
    thread_ = std::thread([this] { main(); });
}

Stager::~Stager() { give_back(); }

void Stager::give_back() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
    {
        const std::scoped_lock lock(offered_->mutex);
        offered_->tables.clear();
        offered_->no_part.clear();
    }
    for (Used& used : used_) {
        try {
            if (!used.lock.is_last()) continue;
            remove_copy(options_.copies.files, used.folder);
            used.lock.remove_file();
        } catch (const base::IoError&) { // the next start sweeps it
        }
    }
    used_.clear();
}

StagingFigures Stager::figures() const {
    const std::scoped_lock lock(mutex_);
    return figures_;
}

void Stager::check() const {
    if (stop_.load()) throw Stopped{};
}

void Stager::main() {
    std::string problem;
    try {
        std::vector<std::pair<study::DataFile*, FileList>> lists;
        for (study::DataFile& file : files_)
            if (!file.is_mixture()) lists.emplace_back(&file, list_files(file));
        for (const auto& [file, list] : lists) {
            copies_.push_back(list.copy_name(options_.start));
            study::DataFile packed = *file; // if the decoded rows have no room
            packed.decode = false;
            if (file->decode) copies_.push_back(list_files(packed).copy_name(options_.start));
        }
        sweep_places();
        for (const auto& [file, list] : lists) stage(list, *file);
    } catch (const Stopped&) {
        return;
    } catch (const std::exception& error) {
        problem = error.what();
    }
    {
        const std::scoped_lock lock(mutex_);
        figures_.over = true;
        figures_.problem = std::move(problem);
    }
    wake_();
}

/// What killed processes have left in any place, memory included: the studies before may have had other places.
void Stager::sweep_places() {
    std::vector<CopyPlace> places = options_.places(spec_.directory).usable;
    const auto sweep_quietly = [this](const std::string& folder, std::span<const std::string> keep) {
        try {
            static_cast<void>(sweep(options_.copies.files, folder, keep));
        } catch (const base::IoError&) { // another start has removed it
        }
    };
    for (const CopyPlace& place : places) sweep_quietly(place.folder, copies_);
    if (spec_.directory.empty()) return;
    for (const CopyPlace& other : options_.places("").usable) // here no copy of this study is looked for
        if (std::ranges::none_of(places, [&](const CopyPlace& place) {
                std::error_code error;
                return fs::equivalent(place.folder, other.folder, error);
            }))
            sweep_quietly(other.folder, {});
}

void Stager::stage(const FileList& list, study::DataFile& file) {
    auto rows = file.decode ? decoded_bytes(file.path, options_of(file)) : std::nullopt;
    std::string part;
    std::string why;
    try {
        why = copy_somewhere(list, file, list.bytes + rows.value_or(0));
    } catch (const RowsElsewhere& error) {
        why = part = error.what();
        file.decode = false;
        rows.reset();
    }
    if (why.empty()) return;
    take_no_part(list);
    const std::string text = "data." + file.name + " (" + base::bytes_text(list.bytes) +
                             (rows ? ", and " + base::bytes_text(*rows) + " of decoded rows" : "") +
                             ") cannot be copied to " + process::host_name() + ": " + why;
    if (spec_.must_fit)
        throw base::Error(text + (part.empty() ? "; give it room, another data.directory, or set data.must_fit = false"
                                               : "; write all into one file, or set data.must_fit = false"));
    if (file.decode && !rows) // a table
        throw base::Error(text + "; decoded rows need a copy: give it room, or another data.directory");
    const bool was_decoded = std::exchange(file.decode, false);
    if (options_.speaks)
        log_(text +
             (was_decoded ? "; its packed chunks are decoded as they are read" : "; every rank reads the original"));
    if (was_decoded) stage(list_files(file), file);
}

std::string Stager::copy_somewhere(const FileList& list, study::DataFile& file, std::uint64_t room) {
    CopyPlaces places = options_.places(spec_.directory);
    std::vector<std::string> whys = std::move(places.refused);
    for (const CopyPlace& place : places.usable) {
        if (spec_.directory.empty() && !file.decode && !is_network(file.path) &&
            same_file_system(file.path, place.folder)) {
            take_no_part(list);
            if (options_.speaks) log_("data." + file.name + " lies on a disk of this node and is read there");
            return "";
        }
        std::string why;
        if (stage_in(place, list, file, room, why)) return "";
        whys.push_back(std::move(why));
    }
    return base::join(whys, "; ");
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

bool Stager::stage_in(const CopyPlace& place, const FileList& list, study::DataFile& file, std::uint64_t room,
                      std::string& why) {
    const std::string name = list.copy_name(options_.start);
    const std::string folder = place.folder + "/" + name;
    storage::FileSystem& files = options_.copies.files;
    try {
        while (true) {
            CopyLock lock = wait_for_lock(folder + std::string(lock_ending));
            const bool there = files.exists(folder);
            if (!there && lock.held() == CopyLock::Held::together) continue; // whoever made it gave up just now
            if (!there && room > place.room) {
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
            } else if (lock.held() == CopyLock::Held::alone) {
                take_no_part(list);
                log_("data." + file.name + ": found a copy of an earlier start, " + folder);
            }
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
void Stager::make(const CopyPlace& place, const FileList& list, const study::DataFile& file) {
    const std::string folder = place.folder + "/" + list.copy_name(options_.start);
    const std::string part = folder + std::string(part_ending);
    storage::FileSystem& files = options_.copies.files;
    const auto refuse_change = [&] { // it may have changed while this rank waited, too
        if (list_files(file).key != list.key)
            throw base::IoError("changed while it was copied:", file.path, std::make_error_code(std::errc::io_error));
    };
    refuse_change();
    // Here, not in each rank: it opens every file.
    if (const std::string other = part_elsewhere(list); !other.empty()) throw RowsElsewhere(other);
    const auto begin = Clock::now();
    const StagingFigures before = figures();
    try {
        files.remove_all(part); // of a process that was killed
        files.make_directories(part);
        {
            const std::scoped_lock lock(mutex_);
            figures_.bytes += list.bytes;
        }
        CopyMaker maker(list, part, options_.copies,
                        {[this](std::uint64_t copied, std::uint64_t read) {
                             const std::scoped_lock lock(mutex_);
                             figures_.copied += copied;
                             figures_.read += read;
                         },
                         [this] { check(); }, log_});
        fill(maker);
        refuse_change();
        if (file.decode) decode(part, list, file, place.room - std::min(place.room, list.bytes));
        files.rename(part, folder);
    } catch (...) {
        {
            const std::scoped_lock lock(offered_->mutex); // other nodes wait for who answers
            std::erase_if(offered_->tables, [&](const auto& table) { return table->key() == list.key; });
        }
        const std::scoped_lock lock(mutex_);
        figures_ = before;
        throw;
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    log_("data." + file.name + ": " + base::bytes_text(list.bytes) + " copied to " + folder + " in " +
         seconds_text(seconds) + ", " + base::bytes_text(figures().read - before.read) + " of them from the original");
}

void Stager::fill(CopyMaker& maker) {
    if (exchange_ != nullptr) {
        const std::scoped_lock lock(offered_->mutex);
        offered_->tables.push_back(maker.table());
    }
    maker.fill(nodes_, exchange_);
}

/// Of the nodes that copy the file: the others share its pieces.
void Stager::take_no_part(const FileList& list) {
    const std::scoped_lock lock(offered_->mutex);
    offered_->no_part.push_back(list.key);
}

/// The original goes; other nodes still read it through the table.
void Stager::decode(const std::string& part, const FileList& list, const study::DataFile& file, std::uint64_t room) {
    storage::FileSystem& files = options_.copies.files;
    const std::string packed = part + "/" + list.name;
    const std::string plain = part + "/" + decoded_name(list.name);
    try {
        data::decode_rows(packed, options_of(file), plain, room, [this] { check(); });
    } catch (const base::FormatError& error) {
        std::string text = error.what(); // its user knows the original alone
        if (const std::size_t at = text.find(packed); at != std::string::npos)
            text.replace(at, packed.size(), file.path);
        throw base::FormatError(text);
    }
    files.remove(packed);
}

void Stager::use(const std::string& folder, const FileList& list, study::DataFile& file, CopyLock lock) {
    file.path = folder + "/" + list.name;
    if (file.decode) {
        file.path = folder + "/" + decoded_name(list.name);
        file.group.clear();
    }
    used_.push_back({folder, std::move(lock)});
}

} // namespace ranktune::data
