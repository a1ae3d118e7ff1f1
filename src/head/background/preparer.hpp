// SPDX-License-Identifier: Apache-2.0
#pragma once
// Preparer: computes slow suggestions of searchers one after the other, on a thread of its own, or has the user's
// program make them (the searcher `external`).

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ranktune/base/log.hpp"
#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/algorithm.hpp"
#include "ranktune/study/event.hpp"

namespace ranktune::head {

/// Runs the work; an exception becomes the answer.
[[nodiscard]] inline study::Prepared answer_to(std::uint64_t ticket, const searchers::Searcher::Preparation& work) {
    try {
        searchers::Suggestion made = work();
        return {ticket, std::move(made.configuration), {}, std::move(made.basis)};
    } catch (const std::exception& error) {
        return {ticket, std::nullopt, error.what(), {}};
    } catch (...) {
        return {ticket, std::nullopt, "the searcher threw something that is not a std::exception", {}};
    }
}

/// Writes a failure to the log; the request to stop that follows from it, if the study file wants that.
[[nodiscard]] std::optional<study::StopRequested> look_at(const study::Prepared& prepared,
                                                          const study::SearcherSpec& searcher, base::LogSink& log);

class Preparer {
  public:
    using Work = searchers::Searcher::Preparation;
    using Say = std::function<void(std::string_view line)>;
    /// `wake` is called from the thread when something is ready, and `say` with each line that the user's program
    /// writes to its standard error, within the limits of process::OutputLimit; but not after this object is destroyed.
    Preparer(std::function<void()> wake, const std::string& study_directory, Say say);
    /// Ends the user's program, within a second or two, and waits for that. A calculation cannot be ended: after a
    /// moment its thread is left behind (process::leave_behind).
    ~Preparer();
    Preparer(const Preparer&) = delete;
    Preparer& operator=(const Preparer&) = delete;

    void prepare(std::uint64_t ticket, Work work);
    /// The next result, in order of completion.
    [[nodiscard]] std::optional<study::Prepared> prepared();

  private:
    struct Shared;
    static void main(const std::shared_ptr<Shared>& shared, const std::vector<std::string>& environment);

    std::vector<std::string> environment_; ///< of the user's program
    std::shared_ptr<Shared> shared_;       ///< shared with the thread, which may outlive this object
    std::thread thread_;
};

} // namespace ranktune::head
