// SPDX-License-Identifier: Apache-2.0
#include "report/serve/site.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <sstream>
#include <utility>

#include "base/number_in.hpp"
#include "ranktune/base/error.hpp"
#include "ranktune/base/text.hpp"
#include "report/page/page.hpp"
#include "report/screens/study_list.hpp"
#include "report/screens/text.hpp"
#include "report/view/wall_time.hpp"

namespace ranktune::report {
namespace {

constexpr auto look_period = std::chrono::seconds(1);
/// Looking and making pages may take a twentieth of a core.
constexpr int sparing = 20;
/// A head may take seconds to answer; half of the threads stay free for pages.
constexpr unsigned most_steering = 4;

std::string made_now() { return report::wall_time_text(seconds_now()); }

/// A page of another site that resolves to 127.0.0.1 names itself here. (A tunnel may have another port.)
bool is_local(const std::string& host) {
    const std::string name = host.substr(0, host.starts_with("[") ? host.find(']') + 1 : host.find(':'));
    return name == "127.0.0.1" || name == "localhost" || name == "[::1]";
}

/// In a time that does not tell how much of it is right.
bool is_same(std::string_view one, std::string_view other) {
    if (one.size() != other.size()) return false;
    unsigned char differs = 0;
    for (std::size_t i = 0; i < one.size(); ++i) differs |= static_cast<unsigned char>(one[i] ^ other[i]);
    return differs == 0;
}

Reply redirection(std::string location) {
    Reply reply;
    reply.status = 303;
    reply.location = std::move(location);
    return reply;
}

void replace_once(std::string& text, std::string_view from, const std::string& to) {
    if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

} // namespace

// ---- one study

ServedStudy::ServedStudy(storage::FileSystem& files, const SiteOptions& options, std::string directory)
    : files_(files), options_(options), directory_(std::move(directory)) {}

void ServedStudy::note_cost(Clock::time_point begin) {
    const auto now = Clock::now();
    next_look_ = std::max(next_look_, now + std::max<Clock::duration>(look_period, (now - begin) * sparing));
}

/// With the lock.
void ServedStudy::look() {
    const auto begin = Clock::now();
    if (study_ && begin < next_look_) return;
    const auto missing = options_.missing(directory_);
    std::string trouble;
    try {
        if (!study_)
            study_ = std::make_unique<report::FollowedHistory>(files_, directory_);
        else if (study_->refresh())
            ++version_;
        trouble = missing(study_->journal());
    } catch (const base::IoError&) { // a file server that does not answer now
        if (!study_) throw;
        trouble = trouble_;
    } catch (const base::Error&) {
        if (!study_) throw;
        trouble = "its journal is damaged or gone since: `ranktune status` says more";
    }
    if (trouble != trouble_) ++version_;
    trouble_ = std::move(trouble);
    note_cost(begin);
}

report::Standing ServedStudy::standing() const {
    report::Standing standing = options_.standing(study_->tuner().state(), directory_);
    if (!trouble_.empty()) standing.text += "; " + trouble_;
    return standing;
}

std::uint64_t ServedStudy::version() {
    const std::lock_guard lock(mutex_);
    look();
    return version_;
}

report::PageStudy ServedStudy::page_study() {
    return {study_->view(), directory_, standing().text, report::surroundings_of(files_, directory_)};
}

std::pair<std::shared_ptr<const std::string>, std::uint64_t> ServedStudy::data() {
    const std::lock_guard lock(mutex_);
    look();
    if (!data_ || data_version_ != version_) {
        const auto begin = Clock::now();
        const report::PageStudy one[] = {page_study()};
        data_ = std::make_shared<const std::string>(report::page_data(one, made_now()));
        data_version_ = version_;
        note_cost(begin);
    }
    return {data_, data_version_};
}

std::string ServedStudy::page(std::size_t index, const std::string& secret) {
    const std::lock_guard lock(mutex_);
    look();
    std::ostringstream out;
    const report::PageStudy one[] = {page_study()};
    report::write_page(one, made_now(), out);
    std::string page = std::move(out).str();
    std::string places = " data-version=\"" + std::to_string(version_) + "\"";
    for (const char* kind : {"data", "events", "live", "log"})
        places += std::string(" data-") + kind + "=\"../" + kind + "/" + std::to_string(index) + "\"";
    if (!secret.empty())
        places += " data-steer=\"../steer/" + std::to_string(index) + "\" data-secret=\"" + secret + "\"";
    replace_once(page, "default-src 'none';", "default-src 'none'; connect-src 'self';");
    replace_once(page, "<meta name=\"generator\"",
                 "<meta name=\"ranktune-live\"" + places + ">\n<meta name=\"generator\"");
    return page;
}

std::string ServedStudy::live() {
    const std::lock_guard lock(mutex_);
    look();
    const auto begin = Clock::now();
    if (live_version_ == version_ && begin < next_live_) return live_;
    live_ = report::live_data(study_->tuner(), standing(), seconds_now());
    live_version_ = version_;
    next_live_ = Clock::now() + (Clock::now() - begin) * sparing;
    return live_;
}

std::optional<std::string> ServedStudy::log(study::TrialId trial) {
    const std::unique_lock lock(log_mutex_, std::try_to_lock);
    if (!lock) return std::nullopt;
    const auto begin = Clock::now();
    if (begin < next_log_) return logged_ == trial ? std::optional(log_) : std::nullopt;
    logged_.reset();
    log_ = options_.log(directory_, trial);
    logged_ = trial;
    next_log_ = Clock::now() + (Clock::now() - begin) * sparing;
    return log_;
}

std::vector<std::string> ServedStudy::row() {
    const std::lock_guard lock(mutex_);
    look();
    const report::ListedStudy study = report::listed(study_->tuner(), directory_);
    return {
        directory_,    standing().text,        std::to_string(study.done) + " of " + std::to_string(study.num_trials),
        study.metrics, report::best_of(study), report::age_text(study, seconds_now())};
}

// ---- all of them

Site::Site(storage::FileSystem& files, SiteOptions options) : files_(files), options_(std::move(options)) {
    if (options_.steer) secret_ = random_token();
    scan();
}

std::size_t Site::scan() {
    const auto found = options_.directories();
    const std::lock_guard lock(mutex_);
    for (const std::string& directory : found)
        if (std::ranges::none_of(studies_, [&](const auto& study) { return study->directory() == directory; }))
            studies_.push_back(std::make_unique<ServedStudy>(files_, options_, directory));
    return studies_.size();
}

ServedStudy* Site::at(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return index < studies_.size() ? studies_[index].get() : nullptr;
}

Reply Site::list() {
    std::string page =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"10\">"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" "
        "content=\"light dark\">" +
        report::page_style() +
        "<title>ranktune: studies</title></head>\n<body><main><h1>Studies</h1>\n<div class=\"scroll\"><table "
        "class=\"wide\"><thead><tr>";
    for (const char* title : {"study", "state", "trials done", "metric", "best", "age"})
        page += std::string("<th scope=\"col\">") + title + "</th>";
    page += "</tr></thead><tbody>\n";
    ServedStudy* study = nullptr;
    for (std::size_t i = 0; (study = at(i)) != nullptr; ++i) {
        std::vector<std::string> cells;
        try {
            cells = study->row();
        } catch (const base::Error& error) {
            cells = {study->directory(), error.what()};
        }
        page += "<tr><td><a href=\"study/" + std::to_string(i) + "\">" + report::html(cells.front()) + "</a></td>";
        for (std::size_t k = 1; k < cells.size(); ++k) page += "<td>" + report::html(cells[k]) + "</td>";
        page += "</tr>\n";
    }
    Reply reply;
    reply.body = std::make_shared<const std::string>(page + "</tbody></table></div></main></body></html>\n");
    return reply;
}

Reply Site::reply(const Request& request) {
    if (!is_local(request.host)) return text_reply(403, "this page is for 127.0.0.1 and localhost alone");
    if (request.path == "/favicon.ico" && !request.post) { // browsers ask for one, with or without the token
        Reply none;
        none.status = 204;
        return none;
    }
    const std::string_view path = request.path;
    const std::string_view token = path.substr(1, path.find('/', 1) - 1);
    if (!is_same(token, options_.token))
        return text_reply(403, "open the whole address that `ranktune serve` has printed");
    try {
        return request.post ? steer(path.substr(1 + token.size()), request) : page(path.substr(1 + token.size()));
    } catch (const base::Error& error) { // a journal that was removed or damaged
        return text_reply(500, error.what());
    }
}

std::string Site::suspicion(const Request& request) const {
    if (!request.fetch_site.empty() && request.fetch_site != "same-origin") return "Sec-Fetch-Site is not same-origin";
    if (request.origin != "http://" + request.host) return "Origin is not this server";
    const std::string_view type = request.content_type;
    if (base::trimmed(type.substr(0, type.find(';'))) != "application/json")
        return "Content-Type is not application/json";
    if (!is_same(request.steer, secret_)) return "X-Ranktune-Steer is not that of a page of this server";
    return {};
}

Reply Site::steer(std::string_view path, const Request& request) {
    const auto slash = path.rfind('/');
    if (path.substr(0, slash) != "/steer")
        return text_reply(404, "nothing was changed: there is nothing to steer here");
    if (!options_.steer)
        return text_reply(403, "nothing was changed: this `ranktune serve` was started with --read-only");
    if (const std::string why = suspicion(request); !why.empty())
        return text_reply(403, "nothing was changed, because only the page of this server may steer: " + why +
                                   ". Reload the page, and try again there");
    const auto index = base::number_in<std::size_t>(path.substr(slash + 1));
    ServedStudy* const study = index ? at(*index) : nullptr;
    if (study == nullptr) return text_reply(404, "there is no such study");
    struct Place {
        std::atomic<unsigned>& taken;
        const bool free = ++taken <= most_steering;
        ~Place() { --taken; }
    } const place{steering_};
    if (!place.free)
        return text_reply(503,
                          "nothing was changed: earlier requests wait for their answers. Try again in some seconds");
    try {
        return text_reply(200, options_.steer(study->directory(), request.body));
    } catch (const base::FormatError& error) {
        return text_reply(400, std::string("nothing was changed: ") + error.what());
    } catch (const base::UsageError& error) {
        return text_reply(409, error.what());
    }
}

Reply Site::page(std::string_view path) {
    // Pages name each other by relative paths: a page that somebody saves and passes on has no token.
    if (path.empty()) return redirection("/" + options_.token + "/");
    if (path == "/") return scan() > 1 ? list() : redirection("study/0");
    const auto end = std::min(path.find('/', 1), path.size());
    const std::string_view kind = path.substr(0, end);
    const std::string_view rest = path.substr(std::min(end + 1, path.size()));
    const auto log = kind == "/log" ? rest.find('/') : std::string_view::npos;
    const auto index = base::number_in<std::size_t>(rest.substr(0, log));
    ServedStudy* const study = index ? at(*index) : nullptr;
    Reply reply;
    if (study != nullptr && kind == "/study") {
        reply.body = std::make_shared<const std::string>(study->page(*index, secret_));
    } else if (study != nullptr && kind == "/live") {
        reply.type = "application/json";
        reply.body = std::make_shared<const std::string>(study->live());
    } else if (study != nullptr && log != std::string_view::npos) {
        const auto trial = base::number_in<std::size_t>(rest.substr(log + 1));
        if (!trial || *trial > std::numeric_limits<std::uint32_t>::max()) return text_reply(404, "this is no trial");
        try {
            const auto words = study->log(study::TrialId{static_cast<std::uint32_t>(*trial)});
            return words ? text_reply(200, *words)
                         : text_reply(503, "reading logs takes long here: this one is read again in a moment");
        } catch (const base::UsageError& error) {
            return text_reply(404, error.what());
        }
    } else if (study != nullptr && kind == "/data") {
        reply.type = "application/json";
        reply.body = study->data().first;
    } else if (study != nullptr && kind == "/events") {
        reply.events = index;
    } else {
        return text_reply(404, "there is no such page");
    }
    return reply;
}

std::uint64_t Site::version(std::size_t study) {
    try {
        ServedStudy* const served = at(study);
        return served != nullptr ? served->version() : 0;
    } catch (const base::Error&) { // the page says so when it is loaded again
        return 0;
    }
}

std::string random_token() {
    std::random_device device;
    char text[40];
    std::snprintf(text, sizeof text, "%08x%08x%08x%08x", device(), device(), device(), device());
    return text;
}

} // namespace ranktune::report
