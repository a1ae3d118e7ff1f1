// SPDX-License-Identifier: Apache-2.0
// What an HDF5 file takes from other files, whose copies it would not find: HDF5 gives fill values then, and no error.
#include <algorithm>
#include <array>
#include <filesystem>

#include "data/staging/file_list.hpp"
#include "storage/hdf5/hdf5.hpp"
#include "storage/hdf5/thread.hpp"

namespace ranktune::data {
namespace {

namespace hdf5 = storage::hdf5;

/// Of H5Lvisit: notes the first link that leads to another file, or whose data set does.
herr_t look_at_link(hid_t file, const char* name, const H5L_info_t* link, void* result) {
    std::string& found = *static_cast<std::string*>(result);
    if (link->type == H5L_TYPE_EXTERNAL) found = "'" + std::string(name) + "' is a link to another file";
    if (link->type != H5L_TYPE_HARD) return found.empty() ? 0 : 1;
    const hdf5::Handle<H5Oclose> object(H5Oopen(file, name, H5P_DEFAULT));
    if (!object) return -1;
    if (H5Iget_type(object.get()) != H5I_DATASET) return 0;
    const hdf5::PropertiesHandle properties(H5Dget_create_plist(object.get()));
    if (H5Pget_layout(properties.get()) == H5D_VIRTUAL)
        found = "data set '" + std::string(name) + "' is virtual: its rows are in other files";
    if (H5Pget_external_count(properties.get()) > 0)
        found = "data set '" + std::string(name) + "' keeps its rows in other files";
    return found.empty() ? 0 : 1;
}

/// On the HDF5 thread.
std::string look_into(const std::string& path) {
    const hdf5::QuietErrors quiet;
    const hdf5::FileHandle file = hdf5::open_unlocked(path);
    if (!file) return {}; // whoever reads it says what is wrong
    std::string found;
    if (H5Lvisit(file.get(), H5_INDEX_NAME, H5_ITER_NATIVE, look_at_link, &found) < 0)
        return "it is damaged, so that data sets with rows in other files cannot be told";
    return found;
}

} // namespace

std::string part_elsewhere(const FileList& list) {
    constexpr std::array<std::string_view, 6> endings{".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4"};
    for (const FileList::Entry& entry : list.entries) {
        if (std::ranges::find(endings, std::filesystem::path(entry.name).extension()) == endings.end()) continue;
        const std::string path = list.root + "/" + entry.name;
        if (const std::string part = storage::hdf5_call([&] { return look_into(path); }); !part.empty())
            return entry.name == list.name ? part : "'" + entry.name + "': " + part;
    }
    return {};
}

} // namespace ranktune::data
