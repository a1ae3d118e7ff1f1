// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Open MPI's mpirun says on standard error beside the words of its ranks. Pure: lines in, text out.

#include <string>
#include <string_view>

namespace ranktune::comm::mpi {

/// Keeps mpirun's explanations until it is known whether they explain anything. Each of them stands between two lines
/// of dashes. A study that has ended has said how itself; of a launch that failed they are the only words. mpirun's own
/// --quiet drops them all.
class LauncherWords {
  public:
    /// One line, without its end. True: it is kept. False: a rank said it.
    [[nodiscard]] bool take(std::string_view line);
    /// The explanations, with their frames; without those that tell no more than how a rank has ended.
    [[nodiscard]] std::string text() const;

  private:
    void close();

    std::string block_; ///< the open one; empty: none is open
    std::string kept_;
};

} // namespace ranktune::comm::mpi
