// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which signal was really received. Launchers forward only USR1 and USR2 to all ranks, so TERM, HUP and Ctrl-C are
// forwarded as these. The sender leaves a note on the machine, and the head on the same machine reads it.

#include <map>
#include <optional>
#include <string>

#include "ranktune/base/variables.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::process {

/// Set for ranks that a person has started in a terminal: the signal as which Ctrl-C reaches them.
inline constexpr const char* interrupt_variable = "RANKTUNE_INTERRUPT";
/// Set for ranks whose launcher this program runs: the path of the SignalNote's file.
inline constexpr const char* signal_note_variable = "RANKTUNE_SIGNAL_NOTE";

/// Written by the process that runs a launcher, just before it forwards a signal, mostly as another one. The note stays
/// even if a launcher that is still starting loses the signal. The file exists from the first write until this object
/// is destroyed.
class SignalNote {
  public:
    SignalNote();
    ~SignalNote();
    SignalNote(const SignalNote&) = delete;
    SignalNote& operator=(const SignalNote&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    /// Only the first call writes. Without a note the ranks use the signal that they receive.
    void write(int received);
    /// What rank 0 has left by leave_exit_code; nothing: it left nothing, or runs on another machine.
    [[nodiscard]] std::optional<int> exit_code() const;

  private:
    std::string path_; ///< a temporary file with an unguessable name
    bool written_ = false;
};

/// For rank 0, right before it ends: leaves its exit code beside the note. The code of a launcher that outlives its
/// ranks says nothing about them.
void leave_exit_code(int code) noexcept;

/// Maps forwarded signals to the original ones.
class SignalMeanings {
  public:
    SignalMeanings() = default;
    /// `fixed`: {sigusr2, keyboard}; `note`: path of a SignalNote, empty: none.
    explicit SignalMeanings(std::map<study::Asker, study::Asker> fixed, std::string note = {});
    /// For a rank, from the variables above.
    [[nodiscard]] static SignalMeanings from(const base::Variables& variables);

    /// The meaning of `signal`: the original signal (sigterm, keyboard), or itself.
    [[nodiscard]] study::Asker of(study::Asker signal) const;
    /// The note's content; none: there is no note.
    [[nodiscard]] study::Asker noted() const;
    /// The signal as which `noted` is forwarded.
    [[nodiscard]] static study::Asker passed_on_as(study::Asker noted);

  private:
    std::map<study::Asker, study::Asker> fixed_;
    std::string note_;
};

} // namespace ranktune::process
