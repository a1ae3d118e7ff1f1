// SPDX-License-Identifier: Apache-2.0
// Hyper-parameters: looking them up, their kinds, and the error that a wrong one ends in.
#include <cstdio>
#include <string>

#include <ranktune/base/error.hpp>
#include <ranktune/space/configuration.hpp>
#include <ranktune/space/value.hpp>

int main() {
    using ranktune::space::Configuration;
    using ranktune::space::Value;
    const Configuration configuration(
        {{"optimizer.lr", 0.01}, {"batch_size", 64}, {"hidden", Value::List{128, 64}}, {"activation", "relu"}});

    const double lr = configuration.at("optimizer.lr").as_double();
    const double batch = configuration.at("batch_size").as_double(); // an integer is a number, too
    std::size_t units = 0;
    for (const Value& size : configuration.at("hidden").as_list()) units += static_cast<std::size_t>(size.as_int());
    const bool momentum = configuration.contains("momentum"); // not where its condition does not hold
    std::puts(configuration.text().c_str());

    std::string error;
    try {
        static_cast<void>(configuration.at("activation").as_int());
    } catch (const ranktune::base::UsageError& wrong) { // fails the trial, with these words
        error = wrong.what();
    }
    return lr == 0.01 && batch == 64.0 && units == 192 && !momentum && !error.empty() ? 0 : 1;
}
