// SPDX-License-Identifier: Apache-2.0
#include "process/signal_note.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string_view>
#include <utility>

#include "base/number_in.hpp"
#include "process/environment.hpp"
#include "process/signals.hpp"
#include "storage/unique_handle.hpp"

namespace ranktune::process {
namespace {

using study::Asker;

/// Whether other signals are forwarded as this one.
bool may_stand_for_another(Asker signal) { return signal == Asker::sigusr1 || signal == Asker::sigusr2; }

std::string_view word_for(int signal) { return name(signal == SIGINT ? Asker::keyboard : asker_of(signal)); }

/// Beside the note.
std::string code_file(const std::string& note) { return note + ".code"; }

/// The first bytes of a small file; empty: there is none.
std::string read_start(const std::string& path) {
    const storage::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::array<char, 16> text{};
    const ssize_t size = file ? read(file.get(), text.data(), text.size()) : 0;
    return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

/// The note's content; none: no note, or not a valid one.
Asker read_note(const std::string& path) {
    const std::string word = read_start(path);
    const bool is_one = std::ranges::any_of(stop_signal_numbers, [&](int signal) { return word == word_for(signal); });
    return is_one ? study::asker_named(word).value_or(Asker::none) : Asker::none;
}

} // namespace

SignalNote::SignalNote() {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    if (!error) path_ = (folder / ("ranktune-signal-" + make_uuid())).string();
}

SignalNote::~SignalNote() {
    if (written_) unlink(path_.c_str());
    if (!path_.empty()) unlink(code_file(path_).c_str());
}

std::optional<int> SignalNote::exit_code() const {
    return path_.empty() ? std::nullopt : base::number_in<int>(read_start(code_file(path_)));
}

void leave_exit_code(int code) noexcept {
    const char* note = std::getenv(signal_note_variable);
    if (note == nullptr || *note == 0) return;
    try {
        const storage::FileDescriptor file(
            open(code_file(note).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        const std::string text = std::to_string(code);
        if (file) static_cast<void>(!::write(file.get(), text.data(), text.size()));
    } catch (const std::bad_alloc&) { // then the launcher's code has to do
    }
}

void SignalNote::write(int received) {
    if (written_ || path_.empty()) return;
    const storage::FileDescriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return;
    written_ = true;
    const std::string_view word = word_for(received);
    static_cast<void>(!::write(file.get(), word.data(), word.size())); // a note cut short by a full disk is not valid
}

SignalMeanings::SignalMeanings(std::map<Asker, Asker> fixed, std::string note)
    : fixed_(std::move(fixed)), note_(std::move(note)) {}

Asker SignalMeanings::noted() const { return note_.empty() ? Asker::none : read_note(note_); }

Asker SignalMeanings::passed_on_as(Asker noted) { return noted == Asker::keyboard ? Asker::sigusr2 : Asker::sigusr1; }

SignalMeanings SignalMeanings::from(const base::Variables& variables) {
    std::map<Asker, Asker> fixed;
    const auto interrupt = study::asker_named(base::value_of(variables, interrupt_variable).value_or(""));
    if (interrupt) fixed.emplace(*interrupt, Asker::keyboard);
    return SignalMeanings(std::move(fixed), std::string(base::value_of(variables, signal_note_variable).value_or("")));
}

Asker SignalMeanings::of(Asker signal) const {
    if (const auto meaning = fixed_.find(signal); meaning != fixed_.end()) return meaning->second;
    if (note_.empty() || !may_stand_for_another(signal)) return signal;
    const Asker received = read_note(note_);
    return received == Asker::none ? signal : received;
}

} // namespace ranktune::process
