// SPDX-License-Identifier: Apache-2.0
#include "ranktune/base/error.hpp"
#include "ranktune/study/codec.hpp"
#include "storage/journal.hpp"
#include "storage/journal_walk.hpp"

namespace ranktune::storage {

JournalSummary read_journal(FileSystem& files, const std::string& directory,
                            const std::function<void(study::Record&&)>& visit) {
    const WalkResult walk = walk_journal(files, directory, [&](const FrameView& frame) {
        study::Decoder in(frame.records);
        for (std::uint32_t i = 0; i < frame.header.count; ++i) visit(study::decode_record(in));
        if (!in.empty()) throw base::FormatError("a frame of the journal holds more than its records");
    });
    JournalSummary summary;
    summary.uuid = walk.newest.uuid;
    summary.segments = walk.segments;
    summary.incarnation = walk.newest.incarnation;
    summary.writer = {walk.newest.host, walk.newest.boot_id, walk.newest.pid};
    summary.job = walk.newest.job;
    summary.records = walk.end.sequence;
    summary.cut_bytes = walk.cut_bytes;
    return summary;
}

bool has_journal(const FileSystem& files, const std::string& directory) {
    return !list_segments(files, directory).empty();
}

} // namespace ranktune::storage
