// SPDX-License-Identifier: Apache-2.0
#include "head/named_places.hpp"

#include <algorithm>

namespace ranktune::head {

void NamedPlaces::began(const comm::AttemptKey& key) {
    Attempt& attempt = attempts_[key];
    attempt.began = ++time_;
    running_.insert(attempt.began);
}

void NamedPlaces::over(const comm::AttemptKey& key) {
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || found->second.over) return;
    found->second.over = ++time_;
    running_.erase(found->second.began);
    ended_.push_back(key);
    forget_old();
}

/// Attempts that ended before every running one began can clash with none.
void NamedPlaces::forget_old() {
    while (!ended_.empty()) {
        const auto oldest = attempts_.find(ended_.front());
        if (!running_.empty() && *running_.begin() < *oldest->second.over) return;
        for (const std::string& path : oldest->second.paths) forget_path(oldest->first, path);
        attempts_.erase(oldest);
        ended_.pop_front();
    }
}

void NamedPlaces::forget_path(const comm::AttemptKey& key, const std::string& path) {
    const auto found = names_.find(path);
    std::erase_if(found->second, [&](const Name& name) { return name.key == key; });
    if (found->second.empty()) names_.erase(found);
}

bool NamedPlaces::may_commit(const comm::AttemptKey& key, const std::string& checkpoint) {
    const auto found = attempts_.find(key);
    if (found == attempts_.end() || found->second.paths.empty()) return true;
    if (found->second.contested) return false;
    found->second.checkpoints.emplace_back(++time_, checkpoint);
    return true;
}

NamedPlaces::Clash NamedPlaces::named(const comm::AttemptKey& key, const std::string& host, const std::string& path) {
    Clash clash;
    const auto own = attempts_.find(key);
    if (own == attempts_.end() || own->second.over) return clash; // its messages are late
    for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
        look_at(path.substr(0, end), key, host, clash); // folders above it
    look_at(path, key, host, clash);
    const std::string below = path.ends_with('/') ? path : path + "/";
    std::vector<std::string> inside;
    for (auto at = names_.lower_bound(below); at != names_.end() && at->first.starts_with(below); ++at)
        inside.push_back(at->first);
    for (const std::string& each : inside) look_at(each, key, host, clash);

    std::deque<std::string>& paths = own->second.paths;
    if (std::ranges::find(paths, path) != paths.end()) return clash;
    names_[path].push_back({key, host});
    paths.push_back(path);
    if (paths.size() > most_names) {
        forget_path(key, paths.front());
        paths.pop_front();
    }
    return clash;
}

void NamedPlaces::look_at(const std::string& path, const comm::AttemptKey& key, const std::string& host, Clash& clash) {
    const auto found = names_.find(path);
    if (found == names_.end()) return;
    Attempt& own = attempts_.at(key);
    for (const Name& name : found->second) {
        Attempt& other = attempts_.at(name.key);
        const bool overlap = !other.over || *other.over > own.began;
        const bool apart = !host.empty() && !name.host.empty() && host != name.host; // the same path on two nodes
        if (name.key.trial == key.trial || !overlap || apart) continue;
        if (clash.others.empty()) clash.place = path;
        if (std::ranges::find(clash.others, name.key) == clash.others.end()) clash.others.push_back(name.key);
        own.contested = other.contested = true;
        std::erase_if(other.checkpoints, [&](const auto& checkpoint) {
            if (checkpoint.first < own.began) return false;
            clash.checkpoints.push_back(checkpoint.second);
            return true;
        });
    }
}

} // namespace ranktune::head
