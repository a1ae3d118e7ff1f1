// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parses a study file to a StudySpec, reporting all mistakes together, and writes the resolved file.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ranktune/base/error.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/study/trainable_info.hpp"

namespace ranktune::study {

/// One thing that is wrong in a study file. Rendered as `  14:14  space.lr: loguniform needs low > 0:
/// "loguniform(0.0, 1.0)"`.
struct Mistake {
    std::uint32_t line = 0; ///< from 1; 0: not in the file (override, or a missing key)
    std::uint32_t column = 0;
    std::string key; ///< dotted; empty: the file as a whole
    /// What is wrong, what is accepted, the nearest known key. A message that begins with "is " follows the key without
    /// a colon: `scheduler.max_t is Ray Tune's name; here: study.max_iterations`.
    std::string message;
};

/// All mistakes of one file. `what()` is the whole message, first line `3 mistakes in digits.toml, nothing was
/// started`.
class StudyFileError : public base::UsageError {
  public:
    StudyFileError(const std::string& file, std::vector<Mistake> mistakes);
    [[nodiscard]] const std::vector<Mistake>& mistakes() const { return mistakes_; }

  private:
    std::vector<Mistake> mistakes_;
};

/// How the parser checks absolute paths; it does not access the disk itself. Each function returns why the path cannot
/// be used, or an empty string. Empty functions are not called.
struct PathChecks {
    std::function<std::string(const std::string& path)> file;
    std::function<std::string(const std::string& path)> directory;
    std::function<bool(const std::string& path)> exists = {};
    /// Returns a digest of the content of a usable file, which does not depend on its path; empty: unknown (a
    /// directory).
    std::function<std::string(const std::string& path)> content = {};
    /// Whether an entry of [data] that has options can be opened, or decoded, with them, or a mixture can be made.
    std::function<std::string(const DataFile& file)> data = {};
    /// The columns of a table, a usable file of comma-separated values. Throws base::FormatError.
    std::function<std::vector<std::string>(const std::string& path)> columns = {};
    /// Whether the program and script of a command exist.
    std::function<std::string(const ProgramSpec& program)> command = {};
};

/// How the parser checks the number of ranks, if the place where the study will run is known. Called with the largest
/// number that a trial may ask for; returns why there are not so many, or an empty string.
using RankCheck = std::function<std::string(std::uint32_t most)>;

/// What a study file may name.
struct Known {
    std::vector<TrainableInfo> trainables;
    Algorithms algorithms;
};

/// Parses and checks a study. `overrides` are `a.b=v` with TOML values (a bare word is a string). Relative paths are
/// taken relative to the directory of `file`. Throws StudyFileError with every mistake found.
[[nodiscard]] StudySpec parse_study(const std::string& text, const std::string& file,
                                    const std::vector<std::string>& overrides, const Known& known,
                                    const PathChecks& paths = {}, const RankCheck& ranks = {});

/// Parses what `resolved_toml` wrote. This program must know the algorithms, but need not know the trainable: for views
/// of studies of other programs, and for replay. Throws StudyFileError; base::UsageError for an algorithm that is not
/// among `algorithms`. `overrides` as for parse_study.
[[nodiscard]] StudySpec parse_resolved_study(const std::string& text, const std::string& file,
                                             const Algorithms& algorithms,
                                             const std::vector<std::string>& overrides = {});

/// The resolved study as TOML: every default written out, absolute paths. Parsing it again gives the same StudySpec.
[[nodiscard]] std::string resolved_toml(const StudySpec& spec);
/// The same for display: a comment after a range of integers, or of multiples of a quantum, shows its smallest and
/// largest value, `# from 4 to 8`.
[[nodiscard]] std::string resolved_toml_with_bounds(const StudySpec& spec);

/// Whether this is a valid study name: it is also the name of a folder, and part of a job name.
[[nodiscard]] bool is_study_name(const std::string& name);

/// `90m`, `2h30m`, `45s`, `1.5h`, `HH:MM:SS`, `D-HH:MM:SS`. Throws base::UsageError; `4:00` is refused because Slurm
/// reads it as minutes.
[[nodiscard]] base::Duration parse_duration(const std::string& text);
/// `2h30m`, `45s`: reads back as the same duration (to the millisecond).
[[nodiscard]] std::string duration_text(base::Duration duration);

} // namespace ranktune::study
