// SPDX-License-Identifier: Apache-2.0
#pragma once
// LastingErrors: what fails again and again for the same reason is logged once.

#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "ranktune/base/log.hpp"

namespace ranktune::head {

/// For work that is tried again every second, for days: its log must not grow with the time. Used by one thread.
class LastingErrors {
  public:
    /// `event`: of its lines in the log.
    LastingErrors(base::LogSink& log, std::string event) : log_(log), event_(std::move(event)) {}

    /// False: `work` has thrown. The error is logged if the last attempt at `what` had none, or another one.
    bool attempt(const std::string& what, const std::function<void()>& work) {
        try {
            work();
        } catch (const std::exception& error) {
            std::string& last = last_[what];
            if (last != error.what())
                log_.write(base::LogLevel::warning, event_, {{"what", what}, {"error", error.what()}});
            last = error.what();
            return false;
        }
        last_.erase(what);
        return true;
    }

  private:
    base::LogSink& log_;
    std::string event_;
    std::map<std::string, std::string> last_; ///< errors of the last attempts
};

} // namespace ranktune::head
