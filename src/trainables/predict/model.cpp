// SPDX-License-Identifier: Apache-2.0
#include "trainables/predict/model.hpp"

#include "ranktune/base/error.hpp"
#include "storage/checkpoints/checkpoint_store.hpp"

namespace ranktune::trainables {

namespace {

/// Of the trial that was trained; what belongs to this process is that of the trial of predictions.
class TrainedContext final : public TrialContext {
  public:
    TrainedContext(const PredictPlan& plan, const PredictingTrial& trial)
        : plan_(plan), trial_(trial), group_(ddp::make_self_group()) {}
    void use(TrialContext& within) { within_ = &within; }

    [[nodiscard]] const space::Configuration& configuration() const override { return trial_.configuration; }
    [[nodiscard]] base::TrialId trial() const override { return trial_.trial; }
    [[nodiscard]] std::uint64_t seed() const override { return trial_.seed; }
    [[nodiscard]] base::Iteration iteration() const override { return trial_.checkpoint.iteration; }
    [[nodiscard]] base::Iteration max_iterations() const override { return plan_.max_iterations; }
    [[nodiscard]] ddp::Group& group() const override { return *group_; }
    [[nodiscard]] int cpus_per_rank() const override { return within_->cpus_per_rank(); }
    [[nodiscard]] std::uint64_t memory() const override { return within_->memory(); }
    [[nodiscard]] std::vector<std::string> devices() const override { return within_->devices(); }
    [[nodiscard]] const study::DataFile& data(std::string_view name) const override { return within_->data(name); }
    [[nodiscard]] bool only_predicts() const override { return true; }
    void log(std::string_view line) override { within_->log(line); }

  private:
    const PredictPlan& plan_;
    const PredictingTrial& trial_;
    std::unique_ptr<ddp::Group> group_;
    TrialContext* within_ = nullptr;
};

class TrainedModel final : public PredictingModel {
  public:
    TrainedModel(const PredictPlan& plan, const PredictingTrial& trial, TrialContext& within);
    [[nodiscard]] Prediction predict(const data::Batch& batch, std::size_t wanted, TrialContext& within) override;

  private:
    std::string who_; ///< for messages
    TrainedContext context_;
    std::unique_ptr<Trainable> trainable_; ///< uses the context
    study::MemoryState put_;               ///< keeps its memory from batch to batch
};

TrainedModel::TrainedModel(const PredictPlan& plan, const PredictingTrial& trial, TrialContext& within)
    : who_(name_of(plan, trial)), context_(plan, trial) {
    const Registration& known = find_trainable(plan.trainable);
    if (!known.factory) throw base::UsageError(who_ + "a function cannot predict; make it a class with predict()");
    context_.use(within);
    trainable_ = known.factory();
    trainable_->setup(context_);
    storage::CheckpointStore store(storage::posix_file_system(), plan.directory);
    if (trial.checkpoint.shards.empty()) {
        study::MemoryState state = store.load(trial.checkpoint);
        trainable_->load(state);
    } else {
        trainable_->load(*store.open_shards(trial.checkpoint));
    }
}

Prediction TrainedModel::predict(const data::Batch& batch, std::size_t wanted, TrialContext& within) {
    context_.use(within);
    put_.reset();
    try {
        trainable_->predict(context_, batch, put_);
        return prediction_of(put_, batch.samples.size(), wanted, batch.begin);
    } catch (const base::UsageError& error) {
        throw base::UsageError(who_ + error.what());
    }
}

} // namespace

std::string name_of(const PredictPlan& plan, const PredictingTrial& trial) {
    return "trial #" + std::to_string(trial.trial.value()) + " of '" + plan.study + "', trained by '" + plan.trainable +
           "': ";
}

std::unique_ptr<PredictingModel> load_model(const PredictPlan& plan, const PredictingTrial& trial,
                                            TrialContext& within) {
    return std::make_unique<TrainedModel>(plan, trial, within);
}

} // namespace ranktune::trainables
