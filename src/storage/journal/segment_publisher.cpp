// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/segment_publisher.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "ranktune/base/error.hpp"
#include "storage/hdf5/shell.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::storage {
namespace {

hdf5::Shell build_shell(std::uint64_t payload_bytes) {
    const hdf5::QuietErrors quiet;
    hdf5::ShellBuilder builder(segment_header_bytes);
    hdf5::put_attribute(builder.file(), "format", "ranktune journal segment");
    hdf5::put_attribute(builder.file(), "schema_version", std::uint64_t{journal_major});
    const hid_t payload = builder.add_bulk(builder.file(), "records", H5T_STD_U8LE, {payload_bytes});
    hdf5::put_attribute(payload, "long_name", "records of the study: a header page, then frames");
    hdf5::put_attribute(payload, "units", "bytes");
    hdf5::Shell shell = builder.finish();
    const std::uint64_t offset = shell.offsets.front();
    if (offset % segment_header_bytes != 0 || offset > segment_search_bytes) {
        throw base::FormatError("this HDF5 library places the journal's data at an unexpected offset, " +
                                std::to_string(offset));
    }
    return shell;
}

} // namespace

const hdf5::Shell& segment_shell(std::uint64_t payload_bytes) {
    static std::mutex mutex;
    static std::map<std::uint64_t, hdf5::Shell> shells; // references stay valid
    const std::lock_guard lock(mutex);
    const auto found = shells.find(payload_bytes);
    if (found != shells.end()) return found->second;
    return shells.emplace(payload_bytes, hdf5_call([&] { return build_shell(payload_bytes); })).first->second;
}

SegmentPublisher::SegmentPublisher(FileSystem& files, const JournalOptions& options, base::LogSink& log)
    : files_(files), options_(options), log_(log), next_bytes_(options.first_segment_bytes) {
    // Builds all usual sizes now, so that later publications need no HDF5 call.
    std::uint64_t size = next_bytes_;
    for (; size < options.max_segment_bytes; size *= 2) static_cast<void>(segment_shell(size));
    static_cast<void>(segment_shell(size));
}

std::unique_ptr<OpenSegment> SegmentPublisher::publish(std::uint32_t number, std::uint32_t after,
                                                       const JournalPosition& cut, const Room& room) {
    std::uint64_t payload = next_bytes_;
    while (payload < segment_header_bytes + room.needed) payload *= 2;
    auto segment = std::make_unique<OpenSegment>();
    SegmentHeader& header = segment->header;
    header.segment = number;
    header.incarnation = options_.incarnation;
    header.uuid = options_.uuid;
    header.ahead = after != 0;
    header.cut = cut;
    header.after = after;
    header.payload_offset = segment_shell(payload).offsets.front();
    header.payload_bytes = payload;
    header.host = options_.writer.host;
    header.boot_id = options_.writer.boot_id;
    header.job = options_.job;
    header.pid = options_.writer.pid;
    header.restart_count = options_.restart_count;
    segment->path = segment_path(options_.directory, number);
    const std::string aside = journal_directory(options_.directory) + "/" + std::to_string(number) + "-" +
                              std::to_string(options_.incarnation) + "-" + options_.writer.host + "-" +
                              std::to_string(options_.writer.pid) + ".tmp";
    const auto remove_aside = [&]() noexcept {
        try {
            files_.remove(aside);
        } catch (const base::IoError&) { // the next owner removes it
        }
    };
    bool won = false;
    try {
        write_aside(*segment, aside);
        won = files_.link(aside, segment->path);
    } catch (...) {
        remove_aside();
        throw;
    }
    remove_aside();
    if (!won) return nullptr;
    files_.sync_directory(journal_directory(options_.directory));
    next_bytes_ = std::max(next_bytes_, std::min({payload * 2, room.most, options_.max_segment_bytes}));
    log_.write(base::LogLevel::debug, "journal-segment",
               {{"path", segment->path}, {"bytes", std::to_string(payload)}, {"ahead", after != 0 ? "yes" : "no"}});
    return segment;
}

void SegmentPublisher::write_aside(OpenSegment& segment, const std::string& aside) {
    const hdf5::Shell& shell = segment_shell(segment.header.payload_bytes);
    files_.remove(aside); // left by an earlier process with the same pid
    segment.file = files_.open(aside, FileSystem::Open::create_new);
    segment.file->write_at(0, shell.metadata);
    segment.file->truncate(shell.size);
    if (!segment.file->reserve(shell.size) && !said_sparse_) {
        said_sparse_ = true;
        log_.write(base::LogLevel::info, "journal-sparse",
                   {{"why", "this file system cannot reserve space: a full disk shows only when records are synced"}});
    }
    segment.file->write_at(segment.header.payload_offset, encode_segment_header(segment.header));
    segment.file->sync();
}

void SegmentPublisher::remove_leftovers() {
    const std::string directory = journal_directory(options_.directory);
    for (const std::string& name : files_.list(directory)) {
        if (name.ends_with(".tmp")) files_.remove(directory + "/" + name);
    }
}

} // namespace ranktune::storage
