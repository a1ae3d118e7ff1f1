// SPDX-License-Identifier: Apache-2.0
#pragma once
// What was really received. Launchers pass USR1 and USR2 alone on to all ranks, so TERM, HUP and Ctrl-C reach them
// under these names; who sent them leaves a note on the machine, which the head, on the same one, reads.

#include <map>
#include <string>

#include "ranktune/base/variables.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::process {

/// Set for ranks that a person has started at a keyboard: the signal that Ctrl-C reaches them as.
inline constexpr const char* interrupt_variable = "RANKTUNE_INTERRUPT";
/// Set for ranks whose launcher is run by this program: the file that SignalNote writes.
inline constexpr const char* signal_note_variable = "RANKTUNE_SIGNAL_NOTE";

/// Written by whoever runs a launcher, just before it passes a signal on, mostly under another name. A launcher that is
/// still starting loses what it is sent: the note stays. There is no file until then, and it goes with this object.
class SignalNote {
  public:
    SignalNote();
    ~SignalNote();
    SignalNote(const SignalNote&) = delete;
    SignalNote& operator=(const SignalNote&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }
    /// The first one is kept. Where it cannot be written, the ranks go by the name that they see.
    void write(int received);

  private:
    std::string path_; ///< among temporary files, with a name that nobody guesses
    bool written_ = false;
};

/// What signals stand for.
class SignalMeanings {
  public:
    SignalMeanings() = default;
    /// `fixed`: {sigusr2, keyboard}; `note`: path of a SignalNote, empty: none.
    explicit SignalMeanings(std::map<study::Asker, study::Asker> fixed, std::string note = {});
    /// For a rank, by the variables above.
    [[nodiscard]] static SignalMeanings from(const base::Variables& variables);

    /// Who asks by `signal`: what was received in its place (sigterm, keyboard), or itself.
    [[nodiscard]] study::Asker of(study::Asker signal) const;
    /// What the note says; none: there is no note.
    [[nodiscard]] study::Asker noted() const;
    /// The signal that `noted` is passed on as.
    [[nodiscard]] static study::Asker passed_on_as(study::Asker noted);

  private:
    std::map<study::Asker, study::Asker> fixed_;
    std::string note_;
};

} // namespace ranktune::process
