// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "data/block_cache.hpp"
#include "data/thread_time.hpp"
#include "ranktune/base/error.hpp"
#include "support/catch.hpp"

namespace loader_test {

using namespace ranktune;
using namespace ranktune::data;
using Numbers = std::vector<std::uint64_t>;

namespace {

/// Sample i is the numbers 3i, 3i + 1, 3i + 2. Sample `broken` cannot be read.
class Counting final : public Source {
  public:
    explicit Counting(std::uint64_t samples, std::uint64_t chunk = 1, std::uint64_t broken = ~std::uint64_t{0})
        : Source("counting", {{"x", ElementType::int64, {3}}}, {samples, 0, chunk}), broken_(broken) {}
    void gather(std::size_t, std::span<const std::uint64_t> samples, std::span<std::byte> out) const override {
        for (const std::uint64_t sample : samples) {
            if (sample == broken_) throw base::FormatError("sample " + std::to_string(sample) + " is damaged");
            const std::int64_t row[] = {static_cast<std::int64_t>(3 * sample),
                                        static_cast<std::int64_t>(3 * sample + 1),
                                        static_cast<std::int64_t>(3 * sample + 2)};
            std::memcpy(out.data(), row, sizeof row);
            out = out.subspan(sizeof row);
        }
    }

  private:
    std::uint64_t broken_;
};

/// Reads nothing: calls a function instead.
class Calling final : public Source {
  public:
    explicit Calling(std::function<void()> call)
        : Source("calling", {{"x", ElementType::int8}}, {1000, 1, 1}), call_(std::move(call)) {}
    void gather(std::size_t, std::span<const std::uint64_t>, std::span<std::byte>) const override { call_(); }

  private:
    std::function<void()> call_;
};

/// What `next` waited for, once it had to wait.
LoadTime wait_for(const std::function<void()>& reading, Map map = {}) {
    Loader loader(std::make_shared<Calling>(reading), {}, {.batch = 1, .ahead = 1, .map = std::move(map)});
    LoadTime waited;
    double all = 0.0;
    while (waited.all() == 0.0) {
        const auto begin = std::chrono::steady_clock::now();
        static_cast<void>(loader.next());
        all = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        waited = loader.take_waited();
    }
    CHECK(waited.all() <= all * (1 + 1e-12)); // a part of what `next` took, on the same clock
    CHECK(waited.other == 0.0);
    CHECK(loader.take_waited().all() == 0.0);
    return waited;
}

/// Keeps this thread on a core.
void compute() {
    volatile std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < 3'000'000; ++i) sum = sum + i;
}

/// Everything of one epoch: samples, and the sum of what the batches hold.
struct Epoch {
    Numbers samples;
    std::vector<std::int64_t> values;
    std::size_t batches = 0;
    friend bool operator==(const Epoch&, const Epoch&) = default;
};

Epoch epoch_of(Loader& loader) {
    Epoch all;
    while (const auto batch = loader.next()) {
        all.samples.insert(all.samples.end(), batch->samples.begin(), batch->samples.end());
        const auto values = batch->column("x").as<std::int64_t>();
        all.values.insert(all.values.end(), values.begin(), values.end());
        ++all.batches;
    }
    return all;
}

/// Adds a random number to each value.
void jitter(const Sample& sample, base::RngStream& random) {
    auto* const values = reinterpret_cast<std::int64_t*>(sample.columns[0].data());
    for (int i = 0; i < 3; ++i) values[i] += static_cast<std::int64_t>(random.below(1000));
}

bool each_once(Numbers samples, std::uint64_t count) {
    std::ranges::sort(samples);
    for (std::uint64_t i = 0; i < samples.size(); ++i)
        if (samples[i] != i) return false;
    return samples.size() == count;
}

} // namespace

TEST_CASE("a loader gives the same batches on any number of threads, with any number ahead", "[data]") {
    const auto source = std::make_shared<Counting>(1003);
    std::optional<Epoch> first;
    std::optional<Epoch> second;
    for (const int threads : {1, 2, 8})
        for (const std::size_t ahead : {1U, 2U, 5U}) {
            Loader loader(source, {}, {.batch = 32, .seed = 4, .threads = threads, .ahead = ahead, .map = jitter});
            const Epoch one = epoch_of(loader);
            const Epoch two = epoch_of(loader);
            CHECK(each_once(one.samples, 1003));
            CHECK(each_once(two.samples, 1003));
            CHECK(one.batches == 32);
            if (!first) {
                first = one;
                second = two;
            }
            CHECK(one == *first);
            CHECK(two == *second);
        }
    CHECK(first->samples != second->samples);
    CHECK(first->values[0] != static_cast<std::int64_t>(3 * first->samples[0])); // the map was applied
}

TEST_CASE("batches hold the rows of their samples", "[data]") {
    Loader loader(std::make_shared<Counting>(100), {}, {.batch = 7, .order = {Shuffle::none}});
    const auto batch = loader.next();
    REQUIRE(batch);
    CHECK(batch->samples == Numbers{0, 1, 2, 3, 4, 5, 6});
    CHECK(batch->column("x").as<std::int64_t>()[20] == 20);
    CHECK(batch->end == 7);
    CHECK_THROWS_AS(batch->column("y"), base::UsageError);
}

TEST_CASE("batches lie in memory that the caller allocates", "[data]") {
    std::vector<std::byte> memory(7 * 3 * sizeof(std::int64_t));
    LoaderOptions options{.batch = 7, .order = {Shuffle::none}, .ahead = 1};
    options.allocate = [&](std::size_t bytes) {
        if (bytes != memory.size()) throw base::UsageError("another size");
        return std::shared_ptr<std::byte[]>(memory.data(), [](std::byte*) {});
    };
    Loader loader(std::make_shared<Counting>(7), {}, options);
    const auto batch = loader.next();
    REQUIRE(batch);
    CHECK(batch->column("x").bytes().data() == memory.data());
    CHECK(batch->column("x").as<std::int64_t>()[20] == 20);
}

TEST_CASE("a loader resumes at a position on other ranks", "[data]") {
    const auto source = std::make_shared<Counting>(500, 8);
    Numbers met;
    Position position;
    const auto train = [&](int ranks, std::uint64_t batch, int most) {
        Position after;
        for (int rank = 0; rank < ranks; ++rank) {
            Loader loader(source, position,
                          {.batch = batch, .rank = rank, .ranks = ranks, .seed = 9, .order = {Shuffle::lanes, 1}});
            for (int i = 0; i < most; ++i) {
                const auto share = loader.next();
                if (!share) break;
                met.insert(met.end(), share->samples.begin(), share->samples.end());
            }
            after = loader.position();
        }
        position = after;
    };
    train(4, 24, 5);
    CHECK(position == Position{0, 120});
    train(6, 50, 3);
    train(7, 64, 100);
    CHECK(position == Position{1, 0});
    CHECK(each_once(met, 500));
}

TEST_CASE("the last batch is shorter, may leave ranks without samples, or is left out", "[data]") {
    const auto source = std::make_shared<Counting>(65);
    Loader full(source, {}, {.batch = 64, .rank = 3, .ranks = 4});
    CHECK(full.next()->samples.size() == 16);
    const auto rest = full.next();
    REQUIRE(rest);
    CHECK(rest->samples.empty());
    CHECK(rest->column("x").bytes().empty());
    CHECK_FALSE(full.next());
    Loader dropping(source, {}, {.batch = 64, .rank = 3, .ranks = 4, .drop_last = true});
    CHECK(dropping.next()->samples.size() == 16);
    CHECK_FALSE(dropping.next());
    CHECK_THROWS_AS(Loader(source, {}, {.batch = 66, .drop_last = true}), base::UsageError);
}

TEST_CASE("an error belongs to its batch, and the next one follows", "[data]") {
    const auto source = std::make_shared<Counting>(40, 1, 13);
    for (const int threads : {1, 4}) {
        Loader loader(source, {}, {.batch = 10, .order = {Shuffle::none}, .threads = threads, .ahead = 4});
        CHECK(loader.next()->begin == 0);
        CHECK_THROWS_AS(loader.next(), base::FormatError);
        CHECK(loader.position() == Position{0, 20});
        CHECK(loader.next()->begin == 20);
    }
}

TEST_CASE("a loader prepares no more batches than it may", "[data]") {
    std::atomic<int> mapped{0};
    LoaderOptions options{.batch = 1, .order = {Shuffle::none}, .threads = 4, .ahead = 3};
    options.map = [&](const Sample&, base::RngStream&) { ++mapped; };
    Loader loader(std::make_shared<Counting>(1000), {}, options);
    for (int taken = 1; taken <= 20; ++taken) {
        CHECK(loader.next());
        CHECK(mapped <= taken + 3);
    }
    CHECK(loader.take_waited().all() >= 0.0);
}

TEST_CASE("a wait is divided as the time that its batch took", "[data]") {
    const LoadTime part = LoadTime{.disk = 1.0, .decode = 2.0, .map = 5.0}.divided(4.0);
    CHECK(part.disk == 0.5);
    CHECK(part.decode == 1.0);
    CHECK(part.map == 2.5);
    CHECK(part.all() == 4.0);
    CHECK(LoadTime{}.divided(4.0).other == 4.0);
    LoadTime sum = part;
    sum += {.disk = 1.0, .other = 2.0};
    CHECK(sum.disk == 1.5);
    CHECK(sum.all() == 7.0);
}

TEST_CASE("blocked threads read, unless others decode for them or are waited for", "[data]") {
    const LoadTime plain = reading_time({.passed = 8.0, .blocked = 6.0}, {});
    CHECK(plain.disk == 6.0);
    CHECK(plain.decode == 2.0);
    const LoadTime helped = reading_time({.passed = 8.0, .blocked = 6.0}, {.decoded = 4.0, .other = 1.0});
    CHECK(helped.disk == 1.0);
    CHECK(helped.decode == 2.0 + 4.0);
    CHECK(reading_time({.passed = 1.0, .blocked = -1e-9}, {}).disk == 0.0); // clocks are read one after the other
    CHECK(reading_time({.passed = 1.0, .blocked = 1.5}, {}).decode == 0.0);
}

TEST_CASE("what a thread waits for is seen from its clocks", "[data]") {
    const ThreadTime begin = thread_time();
    ThreadTime slept;
    while (slept.blocked < 0.005) { // a thread that loses its core between two clocks may see less
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        slept = thread_time() - begin;
    }
    CHECK(slept.passed >= slept.blocked);
    compute();
    const ThreadTime computed = thread_time() - begin - slept;
    CHECK(computed.passed - computed.blocked > 0.0);
}

TEST_CASE("a loader says whether it waited for the disk, for decoding or for the map", "[data]") {
    const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
    constexpr double much = 1e6; // seconds: whatever else happened is nothing beside it
    LoadTime slept;
    while (slept.disk == 0.0) slept = wait_for(sleep);
    CHECK(slept.map == 0.0);
    CHECK(wait_for(compute).decode > 0.0);
    CHECK(wait_for([] {}, [&](const Sample&, base::RngStream&) { compute(); }).map > 0.0);
    const LoadTime helped = wait_for([&] {
        sleep();
        elsewhere().decoded += much;
    });
    CHECK(helped.decode == Approx(helped.all()));
    const LoadTime queued = wait_for([&] {
        compute();
        sleep();
        elsewhere().other += much;
    });
    CHECK(queued.decode == Approx(queued.all()));
}

TEST_CASE("HDF5's thread reads or decodes for others, who wait for their turn", "[data]") {
    const Elsewhere before = elsewhere();
    CHECK(read_by_hdf5([] {
        compute();
        return true;
    }));
    const Elsewhere decoded = elsewhere() - before;
    CHECK(decoded.decoded > 0.0);
    CHECK(decoded.other > 0.0);
    CHECK_THROWS_AS(read_by_hdf5([]() -> bool { throw base::FormatError("damaged"); }), base::FormatError);
}

TEST_CASE("a block that another thread decodes is not waited for because of the disk", "[data]") {
    double waited = 0.0;
    while (waited == 0.0) { // the second thread may come too late
        BlockCache cache(1 << 20);
        std::atomic<bool> begun{false};
        std::thread second;
        static_cast<void>(cache.get({0, 0}, [&] {
            second = std::thread([&] {
                const Elsewhere before = elsewhere();
                begun = true;
                static_cast<void>(cache.get({0, 0}, [] { return std::vector<std::byte>(1); }));
                waited = (elsewhere() - before).other;
            });
            while (!begun) std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            return std::vector<std::byte>(1);
        }));
        second.join();
    }
    CHECK(waited > 0.0);
}

TEST_CASE("a map fills columns that the source does not have", "[data]") {
    LoaderOptions options{.batch = 4, .order = {Shuffle::none}};
    options.columns = {{"x", ElementType::int64, {3}}, {"sum", ElementType::float32}};
    options.map = [](const Sample& sample, base::RngStream&) {
        const auto* const x = reinterpret_cast<const std::int64_t*>(sample.columns[0].data());
        *reinterpret_cast<float*>(sample.columns[1].data()) = static_cast<float>(x[0] + x[1] + x[2]);
    };
    Loader loader(std::make_shared<Counting>(10), {}, options);
    CHECK(loader.next()->column("sum").as<float>()[2] == 21.0F);
}

TEST_CASE("a mixture has no end, and its sources their shares", "[data]") {
    const auto joined = std::make_shared<JoinedSource>(
        std::vector<std::shared_ptr<const Source>>{std::make_shared<Counting>(100), std::make_shared<Counting>(1000)});
    const LoaderOptions options{.batch = 500, .seed = 1, .mixture = {{0.25}, {0.75}}};
    Loader loader(joined, {}, options);
    Numbers met;
    for (int i = 0; i < 4; ++i) {
        const auto batch = loader.next();
        REQUIRE(batch);
        met.insert(met.end(), batch->samples.begin(), batch->samples.end());
    }
    CHECK(std::ranges::count_if(met, [](std::uint64_t s) { return s < 100; }) == 500);
    Loader resumed(joined, {0, 1500}, options);
    CHECK(resumed.next()->samples == Numbers(met.begin() + 1500, met.end()));
    CHECK_THROWS_AS(Loader(joined, {}, {.batch = 1, .mixture = {{1.0}}}), base::UsageError);
}

} // namespace loader_test
