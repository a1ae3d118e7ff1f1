// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <mutex>

#include "ranktune/base/text.hpp"
#include "ranktune/trainables/trainable.hpp"
#include "trainables/builtin.hpp"

namespace ranktune::trainables {

namespace {

/// Registrations of this process. A deque: references to its elements stay valid.
struct Registry {
    std::mutex mutex;
    std::deque<Registration> entries{curve_registration(), mlp_registration(), outside_registration(),
                                     predict_registration(), torch_registration()};

    Registration* find(const std::string& name) {
        const auto found =
            std::find_if(entries.begin(), entries.end(), [&](const Registration& r) { return r.info.name == name; });
        return found == entries.end() ? nullptr : &*found;
    }
};

Registry& registry() {
    static Registry instance;
    return instance;
}

void add(Registration registration) {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    const std::string& name = registration.info.name;
    if (name.empty()) throw base::UsageError("a trainable needs a name");
    if (known.find(name) != nullptr) throw base::UsageError("a trainable named '" + name + "' is registered already");
    known.entries.push_back(std::move(registration));
}

} // namespace

void Trainable::predict(TrialContext&, const data::Batch&, study::StateSink&) {
    throw base::UsageError("it cannot predict: its class does not override Trainable::predict");
}

void register_trainable(study::TrainableInfo info, TrainableFactory factory) {
    if (!factory) throw base::UsageError("trainable '" + info.name + "': the factory is empty");
    add({std::move(info), std::move(factory), {}});
}

void register_function(study::TrainableInfo info, TrainFunction function) {
    if (!function) throw base::UsageError("trainable '" + info.name + "': the function is empty");
    add({std::move(info), {}, std::move(function)});
}

const Registration& find_trainable(const std::string& name) {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    if (const Registration* found = known.find(name)) return *found;
    std::vector<std::string> names;
    for (const Registration& entry : known.entries) names.push_back(entry.info.name);
    std::sort(names.begin(), names.end());
    throw base::UsageError("no trainable named '" + name + "'; there are " + base::join(names) +
                           base::suggestion(name, names));
}

std::optional<std::uint64_t> state_bytes(const std::string& trainable, const space::Configuration& configuration) {
    if (trainable == "curve") return curve_state_bytes(configuration);
    if (trainable == "mlp") return mlp_state_bytes(configuration);
    return std::nullopt;
}

std::vector<study::TrainableInfo> known_trainables() {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    std::vector<study::TrainableInfo> result;
    for (const Registration& entry : known.entries) result.push_back(entry.info);
    std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return result;
}

} // namespace ranktune::trainables
