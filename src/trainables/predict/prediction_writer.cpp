// SPDX-License-Identifier: Apache-2.0
#include "trainables/predict/prediction_writer.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/joined.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::trainables {

namespace {

/// A list as an attribute: "17 4 9".
template <class Of>
std::string words_of(const PredictPlan& plan, Of&& of) {
    return base::joined(plan.trials, of, " ");
}

storage::OutputForm form_of(const PredictPlan& plan, const Prediction& prediction) {
    storage::OutputForm form{
        .rows = plan.samples, .columns = {{"y", prediction.type, prediction.row}}, .attributes = {}};
    if (prediction.classifies) form.columns.push_back({"class", base::DType::int32, prediction.class_row});
    form.attributes = {
        {"study", plan.study},
        {"trial", words_of(plan, [](const auto& each) { return std::to_string(each.trial.value()); })},
        {"iteration", words_of(plan, [](const auto& each) { return std::to_string(each.checkpoint.iteration); })},
        {"checkpoint_digest", words_of(plan, [](const auto& each) { return digest_text(each.checkpoint.digest); })},
        {"combine", plan.combine},
        {"input_content", plan.input_content},
        {"version", plan.version}};
    return form;
}

} // namespace

PredictionWriter::PredictionWriter(storage::FileSystem& files, const PredictPlan& plan)
    : files_(files), plan_(plan), combine_(combine_of(plan.combine)), thread_([this] { serve(); }) {}

PredictionWriter::~PredictionWriter() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void PredictionWriter::put(std::vector<Prediction> members, std::uint64_t first, base::TrialId trial) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_.size() < most_waiting || error_; });
    if (error_) std::rethrow_exception(error_);
    waiting_.push_back({std::move(members), first, trial});
    lock.unlock();
    changed_.notify_all();
}

std::uint64_t PredictionWriter::finish_range() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return (waiting_.empty() && !writing_) || error_; });
    if (error_) std::rethrow_exception(error_);
    output_->sync();
    return digest_of_range(std::exchange(of_y_, base::Digest()), std::exchange(of_classes_, base::Digest()));
}

void PredictionWriter::serve() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stop_ || (!waiting_.empty() && !error_); });
        if (stop_) return;
        Batch batch = std::move(waiting_.front());
        waiting_.pop_front();
        writing_ = true;
        lock.unlock();
        changed_.notify_all();
        std::exception_ptr error;
        try {
            write(std::move(batch));
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        writing_ = false;
        error_ = error;
        changed_.notify_all();
    }
}

void PredictionWriter::write(Batch batch) {
    const Prediction prediction = combined(std::move(batch.members), combine_);
    const std::string form = prediction.form();
    if (!output_) {
        form_ = form;
        output_.emplace(files_, plan_.output, batch.trial.value(), form_of(plan_, prediction));
    }
    if (form != form_)
        throw base::UsageError("from sample " + std::to_string(batch.first) + " on predictions are " + form +
                               ", others are " + form_ + ": a model has to predict one form");
    const std::uint64_t range = batch.first / plan_.range * plan_.range;
    const auto put_rows = [&](std::size_t column, base::Digest& digest, std::span<const std::byte> rows) {
        output_->write(column, batch.first, rows, {range, std::min(range + plan_.range, plan_.samples)});
        digest.add(rows);
    };
    if (prediction.type == base::DType::float64) {
        put_rows(0, of_y_, std::as_bytes(std::span(prediction.y)));
    } else {
        const std::vector<float> y(prediction.y.begin(), prediction.y.end());
        put_rows(0, of_y_, std::as_bytes(std::span(y)));
    }
    if (prediction.classifies) put_rows(1, of_classes_, std::as_bytes(std::span(prediction.classes)));
}

} // namespace ranktune::trainables
