// SPDX-License-Identifier: Apache-2.0
#pragma once
// AskSession: the requests of a loop of the user's, and their answers. Lines of JSON, one request each:
//
//   {"id": 1, "ask": true}                                          {"id": 1, "trial": 0, "configuration": {"lr": 0.1},
//   ...}
//   {"id": 2, "report": 0, "iteration": 1, "metrics": {"loss": 2}}  {"id": 2, "stop": false}
//   {"id": 3, "tell": 0, "metrics": {"loss": 1}}                    {"id": 3}
//   {"id": 4, "fail": 0, "message": "out of memory"}                {"id": 4}
//   {"id": 5, "close": true}                                        {"id": 5}
//
// An answer {"trial": null, "why": ...} says that there is nothing to hand out; {"error": ...}, that nothing was done.
// What an answer acknowledges is written. A request with the id of the one before (not null) is that one again, because
// its answer was lost: it gets the same answer.

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "head/asktell/outside_ranks.hpp"
#include "head/head_machine.hpp"
#include "head/observer.hpp"
#include "process/wake.hpp"

namespace ranktune::head {

/// Ranks of a start: so many trials can be asked for and not told yet.
inline constexpr std::uint32_t most_at_once = 256;

/// A trial that was to stop keeps its rank after its result until the next one is asked for: so that one is suggested
/// from all results, and none is begun that nobody asks for. (One that fails, or ends before it was to stop, cannot.)
/// In the same way the study's `max_concurrent` begins with 1 and is raised (record Steered) by an ask that finds all
/// places taken. That one place is filled when the study is opened: the first trial begins before anybody asks.
class AskSession final : public head::Observer {
  public:
    /// `ranks` must outlive it.
    explicit AskSession(OutsideRanks& ranks) : ranks_(ranks) {}

    /// The head that serves from now on; it must outlive the calls below, or `head_is_gone` follows.
    void set_head(head::HeadMachine& head, const tuner::Tuner& tuner, const process::ProcessClock& clock);
    /// From now on there is nothing to hand out, and nothing can be told. `why`: in words. `failed`: through no
    /// decision of the study or a person; to ask is then an error, lest the loop takes the study for complete.
    void head_is_gone(const std::string& why, bool failed);
    /// The answer to a request; nullopt: an ask waits for a suggestion that is being computed: ask again.
    [[nodiscard]] std::optional<std::string> answer(const std::string& line);
    /// Nothing more will be requested, even if the other end stays open: a fork of the loop may hold it.
    [[nodiscard]] bool is_closed() const { return closed_; }
    /// In every round: the head's own; signs of life; ranks that need not be kept any more.
    void tend();
    /// Nobody asks any more: the trials that are not told go back to the study.
    void leave();

    void on_records(const tuner::Tuner& tuner, const std::vector<study::Record>&, const head::HeadFigures&) override {
        written_ = tuner.state().records;
    }

  private:
    using Json = nlohmann::ordered_json;
    [[nodiscard]] std::optional<Json> dispatch(const Json& request);
    [[nodiscard]] std::optional<Json> ask();
    [[nodiscard]] Json hand_out(Seat& seat);
    [[nodiscard]] Json nothing_left() const;
    [[nodiscard]] bool computes() const;
    [[nodiscard]] bool grow();
    [[nodiscard]] Json report(const Json& request);
    [[nodiscard]] Json tell(const Json& request);
    [[nodiscard]] Json fail(const Json& request);
    [[nodiscard]] Seat& seat_of(const Json& request, const char* verb);
    [[nodiscard]] std::vector<study::NamedMetric> metrics_of(const Json& request, study::TrialId trial) const;
    void take_report(Seat& seat, std::vector<study::NamedMetric> metrics);
    void give_back(Seat& seat, study::AttemptOutcome outcome, const std::string& failure = {});
    void record_end(Seat& seat, study::AttemptOutcome outcome, const std::string& failure = {});
    template <class T>
    void send(base::Rank from, const T& message);
    void write();
    void refuse_what_is_not_written() const;
    [[nodiscard]] const tuner::State& state() const { return tuner_->state(); }

    OutsideRanks& ranks_;
    head::HeadMachine* head_ = nullptr; ///< null: it is gone
    const tuner::Tuner* tuner_ = nullptr;
    const process::ProcessClock* clock_ = nullptr;
    Json last_id_; ///< of the newest request that was answered
    std::string last_answer_;
    std::string why_gone_;
    bool failed_ = false;       ///< see head_is_gone
    std::uint64_t written_ = 0; ///< records
    bool closed_ = false;
    base::StudyTime next_sign_;
    study::Bytes buffer_;
};

} // namespace ranktune::head
