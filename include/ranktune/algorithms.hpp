// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that a program with searchers or schedulers of its own needs, by short names. Example:
// jobs/custom-scheduler.

#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/run_program.hpp"
#include "ranktune/schedulers/objective_reader.hpp"
#include "ranktune/schedulers/scheduler.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/searchers/stateless.hpp"
#include "ranktune/space/search_space.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/record.hpp"
#include "ranktune/study/schema.hpp"
#include "ranktune/study/spec.hpp"
#include "ranktune/trainables/algorithms.hpp"

namespace ranktune {

// Writing a scheduler
using schedulers::Create;
using schedulers::Exploit;
using schedulers::NothingLeft;
using schedulers::ObjectiveReader;
using schedulers::Pool;
using schedulers::Promotion;
using schedulers::saved_before_verdict;
using schedulers::Scheduler;
using schedulers::Wait;
using schedulers::Work;
using SchedulerReport = schedulers::Report;
using study::Reason;
using study::Score;
using study::Verb;
using study::Verdict;

// Writing a searcher
using searchers::Observation;
using searchers::Observations;
using searchers::Searcher;
using searchers::StatelessSearcher;
using space::Configuration;
using space::SearchSpace;

// Describing it, and making it known
using study::AlgorithmCheck;
using study::AlgorithmOption;
using study::CheckpointNeed;
using study::NotDeterministic;
using study::OptionValue;
using study::SchedulerInfo;
using study::SchedulerPlan;
using study::SearcherInfo;
using trainables::register_scheduler;
using trainables::register_searcher;
using OptionKind = study::OptionInfo::Kind;

// What it is made for
using study::Mode;
using study::Objective;
using study::StudySpec;

// What it learns from
using base::Iteration;
using base::TrialId;
using study::AttemptEnded;
using study::CheckpointCommitted;
using study::CheckpointReleased;
using study::Exploited;
using study::ExploitUndone;
using study::Failure;
using study::IncarnationBegan;
using study::MetricDefined;
using study::Record;
using study::Reported;
using study::Steered;
using study::TrialClosed;
using study::TrialCreated;
using study::TrialPhase;
using study::TrialPromoted;
using study::TrialReopened;
using study::TrialStarted;

// Snapshots
using study::Decoder;
using study::Encoder;

// Reproducible chance
using base::Purpose;
using base::RngStream;
using base::user_purpose;

// Errors
using base::Error;
using base::FormatError;
using base::UsageError;

} // namespace ranktune
