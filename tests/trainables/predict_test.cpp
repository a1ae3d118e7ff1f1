// SPDX-License-Identifier: Apache-2.0
// What models predict, what ensembles make of it, and how a study file names it.

#include <condition_variable>
#include <limits>
#include <mutex>

#include "ranktune/base/error.hpp"
#include "ranktune/data/source.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/files.hpp"
#include "support/hooked_file_system.hpp"
#include "support/known.hpp"
#include "trainables/predict/plan.hpp"
#include "trainables/predict/prediction_writer.hpp"

namespace predict_test {

using namespace ranktune;
using namespace ranktune::trainables;

namespace {

study::MemoryState put_of(const std::vector<float>& y, std::vector<std::uint64_t> shape,
                          const std::vector<std::int32_t>& classes = {}) {
    study::MemoryState put;
    put.put<float>("y", y, std::move(shape));
    if (!classes.empty()) put.put<std::int32_t>("class", classes);
    return put;
}

/// A classifier's, of two samples and three classes.
Prediction classifier(const std::vector<float>& y, const std::vector<std::int32_t>& classes) {
    return prediction_of(put_of(y, {2, 3}, classes), 2, 2, 0);
}

std::string refusal(const study::MemoryState& put, std::size_t samples = 2) {
    return ranktune::testing::error_of([&] { return prediction_of(put, samples, samples, 100); });
}

using Doubles = std::vector<double>;
using Classes = std::vector<std::int32_t>;

/// Of a study of predictions for six samples.
struct Output {
    testing::TemporaryDirectory folder;
    PredictPlan plan;
    Output() {
        plan.output = folder.path() + "/y.h5";
        plan.samples = plan.range = 6;
        plan.combine = "mean";
    }
    /// That of two samples of a model, from `first` on.
    static std::vector<Prediction> of(float first) { return {prediction_of(put_of({first, first + 1}, {2}), 2, 2, 0)}; }
    [[nodiscard]] std::vector<float> written() const {
        const auto source = data::Source::open(plan.output);
        std::vector<float> y(plan.samples);
        const std::vector<std::uint64_t> all{0, 1, 2, 3, 4, 5};
        source->gather(source->field("y"), all, std::as_writable_bytes(std::span(y)));
        return y;
    }
};

/// Opened once.
class Gate {
  public:
    void open() {
        const std::lock_guard lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return open_; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool open_ = false;
};

using test::HookedFileSystem;

} // namespace

TEST_CASE("predictions are written while models predict the next ones, in order", "[trainables]") {
    const Output output;
    Gate begun;
    Gate go_on;
    HookedFileSystem files(storage::posix_file_system(), [&](HookedFileSystem::Call call, const std::string& path) {
        if (call != HookedFileSystem::Call::write || path != output.plan.output) return;
        begun.open();
        go_on.wait();
    });
    PredictionWriter writer(files, output.plan);
    writer.put(Output::of(1.0F), 0, base::TrialId(0));
    begun.wait();
    // The first ones are not written yet: the models need not wait for them.
    writer.put(Output::of(3.0F), 2, base::TrialId(0));
    writer.put(Output::of(5.0F), 4, base::TrialId(0));
    go_on.open();
    const std::vector<float> all{1, 2, 3, 4, 5, 6};
    base::Digest of_y;
    of_y.add(std::as_bytes(std::span(all)));
    CHECK(writer.finish_range() == digest_of_range(of_y, base::Digest()));
    CHECK(output.written() == all);
    // The next range has a digest of its own.
    writer.put(Output::of(1.0F), 0, base::TrialId(1));
    base::Digest of_two;
    of_two.add(std::as_bytes(std::span(all).first(2)));
    CHECK(writer.finish_range() == digest_of_range(of_two, base::Digest()));
}

TEST_CASE("what goes wrong in writing fails the range", "[trainables]") {
    const Output output;
    {
        HookedFileSystem files(storage::posix_file_system(), [&](HookedFileSystem::Call call, const std::string& path) {
            if (call == HookedFileSystem::Call::write && path == output.plan.output)
                throw base::IoError("output", path, std::make_error_code(std::errc::no_space_on_device));
        });
        PredictionWriter writer(files, output.plan);
        writer.put(Output::of(1.0F), 0, base::TrialId(0));
        CHECK_THROWS_AS(writer.finish_range(), base::IoError);
        CHECK_THROWS_AS(writer.put(Output::of(3.0F), 2, base::TrialId(0)), base::IoError);
    }
    PredictionWriter writer(storage::posix_file_system(), output.plan);
    writer.put(Output::of(1.0F), 0, base::TrialId(0));
    writer.put({classifier({1, 0, 0, 1, 0, 0}, {0, 0})}, 2, base::TrialId(0));
    CHECK_THROWS_WITH(writer.finish_range(),
                      "from sample 2 on predictions are float32 [3], with a class, others are "
                      "float32 []: a model has to predict one form");
}

TEST_CASE("an ensemble is the mean of its members, their vote, or all of them", "[trainables]") {
    const std::vector<Prediction> members{classifier({0.5F, 0.25F, 0.25F, 0.0F, 0.25F, 0.75F}, {0, 2}),
                                          classifier({0.25F, 0.5F, 0.25F, 0.5F, 0.0F, 0.5F}, {1, 0})};
    const Prediction mean = combined(members, Combine::mean);
    CHECK(mean.y == Doubles{0.375, 0.375, 0.25, 0.25, 0.125, 0.625});
    CHECK(mean.classes == Classes{0, 2}); // of a tie, the lower one
    const Prediction vote = combined(members, Combine::vote);
    CHECK(vote.y == Doubles{0.5, 0.5, 0.0, 0.5, 0.0, 0.5});
    CHECK(vote.classes == Classes{0, 0});
    const Prediction all = combined(members, Combine::all);
    CHECK(all.row == std::vector<std::uint64_t>{2, 3});
    CHECK(all.y == Doubles{0.5, 0.25, 0.25, 0.25, 0.5, 0.25, 0.0, 0.25, 0.75, 0.5, 0.0, 0.5});
    CHECK(all.class_row == std::vector<std::uint64_t>{2});
    CHECK(all.classes == Classes{0, 1, 2, 0});
}

TEST_CASE("how members are combined is one of three words", "[trainables]") {
    CHECK(combine_of("all") == Combine::all);
    CHECK_THROWS_AS(combine_of("median"), base::UsageError);
}

TEST_CASE("a model alone says exactly what it put, but for samples that nobody wants", "[trainables]") {
    const auto put = put_of({0.1F, 0.2F, 0.3F}, {3, 1});
    const Prediction two = prediction_of(put, 3, 2, 0);
    CHECK(combined({two}, Combine::mean).y == Doubles{0.1F, 0.2F});
    study::MemoryState wide;
    const std::vector<double> y{1.0 / 3.0};
    wide.put<double>("y", y);
    const Prediction number = prediction_of(wide, 1, 1, 0);
    CHECK(number.form() == "float64 []");
    CHECK(combined({number}, Combine::mean).y == y);
}

TEST_CASE("predictions that are not as the interface wants them are refused", "[trainables]") {
    CHECK(refusal({}) == "predict() puts no tensor `y`");
    CHECK(refusal(put_of({1.0F}, {1})).starts_with("predict() got 2 samples and puts `y` with 1 rows"));
    study::MemoryState integers;
    integers.put<std::int32_t>("y", std::vector<std::int32_t>{1, 2});
    CHECK(refusal(integers).starts_with("predict() puts `y` as int32"));
    CHECK(refusal(put_of({1.0F, std::numeric_limits<float>::quiet_NaN()}, {2})) ==
          "the prediction for sample 101 is NaN");
    CHECK(refusal(put_of({std::numeric_limits<float>::infinity(), 0.0F}, {2})) ==
          "the prediction for sample 100 is infinite");
    CHECK(refusal(put_of({1.0F, 1.0F}, {2, 1}, {0, 1})).starts_with("predict() puts the class 1, and `y` has 1"));
    CHECK(refusal(put_of({1.0F, 1.0F}, {2}, {0, 0})).starts_with("predict() puts `class`: it needs to be"));
    const std::vector<Prediction> numbers(2, prediction_of(put_of({1.0F}, {1}), 1, 1, 0));
    CHECK_THROWS_AS(combined(numbers, Combine::vote), base::UsageError);
    const std::vector<Prediction> mixed{numbers[0], classifier({1, 0, 0, 1, 0, 0}, {0, 0})};
    CHECK_THROWS_AS(combined(mixed, Combine::mean), base::UsageError);
}

TEST_CASE("a plan is read as it was written", "[trainables]") {
    PredictPlan plan{.input = "/in/x.h5",
                     .input_content = "12 bytes, XXH64 0123456789abcdef",
                     .group = "val",
                     .field = "x",
                     .output = "/out/y.h5",
                     .samples = 5000,
                     .range = 1024,
                     .batch = 32,
                     .combine = "vote",
                     .version = "1.2.3",
                     .study = "digits",
                     .directory = "/studies/digits",
                     .trainable = "mlp",
                     .max_iterations = 9,
                     .trials = {}};
    for (const std::uint32_t trial : {17U, 4U}) {
        PredictingTrial one{
            .trial = base::TrialId(trial), .seed = trial + 1, .checkpoint = {3, "checkpoints/17/3-1.1.h5", 0, ~trial}};
        one.configuration.set("lr", 0.1);
        one.configuration.set("optimizer.name", "adam \"w\"");
        one.configuration.set("hidden", space::Value::List{32, 16});
        one.configuration.set("dropout", space::Value::none());
        plan.trials.push_back(one);
    }
    plan.trials[1].checkpoint.shards = {1, 0xFEDCBA9876543210};
    const std::string text = "[study]\nname = \"p\"\nmetric = \"samples\"\nmode = \"max\"\nmax_iterations = 1\n" +
                             text_of(plan) + "[space]\nrange = \"randint(0, 5)\"\n[searcher]\ntype = \"grid\"\n";
    const study::StudySpec spec = study::parse_study(text, "/study.toml", {}, testing::known(known_trainables()));
    const PredictPlan read = predict_plan_of(spec.trainable.options);
    CHECK(text_of(read) == text_of(plan));
    REQUIRE(read.trials.size() == 2);
    CHECK(read.trials[0].checkpoint == plan.trials[0].checkpoint);
    CHECK(read.trials[1].checkpoint == plan.trials[1].checkpoint);
    CHECK(read.trials[0].configuration.at("lr").as_double() == 0.1);
    CHECK(read.trials[0].configuration.at("hidden") == space::Value(space::Value::List{32, 16}));
    CHECK(read.trials[0].configuration.find("dropout") == nullptr);
    space::Configuration broken = spec.trainable.options;
    broken.set("samples", 0);
    CHECK_THROWS_WITH(predict_plan_of(broken),
                      "trainable.samples needs to be 1 at least: `ranktune predict` writes it");
}

} // namespace predict_test
