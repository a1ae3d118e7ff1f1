// SPDX-License-Identifier: Apache-2.0
// The built-in network on a device against that on the host: losses and gradients of the first step, training, states.

#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "ddp/collective/protocol_collective.hpp"
#include "ddp/collective/thread_collective.hpp"
#include "ddp/gradients/device_groups.hpp"
#include "device_case.hpp"
#include "support/catch.hpp"
#include "trainables/mlp/trainer.hpp"

namespace trainer_test {

using namespace ranktune;
using namespace ranktune::trainables;

namespace {

using State = std::map<std::string, std::vector<std::byte>>;

class Sink final : public study::StateSink {
  public:
    void tensor(const study::TensorInfo& info, base::ConstBuffer values) override {
        auto& bytes = state[info.name];
        base::for_each_piece(values, [&](auto piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
        infos.push_back(info);
    }
    void blob(std::string_view, std::span<const std::byte>) override {}
    State state;
    std::vector<study::TensorInfo> infos;
};

class Source final : public study::StateSource {
  public:
    explicit Source(const Sink& sink) : sink_(sink) {}
    void tensor(const study::TensorInfo& info, base::Buffer values) override {
        base::copy(base::ConstBuffer::of_bytes(sink_.state.at(info.name), info.type), values);
    }
    std::vector<std::byte> blob(std::string_view) override { return {}; }
    [[nodiscard]] std::vector<study::TensorInfo> tensors() const override { return sink_.infos; }

  private:
    const Sink& sink_;
};

float feature(std::size_t sample, std::size_t column) {
    return static_cast<float>(std::sin(static_cast<double>(sample * 7 + column * 3 + 1)));
}

/// 50 training samples: batches of 16 leave a last one of 2, so that one of 3 ranks has none.
std::shared_ptr<data::Dataset> dataset(bool classification) {
    auto data = std::make_shared<data::Dataset>();
    data->features = 20;
    data->outputs = classification ? 5 : 3;
    data->classification = classification;
    for (auto* split : {&data->train, &data->val}) {
        split->count = split == &data->train ? 50 : 23;
        split->x.resize(split->count * data->features);
        if (classification) split->classes.resize(split->count);
        if (!classification) split->targets.resize(split->count * data->outputs);
        for (std::size_t i = 0; i < split->count; ++i) {
            for (std::size_t c = 0; c < data->features; ++c) split->x[i * data->features + c] = feature(i, c);
            for (std::size_t c = 0; c < data->outputs && !classification; ++c)
                split->targets[i * data->outputs + c] = feature(i, c + 40);
            if (classification) split->classes[i] = static_cast<std::int32_t>(i % data->outputs);
        }
    }
    data->y_scale.shift.assign(data->outputs, 0.0F);
    data->y_scale.factor.assign(data->outputs, 1.0F);
    data->x_scale.shift.assign(data->features, 0.0F);
    data->x_scale.factor.assign(data->features, 1.0F);
    return data;
}

mlp::TrainerOptions options(mlp::Activation activation, mlp::OptimizerOptions::Kind kind, double dropout) {
    mlp::TrainerOptions result;
    result.hidden = {33, 16};
    result.activation = activation;
    result.dropout = dropout;
    result.batch = 16;
    result.optimizer.kind = kind;
    result.lr = kind == mlp::OptimizerOptions::Kind::sgd ? 0.1 : 0.01;
    result.seed = 4;
    result.bucket_floats = 300;
    return result;
}

/// Calls `body(rank, group, device)` on threads.
template <class Body>
void on_ranks(int size, Body&& body) {
    auto& runtime = testing::runtime_or_skip();
    std::vector<device::Accelerator*> devices;
    for (int rank = 0; rank < size; ++rank) devices.push_back(&runtime.open(rank));
    auto collectives = ddp::make_thread_collectives(size);
    std::vector<base::Rank> roster;
    for (int rank = 0; rank < size; ++rank) roster.push_back(base::Rank{static_cast<std::uint32_t>(rank)});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
        threads.emplace_back([&, rank] {
            const auto r = static_cast<std::size_t>(rank);
            ddp::DeviceGroups groups({.host = "here"});
            auto& collective = dynamic_cast<ddp::ProtocolCollective&>(*collectives[r]);
            collective.reach_devices(groups, roster, "test");
            body(rank, static_cast<ddp::Group&>(collective), *devices[r]);
            // The group ends its sums before the cache goes.
            collectives[r].reset();
        });
    for (auto& thread : threads) thread.join();
}

bool close_to(double found, double expected, double relative) {
    return std::abs(found - expected) <= relative * std::abs(expected);
}

int most_ranks() { return static_cast<int>(std::min<std::size_t>(testing::runtime_or_skip().devices().size(), 3)); }

} // namespace

TEST_CASE("the first step on a device has the host's loss, and an epoch its parameters", "[device]") {
    using Kind = mlp::OptimizerOptions::Kind;
    for (int size = 1; size <= most_ranks(); ++size)
        for (const bool classification : {true, false})
            for (const auto activation : {mlp::Activation::relu, mlp::Activation::tanh})
                for (const double dropout : {0.0, 0.3}) {
                    std::atomic<int> wrong{0};
                    const auto data = dataset(classification);
                    on_ranks(size, [&](int, ddp::Group& group, device::Accelerator& on) {
                        auto choice = options(activation, classification ? Kind::sgd : Kind::adamw, dropout);
                        mlp::Trainer host(data, choice, group);
                        choice.device = &on;
                        mlp::Trainer device(data, choice, group);
                        const double expected = group.reduced(host.train_batch({0, 16}));
                        wrong += close_to(group.reduced(device.train_batch({0, 16})), expected, 1e-6) ? 0 : 1;
                        const double epoch = host.train_epoch();
                        wrong += close_to(device.train_epoch(), epoch, 1e-4) ? 0 : 1;
                        const auto validated = host.validate();
                        wrong += close_to(device.validate().loss, validated.loss, 1e-4) ? 0 : 1;
                    });
                    CHECK(wrong == 0);
                }
}

TEST_CASE("batches in parts and clipped gradients on a device are those of the host, the same bits every time",
          "[device]") {
    const auto data = dataset(true);
    for (int size = 1; size <= most_ranks(); ++size) {
        std::atomic<int> wrong{0};
        State states[2];
        for (State& state : states)
            on_ranks(size, [&](int rank, ddp::Group& group, device::Accelerator& on) {
                auto choice = options(mlp::Activation::tanh, mlp::OptimizerOptions::Kind::sgd, 0.2);
                choice.gradients.accumulate = 3; // some parts have no samples
                choice.gradients.clip_norm = 0.3;
                mlp::Trainer host(data, choice, group);
                choice.device = &on;
                mlp::Trainer device(data, choice, group);
                for (int epoch = 0; epoch < 2; ++epoch) {
                    const double expected = host.train_epoch();
                    wrong += close_to(device.train_epoch(), expected, 1e-4) ? 0 : 1;
                }
                choice.gradients.clip_norm = 0.0;
                mlp::Trainer free(data, choice, group);
                static_cast<void>(free.train_epoch());
                const double unclipped = free.train_epoch();
                wrong += close_to(unclipped, host.validate().loss, 1e-4) ? 1 : 0; // clipping changes something
                Sink sink;
                device.save(sink);
                if (rank == 0) state = sink.state;
            });
        CHECK(wrong == 0);
        CHECK(states[0] == states[1]);
    }
}

TEST_CASE("compressed gradients on a device train as on hosts, and their state moves between both", "[device]") {
    if (most_ranks() < 2) return;
    const auto data = dataset(true);
    using Kind = ddp::Compression::Kind;
    for (const ddp::Compression& compression :
         {ddp::Compression{.kind = Kind::fp16}, ddp::Compression{.kind = Kind::bf16},
          ddp::Compression{.kind = Kind::powersgd, .rank = 2}, ddp::Compression{.kind = Kind::topk, .density = 0.1}}) {
        std::atomic<int> wrong{0};
        on_ranks(2, [&](int, ddp::Group& group, device::Accelerator& on) {
            auto choice = options(mlp::Activation::tanh, mlp::OptimizerOptions::Kind::sgd, 0.2);
            choice.gradients.compression = compression;
            mlp::Trainer host(data, choice, group);
            choice.device = &on;
            mlp::Trainer device(data, choice, group);
            const double expected = host.train_epoch();
            wrong += close_to(device.train_epoch(), expected, 1e-3) ? 0 : 1;
            Sink from_host;
            host.save(from_host);
            mlp::Trainer again(data, choice, group);
            Source source(from_host);
            again.load(source);
            const double second = host.train_epoch();
            wrong += close_to(again.train_epoch(), second, 1e-3) ? 0 : 1;
        });
        CHECK(wrong == 0);
    }
}

TEST_CASE("all ranks begin with the parameters of rank 0, which go from device to device", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    State states[2];
    const std::size_t before = testing::sent_bytes();
    on_ranks(2, [&](int rank, ddp::Group& group, device::Accelerator& on) {
        auto choice = options(mlp::Activation::relu, mlp::OptimizerOptions::Kind::sgd, 0.0);
        choice.seed = static_cast<std::uint64_t>(rank); // they would differ
        choice.device = &on;
        const mlp::Trainer trainer(dataset(true), choice, group);
        Sink sink;
        trainer.save(sink);
        states[rank] = sink.state;
    });
    CHECK(states[0] == states[1]);
    const std::size_t parameters = (20 + 1) * 33 + (33 + 1) * 16 + (16 + 1) * 5;
    CHECK(testing::sent_bytes() - before >= parameters * sizeof(float));
}

TEST_CASE("a state moves between host and device", "[device]") {
    const auto data = dataset(true);
    std::atomic<int> wrong{0};
    on_ranks(1, [&](int, ddp::Group& group, device::Accelerator& on) {
        auto choice = options(mlp::Activation::relu, mlp::OptimizerOptions::Kind::adam, 0.2);
        mlp::Trainer host(data, choice, group);
        static_cast<void>(host.train_epoch());
        Sink from_host;
        host.save(from_host);
        choice.device = &on;
        mlp::Trainer device(data, choice, group);
        Source source(from_host);
        device.load(source);
        Sink from_device;
        device.save(from_device);
        wrong += from_device.state == from_host.state ? 0 : 1; // bit for bit
        const double expected = host.train_epoch();
        wrong += close_to(device.train_epoch(), expected, 1e-5) ? 0 : 1;
    });
    CHECK(wrong == 0);
}

TEST_CASE("lower precisions train as float32 does, the same bits every time, and their states move", "[device]") {
    const auto data = dataset(true);
    for (const auto& [precision, digits] :
         {std::pair{device::Precision::tf32, 2e-3}, std::pair{device::Precision::bf16, 2e-2}})
        for (int size = 1; size <= std::min(most_ranks(), 2); ++size) {
            std::atomic<int> wrong{0};
            State states[2];
            for (State& state : states)
                on_ranks(size, [&, precision = precision, digits = digits](int rank, ddp::Group& group,
                                                                           device::Accelerator& on) {
                    if (on.facts().major < 8) return;
                    auto choice = options(mlp::Activation::tanh, mlp::OptimizerOptions::Kind::adam, 0.2);
                    mlp::Trainer host(data, choice, group);
                    choice.device = &on;
                    mlp::Trainer full(data, choice, group);
                    choice.precision = precision;
                    mlp::Trainer device(data, choice, group);
                    const double expected = group.reduced(host.train_batch({0, 16}));
                    const double found = group.reduced(device.train_batch({0, 16}));
                    wrong += close_to(found, expected, digits) ? 0 : 1;
                    wrong += close_to(found, expected, 1e-7) ? 1 : 0; // digits are gone
                    const double epoch = host.train_epoch();
                    wrong += close_to(device.train_epoch(), epoch, 5.0 * digits) ? 0 : 1;
                    Sink sink;
                    device.save(sink);
                    for (mlp::Trainer* other : {&host, &full}) { // bit for bit: parameters and moments are float32
                        Source source(sink);
                        other->load(source);
                        Sink again;
                        other->save(again);
                        wrong += again.state == sink.state ? 0 : 1;
                    }
                    wrong += close_to(full.validate().loss, device.validate().loss, digits) ? 0 : 1;
                    if (rank == 0) state = sink.state;
                });
            CHECK(wrong == 0);
            CHECK(states[0] == states[1]);
        }
}

TEST_CASE("the same training on a device gives the same bits", "[device]") {
    const auto data = dataset(true);
    for (int size = 1; size <= most_ranks(); ++size) {
        State states[2];
        for (State& state : states)
            on_ranks(size, [&](int rank, ddp::Group& group, device::Accelerator& on) {
                auto choice = options(mlp::Activation::tanh, mlp::OptimizerOptions::Kind::sgd, 0.2);
                choice.device = &on;
                mlp::Trainer trainer(data, choice, group);
                for (int epoch = 0; epoch < 3; ++epoch) static_cast<void>(trainer.train_epoch());
                Sink sink;
                trainer.save(sink);
                if (rank == 0) state = sink.state;
            });
        CHECK(states[0] == states[1]);
        CHECK(states[0].size() > 6);
    }
}

namespace {

/// Trains three epochs on `size` ranks; the state of rank 0, and what became of the graphs there.
std::pair<State, mlp::Engine::Replays> trained(int size, const std::shared_ptr<data::Dataset>& data,
                                               mlp::TrainerOptions choice) {
    std::pair<State, mlp::Engine::Replays> result;
    on_ranks(size, [&](int rank, ddp::Group& group, device::Accelerator& on) {
        mlp::TrainerOptions mine = choice;
        mine.device = &on;
        mlp::Trainer trainer(data, mine, group);
        for (int epoch = 0; epoch < 3; ++epoch) static_cast<void>(trainer.train_epoch());
        Sink sink;
        trainer.save(sink);
        if (rank == 0) result = {sink.state, trainer.replays()};
    });
    return result;
}

} // namespace

TEST_CASE("steps that are replayed from graphs give the bits of steps that are issued", "[device]") {
    using Kind = mlp::OptimizerOptions::Kind;
    const bool narrow = testing::runtime_or_skip().devices().front().major >= 8;
    for (int size = 1; size <= most_ranks(); ++size)
        for (const bool rich : {false, true}) {
            auto choice = options(mlp::Activation::tanh, rich ? Kind::adamw : Kind::sgd, rich ? 0.2 : 0.0);
            choice.gradients.clip_norm = rich ? 0.3 : 0.0;
            choice.gradients.accumulate = rich ? 3 : 1; // some parts have no samples
            if (rich && narrow) choice.precision = device::Precision::bf16;
            if (rich && size > 1) choice.gradients.compression = {.kind = ddp::Compression::Kind::topk, .density = 0.1};
            const auto data = dataset(rich);
            const auto [expected, issued] = trained(size, data, choice);
            CHECK(issued.batches == 0);
            choice.graphs = true;
            const auto [found, replayed] = trained(size, data, choice);
            CHECK(found == expected);
            CHECK(replayed.batches >= 8);
            CHECK(replayed.refusal.empty());
        }
}

TEST_CASE("a state that is loaded when batches are recorded already trains on with the bits of steps that are issued",
          "[device]") {
    for (int size = 1; size <= std::min(most_ranks(), 2); ++size) {
        State states[2];
        for (const bool graphs : {false, true})
            on_ranks(size, [&](int rank, ddp::Group& group, device::Accelerator& on) {
                auto choice = options(mlp::Activation::tanh, mlp::OptimizerOptions::Kind::adam, 0.2);
                choice.device = &on;
                choice.graphs = graphs;
                choice.bucket_floats = 1000; // of the loaded state: the buckets end elsewhere
                mlp::Trainer donor(dataset(true), choice, group);
                static_cast<void>(donor.train_epoch());
                Sink sink;
                donor.save(sink);
                choice.bucket_floats = 300;
                mlp::Trainer trainer(dataset(true), choice, group);
                for (int epoch = 0; epoch < 2; ++epoch) static_cast<void>(trainer.train_epoch());
                Source source(sink);
                trainer.load(source);
                for (int epoch = 0; epoch < 2; ++epoch) static_cast<void>(trainer.train_epoch());
                Sink result;
                trainer.save(result);
                if (rank == 0) states[graphs ? 1 : 0] = result.state;
                if (rank == 0 && graphs) CHECK(trainer.replays().batches > 8);
            });
        CHECK(states[0] == states[1]);
    }
}

TEST_CASE("sums that fail after the end of their step end the validation that follows", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    std::atomic<int> lost{0};
    on_ranks(2, [&](int rank, ddp::Group& group, device::Accelerator& on) {
        auto choice = options(mlp::Activation::relu, mlp::OptimizerOptions::Kind::sgd, 0.0);
        choice.device = &on;
        mlp::Trainer trainer(dataset(true), choice, group);
        static_cast<void>(trainer.train_batch({0, 16}));
        group.barrier();
        if (rank == 0) setenv("RANKTUNE_STAND_IN_NCCL", "1:next:hang", 1);
        group.barrier();
        static_cast<void>(trainer.train_batch({16, 32}));
        if (rank == 1) setenv("RANKTUNE_STAND_IN_NCCL", "1:now:async", 1);
        try {
            static_cast<void>(trainer.validate());
        } catch (const ddp::GroupLost&) {
            ++lost;
        }
    });
    unsetenv("RANKTUNE_STAND_IN_NCCL");
    CHECK(lost == 2);
}

TEST_CASE("where nothing can be recorded, steps are issued, and the reason is known", "[stand-in]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    auto choice = options(mlp::Activation::relu, mlp::OptimizerOptions::Kind::sgd, 0.2);
    const auto data = dataset(true);
    const auto expected = trained(1, data, choice).first;
    choice.graphs = true;
    for (const char* const call : {"begin", "end", "instantiate"}) {
        setenv("RANKTUNE_STAND_IN_CAPTURE", call, 1);
        const auto [found, replays] = trained(1, data, choice);
        unsetenv("RANKTUNE_STAND_IN_CAPTURE");
        CHECK(found == expected);
        CHECK(replays.batches == 0);
        CHECK(!replays.refusal.empty());
    }
}

TEST_CASE("a loss that is not finite ends the step on all ranks", "[device]") {
    if (most_ranks() < 2) return;
    auto data = dataset(true);
    data->train.x[5] = std::numeric_limits<float>::quiet_NaN();
    std::atomic<int> told{0};
    std::atomic<int> left{0};
    on_ranks(2, [&](int, ddp::Group& group, device::Accelerator& on) {
        auto choice = options(mlp::Activation::relu, mlp::OptimizerOptions::Kind::sgd, 0.0);
        choice.device = &on;
        mlp::Trainer trainer(data, choice, group);
        try {
            static_cast<void>(trainer.train_epoch());
        } catch (const ddp::PeerFailed&) {
            ++left;
        } catch (const base::Error& error) {
            told += std::string(error.what()) == "loss is NaN at iteration 1" ? 1 : 0;
        }
    });
    CHECK(told == 1);
    CHECK(left == 1);
}

namespace {

/// Seconds of a step on two ranks, with durations of operations as RANKTUNE_STAND_IN_TAKES has them.
double step_time(const char* durations) {
    setenv("RANKTUNE_STAND_IN_TAKES", durations, 1);
    double seconds = 0.0;
    on_ranks(2, [&](int rank, ddp::Group& group, device::Accelerator& on) {
        auto choice = options(mlp::Activation::relu, mlp::OptimizerOptions::Kind::sgd, 0.0);
        choice.hidden.assign(16, 32);
        choice.bucket_floats = 1100; // a layer
        choice.device = &on;
        mlp::Trainer trainer(dataset(true), choice, group);
        static_cast<void>(trainer.train_batch({0, 16}));
        group.barrier();
        const auto begin = std::chrono::steady_clock::now();
        for (int step = 0; step < 10; ++step) static_cast<void>(trainer.train_batch({0, 16}));
        testing::wait_for(on.compute_stream());
        if (rank == 0) seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / 10;
    });
    unsetenv("RANKTUNE_STAND_IN_TAKES");
    return seconds;
}

/// Random numbers of one class each; `features` wide.
std::shared_ptr<data::Dataset> large_dataset(std::size_t features, std::size_t samples) {
    auto data = std::make_shared<data::Dataset>();
    data->features = features;
    data->outputs = 10;
    data->classification = true;
    for (auto* split : {&data->train, &data->val}) {
        split->count = split == &data->train ? samples : 1;
        for (std::size_t i = 0; i < split->count * features; ++i) split->x.push_back(feature(i, i % features));
        for (std::size_t i = 0; i < split->count; ++i) split->classes.push_back(static_cast<std::int32_t>(i % 10));
    }
    data->x_scale.shift.assign(features, 0.0F);
    data->x_scale.factor.assign(features, 1.0F);
    return data;
}

/// Microseconds of a step of one rank.
double step_us(const mlp::TrainerOptions& choice, const std::shared_ptr<data::Dataset>& data, std::size_t steps) {
    double seconds = 0.0;
    on_ranks(1, [&](int, ddp::Group& group, device::Accelerator& on) {
        auto mine = choice;
        mine.device = &on;
        mlp::Trainer trainer(data, mine, group);
        for (int step = 0; step < 3; ++step) static_cast<void>(trainer.train_batch({0, mine.batch}));
        testing::wait_for(on.compute_stream());
        const auto begin = std::chrono::steady_clock::now();
        for (std::size_t step = 0; step < steps; ++step) static_cast<void>(trainer.train_batch({0, mine.batch}));
        testing::wait_for(on.compute_stream());
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
    return 1e6 * seconds / static_cast<double>(steps);
}

} // namespace

/// For people.
TEST_CASE("times of steps by precision, with and without graphs", "[.speed]") {
    const bool stand_in = testing::is_stand_in(testing::runtime_or_skip());
    const bool narrow = testing::runtime_or_skip().devices().front().major >= 8;
    struct Model {
        std::size_t features;
        std::size_t hidden;
        std::size_t batch;
    };
    for (const Model model : {Model{64, 256, 256}, Model{784, 2048, 512}}) {
        if (stand_in && model.features > 64) continue;
        const auto data = large_dataset(model.features, model.batch);
        for (const auto& [name, precision] :
             {std::pair{"fp32", device::Precision::fp32}, std::pair{"tf32", device::Precision::tf32},
              std::pair{"bf16", device::Precision::bf16}}) {
            if (precision != device::Precision::fp32 && !narrow) continue;
            auto choice = options(mlp::Activation::relu, mlp::OptimizerOptions::Kind::sgd, 0.0);
            choice.hidden = {model.hidden, model.hidden};
            choice.batch = model.batch;
            choice.precision = precision;
            const std::size_t steps = stand_in ? 3 : 300;
            const double issued = step_us(choice, data, steps);
            choice.graphs = true;
            const double replayed = step_us(choice, data, steps);
            std::printf("%s, %zu-%zu-%zu-10, batch %zu, %s: %.1f us a step, %.1f us with graphs\n",
                        stand_in ? "stand-in" : "GPU", model.features, model.hidden, model.hidden, model.batch, name,
                        issued, replayed);
            CHECK((issued > 0.0 && replayed > 0.0));
        }
    }
}

/// For people, on an idle machine, with RANKTUNE_STAND_IN_DELAY=0. On the stand-in, durations are as they are set.
TEST_CASE("how much of the communication is exposed", "[.overlap]") {
    if (!testing::is_stand_in(testing::runtime_or_skip())) return;
    const double nothing = step_time("");
    const double computing = step_time("cublasGemmEx:1000");
    const double summing = step_time("ncclAllReduce:2700");
    const double both = step_time("cublasGemmEx:1000,ncclAllReduce:2700");
    const double exposed = (both - computing) / (summing - nothing);
    std::printf(
        "stand-in, 2 ranks, 17 buckets: a step of %.1f ms; products alone %.1f ms, sums alone %.1f ms, neither "
        "%.1f ms; %.0f %% of the communication is exposed\n",
        1e3 * both, 1e3 * computing, 1e3 * summing, 1e3 * nothing, 100.0 * exposed);
    CHECK(exposed <= 0.4);
}

} // namespace trainer_test
