// SPDX-License-Identifier: Apache-2.0
#pragma once
// SignalText: builds and writes a text within a signal handler.

#include <unistd.h>

#include <cstddef>

namespace ranktune::process {

/// Text beyond its capacity is cut. Allocates nothing, locks nothing.
class SignalText {
  public:
    SignalText& add(const char* text) {
        while (*text != '\0' && size_ < sizeof text_) text_[size_++] = *text++;
        return *this;
    }
    SignalText& add(long number) {
        char digits[24];
        char* at = digits + sizeof digits;
        *--at = '\0';
        auto left = number < 0 ? 0UL - static_cast<unsigned long>(number) : static_cast<unsigned long>(number);
        do {
            *--at = static_cast<char>('0' + left % 10);
            left /= 10;
        } while (left != 0);
        if (number < 0) *--at = '-';
        return add(at);
    }
    void write_to(int fd) const { [[maybe_unused]] const auto done = write(fd, text_, size_); }

  private:
    char text_[512];
    std::size_t size_ = 0;
};

} // namespace ranktune::process
