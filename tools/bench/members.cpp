// SPDX-License-Identifier: Apache-2.0
// `ranktune` with the trainable of pbt_vs_ray.py in C++: weights that grow by the learning rate, 0.2 s per iteration.
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <ranktune/ranktune.hpp>

namespace {

using namespace std::chrono_literals;

constexpr std::size_t floats = 100UL << 18U; // 100 MiB

class Member final : public ranktune::Trainable {
    void setup(ranktune::TrialContext& context) override {
        lr_ = static_cast<float>(context.configuration().at("lr").as_double());
    }
    ranktune::Metrics step(ranktune::TrialContext& /*context*/) override {
        std::this_thread::sleep_for(200ms); // a device would train
        for (float& weight : weights_) weight += lr_;
        return {{"score", weights_.front()}};
    }
    void save(ranktune::StateSink& sink) const override { sink.put<float>("weights", weights_); }
    void load(ranktune::StateSource& source) override { source.get<float>("weights", weights_); }

    std::vector<float> weights_ = std::vector<float>(floats);
    float lr_ = 0.0F;
};

} // namespace

int main(int argc, char** argv) {
    const ranktune::OptionInfo lr{
        .name = "lr", .required = true, .description = "what weights grow by", .may_change = true};
    ranktune::register_trainable<Member>({.name = "member", .options = {lr}, .metrics = {"score"}});
    return ranktune::run_program(argc, argv);
}
