// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

/// The searcher that the study asks for. `spec` must outlive it. Throws base::UsageError for settings that it cannot
/// work with.
[[nodiscard]] std::unique_ptr<Searcher> make_searcher(const study::StudySpec& spec);

} // namespace ranktune::searchers
