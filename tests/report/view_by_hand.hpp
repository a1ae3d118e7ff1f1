// SPDX-License-Identifier: Apache-2.0
#pragma once
// The view of a study that a test drives, from its records, without files.

#include "report/view/study_view.hpp"
#include "study_by_hand.hpp"

namespace ranktune::report::testing {

/// What reading these records from a journal gives.
struct Reread {
    explicit Reread(const StudyByHand& study) {
        loaded.tuner = std::make_unique<tuner::Tuner>(study.tuner.spec());
        for (std::uint64_t number = 0; number < study.records.size(); ++number) {
            const auto& record = study.records[number];
            loaded.tuner->apply(record);
            loaded.add(record, number);
            history.add(record, number, *loaded.tuner);
        }
    }
    LoadedStudy loaded;
    History history;
};

[[nodiscard]] inline StudyView view_of(const StudyByHand& study) {
    const Reread reread(study);
    return study_view(reread.loaded, reread.history);
}

} // namespace ranktune::report::testing
