// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/loader.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

#include "data/thread_time.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::data {

namespace {

void require_positive(std::uint64_t value, const char* name) {
    if (value == 0 || value > std::numeric_limits<std::uint64_t>::max() / 2)
        throw base::UsageError(std::string("Loader: ") + name + " has to be at least 1");
}

std::vector<MixtureSource> mixture_sources(const Source& source, const LoaderOptions& options) {
    const auto* joined = dynamic_cast<const JoinedSource*>(&source);
    const std::size_t count = joined == nullptr ? 1 : joined->sources().size();
    if (joined == nullptr || options.mixture.size() != count)
        throw base::UsageError("Loader: a mixture of " + std::to_string(options.mixture.size()) +
                               " weights needs as many joined sources, and there are " + std::to_string(count));
    std::vector<MixtureSource> sources;
    for (std::size_t i = 0; i < count; ++i)
        sources.push_back({order_shape(joined->sources()[i]->extent(), options.mixture[i].order),
                           options.mixture[i].weight, options.mixture[i].from});
    return sources;
}

/// The streams of samples beyond 2^32 need another key.
base::RngStream stream_of(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample) {
    return {seed + (sample >> 32) * 0x9E3779B97F4A7C15U, base::Purpose::augment, static_cast<std::uint32_t>(epoch),
            static_cast<std::uint32_t>(sample)};
}

} // namespace

LoadTime& LoadTime::operator+=(const LoadTime& more) {
    disk += more.disk;
    decode += more.decode;
    map += more.map;
    other += more.other;
    return *this;
}

LoadTime LoadTime::divided(double seconds) const {
    if (all() <= 0.0) return {.other = seconds};
    const double part = seconds / all();
    return {part * disk, part * decode, part * map, part * other};
}

const Column& Batch::column(std::string_view name) const {
    const auto found = std::ranges::find(columns, name, [](const Column& column) { return column.field.name; });
    if (found == columns.end()) throw base::UsageError("a batch has no column '" + std::string(name) + "'");
    return *found;
}

Loader::Loader(std::shared_ptr<const Source> source, Position from, LoaderOptions options)
    : source_(std::move(source)), options_(std::move(options)), position_(from), claim_at_(from) {
    require_positive(options_.batch, "batch");
    require_positive(static_cast<std::uint64_t>(options_.threads), "threads");
    require_positive(options_.ahead, "ahead");
    require_positive(static_cast<std::uint64_t>(options_.ranks), "ranks");
    if (options_.rank < 0 || options_.rank >= options_.ranks)
        throw base::UsageError("Loader: rank has to be one of 0 to ranks - 1");
    const std::vector<Field>& fields = source_->fields();
    if (options_.columns.empty())
        std::ranges::copy_if(fields, std::back_inserter(options_.columns),
                             [](const Field& field) { return !field.varying; });
    for (const Field& column : options_.columns) {
        const auto field = std::ranges::find(fields, column);
        filled_by_.push_back(field == fields.end() ? std::nullopt : std::optional<std::size_t>(field - fields.begin()));
    }
    if (options_.mixture.empty()) {
        const std::uint64_t samples = source_->samples();
        epoch_length_ = options_.drop_last ? samples / options_.batch * options_.batch : samples;
    } else {
        epoch_length_ = std::numeric_limits<std::uint64_t>::max();
        mixture_.emplace(mixture_sources(*source_, options_), options_.seed, options_.trial);
    }
    if (epoch_length_ == 0)
        throw base::UsageError("Loader: drop_last leaves out all samples, as a batch has more than the source");
    ring_.resize(options_.ahead);
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { serve(); });
}

Loader::~Loader() {
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

std::optional<Batch> Loader::next() {
    std::unique_lock lock(mutex_);
    Turn& turn = ring_[taken_ % ring_.size()];
    if (!turn.ready) {
        const auto begin = std::chrono::steady_clock::now();
        changed_.wait(lock, [&] { return turn.ready; });
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
        waited_ += turn.took.divided(waited.count());
    }
    Turn taken = std::exchange(turn, Turn{});
    ++taken_;
    position_ = taken.after;
    lock.unlock();
    changed_.notify_all();
    if (taken.error) std::rethrow_exception(taken.error);
    if (taken.end_of_epoch) return std::nullopt;
    return std::move(taken.batch);
}

void Loader::serve() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return stop_ || claimed_ < taken_ + ring_.size(); });
        if (stop_) return;
        Turn& turn = ring_[claimed_++ % ring_.size()];
        Job job = claim(turn);
        if (!turn.end_of_epoch) {
            lock.unlock();
            LoadTime took;
            std::exception_ptr error;
            try {
                read(job, took);
                if (options_.map) apply_map(job, took);
            } catch (...) {
                error = std::current_exception();
            }
            lock.lock();
            turn.batch = std::move(job.batch);
            turn.took = took;
            turn.error = std::move(error);
        }
        turn.ready = true;
        changed_.notify_all();
    }
}

/// The next turn, whose samples are chosen by one thread at a time: an order remembers what is open.
Loader::Job Loader::claim(Turn& turn) {
    if (claim_at_.sample >= epoch_length_) {
        turn.end_of_epoch = true;
        turn.after = claim_at_ = {claim_at_.epoch + 1, 0};
        order_.reset();
        return {};
    }
    Job job;
    const std::uint64_t end = std::min(options_.batch, epoch_length_ - claim_at_.sample) + claim_at_.sample;
    job.batch = {claim_at_.epoch, claim_at_.sample, end, {}, {}};
    const Share share(claim_at_.sample, end, options_.rank, options_.ranks);
    job.epochs.resize(share.size());
    for (std::uint64_t i = 0; i < share.size(); ++i) job.batch.samples.push_back(sample_at(share[i], job.epochs[i]));
    claim_at_.sample = end;
    turn.after = claim_at_;
    return job;
}

std::uint64_t Loader::sample_at(std::uint64_t position, std::uint64_t& epoch) {
    if (mixture_) {
        const Mixture::Place place = (*mixture_)(position);
        epoch = place.epoch;
        return static_cast<const JoinedSource&>(*source_).begin(place.source) + place.sample;
    }
    epoch = claim_at_.epoch;
    if (!order_) order_.emplace(order_shape(source_->extent(), options_.order), options_.seed, options_.trial, epoch);
    return (*order_)(position);
}

void Loader::read(Job& job, LoadTime& took) const {
    const std::size_t count = job.batch.samples.size();
    for (const Field& column : options_.columns) {
        const std::size_t bytes = count * column.bytes();
        job.batch.columns.push_back(
            {column, count,
             options_.allocate ? options_.allocate(bytes)
                               : std::shared_ptr<std::byte[]>(std::make_unique_for_overwrite<std::byte[]>(bytes))});
    }
    const ThreadTime begin = thread_time();
    const Elsewhere before = elsewhere();
    for (std::size_t i = 0; i < options_.columns.size(); ++i) {
        const std::span<std::byte> rows = job.batch.columns[i].bytes();
        if (filled_by_[i])
            source_->gather(*filled_by_[i], job.batch.samples, rows);
        else
            std::ranges::fill(rows, std::byte{0});
    }
    took = reading_time(thread_time() - begin, elsewhere() - before);
}

void Loader::apply_map(Job& job, LoadTime& took) const {
    const ThreadTime begin = thread_time();
    std::vector<std::span<std::byte>> rows(job.batch.columns.size());
    for (std::size_t i = 0; i < job.batch.samples.size(); ++i) {
        for (std::size_t c = 0; c < rows.size(); ++c) rows[c] = job.batch.columns[c].row(i);
        const std::uint64_t sample = job.batch.samples[i];
        base::RngStream random = stream_of(options_.seed, job.epochs[i], sample);
        options_.map({*source_, sample, rows}, random);
    }
    const LoadTime mapped = reading_time(thread_time() - begin, {});
    took.disk += mapped.disk; // a map touches the members of a tar, and may open files
    took.map = mapped.decode;
}

} // namespace ranktune::data
