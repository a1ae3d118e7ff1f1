// SPDX-License-Identifier: Apache-2.0
#pragma once
// PredictionWriter: puts predictions into the output while models predict for the next samples.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/output_file.hpp"
#include "trainables/predict/plan.hpp"
#include "trainables/predict/prediction.hpp"

namespace ranktune::trainables {

/// A thread combines what the members of an ensemble say, digests and writes it. Called by one other thread. After an
/// exception it is of no more use.
class PredictionWriter {
  public:
    /// Both outlive this object. Throws base::UsageError as combine_of.
    PredictionWriter(storage::FileSystem& files, const PredictPlan& plan);
    /// What waits is not written.
    ~PredictionWriter();
    PredictionWriter(const PredictionWriter&) = delete;
    PredictionWriter& operator=(const PredictionWriter&) = delete;

    /// What each model of the plan says of the samples from `first` on, of a range the next ones. Returns at once,
    /// unless `most_waiting` batches wait. `trial`: a number that no other rank gives at the same time. Throws what an
    /// earlier batch met: as combined() and OutputFile; base::UsageError for predictions of another form than before.
    void put(std::vector<Prediction> members, std::uint64_t first, base::TrialId trial);
    static constexpr std::size_t most_waiting = 2;
    /// Waits until all of a range is written and synced. Returns its digest. Throws as `put`.
    [[nodiscard]] std::uint64_t finish_range();

  private:
    struct Batch {
        std::vector<Prediction> members;
        std::uint64_t first = 0;
        base::TrialId trial;
    };
    void serve();
    void write(Batch batch);

    storage::FileSystem& files_;
    const PredictPlan& plan_;
    Combine combine_;
    // Of the thread, while there are batches:
    std::string form_;                          ///< of the first batch; later ones have the same
    std::optional<storage::OutputFile> output_; ///< made with the shape of the first prediction
    base::Digest of_y_;                         ///< of the range so far
    base::Digest of_classes_;

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Batch> waiting_;
    bool writing_ = false; ///< a batch that waits no more
    bool stop_ = false;
    std::exception_ptr error_;
    std::thread thread_; ///< last: it uses all of the above
};

} // namespace ranktune::trainables
