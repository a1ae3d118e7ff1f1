// SPDX-License-Identifier: Apache-2.0
// Trials of LibTorch modules whose samples are read from a file.
#include <fstream>
#include <mutex>
#include <set>

#include "clocked_streams.hpp"
#include "libtorch/sample_stream.hpp"
#include "support/files.hpp"

namespace sample_stream_test {

using namespace ranktune;
using namespace ranktune::libtorch_test;
using ranktune::testing::resume_difference;
using ranktune::testing::run_trial;
using ranktune::testing::TrialOptions;
using ranktune::testing::TrialRun;

namespace {

/// Samples as a .safetensors file with the fields `x` and `y`.
std::shared_ptr<const data::Source> file_of(const testing::TemporaryDirectory& folder, const Samples& all,
                                            const std::string& name) {
    const auto bytes = [](const torch::Tensor& tensor) {
        return std::string(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
    };
    const auto entry = [](const torch::Tensor& tensor, std::size_t begin) {
        return R"({"dtype":"F32","shape":[)" + std::to_string(tensor.size(0)) + "," + std::to_string(tensor.size(1)) +
               R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(begin + tensor.nbytes()) + "]}";
    };
    const std::string header =
        R"({"x":)" + entry(all.inputs, 0) + R"(,"y":)" + entry(all.targets, all.inputs.nbytes()) + "}";
    const std::uint64_t length = header.size();
    std::ofstream out(folder.path() + "/" + name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header << bytes(all.inputs) << bytes(all.targets);
    out.close();
    return data::Source::open(folder.path() + "/" + name);
}

/// `training_of` with its samples in files.
struct FromFiles {
    testing::TemporaryDirectory folder;
    std::shared_ptr<const data::Source> train = file_of(folder, samples(40), "train.safetensors");
    std::shared_ptr<const data::Source> val = file_of(folder, samples(9), "val.safetensors");
    std::uint64_t per_iteration = 0;
    bool in_memory_too = false;

    libtorch::MakeTraining make() {
        return [this](TrialContext&) {
            auto module = net(false);
            Training training = training_of(
                module, std::make_unique<torch::optim::SGD>(module->parameters(), torch::optim::SGDOptions(0.05)));
            if (!in_memory_too) training.train = training.val = {};
            training.train_from = {.source = train, .per_iteration = per_iteration};
            training.val_from.source = val;
            return training;
        };
    }
};

TrialOptions options(int ranks) {
    TrialOptions result;
    result.ranks = ranks;
    result.max_iterations = 5;
    result.cpus_per_rank = 3;
    return result;
}

torch::Tensor weights(const TrialRun& run) { return tensor_of(run.checkpoint().state, "0.weight"); }

} // namespace

TEST_CASE("a trial trains the same model from a file on any number of ranks, and goes on where it was", "[libtorch]") {
    FromFiles files;
    files.per_iteration = GENERATE(0, 24); // 24: iterations end within epochs of 40
    const TrialRun one = run_trial(registered(files.make()), options(1));
    REQUIRE(one.failure.empty());
    CHECK(one.last("data_wait") >= one.last("data_wait/disk") + one.last("data_wait/decode") - 1e-9);
    if (files.per_iteration == 0) CHECK(one.last("train_loss") < one.reports.front().at("train_loss"));
    for (const int ranks : {2, 3, 5}) {
        const TrialRun several = run_trial(registered(files.make()), options(ranks));
        REQUIRE(several.failure.empty());
        CHECK(several.last("train_loss") == Approx(one.last("train_loss")).epsilon(1e-4));
        CHECK(several.last("val_loss") == Approx(one.last("val_loss")).epsilon(1e-4));
        CHECK((weights(several) - weights(one)).abs().max().item<double>() < 1e-4);
    }
    CHECK(resume_difference(registered(files.make()), options(2), 3,
                            {"data_wait", "data_wait/disk", "data_wait/decode"}) == "");

    TrialOptions first = options(3);
    first.max_iterations = 3;
    const TrialRun before = run_trial(registered(files.make()), first);
    REQUIRE(before.failure.empty());
    TrialOptions later = options(2);
    later.from = before.checkpoint();
    const TrialRun after = run_trial(registered(files.make()), later);
    REQUIRE(after.failure.empty());
    CHECK((weights(after) - weights(one)).abs().max().item<double>() < 1e-4);
}

TEST_CASE("each sample is trained once in an epoch, in another order in each", "[libtorch]") {
    FromFiles files;
    std::mutex mutex;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> seen; // epoch, sample
    const auto watched = [&](TrialContext& context) {
        Training training = files.make()(context);
        training.train_from.samples = [&](const data::Batch& batch) -> Samples {
            const std::scoped_lock lock(mutex);
            for (const std::uint64_t sample : batch.samples) seen.emplace_back(batch.epoch, sample);
            return {libtorch::tensor_of(batch.column("x")), libtorch::tensor_of(batch.column("y"))};
        };
        return training;
    };
    REQUIRE(run_trial(registered(watched), options(2)).failure.empty());
    CHECK(seen.size() == 5 * 40);
    CHECK(std::set(seen.begin(), seen.end()).size() == 5 * 40);
}

TEST_CASE("the next samples go to the GPU beside the work on these, and into no memory that earlier work still reads",
          "[libtorch]") {
    testing::ClockedAccelerator accelerator;
    StreamClock& compute = accelerator.compute_clock;
    StreamClock& copies = accelerator.copy_clock;
    /// LibTorch copies on the stream that is current.
    class CopyingStreams final : public ClockedStreams {
      public:
        CopyingStreams(StreamClock& first, StreamClock& later) : first_(first), later_(later) {}
        [[nodiscard]] std::unique_ptr<Guard> make_current(void* stream, int ordinal) override {
            CHECK(stream == &later_);
            CHECK(follows(later_, first_));
            auto guard = ClockedStreams::make_current(stream, ordinal);
            work();
            return guard;
        }

      private:
        StreamClock& first_;
        StreamClock& later_;
    } streams(compute, copies);

    FromFiles files;
    const libtorch::Streamed what{.source = files.train};
    data::LoaderOptions loading;
    loading.batch = 16;
    libtorch::SampleStream stream(what, loading, {}, libtorch::Where{torch::kCPU, base::Place(accelerator)});
    data::Loader as_read(files.train, {}, loading);
    int batches = 0;
    for (int turn = 0; turn < 12; ++turn) {
        const bool ahead = turn % 3 != 0;
        const auto share = stream.next();
        const auto batch = as_read.next();
        REQUIRE(share.has_value() == batch.has_value());
        CHECK(stream.position().epoch == as_read.position().epoch);
        CHECK(stream.position().sample == as_read.position().sample);
        if (!share) continue;
        ++batches;
        CHECK(share->count == batch->samples.size());
        CHECK(torch::equal(share->samples.inputs, libtorch::tensor_of(batch->column("x"))));
        if (ahead) stream.look_ahead();
        CHECK(compute[&copies] == batches); // it waits for its own samples, and for no others
        ++compute[&compute];                // a step
    }
}

TEST_CASE("validation from a file is that from memory", "[libtorch]") {
    FromFiles files;
    const TrialRun streamed = run_trial(registered(files.make()), options(2));
    REQUIRE(streamed.failure.empty());
    const auto in_memory = [&](TrialContext& context) {
        Training training = files.make()(context);
        training.val_from.source = nullptr;
        training.val = samples(9);
        return training;
    };
    const TrialRun held = run_trial(registered(in_memory), options(2));
    REQUIRE(held.failure.empty());
    CHECK(held.last("val_loss") == Approx(streamed.last("val_loss")).epsilon(1e-5));
}

TEST_CASE("wrong sources of samples are refused in words", "[libtorch]") {
    FromFiles files;
    const auto failure = [&](const libtorch::MakeTraining& make) {
        return run_trial(registered(make), options(1)).failure;
    };
    files.in_memory_too = true;
    CHECK_THAT(failure(files.make()), Catch::Contains("samples in memory and a source of them"));
    files.in_memory_too = false;
    const auto mixed = [&](TrialContext& context) {
        Training training = files.make()(context);
        training.train_from.loading.mixture = {{1.0, 0}};
        return training;
    };
    CHECK_THAT(failure(mixed), Catch::Contains("per_iteration is missing"));
    const auto large = [&](TrialContext& context) {
        Training training = files.make()(context);
        training.batch_size = 64;
        training.drop_last = true;
        return training;
    };
    CHECK_THAT(failure(large), Catch::Contains("drop_last leaves out all samples"));
}

} // namespace sample_stream_test
