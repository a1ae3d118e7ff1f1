// SPDX-License-Identifier: Apache-2.0
// The built-in `outside`: trials run in a loop of the user's, which asks for them and tells their results
// (head/asktell). No rank trains them.

#include "study/outside.hpp"
#include "ranktune/base/error.hpp"
#include "trainables/builtin.hpp"

namespace ranktune::trainables {

Registration outside_registration() {
    return {{.name = study::outside_name,
             .description = "a loop of yours asks for trials and tells their results: `ranktune.create`; "
                            "further keys are constants of every configuration",
             .can_checkpoint = false,
             .any_option = true,
             .may_use_gpus = false},
            {},
            [](FunctionContext&) { throw base::UsageError(driven_from_outside("DIR")); }};
}

std::string driven_from_outside(const std::string& directory) {
    return "this study is driven by ask and tell (trainable.builtin = \"outside\"): a loop of yours asks for its "
           "trials. Go on with it in Python: `ranktune.open_study(\"" +
           directory + "\")`";
}

} // namespace ranktune::trainables
