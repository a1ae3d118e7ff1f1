// SPDX-License-Identifier: Apache-2.0
// The mathematics of devices against that of the host (trainables/mlp), and the handles of a device.

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "device_case.hpp"
#include "ranktune/base/half.hpp"
#include "support/catch.hpp"
#include "trainables/mlp/kernels.hpp"
#include "trainables/mlp/optimizer.hpp"

namespace compute_test {

using namespace ranktune;
using device::Activation;
using device::Dropout;
using testing::OnAccelerator;
namespace mlp = trainables::mlp;

namespace {

device::Accelerator& first_device() { return testing::runtime_or_skip().open(0); }

std::vector<float> random_numbers(std::size_t count, unsigned seed, float scale = 1.0F) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0F, scale);
    std::vector<float> numbers(count);
    for (float& number : numbers) number = normal(generator);
    return numbers;
}

/// Equal up to `relative` of the largest number.
void check_close(const std::vector<float>& found, const std::vector<float>& expected, float relative = 2e-6F) {
    REQUIRE(found.size() == expected.size());
    float largest = 0.0F;
    for (const float value : expected) largest = std::max(largest, std::abs(value));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
        wrong += std::abs(found[i] - expected[i]) <= relative * largest ? 0 : 1; // NaN is wrong
    CHECK(wrong == 0);
}

void check_narrow(const std::vector<base::BFloat16>& found, const std::vector<float>& wide) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wide.size(); ++i) wrong += found[i].bits() == base::BFloat16(wide[i]).bits() ? 0 : 1;
    CHECK(wrong == 0);
}

const std::pair<std::size_t, std::size_t> sizes[] = {{1, 1}, {3, 7}, {64, 10}, {33, 129}, {70, 300}};

} // namespace

TEST_CASE("matrix products in all four forms, and of blocks", "[device]") {
    auto& on = first_device();
    const auto compute = on.make_compute(on.compute_stream());
    const std::size_t m = 5;
    const std::size_t n = 7;
    const std::size_t k = 3;
    const auto a = random_numbers(m * k, 1);
    const auto b = random_numbers(k * n, 2);
    for (const bool ta : {false, true})
        for (const bool tb : {false, true}) {
            std::vector<float> expected(m * n);
            for (std::size_t r = 0; r < m; ++r)
                for (std::size_t c = 0; c < n; ++c)
                    for (std::size_t i = 0; i < k; ++i)
                        expected[r * n + c] += (ta ? a[i * m + r] : a[r * k + i]) * (tb ? b[c * k + i] : b[i * n + c]);
            const OnAccelerator<float> left(on, a);
            const OnAccelerator<float> right(on, b);
            const OnAccelerator<float> result(on, m * n);
            compute->multiply(ta, tb, m, n, k, {left.data(), ta ? m : k}, {right.data(), tb ? k : n},
                              {result.data(), n}, device::Precision::fp32);
            check_close(result.values(), expected);
        }
    // The second and third row and column of a product, of larger matrices.
    const OnAccelerator<float> left(on, std::vector<float>{1, 2, 3, 4, 5, 6});            // [3, 2]
    const OnAccelerator<float> right(on, std::vector<float>{1, 0, 2, 0, 1, 3});           // [2, 3]
    const OnAccelerator<float> result(on, std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0}); // [3, 3]
    compute->multiply(false, false, 2, 2, 2, {left.data() + 2, 2}, {right.data() + 1, 3}, {result.data() + 4, 3},
                      device::Precision::fp32);
    CHECK(result.values() == std::vector<float>{0, 0, 0, 0, 4, 18, 0, 6, 28});
}

TEST_CASE("products of tf32 and bfloat16 keep their digits, against double precision", "[device]") {
    auto& on = first_device();
    if (on.facts().major < 8) return;
    const auto compute = on.make_compute(on.compute_stream());
    const std::size_t m = 33;
    const std::size_t n = 17;
    const std::size_t k = 129;
    const auto a = random_numbers(m * k, 1);
    const auto b = random_numbers(k * n, 2);
    const OnAccelerator<float> left(on, a);
    const OnAccelerator<float> right(on, b);
    const OnAccelerator<base::BFloat16> narrow_left(on, a.size());
    const OnAccelerator<base::BFloat16> narrow_right(on, b.size());
    on.compute_stream().narrow(narrow_left.data(), base::DType::bfloat16, left.data(), a.size());
    on.compute_stream().narrow(narrow_right.data(), base::DType::bfloat16, right.data(), b.size());
    for (const auto precision : {device::Precision::fp32, device::Precision::tf32, device::Precision::bf16}) {
        const OnAccelerator<float> result(on, m * n);
        if (precision == device::Precision::bf16)
            compute->multiply(false, false, m, n, k, {narrow_left.data(), k}, {narrow_right.data(), n},
                              {result.data(), n});
        else
            compute->multiply(false, false, m, n, k, {left.data(), k}, {right.data(), n}, {result.data(), n},
                              precision);
        const auto found = result.values();
        double largest = 0.0; // error, as a share of the sum of magnitudes
        for (std::size_t i = 0; i < m * n; ++i) {
            double sum = 0.0;
            double magnitudes = 0.0;
            for (std::size_t j = 0; j < k; ++j) {
                const double product = static_cast<double>(a[i / n * k + j]) * static_cast<double>(b[j * n + i % n]);
                sum += product;
                magnitudes += std::abs(product);
            }
            largest = std::max(largest, std::abs(static_cast<double>(found[i]) - sum) / magnitudes);
        }
        const bool tf32 = precision == device::Precision::tf32;
        // Two factors that are each rounded, or cut off; and the digits that are gone show.
        CHECK(largest <= (precision == device::Precision::fp32 ? 1e-6 : tf32 ? 0x1p-9 : 0x1p-7));
        CHECK(largest >= (precision == device::Precision::fp32 ? 0.0 : tf32 ? 0x1p-16 : 0x1p-13));
    }
}

TEST_CASE("activations with and without dropout are those of the host", "[device]") {
    auto& on = first_device();
    const auto compute = on.make_compute(on.compute_stream());
    for (const auto& [rows, columns] : sizes)
        for (const Activation f : {Activation::none, Activation::relu, Activation::tanh})
            for (const double probability : {0.0, 0.4}) {
                const auto mask = mlp::dropout_mask(probability, 5, 3, 1, 2);
                std::vector<std::uint32_t> samples(rows);
                for (std::size_t r = 0; r < rows; ++r) samples[r] = static_cast<std::uint32_t>(100 + 3 * r);
                auto y = random_numbers(rows * columns, 3);
                const auto bias = random_numbers(columns, 4);
                const OnAccelerator<float> outputs(on, y);
                const OnAccelerator<float> biases(on, bias);
                const OnAccelerator<std::uint32_t> numbers(on, samples);
                const OnAccelerator<Dropout> dropout(
                    on, std::vector<Dropout>{{mask.key[0], mask.key[1], mask.threshold, mask.scale()}});
                const OnAccelerator<base::BFloat16> narrow(on, rows * columns);
                compute->activate(f, outputs.data(), biases.data(), rows, columns,
                                  probability > 0.0 ? dropout.data() : nullptr, numbers.data(), narrow.data());
                f == Activation::none   ? mlp::add_bias(y.data(), bias.data(), rows, columns)
                : f == Activation::relu ? mlp::add_bias_relu(y.data(), bias.data(), rows, columns)
                                        : mlp::add_bias_tanh(y.data(), bias.data(), rows, columns);
                if (mask.threshold > 0) mlp::drop(y.data(), samples, columns, mask);
                const auto found = outputs.values();
                check_close(found, y);
                check_narrow(narrow.values(), found);
                std::size_t signs = 0; // a dropped unit is -0
                for (std::size_t i = 0; i < y.size(); ++i)
                    signs +=
                        (y[i] == 0.0F && std::signbit(y[i])) != (found[i] == 0.0F && std::signbit(found[i])) ? 1 : 0;
                CHECK(signs == 0);

                auto d = random_numbers(rows * columns, 6);
                const OnAccelerator<float> deltas(on, d);
                const OnAccelerator<float> sums(on, columns);
                std::vector<float> expected(columns);
                const float scale = mask.scale();
                compute->activate_backward(f, deltas.data(), outputs.data(), scale, sums.data(), rows, columns,
                                           narrow.data());
                check_narrow(narrow.values(), deltas.values());
                // From the outputs of the device: near 1, the slope of tanh is the difference of almost equal numbers.
                f == Activation::none ? mlp::column_sums(d.data(), expected.data(), rows, columns)
                : f == Activation::relu
                    ? mlp::relu_backward(d.data(), found.data(), scale, expected.data(), rows, columns)
                    : mlp::tanh_backward(d.data(), found.data(), scale, expected.data(), rows, columns);
                check_close(deltas.values(), d);
                check_close(sums.values(), expected, 1e-5F);
            }
}

TEST_CASE("the gradient of no rows is zero", "[device]") {
    auto& on = first_device();
    const auto compute = on.make_compute(on.compute_stream());
    const OnAccelerator<float> sums(on, std::vector<float>{1.0F, 2.0F});
    compute->activate_backward(Activation::none, nullptr, nullptr, 1.0F, sums.data(), 0, 2, nullptr);
    CHECK(sums.values() == std::vector<float>{0.0F, 0.0F});
}

TEST_CASE("losses and their gradients are those of the host", "[device]") {
    auto& on = first_device();
    const auto compute = on.make_compute(on.compute_stream());
    for (const auto& [rows, columns] : sizes) {
        auto z = random_numbers(rows * columns, 7, 4.0F);
        std::vector<std::int32_t> classes(rows);
        for (std::size_t r = 0; r < rows; ++r) classes[r] = static_cast<std::int32_t>(r % columns);
        const auto targets = random_numbers(rows * columns, 8);
        for (const bool entropy : {true, false}) {
            auto expected = z;
            const auto sums = entropy ? mlp::cross_entropy(expected.data(), classes, columns, true, 0.25F)
                                      : mlp::squared_error(expected.data(), targets.data(), rows, columns, true, 0.25F);
            const OnAccelerator<float> logits(on, z);
            const OnAccelerator<std::int32_t> right(on, classes);
            const OnAccelerator<float> wanted(on, targets);
            const OnAccelerator<double> losses(on, rows);
            const OnAccelerator<double> total(on, 1);
            if (entropy)
                compute->cross_entropy(logits.data(), right.data(), rows, columns, 0.25F, losses.data());
            else
                compute->squared_error(logits.data(), wanted.data(), rows, columns, 0.25F, losses.data());
            compute->total(losses.data(), rows, total.data());
            check_close(logits.values(), expected);
            CHECK(total.values()[0] == Approx(sums.loss).epsilon(1e-6));
        }
    }
    auto nan = std::vector<float>{0.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F};
    const OnAccelerator<float> logits(on, nan);
    const OnAccelerator<std::int32_t> right(on, std::vector<std::int32_t>{0});
    const OnAccelerator<double> losses(on, 1);
    compute->cross_entropy(logits.data(), right.data(), 1, 3, 1.0F, losses.data());
    CHECK(std::isnan(losses.values()[0]));
}

TEST_CASE("optimizers are those of the host", "[device]") {
    auto& on = first_device();
    const auto compute = on.make_compute(on.compute_stream());
    const std::size_t size = 1000;
    const auto gradients = random_numbers(size, 9);
    const OnAccelerator<float> g(on, gradients);
    for (const int rule : {0, 1, 2, 3}) { // plain, momentum, nesterov, adamw
        mlp::OptimizerOptions options;
        options.kind = rule == 3 ? mlp::OptimizerOptions::Kind::adamw : mlp::OptimizerOptions::Kind::sgd;
        options.momentum = rule == 0 ? 0.0 : 0.9;
        options.nesterov = rule == 2;
        options.weight_decay = 0.01;
        mlp::Optimizer host(options, size);
        auto parameters = random_numbers(size, 10);
        const OnAccelerator<float> p(on, parameters);
        const OnAccelerator<float> first(on, std::vector<float>(size));
        const OnAccelerator<float> second(on, std::vector<float>(size));
        for (int step = 1; step <= 3; ++step) {
            host.update(parameters, gradients, 0.1);
            if (rule < 3) {
                compute->sgd(p.data(), g.data(), rule == 0 ? nullptr : first.data(), size,
                             {0.1F, static_cast<float>(options.momentum), 0.01F, options.nesterov});
            } else {
                const double t = step;
                compute->adam(p.data(), g.data(), first.data(), second.data(), size,
                              {0.9F, 0.999F, static_cast<float>(0.1 / (1.0 - std::pow(0.9, t))),
                               static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.999, t))), 1e-8F, 0.0F,
                               static_cast<float>(1.0 - 0.1 * 0.01)});
            }
        }
        check_close(p.values(), parameters);
    }
}

TEST_CASE("16-bit numbers are widened and narrowed as on the host", "[device]") {
    auto& on = first_device();
    auto numbers = random_numbers(5000, 11, 1000.0F);
    numbers.insert(numbers.end(), {0.0F, -0.0F, 65504.0F, 65520.0F, 6e-8F, 1.0F + 1.0F / 2048.0F, 3.4e38F,
                                   std::numeric_limits<float>::infinity()});
    const OnAccelerator<float> wide(on, numbers);
    const OnAccelerator<std::uint16_t> narrow(on, numbers.size());
    const OnAccelerator<float> back(on, numbers.size());
    for (const base::DType type : {base::DType::float16, base::DType::bfloat16}) {
        on.compute_stream().narrow(narrow.data(), type, wide.data(), numbers.size());
        on.compute_stream().widen(back.data(), narrow.data(), numbers.size(), type);
        std::vector<float> expected;
        for (const float number : numbers)
            expected.push_back(type == base::DType::float16 ? static_cast<float>(base::Float16(number))
                                                            : static_cast<float>(base::BFloat16(number)));
        CHECK(back.values() == expected);
    }
}

TEST_CASE("copies of a device are ordered after its streams, and events order streams", "[device]") {
    auto& on = first_device();
    const std::size_t count = 3'000'000; // several pieces of a copy
    const auto numbers = random_numbers(count, 12);
    const OnAccelerator<float> memory(on, numbers);
    CHECK(memory.values() == numbers);
    on.compute_stream().fill_zero(memory.data(), count * sizeof(float));
    CHECK(memory.values() == std::vector<float>(count));

    const auto ready = on.make_event();
    CHECK(ready->reached());
    const auto source = on.allocate_pinned(1024);
    const auto target = on.allocate_pinned(1024);
    std::memset(source.get(), 1, 1024);
    for (int round = 0; round < 20; ++round) {
        auto& first = on.compute_stream();
        auto& second = on.communication_stream();
        void* const scratch = first.allocate(1024);
        first.upload(scratch, source.get(), 1024);
        first.record(*ready);
        second.wait(*ready);
        second.download(target.get(), scratch, 1024);
        second.record(*ready);
        first.wait(*ready);
        first.release(scratch);
        testing::wait_for(second);
        CHECK(ready->reached());
        CHECK(static_cast<const unsigned char*>(target.get())[1023] == 1);
    }
    testing::wait_for(on.compute_stream());
}

TEST_CASE("recorded work runs at every launch, on what its memory has then", "[device]") {
    auto& on = first_device();
    auto& stream = on.compute_stream();
    const auto compute = on.make_compute(stream);
    const auto source = on.allocate_pinned(2 * sizeof(float));
    const auto target = on.allocate_pinned(2 * sizeof(float));
    auto* const from = static_cast<float*>(source.get());
    const auto* const to = static_cast<const float*>(target.get());
    const OnAccelerator<float> factor(on, std::vector<float>{1, 2, 3, 4});
    const OnAccelerator<float> row(on, 2);
    const OnAccelerator<float> product(on, 2);
    const OnAccelerator<float> sum(on, std::vector<float>{0, 0});
    const auto issue = [&] {
        stream.upload(row.data(), from, 2 * sizeof(float));
        compute->multiply(false, false, 1, 2, 2, {row.data(), 2}, {factor.data(), 2}, {product.data(), 2},
                          device::Precision::fp32);
        stream.add(sum.data(), product.data(), 2);
        stream.download(target.get(), sum.data(), 2 * sizeof(float));
    };
    from[0] = 1.0F;
    from[1] = 0.0F;
    issue(); // loads code
    testing::wait_for(stream);
    CHECK((to[0] == 1.0F && to[1] == 2.0F));
    stream.begin_recording();
    issue();
    const auto graph = stream.end_recording();
    testing::wait_for(stream);
    CHECK((to[0] == 1.0F && to[1] == 2.0F)); // nothing has run
    for (int round = 1; round <= 3; ++round) {
        from[0] = static_cast<float>(round);
        stream.launch(*graph);
        testing::wait_for(stream);
    }
    CHECK((to[0] == 7.0F && to[1] == 14.0F));
}

TEST_CASE("buffers of a device go through base::copy", "[device]") {
    auto& on = first_device();
    const base::Place place(on);
    const std::vector<double> values{1.5, 2.5, 3.5};
    const auto memory = base::allocate(place, values.size() * sizeof(double));
    const base::Buffer buffer(memory.get(), values.size(), base::DType::float64, place);
    base::copy(values, buffer);
    std::vector<double> back(2);
    base::copy(buffer.part(1, 2), back);
    CHECK(back == std::vector<double>{2.5, 3.5});
    CHECK_THROWS_AS(buffer.as<double>(), base::UsageError);
    CHECK(device::accelerator_of(place) == &on);
    CHECK(device::accelerator_of({}) == nullptr);
}

TEST_CASE("a full memory is an error of its own, and the device goes on", "[stand-in]") {
    auto& runtime = testing::runtime_or_skip();
    if (!testing::is_stand_in(runtime)) return;
    auto& on = runtime.open(0);
    setenv("RANKTUNE_STAND_IN_MEMORY", "64", 1); // KiB
    const auto told = [](auto&& call) {
        try {
            call();
        } catch (const device::DeviceMemoryError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    CHECK(told([&] { on.release(on.allocate(1 << 20)); }) ==
          "the memory of the GPU is full (cudaMalloc of 1048576 bytes: out of memory)");
    CHECK(told([&] { on.compute_stream().release(on.compute_stream().allocate(1 << 20)); }).find("full") !=
          std::string::npos);
    unsetenv("RANKTUNE_STAND_IN_MEMORY");
    CHECK(told([&] { on.release(on.allocate(1 << 20)); }).empty());
    const OnAccelerator<float> numbers(on, std::vector<float>{1.0F, 2.0F});
    CHECK(numbers.values() == std::vector<float>{1.0F, 2.0F});
}

TEST_CASE("neither a full memory nor a query of work in progress makes the next launch fail", "[stand-in]") {
    auto& on = first_device();
    auto& stream = on.compute_stream();
    const OnAccelerator<float> sum(on, std::vector<float>{1.0F});
    const OnAccelerator<float> one(on, std::vector<float>{1.0F});
    const auto event = on.make_event();
    const auto add = [&] { stream.add(sum.data(), one.data(), 1); };
    {
        const testing::With full("MEMORY", "64"); // KiB
        CHECK_THROWS_AS(on.allocate(1 << 20), device::DeviceMemoryError);
        CHECK(testing::error_of(add).empty());
        CHECK_THROWS_AS(stream.allocate(1 << 20), device::DeviceMemoryError);
        CHECK(testing::error_of(add).empty());
    }
    {
        const testing::With full("PINNED", "64");
        CHECK_THROWS_AS(on.allocate_pinned(1 << 20), std::bad_alloc);
        CHECK(testing::error_of(add).empty());
    }
    {
        const testing::With full("CAPTURE", "instantiate");
        stream.begin_recording();
        CHECK_THROWS_AS(stream.end_recording(), device::DeviceMemoryError);
        CHECK(testing::error_of(add).empty());
    }
    CHECK(sum.values() == std::vector<float>{5.0F});
    const testing::With slow("TAKES", "cudaMemsetAsync:50000");
    int busy = 0;
    for (int round = 0; round < 5; ++round) {
        stream.fill_zero(sum.data(), sizeof(float));
        stream.record(*event);
        busy += stream.idle() ? 0 : 1;
        CHECK(testing::error_of(add).empty());
        busy += event->reached() ? 0 : 1;
        CHECK(testing::error_of(add).empty());
    }
    CHECK(busy > 0);
    CHECK(sum.values() == std::vector<float>{2.0F});
}

TEST_CASE("memory of the host that copies use is freed when they have run", "[stand-in]") {
    auto& on = first_device();
    auto& stream = on.compute_stream();
    const testing::With slow("TAKES", "cudaMemcpyAsync to the device:100000,cudaMemcpyAsync to the host:100000");
    const OnAccelerator<float> memory(on, std::vector<float>{1.0F});
    for (const bool up : {true, false}) {
        {
            const auto pinned = on.allocate_pinned(sizeof(float));
            *static_cast<float*>(pinned.get()) = 2.0F;
            up ? stream.upload(memory.data(), pinned.get(), sizeof(float))
               : stream.download(pinned.get(), memory.data(), sizeof(float));
        }
        CHECK(testing::error_of([&] { testing::wait_for(stream); }).empty());
    }
    CHECK(memory.values() == std::vector<float>{2.0F});
}

TEST_CASE("a process that shares a GPU gets no more than its share of the memory", "[stand-in]") {
    auto& on = testing::runtime_or_skip().open(0);
    auto& stream = on.compute_stream();
    const auto fits = [&](std::size_t bytes) {
        try {
            stream.release(stream.allocate(bytes));
            on.release(on.allocate(bytes));
        } catch (const device::DeviceMemoryError& error) {
            CHECK(std::string(error.what()).starts_with("the share of the GPU's memory is used up ("));
            return false;
        }
        return true;
    };
    on.limit_memory(4 << 20);
    CHECK(fits(4 << 20));
    CHECK_FALSE(fits((4 << 20) + 1));
    void* const first = on.allocate(1 << 20);
    void* const second = stream.allocate(2 << 20);
    CHECK(fits(1 << 20));
    CHECK_FALSE(fits(2 << 20)); // device memory and that of all streams count together
    on.release(first);
    CHECK(fits(2 << 20));
    stream.release(second);
    CHECK(fits(4 << 20));
    on.limit_memory(0); // none
    CHECK(fits(8 << 20));
}

} // namespace compute_test
