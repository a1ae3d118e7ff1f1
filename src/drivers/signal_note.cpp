// SPDX-License-Identifier: Apache-2.0
#include "drivers/signal_note.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <utility>

#include "drivers/signals.hpp"
#include "drivers/study_directory.hpp"
#include "storage/file_descriptor.hpp"

namespace ranktune::drivers {
namespace {

/// Signals that others are passed on as.
bool may_stand_for_another(const std::string& signal) { return signal == "SIGUSR1" || signal == "SIGUSR2"; }

std::string word_for(int signal) { return signal == SIGINT ? std::string(asked_by_interrupt) : signal_name(signal); }

/// The note's word; empty: there is none, or it is no note.
std::string read_note(const std::string& path) {
    const storage::FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    std::array<char, 16> text{};
    const ssize_t size = file ? read(file.get(), text.data(), text.size()) : 0;
    const std::string_view word(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    const bool is_one = std::any_of(stop_signal_numbers.begin(), stop_signal_numbers.end(),
                                    [&](int signal) { return word == word_for(signal); });
    return is_one ? std::string(word) : std::string();
}

} // namespace

SignalNote::SignalNote() {
    std::error_code error;
    const auto folder = std::filesystem::temp_directory_path(error);
    if (!error) path_ = (folder / ("ranktune-signal-" + make_uuid())).string();
}

SignalNote::~SignalNote() {
    if (written_) unlink(path_.c_str());
}

void SignalNote::write(int received) {
    if (written_ || path_.empty()) return;
    const storage::FileDescriptor file(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return;
    written_ = true;
    const std::string word = word_for(received);
    static_cast<void>(!::write(file.get(), word.data(), word.size())); // cut short by a full disk, it is no note
}

SignalMeanings::SignalMeanings(std::map<std::string, std::string> fixed, std::string note)
    : fixed_(std::move(fixed)), note_(std::move(note)) {}

std::string SignalMeanings::noted() const { return note_.empty() ? std::string() : read_note(note_); }

std::string SignalMeanings::passed_on_as(const std::string& noted) {
    return noted == asked_by_interrupt ? "SIGUSR2" : "SIGUSR1";
}

SignalMeanings SignalMeanings::from(const base::Variables& variables) {
    std::map<std::string, std::string> fixed;
    if (const auto interrupt = base::value_of(variables, interrupt_variable))
        fixed.emplace(*interrupt, asked_by_interrupt);
    return SignalMeanings(std::move(fixed), std::string(base::value_of(variables, signal_note_variable).value_or("")));
}

std::string SignalMeanings::of(const std::string& signal) const {
    if (const auto meaning = fixed_.find(signal); meaning != fixed_.end()) return meaning->second;
    if (note_.empty() || !may_stand_for_another(signal)) return signal;
    const std::string received = read_note(note_);
    return received.empty() ? signal : received;
}

} // namespace ranktune::drivers
