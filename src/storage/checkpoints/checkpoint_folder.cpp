// SPDX-License-Identifier: Apache-2.0
// Checkpoints that programs saved: files of any kind in a folder, with a manifest.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include <sys/stat.h>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/utf8.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"
#include "storage/checkpoints/completeness.hpp"
#include "storage/checkpoints/set_aside.hpp"
#include "storage/error_kinds.hpp"

namespace ranktune::storage {
namespace {

constexpr std::string_view manifest_title = "ranktune checkpoint folder 1";
constexpr std::string_view set_aside_title = "ranktune checkpoint set aside: ";

struct Listed {
    std::string path; ///< within the folder
    std::uint64_t bytes = 0;
    std::uint64_t digest = 0;
};

std::string name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// Parent of an absolute path; empty: the root.
std::string folder_above(const std::string& path) {
    const auto slash = path.find_last_of('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

/// `path` is `folder`, or lies below it.
bool is_within(const std::string& path, const std::string& folder) {
    return folder.empty() || path == folder || path.starts_with(folder + "/");
}

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

std::uint64_t digest_of_file(File& file) {
    base::Digest digest;
    add_bytes(digest, file, 0, file.size());
    return digest.value();
}

/// Runs a call that reads the program's files. A failure there is the program's mistake (base::Error), unless storage
/// fails (base::IoError).
template <class Call>
auto of_program(Call&& call) {
    try {
        return call();
    } catch (const base::IoError& error) {
        if (is_of_storage(error.code())) throw;
        throw base::Error(error.what());
    }
}

/// Changes when somebody writes to a file.
struct Stamp {
    std::int64_t bytes = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
};
Stamp stamp_of(const std::string& path) {
    struct stat now {}; // the file systems of tests have no times
    if (stat(path.c_str(), &now) != 0) return {};
    return {now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec};
}

/// A hard link: what is written under its other name changes this one, too.
bool has_other_names(const std::string& path) {
    struct stat now {};
    return stat(path.c_str(), &now) == 0 && now.st_nlink > 1;
}

[[noreturn]] void still_written(const std::string& path) {
    throw base::Error("'" + path +
                      "' was still being written when the checkpoint was taken over; report it when it is "
                      "complete, or give report() the future of what saves it");
}

/// A symbolic link within the folder.
struct Link {
    std::string path; ///< within the folder
    std::string text;
};

/// Lists everything to adopt before anything is moved, because links lead to the original places.
class Inventory {
  public:
    struct Source {
        std::string path;
        std::string inside; ///< path within the folder
        bool movable = false;
        Stamp stamp;
    };

    /// `path` is called `inside` in the folder. Throws base::Error.
    Inventory(FileSystem& files, const std::string& path, const std::string& inside, bool move) : files_(files) {
        of_program([&] {
            const bool is_link = files_.kind(path) == FileSystem::Kind::link;
            const std::string real = follow(path);
            look_at(real, inside, {real, inside, move && !is_link, 0});
        });
    }

    struct Folder {
        std::string path;
        std::string inside;
        std::vector<std::string> names;
    };
    std::vector<Folder> folders;
    std::vector<Source> sources;
    std::vector<Link> links;

  private:
    /// A folder tree that is adopted as a whole: links within it stay links.
    struct Tree {
        std::string root; ///< absolute, every link followed
        std::string inside;
        bool movable = false;
        int depth = 0; ///< of links followed
    };
    static constexpr int deepest = 8;

    std::string follow(const std::string& path) {
        if (files_.kind(path) != FileSystem::Kind::link) return files_.resolve(path);
        if (!files_.exists(path))
            throw base::Error("'" + path + "' is a link to '" + files_.link_text(path) + "', which is not there");
        return files_.resolve(path);
    }

    void look_at(const std::string& path, const std::string& inside, const Tree& tree) {
        if (inside.find('\n') != std::string::npos)
            throw base::Error("a checkpoint cannot hold a file with a line break in its name: '" +
                              base::printable(path) + "'; rename it");
        switch (files_.kind(path)) {
            case FileSystem::Kind::directory:
                return look_into({path, inside, files_.list(path)}, tree);
            case FileSystem::Kind::file:
                sources.push_back({path, inside, tree.movable && !has_other_names(path), stamp_of(path)});
                return;
            case FileSystem::Kind::link:
                return look_at_link(path, inside, tree);
            case FileSystem::Kind::missing:
                throw base::Error("there is no '" + path + "'");
            case FileSystem::Kind::other:
                throw base::Error("'" + path + "' is neither a file nor a folder");
        }
    }

    void look_into(const Folder& folder, const Tree& tree) {
        folders.push_back(folder);
        if (const std::string why = what_is_missing(files_, folder.path, folder.names); !why.empty())
            throw base::Error("the checkpoint is incomplete: " + why);
        for (const std::string& name : folder.names)
            look_at(folder.path + "/" + name, folder.inside + "/" + name, tree);
    }

    void look_at_link(const std::string& path, const std::string& inside, const Tree& tree) {
        const std::string target = follow(path);
        if (target == tree.root || target.starts_with(tree.root + "/")) {
            const std::filesystem::path there = tree.inside + target.substr(tree.root.size());
            links.push_back({inside, there.lexically_relative(std::filesystem::path(inside).parent_path()).string()});
            return;
        }
        if (tree.depth == deepest)
            throw base::Error("'" + path + "' leads through too many links out of the folder that was saved");
        look_at(target, inside, {target, inside, false, tree.depth + 1});
    }

    FileSystem& files_;
};

/// Moves or copies files to their final names, one by one. Nobody gets read access that they did not have at the
/// source.
class Adoption {
  public:
    /// `home`: an absolute path above `folder`, with every link in it followed.
    Adoption(FileSystem& files, std::string home, std::string folder)
        : files_(files), home_(std::move(home)), folder_(std::move(folder)) {}

    void bring(const Inventory& inventory) {
        for (const auto& folder : inventory.folders) {
            const std::string target = folder_ + "/" + folder.inside;
            files_.make_directories(target);
            files_.set_mode(target, permissions(folder.path) | own_folder);
        }
        for (const auto& source : inventory.sources) bring_file(source);
        for (const Link& link : inventory.links) files_.make_link(link.text, folder_ + "/" + link.path);
        for (const auto& folder : inventory.folders) files_.sync_directory(folder_ + "/" + folder.inside);
        for (const auto& folder : inventory.folders)
            for (const std::string& name : files_.list(folder.path))
                if (std::ranges::find(folder.names, name) == folder.names.end())
                    still_written(folder.path + "/" + name);
    }
    [[nodiscard]] const std::vector<Listed>& listed() const { return listed_; }

  private:
    static constexpr unsigned own_folder = 0700; ///< so that the folder can be emptied later
    static constexpr unsigned all_may_write = 0222;

    /// Permissions of a source, reduced by those of the folders above it. Folders that are also above the study
    /// restrict the copy by themselves.
    unsigned permissions(const std::string& path) {
        return of_program([&] {
            unsigned mode = files_.mode(path);
            if ((entered_by(folder_above(path)) & 0010U) == 0) mode &= ~0070U;
            if ((entered_by(folder_above(path)) & 0001U) == 0) mode &= ~0007U;
            return mode;
        });
    }
    /// The permissions to enter that a folder and those above it have in common. Looks once at each.
    unsigned entered_by(const std::string& folder) {
        if (is_within(home_, folder)) return ~0U;
        if (const auto known = entered_.find(folder); known != entered_.end()) return known->second;
        return entered_[folder] = files_.mode(folder) & entered_by(folder_above(folder));
    }

    void bring_file(const Inventory::Source& source) {
        const std::string target = folder_ + "/" + source.inside;
        const unsigned mode = permissions(source.path);
        const bool moved = source.movable && try_rename(source.path, target);
        const auto file = moved ? files_.open(target, FileSystem::Open::read) : copy(source.path, target);
        listed_.push_back({source.inside, file->size(), digest_of_file(*file)});
        if (stamp_of(moved ? target : source.path) != source.stamp) still_written(source.path);
        files_.set_mode(target, mode & ~all_may_write);
        file->sync();
    }

    /// On failure the caller copies, which reports whose mistake it was.
    bool try_rename(const std::string& source, const std::string& target) {
        try {
            files_.rename(source, target);
            return true;
        } catch (const base::IoError&) {
            return false;
        }
    }

    std::unique_ptr<File> copy(const std::string& source, const std::string& target) {
        const auto from = of_program([&] { return files_.open(source, FileSystem::Open::read); });
        const std::uint64_t size = of_program([&] { return from->size(); });
        auto to = files_.open(target, FileSystem::Open::create_private);
        to->reserve(size);
        of_program([&] { from->copy_to(*to, 0, size); });
        return to;
    }

    FileSystem& files_;
    std::string home_;
    std::string folder_;
    std::vector<Listed> listed_;
    std::map<std::string, unsigned> entered_;
};

/// What a checkpoint holds, in any order.
struct Contents {
    std::vector<Listed> files;
    std::vector<Link> links;
};

/// `trial`: its number.
std::string manifest_text(const std::string& trial, std::uint64_t iteration, const std::string& entry,
                          Contents contents) {
    std::ranges::sort(contents.files, {}, &Listed::path);
    std::ranges::sort(contents.links, {}, &Link::path);
    std::string text(manifest_title);
    text += "\ntrial " + trial + "\niteration " + std::to_string(iteration) + "\nentry " + entry + "\n";
    for (const Listed& file : contents.files)
        text += hex(file.digest) + " " + std::to_string(file.bytes) + " " + file.path + "\n";
    for (const Link& link : contents.links) text += "link " + hex(base::digest_of(link.text)) + " " + link.path + "\n";
    return text;
}

void look_through(FileSystem& files, const std::string& folder, const std::string& inside, Contents& contents) {
    const std::string path = folder + "/" + inside;
    switch (files.kind(path)) {
        case FileSystem::Kind::file: {
            const auto saved = files.open(path, FileSystem::Open::read);
            contents.files.push_back({inside, saved->size(), digest_of_file(*saved)});
            break;
        }
        case FileSystem::Kind::link:
            contents.links.push_back({inside, files.link_text(path)});
            break;
        case FileSystem::Kind::directory:
            for (const std::string& name : files.list(path)) look_through(files, folder, inside + "/" + name, contents);
            break;
        default:
            break;
    }
}

/// The manifest of what lies in a checkpoint's folder now; empty: no entry, or several.
std::string manifest_of(FileSystem& files, const std::string& folder, std::uint64_t iteration) {
    std::vector<std::string> entries = files.list(folder);
    std::erase(entries, manifest_name);
    if (entries.size() != 1) return {};
    Contents contents;
    look_through(files, folder, entries[0], contents);
    return manifest_text(name_of(folder_above(folder)), iteration, entries[0], std::move(contents));
}

struct Manifest {
    std::string entry;
    std::vector<Listed> files;
    std::vector<Listed> links; ///< `digest`: of the link's text
};

/// "<16 digits> <rest of the line>"
Listed listed_in(std::string_view line) {
    Listed listed;
    std::from_chars(line.data(), line.data() + std::min<std::size_t>(16, line.size()), listed.digest, 16);
    listed.path = line.substr(std::min<std::size_t>(17, line.size()));
    return listed;
}

/// The text is known to be what `adopt` wrote: its digest matched the journal's.
Manifest parse_manifest(const std::string& text, const std::string& path) {
    Manifest manifest;
    std::size_t line_number = 0;
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
        end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        if (line_number == 0 && line != manifest_title)
            throw base::FormatError("'" + path + "' is a manifest of another version: " + line);
        if (line.starts_with("entry ")) manifest.entry = line.substr(6);
        if (++line_number <= 4) continue;
        if (line.starts_with("link ")) {
            manifest.links.push_back(listed_in(std::string_view(line).substr(5)));
            continue;
        }
        Listed file = listed_in(line);
        const auto space = file.path.find(' ');
        if (space == std::string::npos) throw base::FormatError("'" + path + "' has a line of another form: " + line);
        std::from_chars(file.path.data(), file.path.data() + space, file.bytes);
        file.path.erase(0, space + 1);
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
    if (of_program([&] { return files_.kind(from); }) == FileSystem::Kind::missing)
        throw base::Error("there is no '" + from + "'");
    const Inventory inventory(files_, from, entry, move);
    if (inventory.sources.empty() && inventory.links.empty())
        throw base::Error("'" + from + "' is an empty folder: nothing was saved in it");
    files_.make_below(directory_, reference.path);
    try {
        Adoption adoption(files_, files_.resolve(directory_), folder);
        adoption.bring(inventory);
        const std::string text = manifest_text(std::to_string(key.trial.value()), key.iteration, entry,
                                               {adoption.listed(), inventory.links});
        // Nobody reads it before the journal has its digest: it needs no temporary name. Nor a sync: see `locate`.
        files_.open(folder + "/" + manifest_name, FileSystem::Open::create_new)
            ->write_at(0, std::as_bytes(std::span(text)));
        files_.sync_directory(folder);
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

void set_aside(FileSystem& files, const std::string& study_directory, const std::string& checkpoint,
               const std::string& why) {
    const std::string text = std::string(set_aside_title) + why;
    files.publish(study_directory + "/" + checkpoint + "/" + manifest_name, std::as_bytes(std::span(text)));
}

std::string CheckpointStore::locate(const study::CheckpointRef& checkpoint) {
    const std::string folder = directory_ + "/" + checkpoint.path;
    const std::string manifest_path = folder + "/" + manifest_name;
    const bool there = files_.exists(manifest_path);
    std::string text = there ? read_text(files_, manifest_path) : std::string();
    if (text.starts_with(set_aside_title))
        throw DamageError("'" + folder + "' was set aside: " + text.substr(set_aside_title.size()));
    // A loss of power may take the manifest, never the files: if they give the journal's digest, nothing is lost.
    if (base::digest_of(text) != checkpoint.digest) {
        const std::string made = manifest_of(files_, folder, checkpoint.iteration);
        if (made.empty() && !there) text = read_text(files_, manifest_path); // nothing is there: throws
        text = made;
    }
    if (base::digest_of(text) != checkpoint.digest)
        throw DamageError("'" + folder + "' is not the checkpoint that the journal names: the digests differ");
    const Manifest manifest = parse_manifest(text, manifest_path);
    for (const Listed& listed : manifest.files) {
        const std::string path = folder + "/" + listed.path;
        const auto saved = files_.open(path, FileSystem::Open::read);
        if (saved->size() != listed.bytes || digest_of_file(*saved) != listed.digest)
            throw DamageError("'" + path + "' is damaged: it is not what its manifest says");
    }
    for (const Listed& listed : manifest.links) {
        const std::string path = folder + "/" + listed.path;
        if (files_.kind(path) != FileSystem::Kind::link || base::digest_of(files_.link_text(path)) != listed.digest)
            throw DamageError("'" + path + "' is damaged: it is not the link that its manifest names");
    }
    return folder + "/" + manifest.entry;
}

} // namespace ranktune::storage
