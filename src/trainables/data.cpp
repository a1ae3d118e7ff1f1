// SPDX-License-Identifier: Apache-2.0
#include "ranktune/trainables/data.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "ranktune/study/event.hpp"

namespace ranktune::trainables {
namespace {

data::OrderOptions order_of(const study::DataFile& file) {
    data::OrderOptions order;
    if (file.shuffle == "full") order.shuffle = data::Shuffle::full;
    if (file.shuffle == "lanes") order.shuffle = data::Shuffle::lanes;
    if (file.shuffle == "none") order.shuffle = data::Shuffle::none;
    if (file.shuffle_memory > 0) order.memory = file.shuffle_memory;
    return order;
}

} // namespace

NamedData open_data(const TrialContext& context, std::string_view name) {
    const study::DataFile& entry = context.data(name);
    NamedData opened{.source = nullptr, .loading = loading_in(context, {})};
    if (!entry.is_mixture()) {
        opened.source = data::Source::open(entry);
        opened.loading.order = order_of(entry);
        opened.loading.drop_last = entry.drop_last;
        return opened;
    }
    std::vector<std::shared_ptr<const data::Source>> sources;
    for (const study::DataPart& part : entry.parts) {
        const study::DataFile& file = context.data(part.source);
        sources.push_back(data::Source::open(file));
        opened.loading.mixture.push_back({part.weight, part.from, order_of(file)});
    }
    opened.source = std::make_shared<data::JoinedSource>(std::move(sources));
    return opened;
}

data::LoaderOptions loading_in(const TrialContext& context, data::LoaderOptions loading) {
    loading.rank = context.rank();
    loading.ranks = context.size();
    loading.seed = context.seed();
    loading.trial = context.trial().value();
    if (loading.threads <= 1) loading.threads = std::max(context.cpus_per_rank() - 1, 1);
    return loading;
}

void log_order(TrialContext& context, const data::Source& source, const data::LoaderOptions& loading) {
    if (context.rank() != 0) return;
    const auto log = [&](const data::Source& file, const data::OrderOptions& order) {
        for (const std::string& text : data::order_advice(file.extent(), order, context.size()))
            context.log("data file '" + file.path() + "': " + text);
    };
    if (loading.mixture.empty()) return log(source, loading.order);
    const auto* joined = dynamic_cast<const data::JoinedSource*>(&source);
    for (std::size_t i = 0; joined != nullptr && i < std::min(loading.mixture.size(), joined->sources().size()); ++i)
        log(*joined->sources()[i], loading.mixture[i].order);
}

Metrics wait_metrics(ddp::Group& group, const data::LoadTime& waited, const data::LoaderOptions& loading) {
    std::array<double, 4> seconds{waited.all(), waited.disk, waited.decode, waited.map};
    group.all_reduce(std::span(seconds));
    for (double& each : seconds) each /= group.size();
    Metrics metrics{{std::string(study::data_wait_metric), seconds[0]},
                    {std::string(study::disk_wait_metric), seconds[1]},
                    {std::string(study::decode_wait_metric), seconds[2]}};
    if (loading.map) metrics.emplace_back(study::map_wait_metric, seconds[3]);
    return metrics;
}

} // namespace ranktune::trainables
