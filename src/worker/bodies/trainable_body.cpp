// SPDX-License-Identifier: Apache-2.0
#include "worker/bodies/trainable_body.hpp"

#include <utility>

#include "ranktune/base/error.hpp"
#include "worker/trial/attempt_errors.hpp"

namespace ranktune::worker {
namespace {

using study::Verb;

// The leader's word as bits: the verb, whether the last checkpoint is written, whether to save, whether a pause needs
// no state.
constexpr std::uint64_t verb_bits = 3;
constexpr std::uint64_t written_bit = 4;
constexpr std::uint64_t save_bit = 8;
constexpr std::uint64_t later_bit = 16;
static_assert(static_cast<std::uint64_t>(Verb::discard) <= verb_bits);

} // namespace

// ---- both forms

StateBody::StateBody(const AttemptParts& parts)
    : parts_(parts), checkpoints_(parts.setting, parts.assignment, parts.group, parts.loop.checkpoints()) {}

Saves StateBody::saves() {
    if (!parts_.setting.trainable->info.can_checkpoint) return Saves::never;
    if (!save_state_) return Saves::none;
    static_cast<void>(checkpoints_.collect(false));
    return checkpoints_.idle() ? Saves::now : Saves::soon;
}

/// Collective. The others wait for the leader. (The leader's wait does not count: a reduction that does not finish is a
/// hang of the leader.)
std::uint64_t StateBody::leaders(std::uint64_t bits) {
    if (parts_.assignment.leads()) return parts_.group.min_max(bits).second;
    const Waiting waiting(parts_.port);
    return parts_.group.min_max(0).second; // the leader's value is the maximum
}

Word StateBody::tell(const Word& word, const TrialPoint&) {
    std::uint64_t bits = 0;
    if (parts_.assignment.leads())
        bits = static_cast<std::uint64_t>(word.verb) | (word.save ? save_bit : 0) |
               (word.goes_on_later ? later_bit : 0) |
               (checkpoints_.collect(word.verb != Verb::go_on || word.save) ? written_bit : 0);
    bits = leaders(bits);
    const Word told{static_cast<Verb>(bits & verb_bits), (bits & save_bit) != 0, (bits & later_bit) != 0};
    checkpoints_.settle((bits & written_bit) != 0, told.verb == Verb::go_on && !told.save);
    return told;
}

void StateBody::save(const TrialPoint& point) {
    need_save();
    try {
        checkpoints_.take(point, save_state_);
    } catch (...) {
        const std::exception_ptr error = std::current_exception();
        const study::AttemptOutcome outcome = outcome_of(error);
        const bool by_saving = outcome == study::AttemptOutcome::failed || outcome == study::AttemptOutcome::unsaved;
        if (!by_saving || parts_.group.size() > 1) throw; // the ranks may be out of step
        parts_.loop.checkpoints().missed(while_saving(point.iteration, message_of(error)));
    }
}

void StateBody::end(const Word& word, const TrialPoint& point) {
    if (!word.save) return;
    checkpoints_.save_last(point, [&](study::StateSink& sink) {
        try {
            need_save();
            save_state_(sink);
        } catch (...) {
            last_save_failed(needs_state(word), point.iteration);
        }
    });
}

void StateBody::need_save() const {
    if (!save_state_) throw base::Error("rank 0 called checkpoints(save, load) and this rank did not: every rank must");
}

// ---- a class

ClassBody::ClassBody(const AttemptParts& parts, Spare& spare) : StateBody(parts), context_(parts), spare_(spare) {}

void ClassBody::start(const study::CheckpointRef* checkpoint) {
    if (!take_over_spare()) {
        trainable_ = parts().setting.trainable->factory();
        trainable_->setup(context_);
    }
    if (checkpoint != nullptr) restore(*checkpoint, [this](study::StateSource& source) { trainable_->load(source); });
    saves_by([this](study::StateSink& sink) { trainable_->save(sink); });
}

/// Collective. Whether the trainable of the previous trial is reused, on all ranks; a rank that ran something else
/// before says no.
bool ClassBody::take_over_spare() {
    if (!parts().setting.trainable->info.can_reset) return false;
    Spare spare = std::exchange(spare_, {});
    auto& group = parts().group;
    const auto on_all = [&group](bool here) {
        return group.size() == 1 ? here : group.min_max(here ? 1 : 0).first == 1;
    };
    if (!on_all(spare.trainable && spare.size == group.size())) return false;
    if (!on_all(spare.trainable->reset_config(context_))) return false;
    trainable_ = std::move(spare.trainable);
    return true;
}

Verb ClassBody::train(const Report& report) {
    Verb told = Verb::go_on;
    while (told == Verb::go_on) {
        const trainables::Metrics metrics = trainable_->step(context_);
        parts().group.check_sums(); // before the head sees what depends on them
        told = report(metrics);
    }
    if (parts().setting.trainable->info.can_reset) spare_ = {std::move(trainable_), parts().group.size()};
    return told;
}

// ---- a function

class FunctionBody::Context final : public AttemptContext<trainables::FunctionContext> {
  public:
    Context(const AttemptParts& parts, FunctionBody& body) : AttemptContext(parts), body_(body) {}
    [[nodiscard]] bool report(const trainables::Metrics& metrics) override { return body_.report(metrics); }
    void checkpoints(std::function<void(study::StateSink&)> save,
                     std::function<void(study::StateSource&)> load) override {
        body_.checkpoints(std::move(save), load);
    }

  private:
    FunctionBody& body_;
};

FunctionBody::FunctionBody(const AttemptParts& parts) : StateBody(parts) {}

Verb FunctionBody::train(const Report& report) {
    report_ = &report;
    Context context(parts(), *this);
    parts().setting.trainable->function(context);
    if (error_) std::rethrow_exception(error_);
    // All ranks must have returned for the same reason: a rank that still reports fails together with these.
    if (told_ == Verb::go_on) parts().group.barrier();
    return told_;
}

bool FunctionBody::report(const trainables::Metrics& metrics) {
    if (told_ != Verb::go_on || error_) return false;
    if (to_restore_ != nullptr)
        throw base::Error("the trial goes on from a checkpoint: call checkpoints(save, load) before the first report");
    try {
        parts().group.check_sums();
        told_ = (*report_)(metrics);
    } catch (...) {
        error_ = std::current_exception();
        throw;
    }
    return told_ == Verb::go_on;
}

void FunctionBody::checkpoints(TrialCheckpoints::Save save, const TrialCheckpoints::Load& load) {
    saves_by(std::move(save));
    if (to_restore_ == nullptr) return;
    try {
        restore(*to_restore_, load);
    } catch (...) {
        error_ = std::current_exception();
        throw;
    }
    to_restore_ = nullptr;
}

std::string FunctionBody::why_no_state() const {
    return "the training function never called checkpoints(save, load): call it before the first report; or say "
           "can_checkpoint = false in its TrainableInfo";
}

} // namespace ranktune::worker
