// SPDX-License-Identifier: Apache-2.0
// Plain rows of a table, or of a source whose rows are packed.

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "base/csv.hpp"
#include "base/json_text.hpp"
#include "base/number_in.hpp"
#include "data/formats.hpp"
#include "data/mapped_file.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "storage/file_system.hpp"

namespace ranktune::data {

namespace {

/// The rows that are decoded may take so much, and whoever decodes them may be told to stop.
struct Limits {
    std::uint64_t room;
    const std::function<void()>& check;
};

/// A .safetensors file that is being written. Fields follow each other; each has all rows.
class RowsWriter {
  public:
    RowsWriter(const std::string& path, const std::vector<Field>& fields, const Extent& extent, std::uint64_t room)
        : file_(storage::posix_file_system().open(path, storage::FileSystem::Open::create_new)) {
        std::string header =
            "{\"__metadata__\":{\"ranktune.chunk_samples\":\"" + std::to_string(extent.chunk_samples) + "\"}";
        std::uint64_t end = 0;
        for (const Field& field : fields) {
            begins_.push_back(end);
            end += product(extent.samples, field.bytes());
            header += "," + base::json_string(field.name) + ":{\"dtype\":\"" +
                      std::string(safetensors_name(field.type)) + "\",\"shape\":[" + std::to_string(extent.samples);
            for (const std::size_t n : field.shape) header += "," + std::to_string(n);
            header += "],\"data_offsets\":[" + std::to_string(begins_.back()) + "," + std::to_string(end) + "]}";
        }
        header += "}";
        header.resize((header.size() + 7) / 8 * 8, ' '); // rows are aligned
        const std::uint64_t length = header.size();
        if (end > room)
            throw base::IoError("the decoded rows, " + base::bytes_text(end) + ", are larger than the room for", path,
                                std::make_error_code(std::errc::no_space_on_device));
        file_->reserve(sizeof length + length + end);
        file_->write_at(0, std::as_bytes(std::span(&length, 1)));
        file_->write_at(sizeof length, std::as_bytes(std::span(header)));
        for (std::uint64_t& begin : begins_) begin += sizeof length + header.size();
    }
    void write(std::size_t field, std::uint64_t row_bytes, std::uint64_t first, std::span<const std::byte> rows) {
        file_->write_at(begins_[field] + first * row_bytes, rows);
    }

  private:
    std::unique_ptr<storage::File> file_;
    std::vector<std::uint64_t> begins_; ///< of each field in the file
};

constexpr std::uint64_t piece_bytes = std::uint64_t{4} << 20U;

void refuse_varying(const Source& source) {
    for (const Field& field : source.fields())
        if (field.varying) refuse_file(source.path(), "field '" + field.name + "' has no rows of one size");
}

/// Of all rows.
std::uint64_t bytes_of(const Source& source) {
    refuse_varying(source);
    std::uint64_t bytes = 0;
    for (const Field& field : source.fields()) bytes += product(source.samples(), field.bytes());
    return bytes;
}

void write_source(const Source& source, const std::string& out_path, const Limits& limits) {
    refuse_varying(source);
    RowsWriter out(out_path, source.fields(), source.extent(), limits.room);
    for (std::size_t i = 0; i < source.fields().size(); ++i) {
        const std::uint64_t row = source.fields()[i].bytes();
        const std::uint64_t at_once = std::max<std::uint64_t>(piece_bytes / std::max<std::uint64_t>(row, 1), 1);
        std::vector<std::uint64_t> numbers;
        std::vector<std::byte> rows;
        for (std::uint64_t first = 0; first < source.samples(); first += numbers.size()) {
            limits.check();
            numbers.resize(std::min(at_once, source.samples() - first));
            for (std::uint64_t n = 0; n < numbers.size(); ++n) numbers[n] = first + n;
            rows.resize(numbers.size() * row);
            source.gather(i, numbers, rows);
            out.write(i, row, first, rows);
        }
    }
}

/// A table, read twice: once for the types of its columns, once for their numbers.
class Table {
  public:
    /// `most`: rows to look at.
    Table(const std::string& path, const Limits& limits, std::uint64_t most = ~std::uint64_t{0})
        : path_(path), limits_(limits), file_(path) {
        base::CsvReader rows = reader();
        if (!next(rows, names_)) refuse_file(path_, "is empty");
        std::vector<bool> whole(names_.size(), true);
        each_row(rows, [&](std::span<const double>, std::span<const char> is_whole) {
            for (std::size_t i = 0; i < whole.size(); ++i) whole[i] = whole[i] && is_whole[i] != 0;
            return ++samples_ < most;
        });
        if (samples_ == 0) refuse_file(path_, "has a first line with names, and no rows below it");
        make_fields(whole);
    }

    void write(const std::string& out_path) const {
        std::vector<Field> fields;
        for (const Columns& columns : columns_) fields.push_back(columns.field);
        RowsWriter out(out_path, fields, {samples_, 0, 1}, limits_.room);
        std::vector<std::vector<std::byte>> rows(fields.size());
        std::uint64_t written = 0;
        std::uint64_t held = 0;
        const auto flush = [&] {
            for (std::size_t i = 0; i < fields.size(); ++i) {
                out.write(i, fields[i].bytes(), written, rows[i]);
                rows[i].clear();
            }
            written += std::exchange(held, 0);
        };
        base::CsvReader reader = this->reader();
        std::vector<std::string> names;
        static_cast<void>(next(reader, names));
        each_row(reader, [&](std::span<const double> values, std::span<const char>) {
            for (std::size_t i = 0; i < fields.size(); ++i)
                for (std::size_t c = 0; c < columns_[i].count; ++c)
                    append(rows[i], fields[i].type, values[columns_[i].first + c]);
            if (++held == rows_at_once) flush();
            return true;
        });
        flush();
    }

  private:
    static constexpr std::uint64_t rows_at_once = 4096;
    /// Columns that are one field.
    struct Columns {
        Field field;
        std::size_t first = 0;
        std::size_t count = 1;
    };

    [[nodiscard]] base::CsvReader reader() const {
        return base::CsvReader({reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()});
    }
    bool next(base::CsvReader& rows, std::vector<std::string>& cells) const {
        try {
            return rows.next(cells);
        } catch (const base::FormatError& error) {
            refuse_file(path_, "line " + std::to_string(rows.row_line()) + ": " + error.what());
        }
    }
    static void append(std::vector<std::byte>& rows, ElementType type, double value) {
        const auto add = [&](auto number) {
            const auto bytes = std::as_bytes(std::span(&number, 1));
            rows.insert(rows.end(), bytes.begin(), bytes.end());
        };
        if (type == ElementType::int64) return add(static_cast<std::int64_t>(value));
        add(value);
    }
    /// Calls `take(values, which are whole numbers)` as long as that wants more.
    template <class Take>
    void each_row(base::CsvReader& rows, Take&& take) const {
        std::vector<std::string> cells;
        std::vector<double> values(names_.size());
        std::vector<char> whole(names_.size());
        while (next(rows, cells)) {
            limits_.check();
            const std::string line = "line " + std::to_string(rows.row_line());
            for (std::size_t i = 0; i < cells.size(); ++i) {
                const auto number = base::number_in<double>(cells[i]);
                values[i] = number.value_or(std::numeric_limits<double>::quiet_NaN());
                if (!number && !cells[i].empty())
                    refuse_file(path_, line + ", column '" + names_[i] + "': '" + cells[i] +
                                           "' is no number; give each text a number first");
                constexpr double exact = 9007199254740992.0; // 2^53
                whole[i] = std::abs(values[i]) <= exact && values[i] == std::floor(values[i]) ? 1 : 0;
            }
            if (!take(std::span<const double>(values), std::span<const char>(whole))) return;
        }
    }
    /// "x12" -> "x", 12; nullopt: no number at the end, or nothing else.
    static std::optional<std::pair<std::string, std::uint64_t>> numbered(const std::string& name) {
        const std::size_t last = name.find_last_not_of("0123456789");
        if (last == std::string::npos || last + 1 == name.size() || name.size() - last > 10) return std::nullopt;
        return std::pair(name.substr(0, last + 1), std::stoull(name.substr(last + 1)));
    }
    void make_fields(const std::vector<bool>& whole) {
        for (std::size_t i = 0; i < names_.size();) {
            Columns columns{{names_[i], whole[i] ? ElementType::int64 : ElementType::float64}, i};
            const auto first = numbered(names_[i]);
            std::size_t end = i + 1;
            while (first && end < names_.size() &&
                   numbered(names_[end]) == std::pair(first->first, first->second + (end - i))) {
                if (!whole[end]) columns.field.type = ElementType::float64;
                ++end;
            }
            columns.count = end - i;
            if (columns.count > 1) {
                columns.field.name = first->first;
                columns.field.shape = {columns.count};
            }
            for (const Columns& other : columns_)
                if (other.field.name == columns.field.name)
                    refuse_file(path_, "line 1: two fields are named '" + other.field.name + "'");
            columns_.push_back(std::move(columns));
            i = end;
        }
    }

    std::string path_;
    Limits limits_;
    MappedFile file_;
    std::vector<std::string> names_;
    std::uint64_t samples_ = 0;
    std::vector<Columns> columns_;
};

} // namespace

std::optional<std::uint64_t> decoded_bytes(const std::string& path, const SourceOptions& options) {
    if (!path.ends_with(".csv")) return bytes_of(*Source::open(path, options));
    refuse_unread(path, options, ".csv");
    const std::function<void()> never = [] {};
    constexpr std::uint64_t looked_at = 100;
    static_cast<void>(Table(path, {0, never}, looked_at));
    return std::nullopt;
}

void decode_rows(const std::string& path, const SourceOptions& options, const std::string& out_path, std::uint64_t room,
                 const std::function<void()>& check) {
    const Limits limits{room, check};
    if (path.ends_with(".csv")) return Table(path, limits).write(out_path);
    write_source(*Source::open(path, options), out_path, limits);
}

} // namespace ranktune::data
