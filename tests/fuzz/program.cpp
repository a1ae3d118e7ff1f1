// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "fuzz/targets.hpp"
#include "process/program/messages.hpp"
#include "ranktune/base/error.hpp"

namespace ranktune::fuzz {

int program(const std::uint8_t* data, std::size_t size) {
    process::LineBuffer lines;
    const std::string_view text = text_of(data, size);
    // In two pieces, as it may arrive.
    lines.add(text.substr(0, size / 2));
    lines.add(text.substr(size / 2));
    while (const auto line = lines.next()) {
        std::vector<std::string> unknown;
        try {
            const auto message = process::parse_program_message(*line, unknown);
            if (const auto* saved = std::get_if<process::ProgramSaved>(&message))
                require(saved->checkpoint.size() <= line->size(), "a path is no longer than its line");
        } catch (const base::FormatError& error) {
            require(std::string_view(error.what()).size() < 400, "a message about a line is short");
        }
    }
    return 0;
}

} // namespace ranktune::fuzz
