// SPDX-License-Identifier: Apache-2.0
#pragma once
// Preparer: computes suggestions of searchers that take long, one after the other, on a thread of its own.

#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "ranktune/searchers/searcher.hpp"
#include "ranktune/study/event.hpp"

namespace ranktune::head {

/// What comes of it; an exception is an answer, too.
[[nodiscard]] inline study::Prepared answer_to(std::uint64_t ticket, const searchers::Searcher::Preparation& work) {
    try {
        return {ticket, work()};
    } catch (const std::exception& error) {
        return {ticket, std::nullopt, error.what()};
    } catch (...) {
        return {ticket, std::nullopt, "the searcher threw something that is no std::exception"};
    }
}

class Preparer {
  public:
    using Work = searchers::Searcher::Preparation;
    /// `wake` is called from the thread when something is ready, and never again once this object is destroyed.
    explicit Preparer(std::function<void()> wake);
    /// Waits for nobody: work that is under way ends by itself, or with the process.
    ~Preparer();
    Preparer(const Preparer&) = delete;
    Preparer& operator=(const Preparer&) = delete;

    void prepare(std::uint64_t ticket, Work work);
    /// What is ready, in the order in which it became so.
    [[nodiscard]] std::optional<study::Prepared> prepared();

  private:
    struct Shared;
    static void main(const std::shared_ptr<Shared>& shared);

    std::shared_ptr<Shared> shared_; ///< with the thread, which may outlive this object
};

} // namespace ranktune::head
