// SPDX-License-Identifier: Apache-2.0
// Looks at a study that has run: the best trials, and how much each improved in its second half.
//   results STUDY_DIRECTORY
#include <algorithm>
#include <cstdio>

#include <ranktune/base/error.hpp>
#include <ranktune/results.hpp>

int main(int argc, char** argv) try {
    const ranktune::Study study = ranktune::Study::open(argc > 1 ? argv[1] : "digits");
    std::printf("%s: %zu trials%s\n", study.name().c_str(), study.trials().size(),
                study.ended() ? "" : ", and it goes on");
    for (const auto& trial : study.trials()) {
        const auto curve = study.curve(trial.id);
        if (curve.empty()) continue;
        std::printf("#%u: %s %g after %llu iterations, %g half way", static_cast<unsigned>(trial.id.value()),
                    study.metric().c_str(), trial.best, static_cast<unsigned long long>(trial.iterations),
                    curve[curve.size() / 2].value);
        for (const auto& [name, value] : trial.configuration.entries())
            std::printf("  %s=%s", name.c_str(), value.text().c_str());
        std::printf("\n");
    }
    if (const auto* best = study.best()) std::printf("best: #%u\n", static_cast<unsigned>(best->id.value()));
    return 0;
} catch (const ranktune::base::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
