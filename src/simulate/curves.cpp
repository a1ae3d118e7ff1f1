// SPDX-License-Identifier: Apache-2.0
#include "simulate/curves.hpp"

#include "simulate/driver.hpp"
#include "simulate/power_laws.hpp"
#include "simulate/recorded_curves.hpp"

namespace ranktune::simulate {

std::unique_ptr<Curves> make_curves(const Setup& setup) {
    const Model& model = setup.model;
    if (setup.recordings)
        return std::make_unique<RecordedCurves>(setup.recordings, model.curves, model.time, setup.spec);
    return std::make_unique<PowerLaws>(model.curves, model.time, setup.spec);
}

} // namespace ranktune::simulate
