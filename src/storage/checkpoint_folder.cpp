// SPDX-License-Identifier: Apache-2.0
// Checkpoints that programs saved: files of any kind in a folder, with a manifest.
#include <algorithm>
#include <charconv>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "storage/checkpoint_store.hpp"

namespace ranktune::storage {
namespace {

constexpr std::size_t block_bytes = 4 * 1024 * 1024;
constexpr std::string_view first_line = "ranktune checkpoint folder 1";

struct Listed {
    std::string path; ///< within the folder
    std::uint64_t bytes = 0;
    std::uint64_t digest = 0;
};

std::string name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string without_slashes(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path;
}

std::string hex(std::uint64_t number) {
    std::string digits(16, '0');
    for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, number >>= 4U)
        *digit = "0123456789abcdef"[number & 15U];
    return digits;
}

/// Calls `take` with all bytes of a file, in blocks.
template <class Take>
void read_blocks(File& file, Take&& take) {
    std::vector<std::byte> block(std::min<std::uint64_t>(std::max<std::uint64_t>(file.size(), 1), block_bytes));
    for (std::uint64_t at = 0;;) {
        const std::size_t size = file.read_at(at, block);
        if (size == 0) return;
        take(at, std::span<const std::byte>(block).first(size));
        at += size;
    }
}

std::uint64_t digest_of_file(File& file) {
    base::Digest digest;
    read_blocks(file, [&](std::uint64_t, std::span<const std::byte> bytes) { digest.add(bytes); });
    return digest.value();
}

/// Brings files under their final names, one by one.
class Adoption {
  public:
    Adoption(FileSystem& files, std::string folder, bool move)
        : files_(files), folder_(std::move(folder)), move_(move) {}

    void bring(const std::string& source, const std::string& inside) {
        if (inside.find('\n') != std::string::npos)
            throw base::Error("a checkpoint cannot hold a file with a line break in its name: '" + source + "'");
        switch (files_.kind(source)) {
            case FileSystem::Kind::directory:
                return bring_folder(source, inside);
            case FileSystem::Kind::file:
            case FileSystem::Kind::link:
                return bring_file(source, inside);
            case FileSystem::Kind::missing:
                throw base::Error("there is no '" + source + "'");
            case FileSystem::Kind::other:
                throw base::Error("'" + source + "' is neither a file nor a folder");
        }
    }
    [[nodiscard]] const std::vector<Listed>& listed() const { return listed_; }

  private:
    void bring_folder(const std::string& source, const std::string& inside) {
        files_.make_directories(folder_ + "/" + inside);
        for (const std::string& name : files_.list(source)) bring(source + "/" + name, inside + "/" + name);
        files_.sync_directory(folder_ + "/" + inside);
    }

    void bring_file(const std::string& source, const std::string& inside) {
        const std::string target = folder_ + "/" + inside;
        const bool moved = move_ && files_.kind(source) == FileSystem::Kind::file && try_rename(source, target);
        const auto file = moved ? files_.open(target, FileSystem::Open::read) : copy(source, target);
        listed_.push_back({inside, file->size(), digest_of_file(*file)});
        file->sync();
        files_.set_read_only(target);
    }

    bool try_rename(const std::string& source, const std::string& target) {
        try {
            files_.rename(source, target);
            return true;
        } catch (const base::IoError& error) {
            if (error.code() != std::errc::cross_device_link) throw;
            return false;
        }
    }

    std::unique_ptr<File> copy(const std::string& source, const std::string& target) {
        const auto from = files_.open(source, FileSystem::Open::read);
        auto to = files_.open(target, FileSystem::Open::create_new);
        to->reserve(from->size());
        read_blocks(*from, [&](std::uint64_t at, std::span<const std::byte> bytes) { to->write_at(at, bytes); });
        return to;
    }

    FileSystem& files_;
    std::string folder_;
    bool move_;
    std::vector<Listed> listed_;
};

std::string manifest_text(const CheckpointKey& key, const std::string& entry, const std::vector<Listed>& files) {
    std::string text(first_line);
    text += "\ntrial " + std::to_string(key.trial.value()) + "\niteration " + std::to_string(key.iteration);
    text += "\nentry " + entry + "\n";
    for (const Listed& file : files)
        text += hex(file.digest) + " " + std::to_string(file.bytes) + " " + file.path + "\n";
    return text;
}

struct Manifest {
    std::string entry;
    std::vector<Listed> files;
};

/// The text is known to be what `adopt` wrote: its digest is that of the journal.
Manifest parse_manifest(const std::string& text, const std::string& path) {
    Manifest manifest;
    std::size_t line_number = 0;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        if (line_number == 0 && line != first_line)
            throw base::FormatError("'" + path + "' is a manifest of another version: " + line);
        if (line.starts_with("entry ")) manifest.entry = line.substr(6);
        if (++line_number <= 4) continue;
        const auto space = line.find(' ', 17);
        Listed file;
        std::from_chars(line.data(), line.data() + std::min<std::size_t>(16, line.size()), file.digest, 16);
        std::from_chars(line.data() + std::min<std::size_t>(17, line.size()), line.data() + line.size(), file.bytes);
        if (space == std::string::npos) throw base::FormatError("'" + path + "' has a line of another form: " + line);
        file.path = line.substr(space + 1);
        manifest.files.push_back(std::move(file));
    }
    return manifest;
}

} // namespace

std::string checkpoint_folder_path(const CheckpointKey& key) {
    const std::string path = checkpoint_path(key);
    return path.substr(0, path.rfind('.'));
}

study::CheckpointRef CheckpointStore::adopt(const CheckpointKey& key, const std::string& source, bool move) {
    study::CheckpointRef reference{key.iteration, checkpoint_folder_path(key), 0, 0};
    const std::string folder = directory_ + "/" + reference.path;
    const std::string from = without_slashes(source);
    const std::string entry = name_of(from);
    if (entry == manifest_name) throw base::Error("a checkpoint cannot be called " + entry);
    if (files_.kind(from) == FileSystem::Kind::missing) throw base::Error("there is no '" + from + "'");
    files_.make_directories(folder);
    try {
        Adoption adoption(files_, folder, move);
        adoption.bring(from, entry);
        const std::string text = manifest_text(key, entry, adoption.listed());
        files_.publish(folder + "/" + manifest_name, std::as_bytes(std::span(text))); // syncs the folder, too
        for (const Listed& file : adoption.listed()) reference.bytes += file.bytes;
        reference.digest = base::digest_of(text);
        return reference;
    } catch (...) {
        try {
            files_.remove_all(folder);
        } catch (const base::IoError&) { // the first error says more
        }
        throw;
    }
}

std::string CheckpointStore::locate(const study::CheckpointRef& checkpoint) {
    const std::string folder = directory_ + "/" + checkpoint.path;
    const std::string manifest_path = folder + "/" + manifest_name;
    const std::string text = read_text(files_, manifest_path);
    if (base::digest_of(text) != checkpoint.digest)
        throw base::FormatError("'" + folder + "' is not the checkpoint that the journal names: the digests differ");
    const Manifest manifest = parse_manifest(text, manifest_path);
    for (const Listed& listed : manifest.files) {
        const std::string path = folder + "/" + listed.path;
        const auto saved = files_.open(path, FileSystem::Open::read);
        if (saved->size() != listed.bytes || digest_of_file(*saved) != listed.digest)
            throw base::FormatError("'" + path + "' is damaged: it is not what its manifest says");
    }
    return folder + "/" + manifest.entry;
}

} // namespace ranktune::storage
