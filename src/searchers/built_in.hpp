// SPDX-License-Identifier: Apache-2.0
#pragma once
// The built-in searchers, and making the one that a study asks for.

#include <memory>
#include <string_view>
#include <vector>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::searchers {

/// In the order of the list in src/searchers/meson.build; the first one is the default.
[[nodiscard]] std::vector<std::shared_ptr<const study::SearcherInfo>> built_in();

/// The built-in one of this name, with `values` in place of its defaults. Throws base::UsageError for an unknown name
/// or option, and for a value that the option does not take.
[[nodiscard]] study::SearcherSpec chosen(std::string_view name, const std::vector<study::OptionValue>& values = {});

/// The searcher that the study asks for, built-in or registered. `spec` must outlive it. Throws base::UsageError for
/// settings that it cannot work with.
[[nodiscard]] std::unique_ptr<Searcher> make_searcher(const study::StudySpec& spec);

} // namespace ranktune::searchers
