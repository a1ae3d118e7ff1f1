// SPDX-License-Identifier: Apache-2.0
// Trials of LibTorch modules: state, resumption, changed hyper-parameters.

#include "libtorch/clip.hpp"
#include "libtorch/cuda.hpp"
#include "libtorch/fused_step.hpp"
#include "models.hpp"

namespace module_trainable_test {

using namespace ranktune;
using namespace ranktune::libtorch_test;
using ranktune::testing::resume_difference;
using ranktune::testing::run_trial;
using ranktune::testing::TrialOptions;
using ranktune::testing::TrialRun;

namespace {

namespace optim = torch::optim;

std::unique_ptr<optim::Optimizer> optimizer_of(const std::string& name, std::vector<torch::Tensor> parameters,
                                               double lr) {
    if (name == "sgd") return std::make_unique<optim::SGD>(parameters, optim::SGDOptions(lr));
    if (name == "momentum") return std::make_unique<optim::SGD>(parameters, optim::SGDOptions(lr).momentum(0.9));
    if (name == "adam") return std::make_unique<optim::Adam>(parameters, optim::AdamOptions(lr));
    if (name == "adamw") return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(lr).amsgrad(true));
    if (name == "rmsprop")
        return std::make_unique<optim::RMSprop>(parameters, optim::RMSpropOptions(lr).momentum(0.5).centered(true));
    if (name == "adagrad") return std::make_unique<optim::Adagrad>(parameters, optim::AdagradOptions(lr));
    return std::make_unique<optim::LBFGS>(parameters, optim::LBFGSOptions(lr));
}

/// Trains `net` with the options `optimizer`, `lr` and `normalised` of the configuration.
Training make(TrialContext& context) {
    auto module = net(context.configuration().at("normalised").as_bool());
    auto optimizer = optimizer_of(context.configuration().at("optimizer").as_string(), module->parameters(),
                                  context.configuration().at("lr").as_double());
    return training_of(module, std::move(optimizer));
}

TrialOptions options(const std::string& optimizer, int ranks, double lr = 0.01, bool normalised = true) {
    TrialOptions result;
    result.configuration = Configuration({{"optimizer", optimizer}, {"lr", lr}, {"normalised", normalised}});
    result.ranks = ranks;
    result.max_iterations = 4;
    return result;
}

} // namespace

TEST_CASE("a resumed trial is the uninterrupted one, bit for bit", "[libtorch]") {
    const auto optimizer = GENERATE(as<std::string>{}, "sgd", "momentum", "adam", "adamw", "rmsprop", "adagrad");
    const auto ranks = GENERATE(1, 2);
    INFO(optimizer << " on " << ranks);
    CHECK(resume_difference(registered(make), options(optimizer, ranks), 2).empty());
}

TEST_CASE("a trial trains the same model on any number of ranks", "[libtorch]") {
    const TrialRun one = run_trial(registered(make), options("adam", 1, 0.01, false));
    REQUIRE(one.failure.empty());
    for (const int ranks : {2, 3, 5}) {
        const TrialRun several = run_trial(registered(make), options("adam", ranks, 0.01, false));
        REQUIRE(several.failure.empty());
        CHECK(several.last("train_loss") == Approx(one.last("train_loss")).epsilon(1e-4));
        CHECK(several.last("val_loss") == Approx(one.last("val_loss")).epsilon(1e-4));
        const auto weights = tensor_of(several.checkpoint().state, "0.weight");
        CHECK((weights - tensor_of(one.checkpoint().state, "0.weight")).abs().max().item<double>() < 1e-4);
    }
}

TEST_CASE("dropout is the same again after a restart", "[libtorch]") {
    const auto with_dropout = [](TrialContext& context) {
        torch::nn::Sequential module(torch::nn::Linear(6, 16), torch::nn::Dropout(0.5), torch::nn::Linear(16, 1));
        auto optimizer = optimizer_of("sgd", module->parameters(), context.configuration().at("lr").as_double());
        return training_of(module, std::move(optimizer));
    };
    CHECK(resume_difference(registered(with_dropout), options("sgd", 1), 2).empty());
}

TEST_CASE("a state goes on with the learning rate of the new configuration", "[libtorch]") {
    TrialOptions first = options("momentum", 1, 0.01);
    first.max_iterations = 2;
    const TrialRun before = run_trial(registered(make), first);
    REQUIRE(before.failure.empty());
    const auto continued = [&](double lr) {
        TrialOptions later = options("momentum", 1, lr);
        later.from = before.checkpoint();
        later.max_iterations = 3;
        return run_trial(registered(make), later);
    };
    const TrialRun same = continued(0.01);
    const TrialRun still = continued(0.0);
    REQUIRE(still.failure.empty());
    const auto weights = [](const TrialRun& run) { return tensor_of(run.checkpoint().state, "0.weight"); };
    CHECK(torch::equal(weights(still), weights(before)));
    CHECK_FALSE(torch::equal(weights(same), weights(before)));
}

TEST_CASE("a moment that the state lacks begins at zero, and another kind of optimizer is refused", "[libtorch]") {
    TrialOptions first = options("sgd", 1);
    first.max_iterations = 2;
    const TrialRun before = run_trial(registered(make), first);
    REQUIRE(before.failure.empty());
    TrialOptions later = options("momentum", 1);
    later.from = before.checkpoint();
    CHECK(run_trial(registered(make), later).failure.empty());
    later.configuration = options("adam", 1).configuration;
    CHECK(run_trial(registered(make), later)
              .failure.find("has the state of the optimizer SGD, and the trial uses Adam") != std::string::npos);
}

TEST_CASE("precision bf16 computes the model in bfloat16, and keeps parameters, optimizer and results in float32",
          "[libtorch]") {
    std::vector<torch::Dtype> seen;
    const auto watched = [&seen](TrialContext& context) {
        Training training = make(context);
        training.loss = [loss = training.loss, module = training.module, &seen](const Samples& batch) {
            seen.push_back(module->as<torch::nn::SequentialImpl>()->forward(batch.inputs).scalar_type());
            return loss(batch);
        };
        return training;
    };
    const auto run_with = [&](const char* precision) {
        TrialOptions chosen = options("adam", 1, 0.01, false);
        if (precision != nullptr)
            chosen.configuration =
                Configuration({{"optimizer", "adam"}, {"lr", 0.01}, {"normalised", false}, {"precision", precision}});
        seen.clear();
        return run_trial(registered(watched), chosen);
    };
    const TrialRun plain = run_with(nullptr);
    REQUIRE(plain.failure.empty());
    CHECK(std::ranges::count(seen, torch::kFloat32) == std::ssize(seen));
    for (const char* same : {"fp32", "tf32"}) { // differ on GPUs alone
        const TrialRun run = run_with(same);
        REQUIRE(run.failure.empty());
        CHECK(torch::equal(tensor_of(run.checkpoint().state, "0.weight"),
                           tensor_of(plain.checkpoint().state, "0.weight")));
    }
    const TrialRun narrow = run_with("bf16");
    REQUIRE(narrow.failure.empty());
    CHECK_FALSE(seen.empty());
    CHECK(std::ranges::count(seen, torch::kBFloat16) == std::ssize(seen));
    for (const auto& tensor : narrow.checkpoint().state.stored_tensors())
        if (tensor.info.name == "0.weight" || tensor.info.name == "optimizer.exp_avg.0.weight")
            CHECK(tensor.info.type == base::DType::float32);
    CHECK(narrow.last("train_loss") != plain.last("train_loss"));
    CHECK(narrow.last("train_loss") == Approx(plain.last("train_loss")).epsilon(0.05));
}

TEST_CASE("a trial in bf16 resumes bit for bit, and on two ranks trains what one does", "[libtorch]") {
    const auto chosen = [](int ranks) {
        TrialOptions result = options("momentum", ranks, 0.01, false);
        result.configuration =
            Configuration({{"optimizer", "momentum"}, {"lr", 0.01}, {"normalised", false}, {"precision", "bf16"}});
        return result;
    };
    CHECK(resume_difference(registered(make), chosen(1), 2).empty());
    const TrialRun one = run_trial(registered(make), chosen(1));
    const TrialRun two = run_trial(registered(make), chosen(2));
    REQUIRE(two.failure.empty());
    CHECK(two.last("val_loss") == Approx(one.last("val_loss")).epsilon(0.02));
}

TEST_CASE("an unknown precision is refused", "[libtorch]") {
    TrialOptions wrong = options("sgd", 1);
    wrong.configuration =
        Configuration({{"optimizer", "sgd"}, {"lr", 0.01}, {"normalised", false}, {"precision", "fp8"}});
    CHECK(run_trial(registered(make), wrong).failure.find(R"(torch.precision must be "fp32", "tf32" or "bf16")") !=
          std::string::npos);
}

TEST_CASE("names in a checkpoint are those of PyTorch", "[libtorch]") {
    const TrialRun run = run_trial(registered(make), options("adamw", 1));
    REQUIRE(run.failure.empty());
    std::vector<std::string> names;
    for (const auto& tensor : run.checkpoint().state.stored_tensors()) names.push_back(tensor.info.name);
    for (const char* name :
         {"0.weight", "1.running_mean", "1.num_batches_tracked", "3.bias", "optimizer.exp_avg.0.weight",
          "optimizer.max_exp_avg_sq.3.bias", "optimizer.steps", "trainer.counters"}) {
        INFO(name);
        CHECK(std::ranges::find(names, name) != names.end());
    }
}

TEST_CASE("mistakes of a training are told", "[libtorch]") {
    const auto failure = [](const std::function<void(Training&)>& change) {
        const auto wrong = [&](TrialContext& context) {
            Training training = make(context);
            change(training);
            return training;
        };
        return run_trial(registered(wrong), options("sgd", 1)).failure;
    };
    CHECK(failure([](Training&) {}).empty());
    CHECK(failure([](Training& t) { t.loss = nullptr; }).find("Training::loss is missing") != std::string::npos);
    CHECK(failure([](Training& t) { t.validate = nullptr; }).find("Training::validate") != std::string::npos);
    CHECK(failure([](Training& t) {
              t.train.targets = t.train.targets.narrow(0, 0, 5);
          }).find("the same first extent") != std::string::npos);
    CHECK(failure([](Training& t) {
              t.optimizer = optimizer_of("lbfgs", t.module->parameters(), 0.1);
          }).find("cannot be saved") != std::string::npos);
    CHECK(failure([](Training& t) {
              t.optimizer = optimizer_of("sgd", {torch::ones({3}).requires_grad_()}, 0.1);
          }).find("none of the module") != std::string::npos);
}

TEST_CASE("a full memory of the GPU says what to do", "[libtorch]") {
    for (const int ranks : {1, 2}) {
        const auto greedy = [](TrialContext& context) {
            Training training = make(context);
            if (context.group().rank() == 0)
                training.loss = [](const libtorch::Samples&) -> torch::Tensor {
                    TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate 3.00 GiB");
                };
            return training;
        };
        const std::string failure = run_trial(registered(greedy), options("sgd", ranks)).failure;
        CHECK(
            failure.find("the trial needs more memory than the device has: CUDA out of memory. Tried to allocate 3.00 "
                         "GiB. Make the model") != std::string::npos);
    }
}

TEST_CASE("gradients are clipped to a norm, and the learning rate follows a schedule", "[libtorch]") {
    std::vector<std::uint64_t> asked;
    const auto scheduled = [&](TrialContext& context) {
        Training training = make(context);
        training.clip_norm = 1e-3;
        training.learning_rate = [&](std::uint64_t step) {
            asked.push_back(step);
            return 1.0;
        };
        return training;
    };
    TrialOptions one_epoch = options("sgd", 1, 0.0);
    one_epoch.max_iterations = 1;
    const TrialRun run = run_trial(registered(scheduled), one_epoch);
    REQUIRE(run.failure.empty());
    CHECK(asked == std::vector<std::uint64_t>{0, 1, 2});
    const TrialRun still = run_trial(registered(make), one_epoch); // learning rate 0: the initial parameters
    const auto moved = tensor_of(run.checkpoint().state, "0.weight") - tensor_of(still.checkpoint().state, "0.weight");
    CHECK(moved.norm().item<double>() > 0.0);
    CHECK(moved.norm().item<double>() <= 3 * 1e-3 + 1e-6);
}

TEST_CASE("the options of gradients work for modules of LibTorch as for mlp", "[libtorch]") {
    const auto with = [](const std::vector<std::pair<std::string, Value>>& entries, int ranks) {
        TrialOptions result = options("momentum", ranks, 0.05, false);
        for (const auto& [name, value] : entries) result.configuration.set(name, value);
        return result;
    };
    const TrialRun plain = run_trial(registered(make), with({}, 2));
    REQUIRE(plain.failure.empty());
    const double expected = plain.last("train_loss");
    const TrialRun still = run_trial(registered(make), with({{"clip_norm", 1e-9}}, 2));
    REQUIRE(still.failure.empty());
    CHECK(still.last("train_loss") > expected); // a tiny gradient trains nothing
    SECTION("parts of a batch give what the whole gives") {
        const TrialRun parts = run_trial(registered(make), with({{"accumulate", std::int64_t{3}}}, 2));
        REQUIRE(parts.failure.empty());
        CHECK(parts.last("train_loss") == Approx(expected).epsilon(1e-4));
    }
    SECTION("compressed gradients train, and go on exactly") {
        for (const char* kind : {"fp16", "bf16", "powersgd", "topk"}) {
            INFO(kind);
            const auto compressed = with({{"compression", std::string(kind)}, {"compression_density", 0.2}}, 2);
            const TrialRun run = run_trial(registered(make), compressed);
            REQUIRE(run.failure.empty());
            CHECK(run.last("train_loss") != expected);
            CHECK(run.last("train_loss") < still.last("train_loss"));
            CHECK(resume_difference(registered(make), compressed, 2).empty());
        }
    }
    SECTION("communication is measured") {
        const TrialRun run = run_trial(registered(make), with({{"comm_metrics", true}}, 2));
        REQUIRE(run.failure.empty());
        CHECK(run.last("comm/MB") > 0.0);
        CHECK(run.last("comm/exposed_ms") > 0.0);
        CHECK_THROWS_AS(plain.last("comm/MB"), UsageError);
    }
    SECTION("a wrong one is told") {
        CHECK(run_trial(registered(make), with({{"compression", std::string("zip")}}, 2))
                  .failure.find("torch.compression: 'zip' is not one of") != std::string::npos);
    }
}

TEST_CASE("two versions of CUDA, or two copies of NCCL, are refused with the mend", "[libtorch]") {
    using libtorch::clash;
    CHECK(clash({13000, 13020, {"/usr/lib/libnccl.so.2"}}).empty());
    CHECK(clash({0, 0, {}}).empty());
    CHECK(clash({13000, 12080, {}}).find("LibTorch uses CUDA 12.8, and libranktune-cuda.so uses CUDA 13.0") == 0);
    const std::string two = clash({13000, 13000, {"/usr/lib/libnccl.so.2", "/opt/torch/lib/libtorch_cuda.so"}});
    CHECK(two.find("/usr/lib/libnccl.so.2") != std::string::npos);
    CHECK(two.find("LD_LIBRARY_PATH") != std::string::npos);
}

TEST_CASE("a step in one kernel is LibTorch's, also after it", "[libtorch]") {
    torch::optim::SGDOptions plain(0.1);
    plain.momentum(0.9).weight_decay(0.01).nesterov(true);
    const auto make_optimizer = [&](int kind, const std::vector<torch::Tensor>& parameters) {
        std::unique_ptr<optim::Optimizer> result;
        if (kind == 0) result = std::make_unique<optim::SGD>(parameters, plain);
        if (kind == 1) result = std::make_unique<optim::SGD>(parameters, optim::SGDOptions(0.1));
        if (kind == 2) result = std::make_unique<optim::Adam>(parameters, optim::AdamOptions(0.1).weight_decay(0.01));
        if (kind == 3) result = std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions(0.1).amsgrad(true));
        return result;
    };
    for (int kind = 0; kind < 4; ++kind) {
        torch::manual_seed(3);
        std::vector<torch::Tensor> ours;
        std::vector<torch::Tensor> theirs;
        for (int i = 0; i < 3; ++i) {
            ours.push_back(torch::randn({4, 3 + i}).requires_grad_());
            theirs.push_back(ours.back().detach().clone().requires_grad_());
        }
        const auto mine = make_optimizer(kind, ours);
        const auto reference = make_optimizer(kind, theirs);
        for (int step = 0; step < 6; ++step) {
            for (std::size_t i = 0; i < ours.size(); ++i) {
                if (i == 2 && step < 2) continue; // begins later
                const torch::Tensor gradient = torch::randn_like(ours[i].detach());
                ours[i].mutable_grad() = gradient.clone();
                theirs[i].mutable_grad() = gradient.clone();
            }
            reference->step();
            if (step == 4) // LibTorch goes on with the state
                mine->step();
            else if (!libtorch::fused_step(*mine)) {
                WARN("this LibTorch has no fused steps");
                return;
            }
        }
        INFO(kind);
        for (std::size_t i = 0; i < ours.size(); ++i) CHECK(torch::allclose(ours[i], theirs[i], 1e-5, 1e-6));
    }
    const std::vector<torch::Tensor> wide{torch::ones({2}, torch::kFloat64).requires_grad_()};
    wide[0].mutable_grad() = torch::ones({2}, torch::kFloat64);
    CHECK_FALSE(libtorch::fused_step(*make_optimizer(0, wide)));
    CHECK(wide[0].equal(torch::ones({2}, torch::kFloat64)));
}

TEST_CASE("gradients that lie apart are clipped together", "[libtorch]") {
    std::vector<torch::Tensor> gradients{torch::full({2, 2}, 3.0F), torch::full({5}, -2.0F)};
    libtorch::clip_together(gradients, 100.0); // the norm is sqrt(36 + 20)
    CHECK(gradients[0].equal(torch::full({2, 2}, 3.0F)));
    libtorch::clip_together(gradients, 1.0);
    CHECK(torch::cat({gradients[0].flatten(), gradients[1]}).norm().item<double>() == Approx(1.0).epsilon(1e-5));
    CHECK(gradients[0][0][0].item<float>() == Approx(3.0 / std::sqrt(56.0)).epsilon(1e-5));
}

} // namespace module_trainable_test
