// SPDX-License-Identifier: Apache-2.0
#pragma once
// PlainSource: fields whose rows lie one after the other in a mapped file.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/mapped_file.hpp"
#include "ranktune/data/source.hpp"

namespace ranktune::data {

/// A field, and where its first row begins in the file.
struct Placed {
    Field field;
    std::uint64_t offset = 0;
};

class PlainSource final : public Source {
  public:
    /// Requires rows that lie within the file.
    PlainSource(const std::string& path, std::unique_ptr<MappedFile> file, std::vector<Placed> placed, Extent extent);
    void gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const override;

  private:
    std::unique_ptr<MappedFile> file_;
    std::vector<Placed> placed_;
};

} // namespace ranktune::data
