// SPDX-License-Identifier: Apache-2.0
#include "data/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "ranktune/base/error.hpp"

namespace ranktune::data {

MappedFile::MappedFile(const std::string& path) {
    const auto refuse = [&](int code) {
        throw base::IoError("data file", path, std::error_code(code, std::generic_category()));
    };
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) refuse(errno);
    struct stat status {};
    int code = fstat(file, &status) == 0 ? 0 : errno;
    if (code == 0 && !S_ISREG(status.st_mode)) code = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    const auto size = static_cast<std::size_t>(status.st_size);
    void* address = nullptr;
    if (code == 0 && size > 0) {
        address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
        if (address == MAP_FAILED) code = errno;
    }
    close(file);
    if (code != 0) refuse(code);
    bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace ranktune::data
