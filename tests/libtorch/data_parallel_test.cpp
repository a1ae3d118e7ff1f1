// SPDX-License-Identifier: Apache-2.0
// Gradients, buffers and errors of DataParallel on ranks that are threads.

#include "models.hpp"
#include "ranktune/base/text.hpp"

namespace data_parallel_test {

using namespace ranktune;
using namespace ranktune::libtorch_test;
using ranktune::testing::run_trial;
using ranktune::testing::TrialOptions;
using ranktune::testing::TrialRun;

namespace {

/// Calls `body(context)` once on every rank; what it throws fails the trial.
TrialRun on_ranks(int ranks, const std::function<void(TrialContext&)>& body) {
    TrialOptions options;
    options.ranks = ranks;
    options.max_iterations = 1;
    return run_trial(testing::function([&](FunctionContext& context) {
                         body(context);
                         static_cast<void>(context.report({{"done", 1.0}}));
                     }),
                     options);
}

/// The mean loss of the rank's share of 7 samples: on 3 ranks 3, 2 and 2 of them.
struct Share {
    explicit Share(const ddp::Group& group) : range(data::shard({0, 7}, group.rank(), group.size())) {}
    [[nodiscard]] double part() const { return static_cast<double>(range.size()) / 7.0; }
    [[nodiscard]] torch::Tensor rows(const torch::Tensor& all) const {
        return all.narrow(0, static_cast<std::int64_t>(range.begin), static_cast<std::int64_t>(range.size()));
    }
    data::Range range;
};

struct WithUnused : torch::nn::Module {
    WithUnused() {
        used = register_module("used", torch::nn::Linear(6, 1));
        unused = register_module("unused", torch::nn::Linear(6, 1));
        frozen = register_module("frozen", torch::nn::Linear(6, 1));
        for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
    }
    torch::nn::Linear used{nullptr}, unused{nullptr}, frozen{nullptr};
};

} // namespace

TEST_CASE("the gradient of several ranks is that of one rank on all samples", "[libtorch]") {
    const auto ranks = GENERATE(1, 2, 3, 8); // on 8 ranks one has no sample
    const auto bucket_bytes = GENERATE(std::size_t{64}, std::size_t{1} << 20U);
    const auto all = samples(7);
    auto whole = net(false);
    torch::mse_loss(whole->forward(all.inputs), all.targets).backward();
    const TrialRun run = on_ranks(ranks, [&](TrialContext& context) {
        const auto module = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(whole->clone());
        DataParallel parallel(context.group(), module, {}, {bucket_bytes});
        const Share share(context.group());
        for (int repetition = 0; repetition < 3;
             ++repetition) { // the second plans the buckets again, the third uses them
            std::function<torch::Tensor()> loss;
            if (share.range.size() > 0)
                loss = [&] {
                    return torch::mse_loss(module->forward(share.rows(all.inputs)), share.rows(all.targets));
                };
            static_cast<void>(parallel.step(loss, share.part()));
            const auto mine = module->parameters();
            const auto theirs = whole->parameters();
            for (std::size_t i = 0; i < mine.size(); ++i)
                if (!torch::allclose(mine[i].grad(), theirs[i].grad(), 1e-5, 1e-7)) throw Error("another gradient");
        }
    });
    CHECK(run.failure.empty());
    CHECK(run.reports.size() == 1);
}

namespace {

/// A convolution in channels_last, and a parameter whose numbers have gaps.
struct OtherLayouts : torch::nn::Module {
    OtherLayouts() {
        convolution = register_module("convolution", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 3, 2)));
        auto& weight = convolution->weight;
        weight.set_data(weight.contiguous(torch::MemoryFormat::ChannelsLast));
        gaps = register_parameter("gaps", torch::ones({3, 4}).slice(1, 0, 4, 2));
    }
    torch::Tensor forward(const torch::Tensor& images) {
        return convolution->forward(images).pow(2).mean({2, 3}).mm(gaps).mean();
    }
    torch::nn::Conv2d convolution{nullptr};
    torch::Tensor gaps;
};

} // namespace

TEST_CASE("a gradient has the strides of its parameter, on any number of ranks", "[libtorch]") {
    torch::manual_seed(1);
    const torch::Tensor images = torch::randn({7, 4, 5, 5});
    auto whole = std::make_shared<OtherLayouts>();
    whole->forward(images).backward();
    const TrialRun run = on_ranks(GENERATE(1, 2), [&](TrialContext& context) {
        auto module = std::make_shared<OtherLayouts>();
        {
            const torch::NoGradGuard no_gradients;
            for (std::size_t i = 0; i < 3; ++i) module->parameters()[i].copy_(whole->parameters()[i]);
        }
        DataParallel parallel(context.group(), module);
        const Share share(context.group());
        for (int step = 0; step < 2; ++step) { // the second with buckets planned again
            static_cast<void>(parallel.step([&] { return module->forward(share.rows(images)); }, share.part()));
            const torch::Tensor& weight = module->convolution->weight;
            if (weight.grad().strides() != weight.strides() || weight.is_contiguous()) throw Error("other strides");
            for (std::size_t i = 0; i < 3; ++i)
                if (!torch::allclose(module->parameters()[i].grad(), whole->parameters()[i].grad(), 1e-5, 1e-7))
                    throw Error("another gradient");
        }
    });
    CHECK(run.failure.empty());
    CHECK(run.reports.size() == 1);
}

TEST_CASE("all ranks begin with rank 0's parameters and buffers", "[libtorch]") {
    const TrialRun run = on_ranks(3, [&](TrialContext& context) {
        auto module = net(true);
        const torch::NoGradGuard no_gradients;
        for (auto& parameter : module->parameters()) parameter.fill_(context.rank() + 1.0);
        for (auto& buffer : module->buffers()) buffer.fill_(context.rank() + 5.0);
        const DataParallel parallel(context.group(), module.ptr());
        for (auto& parameter : module->parameters())
            if (!parameter.eq(1.0).all().item<bool>()) throw Error("a parameter of another rank");
        for (auto& buffer : module->buffers())
            if (!buffer.eq(5.0).all().item<bool>()) throw Error("a buffer of another rank");
    });
    CHECK(run.failure.empty());
}

TEST_CASE("floating-point buffers become the mean over the ranks, others those of rank 0", "[libtorch]") {
    const TrialRun run = on_ranks(3, [&](TrialContext& context) {
        auto module = net(true);
        DataParallel parallel(context.group(), module.ptr());
        for (auto& item : module->named_buffers())
            item.value().fill_(item.value().is_floating_point() ? context.rank() + 1.0 : context.rank() + 7.0);
        parallel.share_buffers();
        for (auto& item : module->named_buffers())
            if (!item.value().eq(item.value().is_floating_point() ? 2.0 : 7.0).all().item<bool>())
                throw Error(item.key());
    });
    CHECK(run.failure.empty());
}

TEST_CASE("a parameter that is not used has a gradient of zero; one that is frozen has none", "[libtorch]") {
    const TrialRun run = on_ranks(2, [&](TrialContext& context) {
        auto module = std::make_shared<WithUnused>();
        DataParallel parallel(context.group(), module);
        const auto all = samples(4);
        for (int repetition = 0; repetition < 2; ++repetition) {
            // The second layer is used by rank 1 alone, in the second step alone.
            const bool both = repetition == 1 && context.rank() == 1;
            static_cast<void>(parallel.step(
                [&] {
                    auto outputs = module->used->forward(all.inputs);
                    if (both) outputs = outputs + module->unused->forward(all.inputs);
                    return outputs.mean();
                },
                0.5));
            const double bias = module->unused->bias.grad().item<double>();
            if (bias != (repetition == 0 ? 0.0 : 0.5)) throw Error("gradient " + std::to_string(bias));
            if (module->frozen->weight.grad().defined()) throw Error("a frozen parameter has a gradient");
        }
    });
    CHECK(run.failure.empty());
}

TEST_CASE("an error in one rank's step ends the step on all", "[libtorch]") {
    const auto kind = GENERATE(as<std::string>{}, "nan", "twice", "throws");
    const TrialRun run = on_ranks(2, [&](TrialContext& context) {
        auto module = net(false);
        DataParallel parallel(context.group(), module.ptr());
        const auto all = samples(4);
        static_cast<void>(parallel.step(
            [&] {
                auto loss = torch::mse_loss(module->forward(all.inputs), all.targets);
                if (context.rank() == 0) return loss;
                if (kind == "throws") throw Error("no data");
                if (kind == "twice") loss.backward({}, true); // and step does it again
                return kind == "twice" ? loss : loss * std::numeric_limits<double>::quiet_NaN();
            },
            0.5));
    });
    const std::string expected = kind == "nan" ? "loss is NaN" : kind == "twice" ? "the parameter '" : "no data";
    CHECK(run.failure.find("rank 1: " + expected) != std::string::npos);
}

namespace {

/// Its layers are registered in another order than `forward` uses them.
struct Shuffled : torch::nn::Module {
    Shuffled() {
        last = register_module("last", torch::nn::Linear(4, 1));
        first = register_module("first", torch::nn::Linear(6, 5));
        middle = register_module("middle", torch::nn::Linear(5, 4));
    }
    torch::Tensor forward(const torch::Tensor& x) { return last->forward(middle->forward(first->forward(x)).tanh()); }
    torch::nn::Linear first{nullptr}, middle{nullptr}, last{nullptr};
};

/// Names of the module's parameters in the order of the buckets, as a state has it; empty: a state has none.
std::vector<std::string> saved_order(const DataParallel& parallel, const torch::optim::Optimizer& optimizer) {
    study::MemoryState state;
    parallel.save(state, optimizer);
    std::vector<std::string> all;
    for (const auto& item : parallel.module().named_parameters()) all.push_back(item.key());
    std::vector<std::string> names;
    for (const auto& tensor : state.stored_tensors()) {
        if (tensor.info.name != "gradients.order") continue;
        for (const std::uint64_t i : tensor.values().as<std::uint64_t>()) names.push_back(all.at(i));
    }
    return names;
}

} // namespace

TEST_CASE("buckets follow the order in which gradients become ready, and a state keeps it", "[libtorch]") {
    const TrialRun run = on_ranks(3, [&](TrialContext& context) {
        torch::manual_seed(1);
        auto module = std::make_shared<Shuffled>();
        DataParallel parallel(context.group(), module, {}, {64});
        torch::optim::SGD optimizer(module->parameters(), torch::optim::SGDOptions(0.01));
        const auto all = samples(6);
        const auto train = [&](DataParallel& with, Shuffled& net) {
            static_cast<void>(
                with.step([&] { return torch::mse_loss(net.forward(all.inputs), all.targets); }, 1.0 / 3.0));
        };
        if (!saved_order(parallel, optimizer).empty()) throw Error("an order before the first step");
        train(parallel, *module);
        const auto order = saved_order(parallel, optimizer); // already before the buckets change
        const auto place = [&](const char* name) { return std::ranges::find(order, name) - order.begin(); };
        if (order.size() != 6 || place("last.weight") > place("middle.weight") ||
            place("middle.weight") > place("first.weight") || place("last.bias") > place("first.bias"))
            throw Error("another order: " + base::join(order));
        study::MemoryState state;
        parallel.save(state, optimizer);
        train(parallel, *module);
        const torch::Tensor expected = module->first->weight.grad().clone();
        auto again = std::make_shared<Shuffled>();
        DataParallel resumed(context.group(), again, {}, {64});
        torch::optim::SGD other(again->parameters(), torch::optim::SGDOptions(0.01));
        resumed.load(state, other);
        train(resumed, *again);
        if (saved_order(resumed, other) != order) throw Error("the order of a state is lost");
        if (!torch::equal(again->first->weight.grad(), expected)) throw Error("another gradient after the state");
        train(resumed, *again);
    });
    CHECK(run.failure.empty());
}

TEST_CASE("a batch in parts has the gradient of the whole, on any rank any number of parts", "[libtorch]") {
    const auto all = samples(8);
    auto whole = net(false);
    torch::mse_loss(whole->forward(all.inputs), all.targets).backward();
    const TrialRun run = on_ranks(2, [&](TrialContext& context) {
        const auto module = std::dynamic_pointer_cast<torch::nn::SequentialImpl>(whole->clone());
        DataParallel parallel(context.group(), module, {}, {64});
        const auto loss = [&](std::int64_t begin, std::int64_t count) {
            return [&, begin, count] {
                return torch::mse_loss(module->forward(all.inputs.narrow(0, begin, count)),
                                       all.targets.narrow(0, begin, count));
            };
        };
        for (int repetition = 0; repetition < 3; ++repetition) {
            if (context.rank() == 0) {
                static_cast<void>(parallel.accumulate(loss(0, 2), 0.25));
                static_cast<void>(parallel.accumulate(loss(2, 1), 0.125));
                static_cast<void>(parallel.step(loss(3, 1), 0.125));
            } else {
                static_cast<void>(parallel.accumulate(loss(4, 4), 0.5));
                static_cast<void>(parallel.step({}, 0.0));
            }
            const auto mine = module->parameters();
            const auto theirs = whole->parameters();
            for (std::size_t i = 0; i < mine.size(); ++i)
                if (!torch::allclose(mine[i].grad(), theirs[i].grad(), 1e-5, 1e-7)) throw Error("another gradient");
        }
    });
    CHECK(run.failure.empty());
}

TEST_CASE("what cannot be compressed is refused", "[libtorch]") {
    const TrialRun run = on_ranks(2, [&](TrialContext& context) {
        auto module = net(false);
        module->to(torch::kFloat64);
        trainables::GradientChoice choice;
        choice.compression.kind = ddp::Compression::Kind::bf16;
        const DataParallel parallel(context.group(), module.ptr(), {}, {64, choice});
    });
    CHECK(run.failure.find("gradients of float64 cannot be compressed") != std::string::npos);
}

TEST_CASE("modules that cannot be trained are refused", "[libtorch]") {
    const auto why = [](const std::function<void(torch::nn::Sequential&)>& change) {
        auto module = net(false);
        change(module);
        try {
            const auto group = make_self_group();
            const DataParallel parallel(*group, module.ptr());
            return std::string();
        } catch (const UsageError& error) {
            return std::string(error.what());
        }
    };
    CHECK(why([](auto&) {}).empty());
    CHECK(why([](auto& module) {
              for (auto& parameter : module->parameters()) parameter.requires_grad_(false);
          }) == "the module has no parameter that requires a gradient");
    CHECK(why([](auto& module) {
              module->push_back(torch::nn::Linear(1, 1)), module[3]->to(torch::kFloat64);
          }).find("'0.weight' and '3.weight' are of different types") != std::string::npos);
}

TEST_CASE("a module outlives its DataParallel, and has another one", "[libtorch]") {
    auto module = net(false);
    const auto all = samples(4);
    const auto group = make_self_group();
    for (int repetition = 0; repetition < 2; ++repetition) {
        DataParallel parallel(*group, module.ptr());
        CHECK(parallel.step([&] { return torch::mse_loss(module->forward(all.inputs), all.targets); }, 1.0) > 0.0);
    }
    torch::mse_loss(module->forward(all.inputs), all.targets).backward();
    CHECK(module->parameters().front().grad().defined());
}

} // namespace data_parallel_test
