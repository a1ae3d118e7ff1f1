// SPDX-License-Identifier: Apache-2.0
// What a trainable saves: named tensors and blobs, in one piece or in parts; and digests, to compare them.
#include <cstdint>
#include <span>
#include <vector>

#include <ranktune/base/digest.hpp>
#include <ranktune/study/state.hpp>

int main() {
    using namespace ranktune::study;
    const std::vector<float> weight{1, 2, 3, 4, 5, 6};
    const std::uint64_t steps = 42;

    MemoryState state; // a sink and a source at once; a trial gets one that ends in a file
    state.put<float>("weight", weight, {2, 3});
    state.put<std::uint64_t>("steps", std::span(&steps, 1));
    std::vector<float> again(6);
    state.get<float>("weight", again, {2, 3}); // throws base::FormatError for another name, type or shape
    if (again != weight) return 1;

    // A table of four rows, of which two ranks hold two each: every rank saves its own, any rank asks for any.
    MemoryState table;
    table.put_rows<float>("table", std::vector<float>{0, 1}, {4}, 0, 2);
    table.put_rows<float>("table", std::vector<float>{2, 3}, {4}, 2, 2);
    std::vector<float> middle(2);
    table.get_rows<float>("table", middle, {4}, 1, 2);
    if (middle != std::vector<float>{1, 2}) return 1;

    // The digest that the ranks of a trial compare when they save, and one of bytes of your own.
    MemoryState other;
    other.put<float>("weight", again, {2, 3});
    other.put<std::uint64_t>("steps", std::span(&steps, 1));
    const auto digest = ranktune::base::Digest().add(std::as_bytes(std::span(weight))).add(steps).value();
    return state.digest() == other.digest() && digest != ranktune::base::Digest().value() ? 0 : 1;
}
