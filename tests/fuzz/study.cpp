// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "study/study_files.hpp"
#include "support/known.hpp"

namespace ranktune::fuzz {

int study(const std::uint8_t* data, std::size_t size) {
    std::string_view rest = text_of(data, size);
    std::vector<std::string> texts; // the file, then overrides
    while (texts.empty() || !rest.empty()) {
        const auto one = rest.substr(0, rest.find('\0'));
        texts.emplace_back(one);
        rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    const std::string file = texts.front();
    texts.erase(texts.begin());
    try {
        const study::StudySpec spec = study::testing::parse(file, texts);
        const std::string resolved = study::resolved_toml(spec);
        require(study::resolved_toml(study::parse_resolved_study(resolved, "/studies/s.toml",
                                                                 ranktune::testing::built_in_algorithms())) == resolved,
                "a resolved study reads back as itself:\n" + resolved);
        static_cast<void>(study::resolved_toml_with_bounds(spec));
    } catch (const study::StudyFileError& error) {
        require(!error.mistakes().empty(), "a study is refused for a mistake");
    }
    return 0;
}

} // namespace ranktune::fuzz
