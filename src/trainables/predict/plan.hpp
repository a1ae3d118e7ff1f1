// SPDX-License-Identifier: Apache-2.0
#pragma once
// PredictPlan: what a study of predictions says in [trainable]: which models predict for which samples, and where to.

#include <cstdint>
#include <string>
#include <vector>

#include "ranktune/base/digest.hpp"
#include "ranktune/base/ids.hpp"
#include "ranktune/space/configuration.hpp"
#include "ranktune/study/vocabulary.hpp"

namespace ranktune::trainables {

/// A trial of the study whose models predict, as it was at its checkpoint.
struct PredictingTrial {
    base::TrialId trial;
    std::uint64_t seed = 0;
    study::CheckpointRef checkpoint;
    space::Configuration configuration = {}; ///< with the fixed options of its study
};

struct PredictPlan {
    std::string input;         ///< absolute
    std::string input_content; ///< storage::content_text
    std::string group = {};    ///< of an HDF5 file
    std::string field = {};    ///< the only one that is read; empty: all
    std::string output;        ///< absolute
    std::uint64_t samples = 0;
    std::uint64_t range = 0; ///< samples of a trial
    std::uint64_t batch = 0; ///< samples of a call of Trainable::predict
    std::string combine;     ///< see Combine
    /// Bytes of checkpoints that a rank has in memory as models, at least one of them; 0: half of its share.
    std::uint64_t memory = 0;
    std::string version; ///< of the program that began
    // The study whose trials predict:
    std::string study;
    std::string directory; ///< absolute
    std::string trainable;
    base::Iteration max_iterations = 1;
    std::vector<PredictingTrial> trials; ///< one at least
};

/// The hyper-parameter: which range of samples, from 0.
inline constexpr const char* range_parameter = "range";
/// The option of [trainable] that sets PredictPlan::memory, in GiB.
inline constexpr const char* memory_option = "memory_gb";
/// Of a range, from those of its rows in `y` and in `class` (nothing added: there are none).
[[nodiscard]] std::uint64_t digest_of_range(const base::Digest& y, const base::Digest& classes);

/// 16 hexadecimal digits.
[[nodiscard]] std::string digest_text(std::uint64_t digest);

/// [trainable] and its tables, as TOML.
[[nodiscard]] std::string text_of(const PredictPlan& plan);
/// From a trial's configuration, which has the options of [trainable]. Throws base::UsageError naming a key that is
/// missing or wrong.
[[nodiscard]] PredictPlan predict_plan_of(const space::Configuration& configuration);

} // namespace ranktune::trainables
