// SPDX-License-Identifier: Apache-2.0
#pragma once
// A study that trains one trial from scratch, as a trial of another study was trained.

#include "tuner/tuner.hpp"

namespace ranktune::report {

/// One trial with the configuration that the weights of `trial` began with. It changes as theirs did, whoever trained
/// them (`lineage`), after as many iterations of training, and ends when they have been trained as long. Searcher,
/// scheduler, name and limits of the study as a whole are its own; everything else is as in the study of `tuner`.
/// Throws base::UsageError for a trial that is not there or has not reported.
[[nodiscard]] study::StudySpec repeated(const tuner::Tuner& tuner, study::TrialId trial);

} // namespace ranktune::report
