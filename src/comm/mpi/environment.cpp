// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/environment.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/mpi/error.hpp"

namespace ranktune::comm::mpi {
namespace {

std::atomic<bool> is_abandoned{false};

/// Where Open MPI has its function that tells of troubles; null: another MPI.
void** help_function() { return static_cast<void**>(dlsym(RTLD_DEFAULT, "opal_show_help")); }

std::string full_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    return {text.data(), static_cast<std::size_t>(length)};
}

/// The folders, joined by colons, that Open MPI loads its components from; empty when it does not say.
std::string component_path() {
    const std::string path = control_variable("mca_base_component_path").value_or("");
    return path.substr(0, path.find('\0'));
}

} // namespace

std::optional<std::string> control_variable(const char* name) {
    int provided = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return std::nullopt;
    std::optional<std::string> value;
    int index = 0;
    int count = 0;
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    if (MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS &&
        MPI_T_cvar_handle_alloc(index, nullptr, &handle, &count) == MPI_SUCCESS) {
        std::string bytes((static_cast<std::size_t>(count) + 1) * sizeof(double), '\0'); // of the largest type
        if (MPI_T_cvar_read(handle, bytes.data()) == MPI_SUCCESS) value = std::move(bytes);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    return value;
}

Library library() {
    const auto text = full_version();
    if (text.find("Open MPI") != std::string::npos) return Library::open_mpi;
    // Libraries derived from MPICH too: they report its name or the name of another member of the common ABI.
    for (const char* name : {"MPICH", "Intel(R) MPI", "MVAPICH"}) {
        if (text.find(name) != std::string::npos) return Library::mpich;
    }
    return Library::other;
}

std::string library_version() {
    const auto text = full_version();
    if (const auto at = text.find("Open MPI v"); at != std::string::npos) {
        const auto begin = at + std::string_view("Open MPI v").size();
        return "Open MPI " + text.substr(begin, text.find_first_of(", \n", begin) - begin);
    }
    constexpr std::string_view mpich = "MPICH Version:";
    if (text.starts_with(mpich)) {
        const auto begin = text.find_first_not_of(" \t", mpich.size());
        return "MPICH " + text.substr(begin, text.find_first_of(" \t\n", begin) - begin);
    }
    return text.substr(0, text.find('\n'));
}

bool may_speak_pmi() {
    const std::string version = library_version();
    constexpr std::string_view name = "Open MPI ";
    if (!version.starts_with(name)) return true;
    if (std::atoi(version.c_str() + name.size()) >= 5) return false;
    bool any_component = false;
    const std::string path = component_path() + ":";
    for (std::size_t begin = 0, end = 0; (end = path.find(':', begin)) != std::string::npos; begin = end + 1) {
        std::error_code error;
        const std::filesystem::directory_iterator folder(path.substr(begin, end - begin), error);
        if (error) continue;
        for (const auto& entry : folder) {
            const std::string file = entry.path().filename().string();
            any_component = any_component || file.starts_with("mca_pmix_");
            for (const char* pmi : {"mca_pmix_s1.", "mca_pmix_s2.", "mca_pmix_cray."})
                if (file.starts_with(pmi)) return true;
        }
    }
    return !any_component; // no component files: all are inside the library
}

Environment::Environment() : exceptions_at_start_(std::uncaught_exceptions()) {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized) throw base::Error("MPI was initialised before ranktune asked for it");
    void** const help = help_function();
    void* const own_help = help == nullptr ? nullptr : *help;
    int provided = MPI_THREAD_SINGLE;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    // Each rank says it on its standard error, as before MPI_Init. mpirun, which Open MPI 4 sends it to, crashed over
    // what a rank said of a lost node (4.1.4, in orte_rml_oob_send_buffer_nb), and took the study with it.
    if (help != nullptr) *help = own_help;
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    if (provided < MPI_THREAD_MULTIPLE) {
        // `provided` is the same on every rank, so all ranks get here and may finalise.
        MPI_Finalize();
        throw base::Error(library_version() +
                          " was built without MPI_THREAD_MULTIPLE, which ranktune needs: load another MPI");
    }
}

Environment::~Environment() {
    if (std::uncaught_exceptions() > exceptions_at_start_ || !alive()) return;
    MPI_Finalize();
}

void Environment::abandon() noexcept { is_abandoned.store(true); }

bool Environment::abandoned() noexcept { return is_abandoned.load(); }

bool Environment::alive() noexcept {
    if (abandoned()) return false;
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized && !finalized;
}

std::vector<std::string> gather_texts(const Environment& environment, std::string_view mine) {
    const auto ranks = static_cast<std::size_t>(environment.size());
    const int length = static_cast<int>(mine.size());
    std::vector<int> lengths(ranks);
    check(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD), "MPI_Allgather");
    std::vector<int> offsets(ranks);
    int all = 0;
    for (std::size_t r = 0; r < ranks; ++r) {
        offsets[r] = all;
        all += lengths[r];
    }
    std::string together(static_cast<std::size_t>(all), '\0');
    check(MPI_Allgatherv(mine.data(), length, MPI_CHAR, together.data(), lengths.data(), offsets.data(), MPI_CHAR,
                         MPI_COMM_WORLD),
          "MPI_Allgatherv");
    std::vector<std::string> texts;
    texts.reserve(ranks);
    for (std::size_t r = 0; r < ranks; ++r)
        texts.push_back(together.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
    return texts;
}

} // namespace ranktune::comm::mpi
