// SPDX-License-Identifier: Apache-2.0
#pragma once
// Everything that a program with trainables of its own needs, by short names. Example: jobs/custom-trainable.

#include "ranktune/base/buffer.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/rng.hpp"
#include "ranktune/data/dataset.hpp"
#include "ranktune/data/loader.hpp"
#include "ranktune/data/sampling.hpp"
#include "ranktune/ddp/gradient_reducer.hpp"
#include "ranktune/ddp/group.hpp"
#include "ranktune/ddp/parameters.hpp"
#include "ranktune/run_program.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/state.hpp"
#include "ranktune/study/trainable_info.hpp"
#include "ranktune/trainables/trainable.hpp"

namespace ranktune {

// Writing a trainable
using trainables::FunctionContext;
using trainables::Metrics;
using trainables::register_function;
using trainables::register_trainable;
using trainables::Trainable;
using trainables::TrialContext;

// Describing it
using study::OptionInfo;
using study::TrainableInfo;
using OptionKind = study::OptionInfo::Kind;

// Its configuration and its state
using space::Configuration;
using space::Value;
using study::StateSink;
using study::StateSource;

// Predicting for samples of a file
using data::Batch;

// Numbers, with their type and place
using base::BFloat16;
using base::Buffer;
using base::ConstBuffer;
using base::DType;
using base::Float16;

// Training on several ranks
using data::Dataset;
using ddp::GradientReducer;
using ddp::Group;
using ddp::make_self_group;
using ddp::Reduce;
using ddp::run_step;

// Reproducible chance
using base::Purpose;
using base::RngStream;
using base::user_purpose;

// Errors
using base::Error;
using base::UsageError;

} // namespace ranktune
