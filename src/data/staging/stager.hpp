// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stager: copies of the files of [data] on this node, read from the file system once by all nodes together.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/exchange/block_exchange.hpp"
#include "data/staging/copy_lock.hpp"
#include "data/staging/copy_maker.hpp"
#include "data/staging/places.hpp"
#include "ranktune/study/spec.hpp"

namespace ranktune::data {

/// What a rank has done so far. Ranks that wait for a copy that another one makes add nothing.
struct StagingFigures {
    std::uint64_t bytes = 0;  ///< of the copies that this rank makes
    std::uint64_t copied = 0; ///< of these
    std::uint64_t read = 0;   ///< from the originals; the rest came from other nodes
    bool over = false;
    std::string problem = {}; ///< why the study cannot go on; empty: nothing is wrong
    friend bool operator==(const StagingFigures&, const StagingFigures&) = default;
};

struct StagerOptions {
    CopyOptions copies = {};
    std::string start = start_of_node();
    std::function<CopyPlaces(const std::string& directory)> places = find_places;
    bool speaks = true; ///< of the ranks of a node, one logs that there is no room
};

/// Every rank of a study has one. Who gets the lock of a copy first makes it; the others of the node wait for it, or
/// make it when that process dies. Of n nodes, node i reads the pieces i, i + n, ... and takes the others from the
/// memory of the nodes that have read them. Pieces of a node that is silent, does not begin or needs no copy are read
/// by the next one. A copy gets its name when it is whole, so that later starts and other studies find it. The last
/// process that uses it removes it; what killed processes have left, the next start does.
class Stager {
  public:
    using Log = std::function<void(std::string_view line)>;

    /// `exchange`: to other nodes; null if there are none. From now on it offers what this rank copies. `log`, and
    /// `wake`, which is called at the end, are called on a thread of this object. References outlive it.
    Stager(const study::StudySpec& spec, Nodes nodes, comm::BlockExchange* exchange, Log log,
           std::function<void()> wake, StagerOptions options = {});
    ~Stager(); ///< as give_back()
    Stager(const Stager&) = delete;
    Stager& operator=(const Stager&) = delete;

    [[nodiscard]] StagingFigures figures() const;
    /// Requires figures().over, and no problem. The files of [data] with the paths to read them from: the copies, or
    /// the originals where there is no room.
    [[nodiscard]] const std::vector<study::DataFile>& files() const { return files_; }
    /// Ends what is under way, and gives the copies back: the last who uses one removes it. Whoever has its files open
    /// keeps them.
    void give_back();

  private:
    /// A copy that this rank uses.
    struct Used {
        std::string folder;
        CopyLock lock;
    };
    /// What the service thread of the exchange sees.
    struct Offered {
        std::mutex mutex;
        std::vector<std::shared_ptr<const PieceTable>> tables;
        std::vector<std::uint64_t> no_part; ///< keys of files that this rank does not copy
    };

    void main();
    void sweep_places();
    void stage(const FileList& list, study::DataFile& file);
    /// Why there is no copy; empty: there is one, or none is needed. `room`: bytes that it takes while it is made.
    [[nodiscard]] std::string copy_somewhere(const FileList& list, study::DataFile& file, std::uint64_t room);
    /// False: there is no room, which is told.
    [[nodiscard]] bool stage_in(const CopyPlace& place, const FileList& list, study::DataFile& file, std::uint64_t room,
                                std::string& why);
    [[nodiscard]] CopyLock wait_for_lock(const std::string& path) const;
    void make(const CopyPlace& place, const FileList& list, const study::DataFile& file);
    void fill(CopyMaker& maker);
    void take_no_part(const FileList& list);
    void decode(const std::string& part, const FileList& list, const study::DataFile& file, std::uint64_t room);
    void use(const std::string& folder, const FileList& list, study::DataFile& file, CopyLock lock);
    void check() const; ///< throws if this object is destroyed

    study::StagingSpec spec_;
    Nodes nodes_;
    comm::BlockExchange* exchange_;
    Log log_;
    std::function<void()> wake_;
    StagerOptions options_;
    std::vector<study::DataFile> files_; ///< of the thread until it is over; so are the next two
    std::vector<std::string> copies_;    ///< the names of all copies of this study
    std::vector<Used> used_;
    std::shared_ptr<Offered> offered_;
    std::atomic<bool> stop_{false};
    mutable std::mutex mutex_;
    StagingFigures figures_;
    std::thread thread_; // last: uses all of the above
};

/// Removes the copies in the folder of a place that nobody uses: their processes were killed. `keep`: the names of
/// those that are about to be used. Returns how many.
std::size_t sweep(storage::FileSystem& files, const std::string& folder, std::span<const std::string> keep);

} // namespace ranktune::data
