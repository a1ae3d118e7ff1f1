// SPDX-License-Identifier: Apache-2.0
#include "ranktune/data/dataset.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "data/column_sums.hpp"
#include "data/file_version.hpp"
#include "ranktune/base/error.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::data {

namespace {

namespace hdf5 = storage::hdf5;

/// What is read of a dataset; its shapes always are.
enum class Reads : std::uint8_t {
    shapes,
    classes, ///< are counted, and not kept
    everything,
};

/// Reads one file; every error names the dataset. Used on the HDF5 thread only.
class Reader {
  public:
    Reader(std::string path, Reads reads) : path_(std::move(path)), reads_(reads), file_(open(path_)) {}
    [[nodiscard]] Reads reads() const { return reads_; }

    struct Array {
        std::vector<std::size_t> shape;
        bool is_float = false;
        hdf5::DatasetHandle dataset;
    };

    [[nodiscard]] Array array(const std::string& name) const {
        const std::string group = name.substr(0, name.find('/'));
        const bool exists = H5Lexists(file_.get(), group.c_str(), H5P_DEFAULT) > 0 &&
                            H5Lexists(file_.get(), name.c_str(), H5P_DEFAULT) > 0;
        hdf5::DatasetHandle dataset(exists ? H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT) : H5I_INVALID_HID);
        if (!dataset) fail(name, "is missing");
        const hdf5::SpaceHandle space(H5Dget_space(dataset.get()));
        const int rank = H5Sget_simple_extent_ndims(space.get());
        if (rank < 1) fail(name, "is a scalar; the first dimension has to be the sample");
        std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
        H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr);
        const hdf5::TypeHandle type(H5Dget_type(dataset.get()));
        const H5T_class_t kind = H5Tget_class(type.get());
        if (kind != H5T_FLOAT && kind != H5T_INTEGER) fail(name, "holds neither integers nor floating-point numbers");
        return {{extent.begin(), extent.end()}, kind == H5T_FLOAT, std::move(dataset)};
    }

    /// All numbers; none unless everything is read.
    [[nodiscard]] std::vector<float> values(const Array& array, const std::string& name) const {
        if (reads_ != Reads::everything) return {};
        std::size_t count = 1;
        for (const std::size_t n : array.shape) count *= n;
        std::vector<float> result(count);
        if (count > 0 &&
            H5Dread(array.dataset.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, result.data()) < 0)
            fail(name, unreadable);
        return result;
    }

    /// Calls `use` for each number of an array of one dimension.
    template <class Use>
    void each_integer(const Array& array, const std::string& name, Use&& use) const {
        constexpr hsize_t at_once = 1U << 20U;
        const hdf5::SpaceHandle file(H5Dget_space(array.dataset.get()));
        std::vector<std::int64_t> piece;
        for (hsize_t begin = 0; begin < array.shape[0]; begin += piece.size()) {
            const hsize_t count = std::min<hsize_t>(at_once, array.shape[0] - begin);
            piece.resize(count);
            const hdf5::SpaceHandle memory(H5Screate_simple(1, &count, nullptr));
            H5Sselect_hyperslab(file.get(), H5S_SELECT_SET, &begin, nullptr, &count, nullptr);
            if (H5Dread(array.dataset.get(), H5T_NATIVE_INT64, memory.get(), file.get(), H5P_DEFAULT, piece.data()) < 0)
                fail(name, unreadable);
            for (const std::int64_t value : piece) use(value);
        }
    }

    /// The integer attribute `name` of the root, if it exists.
    [[nodiscard]] std::optional<std::int64_t> attribute(const char* name) const {
        const htri_t exists = H5Aexists(file_.get(), name);
        if (exists < 0) fail(std::string("attribute ") + name, unreadable);
        if (exists == 0) return std::nullopt;
        const hdf5::AttributeHandle attribute(H5Aopen(file_.get(), name, H5P_DEFAULT));
        std::int64_t value = 0;
        const hdf5::SpaceHandle space(H5Aget_space(attribute.get()));
        if (H5Sget_simple_extent_npoints(space.get()) != 1 || H5Aread(attribute.get(), H5T_NATIVE_INT64, &value) < 0)
            fail(std::string("attribute ") + name, "is not one whole number");
        return value;
    }

    [[noreturn]] void fail(const std::string& name, const std::string& what) const {
        throw base::FormatError("dataset file '" + path_ + "': " + name + " " + what);
    }

  private:
    static hdf5::FileHandle open(const std::string& path) {
        static_cast<void>(version_of(path)); // says why a file cannot be found
        hdf5::FileHandle file = hdf5::open_unlocked(path);
        if (!file) throw base::FormatError("dataset file '" + path + "' cannot be opened as HDF5");
        return file;
    }

    static constexpr const char* unreadable =
        "cannot be read: the file is damaged, or needs a filter that this HDF5 does not have";
    std::string path_;
    Reads reads_;
    hdf5::QuietErrors quiet_;
    hdf5::FileHandle file_;
};

void check_finite(const Reader& reader, std::span<const float> values, const std::string& name) {
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
        reader.fail(name, "holds NaN or infinity");
}

void read_targets(const Reader& reader, const std::string& name, Split& split, Dataset& dataset, bool first) {
    const Reader::Array y = reader.array(name);
    if (y.shape[0] != split.count) reader.fail(name, "and x differ in their number of samples");
    const std::size_t width = y.shape.size() == 1 ? 1 : y.shape[1];
    if (y.shape.size() > 2 || width == 0) reader.fail(name, "has to be [n] or [n, k]");
    if (first) dataset.classification = !y.is_float;
    if (dataset.classification == y.is_float)
        reader.fail(name, "and train/y differ: classes are integers, targets floating point");
    if (y.is_float) {
        if (!first && width != dataset.outputs) reader.fail(name, "and train/y differ in their width");
        dataset.outputs = width;
        split.targets = reader.values(y, name);
        check_finite(reader, split.targets, name);
        return;
    }
    if (y.shape.size() != 1) reader.fail(name, "holds integers, so it has to be [n]: one class per sample");
    if (reader.reads() == Reads::shapes) return;
    reader.each_integer(y, name, [&](std::int64_t value) {
        if (value < 0 || value > 10'000'000) reader.fail(name, "holds class " + std::to_string(value));
        dataset.outputs = std::max(dataset.outputs, static_cast<std::size_t>(value) + 1);
        if (reader.reads() == Reads::everything) split.classes.push_back(static_cast<std::int32_t>(value));
    });
}

void read_split(const Reader& reader, const std::string& group, Split& split, Dataset& dataset, bool first) {
    const std::string name = group + "/x";
    const Reader::Array x = reader.array(name);
    split.count = x.shape[0];
    std::size_t features = 1;
    for (std::size_t i = 1; i < x.shape.size(); ++i) features *= x.shape[i];
    if (split.count == 0 || features == 0) reader.fail(name, "has no samples");
    if (split.count > (std::size_t{1} << 31)) reader.fail(name, "has more than 2^31 samples");
    if (!first && features != dataset.features) reader.fail(name, "and train/x differ in their number of features");
    dataset.features = features;
    split.x = reader.values(x, name);
    check_finite(reader, split.x, name);
    read_targets(reader, group + "/y", split, dataset, first);
}

/// The attribute counts classes that no sample has.
void count_classes(const Reader& reader, Dataset& dataset) {
    const auto seen = static_cast<std::int64_t>(dataset.outputs);
    const std::int64_t classes = reader.attribute("classes").value_or(seen);
    if (classes < seen) reader.fail("attribute classes", "is smaller than the largest class of y plus one");
    dataset.outputs = static_cast<std::size_t>(classes);
}

/// Of [count, width] values.
Scale make_scale(std::span<const float> values, std::size_t width, Scaling scaling) {
    ColumnSums sums(width);
    sums.add(values);
    return sums.scale(scaling);
}

void read_splits(const Reader& reader, Dataset& dataset) {
    read_split(reader, "train", dataset.train, dataset, true);
    read_split(reader, "val", dataset.val, dataset, false);
}

Dataset read(const Reader& reader) {
    Dataset dataset;
    read_splits(reader, dataset);
    if (dataset.classification && reader.reads() != Reads::shapes) count_classes(reader, dataset);
    return dataset;
}

/// Bytes of all samples in memory.
std::uint64_t bytes_of(const Dataset& dataset) {
    const std::size_t answers = dataset.classification ? 1 : dataset.outputs;
    return std::uint64_t{dataset.train.count + dataset.val.count} * (dataset.features + answers) * sizeof(float);
}

Dataset load(const std::string& path, Scaling scaling) {
    Dataset dataset = read(Reader(path, Reads::everything));
    dataset.x_scale = make_scale(dataset.train.x, dataset.features, scaling);
    rescale(dataset.x_scale, dataset.train.x);
    rescale(dataset.x_scale, dataset.val.x);
    if (!dataset.classification) {
        dataset.y_scale = make_scale(dataset.train.targets, dataset.outputs, Scaling::standard);
        rescale(dataset.y_scale, dataset.train.targets);
        rescale(dataset.y_scale, dataset.val.targets);
    }
    return dataset;
}

} // namespace

DatasetShape read_dataset_shape(const std::string& path) {
    const Dataset read_of = storage::hdf5_call([&] { return read(Reader(path, Reads::classes)); });
    return {read_of.features, read_of.outputs, read_of.classification, read_of.train.count, read_of.val.count};
}

Dataset load_dataset(const std::string& path, Scaling scaling) {
    return storage::hdf5_call([&] { return load(path, scaling); });
}

std::string dataset_problem(const std::string& path) {
    return storage::hdf5_call([&]() -> std::string {
        try {
            static_cast<void>(read(Reader(path, Reads::shapes)));
        } catch (const base::Error& error) {
            return error.what();
        }
        return "";
    });
}

FileVersion version_of(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0)
        throw base::IoError("dataset file", path, std::error_code(errno, std::generic_category()));
    return {status.st_size, std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

std::shared_ptr<const Dataset> shared_dataset(const std::string& path, Scaling scaling, std::uint64_t limit) {
    struct Kept {
        std::mutex mutex;
        std::string path;
        Scaling scaling = Scaling::none;
        FileVersion version;
        std::shared_ptr<const Dataset> dataset;
    };
    static Kept kept;
    const FileVersion version = version_of(path);
    const std::lock_guard lock(kept.mutex);
    const bool fresh = kept.dataset && kept.path == path && kept.scaling == scaling && kept.version == version;
    const auto unread = [&] { return bytes_of(read(Reader(path, Reads::shapes))); };
    if ((fresh ? bytes_of(*kept.dataset) : storage::hdf5_call(unread)) > limit) return nullptr;
    if (fresh) return kept.dataset;
    kept.dataset = std::make_shared<const Dataset>(load_dataset(path, scaling));
    kept.path = path;
    kept.scaling = scaling;
    kept.version = version;
    return kept.dataset;
}

} // namespace ranktune::data
