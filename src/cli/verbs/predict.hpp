// SPDX-License-Identifier: Apache-2.0
#pragma once
// predict: what trained models say of many samples, as the study of ranges that it stands for.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/verbs/verbs.hpp"
#include "tuner/tuner.hpp"

namespace ranktune::cli {

struct PredictArguments {
    std::string study;            ///< file or directory, as typed
    std::string trial;            ///< digits, or "best"
    std::uint32_t top = 1;        ///< with "best": so many of the best predict together
    std::string combine = "mean"; ///< see trainables::Combine
    std::string command;          ///< of the program that predicts
    std::string python;           ///< or FILE:FUNCTION; both empty: [predict] of the study
    std::string input;            ///< `x.h5`, `x.h5:images`, `x.h5:val/x`
    std::uint64_t range = 0;      ///< samples of a range; 0: by their number and size
    std::uint64_t batch = 256;    ///< samples that a model gets at once
    bool verify = false;          ///< predict nothing; compare the output with the digests of its ranges
    bool write = false;           ///< only the study file
    RunArguments run;             ///< `directory` is the output file; `overrides`, `local`, ... as for `run`
};

/// Runs the study `<output>.predict.toml` in `<output>.predict`. Verifying returns 1 for an output that differs or is
/// not complete.
int predict(const PredictArguments& arguments, const Invocation& invocation);

// The following do nothing for studies other than those of predictions.

/// Throws base::UsageError when the study would begin, without --fresh, although its output exists.
void refuse_other_output(const study::StudySpec& spec, const std::string& directory, bool fresh);

/// Before the study begins: renames an output that is there, of which ranges that fail would keep the rows. Returns a
/// sentence for the user; empty: there was none. Throws base::IoError.
[[nodiscard]] std::string set_output_aside(const study::StudySpec& spec);

/// Before a study of predictions goes on, or is called finished: compares up to 64 of its finished ranges with the
/// output. Throws base::UsageError when it does not have them: it was removed, or another file took its place; the
/// ranges that are left would go into a file of zeros. Not for --restart-errored.
void refuse_lost_predictions(const tuner::Tuner& tuner, const std::string& directory);

/// Compares all finished ranges with the output. Returns those that it does not have. Throws base::UsageError when the
/// output is gone, or another file.
[[nodiscard]] std::vector<base::TrialId> lost_predictions(const tuner::Tuner& tuner, const std::string& directory);

/// How many samples are predicted, how fast, where the predictions are, and which samples an ended study lacks. Empty
/// for other studies.
[[nodiscard]] std::string predicted_words(const tuner::Tuner& tuner);

} // namespace ranktune::cli
