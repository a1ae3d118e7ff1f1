// SPDX-License-Identifier: Apache-2.0
#include "simulate/cluster/cluster.hpp"

#include <algorithm>
#include <deque>
#include <queue>

#include "comm/transport/transport.hpp"
#include "head/background/preparer.hpp"
#include "simulate/transport/loopback.hpp"

namespace ranktune::simulate {

using base::Duration;
using base::Rank;
using base::StudyTime;

namespace {

/// The lowest layer of a node's wires: records who has been sent a message.
class NotifyingWire final : public comm::Transport {
  public:
    NotifyingWire(std::unique_ptr<comm::Transport> wire, std::vector<Rank>& notified)
        : wire_(std::move(wire)), notified_(notified) {}
    [[nodiscard]] Rank rank() const override { return wire_->rank(); }
    [[nodiscard]] std::uint32_t size() const override { return wire_->size(); }
    void send(Rank to, std::span<const std::byte> bytes) override {
        wire_->send(to, bytes);
        notified_.push_back(to);
    }
    [[nodiscard]] std::optional<comm::Packet> poll() override { return wire_->poll(); }
    [[nodiscard]] bool flushed() override { return wire_->flushed(); }

  private:
    std::unique_ptr<comm::Transport> wire_;
    std::vector<Rank>& notified_;
};

/// One process: its end of the wires and its machine.
struct Node final : comm::Outbox {
    enum class State : std::uint8_t { serving, ended, dead }; ///< ended: only flushes its wires
    void send(Rank to, std::span<const std::byte> message) override {
        ++sent;
        wire->send(to, message);
    }

    State state = State::serving;
    FaultTransport* fault = nullptr; ///< part of `wire`
    std::unique_ptr<comm::Transport> wire;
    std::unique_ptr<worker::WorkerMachine> worker; ///< null on the head
    std::optional<StudyTime> death;
    StudyTime wakes = StudyTime::max(); ///< the valid heap entry
    std::uint64_t sent = 0;
};

/// The duties of a head, done at once.
class Duties final : public head::HeadDuties {
  public:
    explicit Duties(CurveWorld& world) : world_(world) {}
    void delete_checkpoint(const study::DeleteCheckpoint& checkpoint) override {
        world_.delete_checkpoint(checkpoint.path);
    }
    void prepare(std::uint64_t ticket, searchers::Searcher::Preparation work) override {
        under_way_.push_back({now + world_.preparation_time(ticket), head::answer_to(ticket, work)});
    }
    [[nodiscard]] std::optional<study::Prepared> prepared() override {
        if (under_way_.empty() || under_way_.front().first > now) return std::nullopt;
        auto next = std::move(under_way_.front().second);
        under_way_.pop_front();
        return next;
    }
    /// When the next suggestion is ready; they are computed one after the other.
    [[nodiscard]] std::optional<StudyTime> next_due() const {
        return under_way_.empty() ? std::nullopt : std::optional(under_way_.front().first);
    }
    void publish(const study::EndStudy&) override { ++publications; }
    [[nodiscard]] bool published() override { return true; }
    int publications = 0;
    StudyTime now;

  private:
    CurveWorld& world_;
    std::deque<std::pair<StudyTime, study::Prepared>> under_way_;
};

class Cluster {
  public:
    Cluster(const ClusterOptions& options, tuner::Tuner& tuner, study::RecordSink& sink, std::set<std::string>& files,
            head::Observer& observer)
        : options_(options),
          tuner_(tuner),
          files_(files),
          begin_(tuner.state().now),
          now_(begin_),
          world_(tuner.spec(), options.curve, options.seed),
          duties_(world_),
          hub_(options.workers + 1),
          nodes_(options.workers + 1) {
        duties_.now = now_;
        world_.files = files;
        world_.set_time(now_);
        for (std::uint32_t r = 0; r <= options.workers; ++r) connect(Rank(r));
        for (const auto& [rank, after] : options.deaths) nodes_.at(rank.value()).death = begin_ + after;
        head_ =
            std::make_unique<head::HeadMachine>(head_options(), tuner, sink, nodes_[0], duties_, observer, log_, now_);
        if (options.deadline) head_->on_deadline(begin_ + *options.deadline, now_);
        for (std::uint32_t r = 1; r <= options.workers; ++r) {
            const std::uint32_t gpus = r + options.with_gpu > options.workers ? 1 : 0;
            worker::WorkerOptions own{Rank(r), "sim", "node" + std::to_string(r / 4), gpus, options.hello_timeout};
            nodes_[r].worker = std::make_unique<worker::WorkerMachine>(
                own, nodes_[r], [this, r](const comm::Welcome&) { return world_.make_runner(Rank(r)); }, log_, now_);
        }
        for (std::uint32_t r = 0; r <= options.workers; ++r) wake(Rank(r), now_);
    }

    ~Cluster() {
        // Runners refer to world_.
        for (Node& node : nodes_) node.worker.reset();
    }

    ClusterResult run() {
        while (!heap_.empty()) {
            const Entry entry = heap_.top();
            heap_.pop();
            Node& node = nodes_[entry.rank.value()];
            if (entry.at != node.wakes) continue; // replaced by an earlier one
            node.wakes = StudyTime::max();
            now_ = std::max(now_, entry.at);
            if (now_ - begin_ > options_.limit) {
                result_.problems.push_back("the limit of virtual time is reached: " + stuck_nodes());
                break;
            }
            world_.set_time(now_);
            ++result_.steps;
            serve(entry.rank);
            pass_on();
        }
        return finish();
    }

  private:
    struct Entry {
        StudyTime at;
        std::uint64_t sequence;
        Rank rank;
        friend bool operator<(const Entry& a, const Entry& b) {
            return std::tie(b.at, b.sequence) < std::tie(a.at, a.sequence); // earliest on top
        }
    };

    head::HeadOptions head_options() const {
        head::HeadOptions head;
        head.incarnation = options_.incarnation;
        head.workers = options_.workers;
        head.version = "sim";
        head.wall_time = "2000-01-01T00:00:00Z";
        head.study_directory = "/sim";
        head.hello_timeout = options_.hello_timeout;
        head.heartbeat_interval = options_.heartbeat_interval;
        head.heartbeat_timeout = options_.heartbeat_timeout;
        head.abort_grace = options_.abort_grace;
        head.check_invariants = options_.check_invariants;
        head.death = options_.death;
        return head;
    }

    void connect(Rank rank) {
        Node& node = nodes_[rank.value()];
        FaultPlan plan = options_.wires;
        plan.seed = options_.seed;
        plan.death.reset();
        auto wire = std::make_unique<NotifyingWire>(hub_.endpoint(rank), notified_);
        auto fault = std::make_unique<FaultTransport>(std::move(wire), plan);
        fault->advance(now_);
        node.fault = fault.get();
        node.wire = std::move(fault);
    }

    void wake(Rank rank, StudyTime at) {
        Node& node = nodes_[rank.value()];
        if (node.state == Node::State::dead || at >= node.wakes) return;
        node.wakes = at;
        heap_.push({at, sequence_++, rank});
    }

    /// One round of a process's loop.
    void serve(Rank rank) {
        Node& node = nodes_[rank.value()];
        if (node.death && now_ >= *node.death) return die(rank);
        if (node.state == Node::State::dead) return;
        node.fault->advance(now_);
        if (node.state == Node::State::serving) {
            if (rank == base::head_rank)
                serve_measured_head(node);
            else
                serve_worker(node);
        }
        reschedule(rank);
    }

    void serve_measured_head(Node& node) {
        const double before = options_.cpu_clock ? options_.cpu_clock() : 0.0;
        serve_head(node);
        if (options_.cpu_clock) result_.head_cpu_s += options_.cpu_clock() - before;
    }

    void serve_head(Node& node) {
        duties_.now = now_;
        while (auto message = node.wire->poll()) head_->on_message(message->from, message->bytes, now_);
        if (due(options_.stop_at, stopped_)) head_->on_stop_request({"asked to"}, now_);
        if (due(options_.stop_at_once_at, stopped_at_once_)) head_->on_stop_at_once({"asked to, twice"}, now_);
        head_->on_tick(now_);
        if (head_->end()) node.state = Node::State::ended;
    }

    bool due(const std::optional<Duration>& after, bool& done) {
        if (done || !after || now_ - begin_ < *after) return false;
        return done = true;
    }

    void serve_worker(Node& node) {
        world_.run_due(node.wire->rank());
        while (!node.worker->end()) {
            auto message = node.wire->poll();
            if (!message) break;
            node.worker->on_message(message->from, message->bytes, now_);
        }
        node.worker->on_tick(now_);
        if (!node.worker->end()) return;
        node.state = Node::State::ended;
        world_.kill(node.wire->rank());
    }

    void die(Rank rank) {
        Node& node = nodes_[rank.value()];
        node.state = Node::State::dead;
        node.fault->die();
        world_.kill(rank);
    }

    void reschedule(Rank rank) {
        Node& node = nodes_[rank.value()];
        if (node.state == Node::State::dead) return;
        StudyTime at = node.fault->next_due().value_or(StudyTime::max());
        if (node.death) at = std::min(at, *node.death);
        if (node.state == Node::State::serving && rank == base::head_rank) {
            at = std::min(at, head_->wake_at());
            if (const auto due = duties_.next_due()) at = std::min(at, *due);
            if (options_.stop_at && !stopped_) at = std::min(at, begin_ + *options_.stop_at);
            if (options_.stop_at_once_at && !stopped_at_once_) at = std::min(at, begin_ + *options_.stop_at_once_at);
        } else if (node.state == Node::State::serving) {
            at = std::min(at, node.worker->wake_at());
            if (const auto due = world_.next_due(rank)) at = std::min(at, *due);
        } else if (node.fault->flushed()) {
            return; // everything is delivered
        }
        wake(rank, std::max(at, now_));
    }

    /// Wakes the nodes for which something has arrived.
    void pass_on() {
        for (const Rank to : std::exchange(notified_, {}))
            if (nodes_[to.value()].state == Node::State::serving)
                wake(to, to == base::head_rank ? now_ + options_.head_nap : now_);
        for (const Rank rank : world_.take_touched())
            if (nodes_[rank.value()].state == Node::State::serving) reschedule(rank);
    }

    std::string stuck_nodes() const {
        std::string text;
        for (const Node& node : nodes_)
            if (node.state == Node::State::serving) text += " " + std::to_string(node.wire->rank().value());
        return "still serving:" + text;
    }

    ClusterResult finish() {
        result_.elapsed = now_ - begin_;
        result_.head = head_->end();
        result_.figures = head_->figures(now_);
        result_.attempts = world_.attempts_started();
        const auto problem = [&](const std::string& text) { result_.problems.push_back(text); };
        for (const std::string& text : world_.problems()) problem(text);
        for (const Node& node : nodes_) {
            result_.messages += node.sent;
            if (node.worker) result_.workers.push_back(node.worker->end());
            if (node.state == Node::State::serving)
                problem("rank " + std::to_string(node.wire->rank().value()) + " never ended");
        }
        if (result_.head && duties_.publications != 1)
            problem("results were published " + std::to_string(duties_.publications) + " times");
        files_ = world_.files;
        return std::move(result_);
    }

    const ClusterOptions& options_;
    tuner::Tuner& tuner_;
    std::set<std::string>& files_;
    StudyTime begin_;
    StudyTime now_;
    CurveWorld world_;
    Duties duties_;
    base::NullLog log_;
    LoopbackHub hub_;
    std::vector<Rank> notified_;
    std::vector<Node> nodes_; ///< position is the rank
    std::unique_ptr<head::HeadMachine> head_;
    std::priority_queue<Entry> heap_;
    std::uint64_t sequence_ = 0;
    bool stopped_ = false;
    bool stopped_at_once_ = false;
    ClusterResult result_;
};

} // namespace

ClusterResult run_cluster(const ClusterOptions& options, tuner::Tuner& tuner, study::RecordSink& sink,
                          std::set<std::string>& files, head::Observer* observer) {
    head::Observer nobody;
    Cluster cluster(options, tuner, sink, files, observer != nullptr ? *observer : nobody);
    return cluster.run();
}

} // namespace ranktune::simulate
