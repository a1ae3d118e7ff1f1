// SPDX-License-Identifier: Apache-2.0
#pragma once
// Preparer: computes slow suggestions of searchers one after the other, on a thread of its own.

#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/event.hpp"

namespace ranktune::head {

/// Runs the work; an exception becomes the answer.
[[nodiscard]] inline study::Prepared answer_to(std::uint64_t ticket, const searchers::Searcher::Preparation& work) {
    try {
        return {ticket, work()};
    } catch (const std::exception& error) {
        return {ticket, std::nullopt, error.what()};
    } catch (...) {
        return {ticket, std::nullopt, "the searcher threw something that is not a std::exception"};
    }
}

class Preparer {
  public:
    using Work = searchers::Searcher::Preparation;
    /// `wake` is called from the thread when something is ready, but not after this object is destroyed.
    explicit Preparer(std::function<void()> wake);
    /// Does not wait: work under way ends on its own, or with the process.
    ~Preparer();
    Preparer(const Preparer&) = delete;
    Preparer& operator=(const Preparer&) = delete;

    void prepare(std::uint64_t ticket, Work work);
    /// The next result, in order of completion.
    [[nodiscard]] std::optional<study::Prepared> prepared();

  private:
    struct Shared;
    static void main(const std::shared_ptr<Shared>& shared);

    std::shared_ptr<Shared> shared_; ///< shared with the thread, which may outlive this object
};

} // namespace ranktune::head
