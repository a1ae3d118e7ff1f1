// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data of the HTML report: one JSON document, by columns. Read by src/report/page/data.js.

#include <cstddef>
#include <span>
#include <string>

#include "report/view/study_view.hpp"
#include "report/view/surroundings.hpp"

namespace ranktune::report {

/// What the page keeps of a large study, so that a report of 10,000 trials stays below 10 MB. Longer curves are
/// thinned, evenly and with their best point; of attempts the longest stay, of decisions the newest.
struct PageLimits {
    std::size_t curve_points = 300'000;
    std::size_t attempts = 60'000;
    std::size_t decisions = 60'000;
};

/// One study of a page.
struct PageStudy {
    StudyView view;
    std::string directory; ///< as the user would type it
    std::string state;     ///< how it stands, in words: "finished, exit 0", "run by pid 4711 on n0"
    std::vector<Surroundings> surroundings = {}; ///< of its starts, as far as they are known
};

/// JSON without a "<", so that nothing in it can end the script element that holds it. Times are in hundredths of a
/// second of study time, columns of times and iterations as differences. `made`: when the page was made, RFC 3339.
[[nodiscard]] std::string page_data(std::span<const PageStudy> studies, const std::string& made,
                                    const PageLimits& limits = {});

/// Positions of the points of a curve that stay when only `most` (>= 3) may: the first, the last, the best, and evenly
/// spaced ones between them. Ascending.
[[nodiscard]] std::vector<std::size_t> thinned(const std::vector<CurvePoint>& curve, std::size_t most,
                                               study::Mode mode);

} // namespace ranktune::report
