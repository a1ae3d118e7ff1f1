// SPDX-License-Identifier: Apache-2.0
#pragma once
// What users have asked for while the study ran.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "ranktune/space/configuration.hpp"

namespace ranktune::tuner {

class Requests {
  public:
    /// Whether this request has taken effect.
    [[nodiscard]] bool knows(std::uint64_t request) const;
    /// Configurations of trials that users have added and that are not created yet, oldest first.
    [[nodiscard]] const std::deque<space::Configuration>& points() const { return points_; }
    /// How many added trials have been created.
    [[nodiscard]] std::uint64_t created() const { return created_; }
    /// What a key of the study file that users have changed was before, as TOML ("": absent); null: none changed it.
    [[nodiscard]] const std::string* before(const std::string& key) const;
    /// Throws std::logic_error.
    void check_invariants() const;

    // ---- mutators; the first two throw base::FormatError for what contradicts the state
    void take_effect(std::uint64_t request, const std::vector<space::Configuration>& points);
    /// The oldest point has become a trial.
    void point_created();
    /// A user has changed a key that had this value. Only the first value is kept.
    void changed(const std::string& key, const std::string& value);
    /// The study file says something new about this key.
    void forget(const std::string& key);

    static void fields(auto&& each, auto& r) { each(r.numbers_, r.points_, r.created_, r.keys_, r.before_); }

  private:
    std::vector<std::uint64_t> numbers_; ///< of all requests that took effect
    std::deque<space::Configuration> points_;
    std::uint64_t created_ = 0;
    std::vector<std::string> keys_;   ///< of the study file that users have changed
    std::vector<std::string> before_; ///< their values before, as TOML
};

} // namespace ranktune::tuner
