// SPDX-License-Identifier: Apache-2.0
#pragma once
// SteeringDesk: takes the requests of users from the folder `control`, and answers them.

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "head/background/lasting_errors.hpp"
#include "head/head_machine.hpp"
#include "head/observer.hpp"
#include "process/background.hpp"
#include "process/wake.hpp"
#include "ranktune/base/log.hpp"
#include "storage/journal/journal.hpp"
#include "studydir/control.hpp"

namespace ranktune::head {

/// A thread of its own lists the folder once a second, reads new requests and writes answers: a hanging file system
/// blocks it, never the head's loop. What cannot be read or written is tried again, and holds up no other request. A
/// request is answered and removed when its record is synced. Killed before that, the next start finds the request
/// again, and the journal says whether it took effect. The first look removes answers of earlier starts: whoever asked
/// has given up waiting.
class SteeringDesk final : public Observer {
  public:
    /// `next` may be null. References must outlive it; `space` is the study's.
    SteeringDesk(Observer* next, storage::FileSystem& files, studydir::StudyDirectory directory,
                 storage::Journal& journal, space::SearchSpace space, process::Waker& waker, base::LogSink& log);

    /// Passes new requests to the core, or refuses them. In every round of the loop; never waits for a disk.
    void attend(HeadMachine& head, const tuner::Tuner& tuner, base::StudyTime now);
    /// The newest answers of this start, oldest first.
    [[nodiscard]] std::vector<studydir::AnsweredRequest> recent() const;
    /// Answers what has taken effect, and refuses all requests that are left, because the study is over for good
    /// (`why`); empty: the next start answers those. Waits for the disk.
    void close(const std::string& why);

    void on_records(const tuner::Tuner& tuner, const std::vector<study::Record>& records,
                    const HeadFigures& figures) override;

  private:
    struct Request {
        std::string name;
        study::SteeringFile file;
    };
    struct Settled {
        std::string name;
        studydir::Answer answer;
    };
    /// Also used by callbacks of the journal, which may outlive the desk.
    struct Shared {
        std::mutex mutex;
        std::deque<Request> asked;   ///< read, and not yet seen by the core
        std::deque<Settled> settled; ///< to be answered
        std::string resolved;        ///< to be published as resolved.toml; empty: nothing
        std::deque<studydir::AnsweredRequest> recent;
    };

    void look();
    void read(const std::string& name);
    void answer();
    void note(const std::string& who, const std::string& what, studydir::Answer answer);
    void settle(std::string name, studydir::Answer answer);
    void settle_when_synced(std::string name, std::string words, std::string resolved);
    [[nodiscard]] std::optional<Request> next_request();

    storage::FileSystem& files_;
    studydir::StudyDirectory directory_;
    storage::Journal& journal_;
    space::SearchSpace space_;
    process::Waker& waker_;
    base::LogSink& log_;
    std::vector<Request> open_;   ///< given to the core, and not yet recorded; of the loop
    std::set<std::string> known_; ///< read in this start; of the thread, as the next two
    LastingErrors errors_;
    bool swept_ = false; ///< answers of earlier starts are removed
    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
    process::Background thread_;
};

} // namespace ranktune::head
