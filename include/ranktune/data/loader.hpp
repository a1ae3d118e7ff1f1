// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loader: this rank's share of global batches, prepared ahead by threads.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ranktune/base/rng.hpp"
#include "ranktune/data/mixture.hpp"
#include "ranktune/data/order.hpp"
#include "ranktune/data/sampling.hpp"
#include "ranktune/data/source.hpp"

namespace ranktune::data {

/// One field of a batch: [count, shape of the field], row-major. Owns its memory.
struct Column {
    Field field;
    std::size_t count = 0;
    std::shared_ptr<std::byte[]> memory;
    [[nodiscard]] std::span<std::byte> bytes() const { return {memory.get(), count * field.bytes()}; }
    [[nodiscard]] std::span<std::byte> row(std::size_t i) const {
        return bytes().subspan(i * field.bytes(), field.bytes());
    }
    /// The numbers. Requires that `T` is the type of the field.
    template <class T>
    [[nodiscard]] std::span<T> as() const {
        return {reinterpret_cast<T*>(memory.get()), bytes().size() / sizeof(T)};
    }
};

/// A rank's share of the global batch of positions [begin, end) of an epoch.
struct Batch {
    std::uint64_t epoch = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<std::uint64_t> samples; ///< numbers in the source; none: more ranks than samples
    std::vector<Column> columns;
    /// Throws base::UsageError.
    [[nodiscard]] const Column& column(std::string_view name) const;
};

/// What a map changes.
struct Sample {
    const Source& source;
    std::uint64_t number = 0;
    std::span<const std::span<std::byte>> columns; ///< its rows in the batch, in the order of the columns
};
/// Called by several threads at once. The stream is keyed (seed, augment, epoch, sample): the same on any rank or
/// thread.
using Map = std::function<void(const Sample& sample, base::RngStream& random)>;

struct LoaderOptions {
    std::uint64_t batch = 64; ///< samples of a global batch
    int rank = 0;
    int ranks = 1;
    std::uint64_t seed = 0;
    std::uint32_t trial = 0;
    OrderOptions order = {}; ///< mixture: of each part
    bool drop_last = false;  ///< leave out what does not fill the last batch of an epoch
    int threads = 1;
    std::size_t ahead = 2; ///< batches that are ready or being prepared
    /// Memory of a column, for instance page-locked; called by several threads at once. Empty: plain.
    std::function<std::shared_ptr<std::byte[]>(std::size_t bytes)> allocate = {};
    Map map = {};
    /// What a batch has; empty: the fields of the source that do not vary. Columns of a name, type and shape of the
    /// source are filled from it, others are zero, for the map.
    std::vector<Field> columns = {};
    /// Makes a mixture of the sources of a JoinedSource: one part for each.
    struct Part {
        double weight = 1.0;
        std::uint64_t from = 0; ///< see MixtureSource
        OrderOptions order = {};
    };
    std::vector<Part> mixture = {};
};

/// Seconds of loading, by what they went into.
struct LoadTime {
    double disk = 0.0;   ///< blocked, mostly until bytes came
    double decode = 0.0; ///< decoding and copying, and waiting for a core to do so
    double map = 0.0;    ///< the same of LoaderOptions::map
    double other = 0.0;
    [[nodiscard]] double all() const { return disk + decode + map + other; }
    LoadTime& operator+=(const LoadTime& more);
    /// `seconds` in these proportions; without any, all of them are `other`.
    [[nodiscard]] LoadTime divided(double seconds) const;
};

/// Batches in an order that depends on data, seed, trial and position alone: the same on any number of threads, and
/// resumed at a position on any number of ranks. Not collective. Used by one thread; `threads` others read.
class Loader {
  public:
    /// Begins at `from`. Throws base::UsageError: batch, ranks, threads or ahead below 1; a mixture that cannot be.
    Loader(std::shared_ptr<const Source> source, Position from, LoaderOptions options);
    ~Loader();
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;

    /// The next batch; nullopt once at the end of each epoch, after which the next epoch begins. A mixture has no end.
    /// Throws what source or map threw for this batch; the next call goes on behind it.
    [[nodiscard]] std::optional<Batch> next();
    /// Where the batch of the next call begins: give it to another Loader to resume.
    [[nodiscard]] Position position() const { return position_; }
    /// How long calls of `next` waited since the last call of this, each in the proportions of what a thread did to
    /// make the batch.
    [[nodiscard]] LoadTime take_waited() { return std::exchange(waited_, {}); }

  private:
    /// What the threads make of one turn.
    struct Turn {
        bool ready = false;
        bool end_of_epoch = false;
        Position after;
        Batch batch;
        LoadTime took;
        std::exception_ptr error;
    };
    /// A batch that is to be read.
    struct Job {
        Batch batch;
        std::vector<std::uint64_t> epochs; ///< of each sample: a mixture's sources have their own
    };
    void serve();
    [[nodiscard]] Job claim(Turn& turn);
    [[nodiscard]] std::uint64_t sample_at(std::uint64_t position, std::uint64_t& epoch);
    void read(Job& job, LoadTime& took) const;
    void apply_map(Job& job, LoadTime& took) const;

    std::shared_ptr<const Source> source_;
    LoaderOptions options_;
    Position position_;
    LoadTime waited_;                                   ///< not taken yet
    std::vector<std::optional<std::size_t>> filled_by_; ///< of each column: the field of the source

    std::mutex mutex_;
    std::condition_variable changed_;
    bool stop_ = false;
    std::uint64_t claimed_ = 0;      ///< turns
    std::uint64_t taken_ = 0;        ///< turns, by `next`
    Position claim_at_;              ///< of the next turn to be claimed
    std::uint64_t epoch_length_ = 0; ///< samples that are trained; a mixture: without end
    std::optional<Order> order_;     ///< of the epoch of claim_at_
    std::optional<Mixture> mixture_;
    std::vector<Turn> ring_;
    std::vector<std::thread> threads_; ///< last: they use all of the above
};

} // namespace ranktune::data
