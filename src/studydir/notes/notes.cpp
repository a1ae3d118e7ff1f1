// SPDX-License-Identifier: Apache-2.0
#include "studydir/notes/notes.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>

#include "base/number_in.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/utf8.hpp"

namespace ranktune::studydir {
namespace {

constexpr std::string_view kinds[] = {"note", "tag", "untag"};

/// A tab between fields, a line for each note: neither may be within one.
std::string field_text(std::string_view text) {
    std::string out;
    for (const char c : base::as_utf8(text)) {
        if (c == '\\' || c == '\t' || c == '\n') out += '\\';
        out += c == '\t' ? 't' : c == '\n' ? 'n' : c;
    }
    return out;
}

std::vector<std::string> fields_in(std::string_view line) {
    std::vector<std::string> fields(1);
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\t') {
            fields.emplace_back();
        } else if (line[i] == '\\' && i + 1 < line.size()) {
            ++i;
            fields.back() += line[i] == 't' ? '\t' : line[i] == 'n' ? '\n' : line[i];
        } else {
            fields.back() += line[i];
        }
    }
    return fields;
}

/// `TIME WHO TRIAL KIND TEXT`.
std::optional<Note> note_in(std::string_view line) {
    auto fields = fields_in(line);
    if (fields.size() != 5 || fields[4].empty() || std::ranges::find(kinds, fields[3]) == std::end(kinds)) return {};
    const auto trial = base::number_in<std::uint32_t>(fields[2]);
    if (!trial) return {};
    Note note{fields[0], fields[1], base::TrialId{*trial}};
    (fields[3] == kinds[0] ? note.text : note.tag) = fields[4];
    note.off = fields[3] == kinds[2];
    return note;
}

[[noreturn]] void note_failed(const char* what, const std::string& path) {
    throw base::IoError(what, path, std::error_code(errno, std::generic_category()));
}

void require_note(const Note& note) {
    constexpr std::string_view in_tags = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/";
    if (note.tag.empty() && note.text.empty()) throw base::UsageError("the note is empty: say something");
    if (note.text.size() > longest_note)
        throw base::UsageError("the note has " + std::to_string(note.text.size()) + " bytes; at most " +
                               std::to_string(longest_note));
    if (note.tag.size() > longest_tag || note.tag.find_first_not_of(in_tags) != std::string::npos)
        throw base::UsageError("the tag '" + note.tag +
                               "' has more than letters, digits, _ - . : and /, or more than " +
                               std::to_string(longest_tag) + " of them");
}

} // namespace

std::string note_text(const SaidValue& value) {
    if (value.name == "note" && value.text.find(": ") == std::string::npos) return value.text;
    std::string name;
    for (const char c : value.name) name += c == ':' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    return name + ": " + value.text;
}

SaidValue said_value(const std::string& note) {
    if (note.find(": ") == std::string::npos) return {"note", note};
    SaidValue value;
    std::size_t at = 0;
    for (; at < note.size() && note.compare(at, 2, ": ") != 0; ++at) {
        if (note[at] == '\\' && at + 1 < note.size()) ++at;
        value.name += note[at];
    }
    value.text = note.substr(std::min(at + 2, note.size()));
    return value;
}

Notes Notes::read(storage::FileSystem& files, const StudyDirectory& directory) {
    Notes notes;
    notes.add(files, directory.notes_file());
    for (const std::string& name : files.list(directory.logs()))
        if (name.starts_with("notes-")) notes.add(files, directory.logs() + "/" + name);
    return notes;
}

void Notes::add(storage::FileSystem& files, const std::string& path) {
    if (!files.exists(path)) return;
    constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20U;
    const std::string text = storage::read_text(files, path, most_bytes);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        auto note = note_in(std::string_view(text).substr(begin, end - begin));
        begin = end + 1;
        if (!note) continue;
        if (note->who == trial_itself && !said_[note->trial].insert(note->text).second) continue;
        by_trial_[note->trial].push_back(*std::move(note));
    }
}

const std::vector<Note>& Notes::of(base::TrialId trial) const {
    static const std::vector<Note> none;
    const auto found = by_trial_.find(trial);
    return found == by_trial_.end() ? none : found->second;
}

std::vector<std::string> Notes::tags(base::TrialId trial) const {
    std::set<std::string> tags;
    for (const Note& note : of(trial)) {
        if (note.tag.empty()) continue;
        if (note.off)
            tags.erase(note.tag);
        else
            tags.insert(note.tag);
    }
    return {tags.begin(), tags.end()};
}

void append_note(const std::string& path, const Note& note, bool sync) {
    require_note(note);
    const std::string_view kind = kinds[note.tag.empty() ? 0 : note.off ? 2 : 1];
    const std::string line = field_text(note.time) + '\t' + field_text(note.who) + '\t' +
                             std::to_string(note.trial.value()) + '\t' + std::string(kind) + '\t' +
                             field_text(note.tag.empty() ? note.text : note.tag) + '\n';
    const storage::FileDescriptor file(
        ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file) note_failed("cannot write", path);
    // A line that an earlier writer left without an end must not take this one with it.
    char last = '\n';
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    if (size > 0) {
        const storage::FileDescriptor reader(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (reader && ::pread(reader.get(), &last, 1, size - 1) != 1) last = '\n';
    }
    const std::string whole = last == '\n' ? line : "\n" + line;
    if (::write(file.get(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()))
        note_failed("cannot write", path);
    if (sync && ::fdatasync(file.get()) != 0) note_failed("cannot sync", path);
}

} // namespace ranktune::studydir
