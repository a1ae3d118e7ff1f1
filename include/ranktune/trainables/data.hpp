// SPDX-License-Identifier: Apache-2.0
#pragma once
// Entries of [data], opened for a trial; what loaders say to users.

#include <memory>
#include <string_view>

#include "ranktune/data/loader.hpp"
#include "ranktune/trainables/context.hpp"

namespace ranktune::trainables {

/// For a data::Loader, or Training::train_from of LibTorch.
struct NamedData {
    std::shared_ptr<const data::Source> source; ///< of a mixture a data::JoinedSource
    data::LoaderOptions loading;                ///< of this trial and rank; the batch is the caller's
};

/// The file or mixture that [data] calls `name`, with the order that it asks for. Not collective. Throws as
/// TrialContext::data and data::Source::open.
[[nodiscard]] NamedData open_data(const TrialContext& context, std::string_view name);

/// The same options for this rank of this trial: rank, ranks, seed, trial, and, unless there are several, threads.
[[nodiscard]] data::LoaderOptions loading_in(const TrialContext& context, data::LoaderOptions loading);

/// Logs on rank 0 what makes batches mix less, or ranks read more, than could be (data::order_advice). Not collective.
void log_order(TrialContext& context, const data::Source& source, const data::LoaderOptions& loading);

/// The metrics data_wait, data_wait/disk, data_wait/decode and, if `loading` has a map, data_wait/map: seconds that a
/// rank waited in an iteration, on average. Collective.
[[nodiscard]] Metrics wait_metrics(ddp::Group& group, const data::LoadTime& waited, const data::LoaderOptions& loading);

} // namespace ranktune::trainables
