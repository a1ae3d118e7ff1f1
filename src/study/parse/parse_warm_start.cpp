// SPDX-License-Identifier: Apache-2.0
// searcher.warm_start: earlier results to learn from. The files are read when the study begins, not here: a study that
// goes on no longer needs them.
#include <algorithm>

#include "study/options.hpp"
#include "study/parse/parse_algorithm.hpp"

namespace ranktune::study {
namespace {

constexpr const char* warm_key = "searcher.warm_start";
constexpr const char* warm_forms =
    "each entry is a path, or a table such as { path = \"old.csv\", metric = \"acc\" }; a path is that of a study "
    "directory, a CSV table or a journal of Optuna";

/// One string of an entry's table; a mistake has been reported if it is wrong.
std::string warm_text(const Node& node, const std::string& key, Mistakes& mistakes) {
    if (node.is(Node::Kind::string) && !node.text.empty()) return node.text;
    mistakes.value(node, key,
                   node.is(Node::Kind::string) ? "is empty" : "needs a string, not " + std::string(kind_text(node)));
    return {};
}

WarmSource warm_source(const Node& entry, Mistakes& mistakes) {
    WarmSource source;
    if (!entry.is(Node::Kind::table)) {
        source.path = warm_text(entry, warm_key, mistakes);
        return source;
    }
    bool has_path = false;
    for (const auto& [key, node] : entry.members) {
        const std::string dotted = std::string(warm_key) + "." + key;
        if (key == "path") {
            has_path = true;
            source.path = warm_text(node, dotted, mistakes);
        } else if (key == "metric") {
            source.metric = warm_text(node, dotted, mistakes);
        } else if (key == "study") {
            source.study = warm_text(node, dotted, mistakes);
        } else {
            mistakes.key(node, dotted, "unknown key; an entry has path, metric and study");
        }
    }
    if (!has_path) mistakes.value(entry, std::string(warm_key) + ".path", "missing: where the earlier results are");
    return source;
}

/// The searchers that can, for a message.
std::string warm_searchers(const ParseContext& context) {
    std::vector<const AlgorithmInfo*> names;
    for (const auto& searcher : context.known.algorithms.searchers)
        if (searcher->uses_earlier_results) names.push_back(searcher.get());
    return type_names(names);
}

} // namespace

void parse_warm_start(ParseContext& context, TableReader& searcher) {
    const Node* list = searcher.take("warm_start");
    if (list == nullptr) return;
    const bool right = list->is(Node::Kind::array) && std::ranges::all_of(list->items, [](const Node& item) {
                           return item.is(Node::Kind::string) || item.is(Node::Kind::table);
                       });
    if (!right) return context.mistakes.value(*list, warm_key, std::string("needs a list; ") + warm_forms);
    if (!list->items.empty() && !context.spec.searcher.algorithm->uses_earlier_results)
        return context.mistakes.key(*list, warm_key,
                                    in_quotes(context.spec.searcher.algorithm->name) +
                                        " does not learn from earlier results; use " + warm_searchers(context) +
                                        ", or give the best of them as [[searcher.start]]");
    if (!list->items.empty() && !context.spec.objective.constraints.empty())
        return context.mistakes.key(*list, warm_key,
                                    "does not go with study.constraints: earlier results do not say whether they hold");
    if (!list->items.empty() && context.spec.objective.several())
        return context.mistakes.key(*list, warm_key,
                                    "does not go with several metrics in study.metric: earlier results have one value; "
                                    "give the best of them as [[searcher.start]]");
    for (const Node& item : list->items) {
        WarmSource source = warm_source(item, context.mistakes);
        if (source.path.empty()) continue;
        source.path = absolute_path(source.path, context.directory);
        context.spec.searcher.warm_start.push_back(std::move(source));
    }
}

} // namespace ranktune::study
