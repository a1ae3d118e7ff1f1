// SPDX-License-Identifier: Apache-2.0
// For formats_test.py: the rows of a field, the last one first, on standard output. Of a varying field: all samples.
//   read_rows FILE FIELD [dtype=float32] [shape=2,3] [tokens=N] [group=G] [memory=BYTES] [decode=OUT]
#include <cstdio>
#include <sstream>
#include <string>

#include "ranktune/base/error.hpp"
#include "ranktune/data/source.hpp"

using namespace ranktune;

namespace {

void print(std::span<const std::byte> bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

void print_field(const data::Source& source, const std::string& name) {
    const std::size_t field = source.field(name);
    for (std::uint64_t i = 0; source.fields()[field].varying && i < source.samples(); ++i)
        print(source.bytes(field, i));
    if (source.fields()[field].varying) return;
    std::vector<std::uint64_t> samples(source.samples());
    for (std::uint64_t i = 0; i < samples.size(); ++i) samples[i] = samples.size() - 1 - i;
    std::vector<std::byte> rows(samples.size() * source.fields()[field].bytes());
    source.gather(field, samples, rows);
    print(rows);
}

std::vector<std::size_t> numbers_of(const std::string& text) {
    std::vector<std::size_t> numbers;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) numbers.push_back(std::stoull(part));
    return numbers;
}

} // namespace

int main(int count, char** arguments) {
    data::SourceOptions options;
    std::string decoded;
    for (int i = 3; i < count; ++i) {
        const std::string argument = arguments[i];
        const std::string name = argument.substr(0, argument.find('='));
        const std::string value = argument.substr(argument.find('=') + 1);
        if (name == "dtype") options.dtype = value;
        if (name == "shape") options.shape = numbers_of(value);
        if (name == "tokens") options.tokens = std::stoull(value);
        if (name == "group") options.group = value;
        if (name == "memory") options.memory = std::stoull(value);
        if (name == "decode") decoded = value;
    }
    try {
        std::string path = arguments[1];
        if (!decoded.empty()) data::decode_rows(std::exchange(path, decoded), options, decoded);
        const auto source = data::Source::open(path, options);
        std::fprintf(stderr, "%s, samples: %llu, chunk: %llu\n",
                     std::string(name(source->fields()[source->field(arguments[2])].type)).c_str(),
                     static_cast<unsigned long long>(source->samples()),
                     static_cast<unsigned long long>(source->extent().chunk_samples));
        print_field(*source, arguments[2]);
    } catch (const base::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
