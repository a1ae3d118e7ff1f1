// SPDX-License-Identifier: Apache-2.0
#include "process/output_limit.hpp"

#include <utility>

namespace ranktune::process {

void OutputLimit::line(std::string_view text) {
    const std::size_t size = text.size() + 1;
    if (!full_ && written_ + size <= limits_.first) {
        written_ += size;
        return write_(text);
    }
    if (!std::exchange(full_, true))
        write_("... the program has printed " + std::to_string(limits_.first) +
               " bytes: of what follows the end is kept, and written when it is over");
    kept_.emplace_back(text);
    kept_bytes_ += size;
    while (kept_bytes_ > limits_.last && kept_.size() > 1) {
        kept_bytes_ -= kept_.front().size() + 1;
        lost_bytes_ += kept_.front().size() + 1;
        ++lost_lines_;
        kept_.pop_front();
    }
}

void OutputLimit::finish() {
    if (lost_lines_ > 0)
        write_("... " + std::to_string(lost_lines_) + " lines of " + std::to_string(lost_bytes_) +
               " bytes were left out here");
    for (const std::string& text : kept_) write_(text);
    kept_.clear();
    kept_bytes_ = 0;
    lost_lines_ = lost_bytes_ = 0;
}

void OutputLimit::begin_again() {
    written_ = 0;
    full_ = false;
}

} // namespace ranktune::process
