// SPDX-License-Identifier: Apache-2.0
#pragma once
// Source: samples 0 .. n-1 of a file, read in any order.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranktune/data/order.hpp"

namespace ranktune::study {
struct DataFile;
}

namespace ranktune::data {

/// Numbers as files have them, in the byte order of this machine.
enum class ElementType : std::uint8_t {
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float16,
    bfloat16,
    float32,
    float64
};
[[nodiscard]] std::size_t size_of(ElementType type);
[[nodiscard]] std::string_view name(ElementType type); ///< "float32"
[[nodiscard]] std::optional<ElementType> element_type(std::string_view name);

/// What every sample has.
struct Field {
    std::string name;
    ElementType type = ElementType::uint8;
    std::vector<std::size_t> shape = {}; ///< of one sample; empty: a number
    bool varying = false;                ///< samples have different numbers of bytes: `bytes` has them, not `gather`
    [[nodiscard]] std::size_t bytes() const; ///< of one sample; 0 if they vary
    friend bool operator==(const Field&, const Field&) = default;
};

struct SourceOptions {
    std::string group = {};                         ///< of an HDF5 file whose data sets are the fields; empty: the root
    std::string field = {};                         ///< of that group, the only one to open; empty: all
    std::string dtype = {};                         ///< of a raw file: "float32"
    std::vector<std::size_t> shape = {};            ///< of a sample of a raw file
    std::size_t tokens = 0;                         ///< of a sample of a token file (.bin), one after the other
    std::uint64_t memory = std::uint64_t{1} << 30U; ///< bytes of decoded chunks that are kept
};

/// Formats: .npy, .safetensors, HDF5 (.h5, .hdf5), token files (.bin, with Megatron's .idx beside it, or `dtype` and
/// `tokens`), raw numbers (`dtype` and `shape`), and .tar, whose members are grouped by name as in WebDataset: the name
/// up to its first point is the sample, the rest the field. Files are mapped; chunked HDF5 is decoded by the calling
/// thread. The file must not change while it is open. All functions are thread-safe; none is collective.
class Source {
  public:
    /// Throws base::IoError; base::FormatError with file and field; base::UsageError for a format that is not read,
    /// with the line that converts it.
    [[nodiscard]] static std::shared_ptr<const Source> open(const std::string& path, const SourceOptions& options = {});

    /// The same of an entry of [data]: TrialContext::data.
    [[nodiscard]] static std::shared_ptr<const Source> open(const study::DataFile& file);

    virtual ~Source() = default;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
    [[nodiscard]] const Extent& extent() const { return extent_; }
    [[nodiscard]] std::uint64_t samples() const { return extent_.samples; }
    /// The number of a field. Throws base::UsageError with the names that there are.
    [[nodiscard]] std::size_t field(std::string_view name) const;

    /// Rows into `out`, in the order of `samples`. Requires samples below samples(), and out.size() = samples.size() *
    /// fields()[field].bytes(). Throws base::FormatError with file, field and samples when a chunk is damaged.
    virtual void gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const = 0;
    /// The bytes of a varying field, as long as this object lives; empty: the sample does not have it.
    [[nodiscard]] virtual std::span<const std::byte> bytes(std::size_t field, std::uint64_t sample) const;

  protected:
    Source(std::string path, std::vector<Field> fields, Extent extent);

  private:
    std::string path_;
    std::vector<Field> fields_;
    Extent extent_;
};

/// The samples of several sources, one after the other: files of one data set, or what a mixture takes from. Throws
/// base::UsageError unless all have the same fields.
class JoinedSource final : public Source {
  public:
    explicit JoinedSource(std::vector<std::shared_ptr<const Source>> sources);
    [[nodiscard]] const std::vector<std::shared_ptr<const Source>>& sources() const { return sources_; }
    /// The number of the first sample of source i.
    [[nodiscard]] std::uint64_t begin(std::size_t i) const { return begins_[i]; }
    void gather(std::size_t field, std::span<const std::uint64_t> samples, std::span<std::byte> out) const override;
    [[nodiscard]] std::span<const std::byte> bytes(std::size_t field, std::uint64_t sample) const override;

  private:
    [[nodiscard]] std::size_t source_of(std::uint64_t sample) const;
    std::vector<std::shared_ptr<const Source>> sources_;
    std::vector<std::uint64_t> begins_;
};

/// Writes the rows of a source, or of a table (.csv), as plain rows: a .safetensors file, which is mapped, and whose
/// order is that of the original (Source::extent is kept). Numbered columns of a table that follow each other (x1, x2,
/// x3) become one field (x); whole numbers become int64, others float64, empty cells NaN. `out_path` must not exist.
/// Not collective. Throws as Source::open; base::FormatError with file, line and column; base::IoError, before the
/// first row is written, when they need more than `room` bytes or the disk has less; and what `check`, which is called
/// often, throws.
void decode_rows(
    const std::string& path, const SourceOptions& options, const std::string& out_path,
    std::uint64_t room = std::numeric_limits<std::uint64_t>::max(), const std::function<void()>& check = [] {});

} // namespace ranktune::data
