// SPDX-License-Identifier: Apache-2.0
// A dataset file as TrainingData: a Loader reads it while the network trains.

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "data/column_sums.hpp"
#include "data/dataset_rows.hpp"
#include "data/file_version.hpp"
#include "ranktune/base/digest.hpp"
#include "ranktune/base/error.hpp"
#include "trainables/mlp/training_data.hpp"

namespace ranktune::trainables::mlp {

namespace {

/// Of one part of a file. Classes have no sums.
struct PartSums {
    data::ColumnSums x;
    data::ColumnSums y;
    explicit PartSums(const data::DatasetShape& shape) : x(shape.features), y(targets_of(shape)) {}
    static std::size_t targets_of(const data::DatasetShape& shape) { return shape.classification ? 0 : shape.outputs; }
};
struct FileSums {
    PartSums train;
    PartSums val;
};

Samples samples_of(const data::Batch& batch, const data::DatasetShape& shape, std::size_t count) {
    Samples samples{batch.columns[0].as<float>().first(count * shape.features), {}, {}};
    if (shape.classification)
        samples.classes = batch.columns[1].as<std::int32_t>().first(count);
    else
        samples.targets = batch.columns[1].as<float>().first(count * shape.outputs);
    return samples;
}

/// Reads samples of a range in the order of the file.
class InOrder {
  public:
    InOrder(const std::shared_ptr<const data::Source>& rows, const data::DatasetShape& shape, data::Range range,
            std::size_t at_once, int threads)
        : shape_(shape), range_(range), loader_(rows, {0, range.begin}, options(at_once, threads)) {}
    /// nullopt: all of them were. Valid until the next call.
    [[nodiscard]] std::optional<Samples> next() {
        if (loader_.position().sample >= range_.end) return std::nullopt;
        batch_ = loader_.next();
        return samples_of(*batch_, shape_, std::min<std::size_t>(batch_->end, range_.end) - batch_->begin);
    }
    [[nodiscard]] data::LoadTime take_waited() { return loader_.take_waited(); }

  private:
    static data::LoaderOptions options(std::size_t at_once, int threads) {
        data::LoaderOptions options;
        options.batch = at_once;
        options.order.shuffle = data::Shuffle::none;
        options.threads = threads;
        options.ahead = static_cast<std::size_t>(threads) + 1;
        return options;
    }
    const data::DatasetShape& shape_;
    data::Range range_;
    data::Loader loader_;
    std::optional<data::Batch> batch_;
};

/// Blocks of the part, one per rank and round, are summed apart and merged in order: the same bits on any number of
/// ranks, and each row is read by one of them.
PartSums sums_of(const std::shared_ptr<const data::Source>& rows, const data::DatasetShape& shape,
                 const std::string& part, ddp::Group& group, int threads) {
    constexpr std::size_t most_blocks = 240;
    constexpr std::size_t piece_bytes = std::size_t{1} << 20U;
    const std::size_t samples = rows->samples();
    const std::size_t piece = std::max<std::size_t>(piece_bytes / (shape.features * sizeof(float)), 1);
    const std::size_t block = std::max((samples + most_blocks - 1) / most_blocks, piece);
    PartSums all(shape);
    const auto begin_of = [&](std::size_t round, int rank) {
        return (round * static_cast<std::size_t>(group.size()) + static_cast<std::size_t>(rank)) * block;
    };
    for (std::size_t round = 0; begin_of(round, 0) < samples; ++round) {
        PartSums mine(shape);
        if (const std::size_t begin = begin_of(round, group.rank()); begin < samples) {
            InOrder reading(rows, shape, {begin, std::min(begin + block, samples)}, piece, threads);
            while (const auto some = reading.next()) {
                mine.x.add(some->x);
                mine.y.add(some->targets);
            }
            for (const auto& [sums, name] : {std::pair(&mine.x, "x"), std::pair(&mine.y, "y")})
                if (!sums->finite())
                    throw base::FormatError("dataset file '" + rows->path() + "': " + part + "/" + name +
                                            " holds NaN or infinity");
        }
        for (int rank = 0; rank < group.size() && begin_of(round, rank) < samples; ++rank) {
            PartSums theirs = rank == group.rank() ? mine : PartSums(shape);
            group.broadcast(theirs.x.numbers(), rank);
            group.broadcast(theirs.y.numbers(), rank);
            all.x.merge(theirs.x);
            all.y.merge(theirs.y);
        }
    }
    return all;
}

/// The sums of files that trials of this process have read; of a path, those of its last version.
class KnownSums {
  public:
    [[nodiscard]] std::shared_ptr<const FileSums> find(const std::string& path, data::FileVersion version) {
        const std::lock_guard lock(mutex_);
        const auto found = files_.find(path);
        return found == files_.end() || found->second.first != version ? nullptr : found->second.second;
    }
    void keep(const std::string& path, data::FileVersion version, std::shared_ptr<const FileSums> sums) {
        const std::lock_guard lock(mutex_);
        files_.insert_or_assign(path, std::pair(version, std::move(sums)));
    }

  private:
    std::mutex mutex_;
    std::map<std::string, std::pair<data::FileVersion, std::shared_ptr<const FileSums>>> files_;
};

KnownSums& known_sums() {
    static KnownSums known;
    return known;
}

class Streamed final : public TrainingData {
  public:
    Streamed(const std::string& path, data::Scaling scaling, data::LoaderOptions loading)
        : path_(path),
          version_(data::version_of(path)),
          shape_(data::read_dataset_shape(path)),
          scaling_(scaling),
          loading_(std::move(loading)),
          train_(std::make_shared<data::DatasetRows>(path, "train", shape_, loading_.order.memory)),
          val_(std::make_shared<data::DatasetRows>(path, "val", shape_, for_reading_in_order)) {
        loading_.ahead = static_cast<std::size_t>(loading_.threads) + 1;
    }

    [[nodiscard]] const data::DatasetShape& shape() const override { return shape_; }
    [[nodiscard]] const data::Source* file() const override { return train_.get(); }
    [[nodiscard]] std::uint64_t digest() const override {
        const std::uint64_t facts[] = {shape_.features, shape_.outputs, std::uint64_t{shape_.classification},
                                       shape_.train,    shape_.val,     static_cast<std::uint64_t>(version_.bytes)};
        return base::Digest().add(std::as_bytes(std::span(facts))).value();
    }

    void prepare(ddp::Group& group) override {
        if (prepared_) return;
        std::shared_ptr<const FileSums> sums = known_sums().find(path_, version_);
        if (group.reduced(sums ? 1 : 0, ddp::Reduce::min) == 0) { // other ranks may have had trials on this file
            sums = std::make_shared<const FileSums>(FileSums{sums_of(train_, shape_, "train", group, loading_.threads),
                                                             sums_of(val_, shape_, "val", group, loading_.threads)});
            known_sums().keep(path_, version_, sums);
        }
        x_scale_ = sums->train.x.scale(scaling_);
        if (!shape_.classification) y_scale_ = sums->train.y.scale(data::Scaling::standard);
        val_deviation_ = sums->val.y.deviation(y_scale_.factor);
        train_ = std::make_shared<data::DatasetRows>(*train_, x_scale_, y_scale_);
        val_ = std::make_shared<data::DatasetRows>(*val_, x_scale_, y_scale_);
        prepared_ = true;
    }
    [[nodiscard]] const data::Scale& x_scale() const override { return x_scale_; }
    [[nodiscard]] const data::Scale& y_scale() const override { return y_scale_; }
    [[nodiscard]] double val_deviation() const override { return val_deviation_; }

    [[nodiscard]] Rows share(std::uint64_t epoch, data::Range batch) override {
        if (loader_ && loader_->position().sample == shape_.train)
            static_cast<void>(loader_->next()); // end of an epoch
        if (const data::Position from{epoch, batch.begin}; !loader_ || loader_->position() != from) {
            loader_.reset();
            loader_ = std::make_unique<data::Loader>(train_, from, loading_);
        }
        batch_ = loader_->next();
        waited_ += loader_->take_waited();
        const std::size_t count = batch_->samples.size();
        while (places_.size() < count) places_.push_back(static_cast<std::uint32_t>(places_.size()));
        numbers_.assign(batch_->samples.begin(), batch_->samples.end());
        return {samples_of(*batch_, shape_, count), std::span(places_).first(count), numbers_};
    }

    void validate(data::Range range, std::size_t rows, const std::function<void(const Samples&)>& use) override {
        if (range.size() == 0) return;
        InOrder reading(val_, shape_, range, rows, loading_.threads);
        while (const auto some = reading.next()) use(*some);
        waited_ += reading.take_waited();
    }
    [[nodiscard]] std::optional<data::LoadTime> take_waited() override { return std::exchange(waited_, {}); }

  private:
    static constexpr std::uint64_t for_reading_in_order = std::uint64_t{64} << 20U;

    std::string path_;
    data::FileVersion version_;
    data::DatasetShape shape_;
    data::Scaling scaling_;
    data::LoaderOptions loading_;
    std::shared_ptr<const data::DatasetRows> train_;
    std::shared_ptr<const data::DatasetRows> val_;
    bool prepared_ = false;
    data::Scale x_scale_;
    data::Scale y_scale_;
    double val_deviation_ = 0.0;
    std::unique_ptr<data::Loader> loader_;
    std::optional<data::Batch> batch_;   ///< the last share
    std::vector<std::uint32_t> places_;  ///< 0, 1, 2, ...
    std::vector<std::uint32_t> numbers_; ///< of the samples of the last share
    data::LoadTime waited_;
};

} // namespace

std::unique_ptr<TrainingData> streamed(const std::string& path, data::Scaling scaling, data::LoaderOptions loading) {
    return std::make_unique<Streamed>(path, scaling, std::move(loading));
}

} // namespace ranktune::trainables::mlp
