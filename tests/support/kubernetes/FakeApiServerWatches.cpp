#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>

#include "tests/support/kubernetes/FakeApiServer.h"

// The watches of the fake API server: which lines they send, and how they end.

namespace hearth::test {
namespace {

std::string line(const char* type, const Json& object) {
    return dumpJson({{"type", type}, {"object", object}});
}

Json bookmarkAt(std::uint64_t version) {
    return {{"kind", "Bookmark"}, {"metadata", {{"resourceVersion", std::to_string(version)}}}};
}

std::string chunk(const std::string& bytes) {
    std::ostringstream size;
    size << std::hex << bytes.size();
    return size.str() + "\r\n" + bytes + "\r\n";
}

}  // namespace

struct FakeApiServer::Watch {
    std::uint64_t from = 0;
    std::uint64_t ends = 0;
    std::uint64_t bookmarks = 0;
    bool initial = false;
};

void FakeApiServer::streamLists() {
    const std::lock_guard lock(mutex_);
    stream_lists_ = true;
}

void FakeApiServer::planWatch(WatchPlan plan) {
    const std::lock_guard lock(mutex_);
    plans_.push_back(std::move(plan));
}

std::string FakeApiServer::errorLine(const Answer& status) {
    return line("ERROR", parseJson(status.body));
}

void FakeApiServer::endWatches(End end) {
    {
        const std::lock_guard lock(mutex_);
        ++ends_;
        end_ = end;
    }
    changed_.notify_all();
}

void FakeApiServer::bookmark() {
    {
        const std::lock_guard lock(mutex_);
        ++bookmarks_;
    }
    changed_.notify_all();
}

void FakeApiServer::awaitWatches(std::size_t count) {
    std::unique_lock lock(mutex_);
    const auto begun = [&] { return watches_ >= count; };
    if (!changed_.wait_for(lock, std::chrono::seconds(10), begun)) {
        throw std::runtime_error("watches never began");
    }
}

std::optional<FakeApiServer::Answer> FakeApiServer::refuseWatch(const SeenRequest& request) const {
    if (request.param("sendInitialEvents") == "true" && !stream_lists_) {
        return status(422, "Invalid", "resourceVersionMatch is forbidden for watch");
    }
    const std::string version = request.param("resourceVersion");
    if (!version.empty() && std::stoull(version) > version_) return tooLarge();
    return std::nullopt;
}

std::vector<std::string> FakeApiServer::initial(Watch& watch, const SeenRequest& request,
                                                const Route& route) const {
    std::vector<std::string> lines;
    const auto kind = objects_.find(route.collection);
    if (kind != objects_.end()) {
        for (const auto& [key, object] : kind->second) {
            if (selected(object, request, route.ns)) lines.push_back(line("ADDED", object));
        }
    }
    if (request.param("sendInitialEvents") == "true") {
        Json end = bookmarkAt(version_);
        end["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true";
        lines.push_back(line("BOOKMARK", end));
    }
    watch.from = version_;
    watch.initial = false;
    return lines;
}

std::vector<std::string> FakeApiServer::pending(Watch& watch, const SeenRequest& request,
                                                const Route& route) {
    if (watch.initial) return initial(watch, request, route);
    std::vector<std::string> lines;
    for (const Event& event : events_) {
        if (event.version <= watch.from || event.collection != route.collection) continue;
        const bool was = selected(event.before, request, route.ns);
        const bool is = selected(event.after, request, route.ns);
        if (is) {
            lines.push_back(line(was ? "MODIFIED" : "ADDED", event.after));
        } else if (was) {  // an object that leaves a selector is sent unchanged in its new version
            Json last = event.before;
            last["metadata"]["resourceVersion"] = std::to_string(event.version);
            lines.push_back(line("DELETED", last));
        }
    }
    if (!events_.empty()) watch.from = std::max(watch.from, events_.back().version);
    if (watch.bookmarks != bookmarks_) {
        watch.bookmarks = bookmarks_;
        lines.push_back(line("BOOKMARK", bookmarkAt(version_)));
    }
    return lines;
}

bool FakeApiServer::finish(ServedConnection& connection, End end) {
    if (end == End::HalfLine) {
        return connection.send(chunk(R"({"type":"ADDED","object":{"metadata":{"na)")) &&
               connection.send("0\r\n\r\n");
    }
    if (end == End::Clean) return connection.send("0\r\n\r\n");
    connection.cut();
    return false;
}

void FakeApiServer::watch(ServedConnection& connection, const SeenRequest& request,
                          const Route& route) {
    Watch watch;
    WatchPlan plan{.lines = {}, .end = End::Stay};
    const std::string version = request.param("resourceVersion");
    bool sending = connection.send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n");
    std::unique_lock lock(mutex_);
    watch.initial =
        version.empty() || version == "0" || request.param("sendInitialEvents") == "true";
    watch.from = version.empty() ? 0 : std::stoull(version);
    watch.ends = ends_;
    watch.bookmarks = bookmarks_;
    if (!watch.initial && watch.from < compacted_) {
        plan = {.lines = {errorLine(status(410, "Expired", "too old resource version"))}};
    } else if (!plans_.empty()) {
        plan = plans_.front();
        plans_.pop_front();
    }
    ++watches_;
    changed_.notify_all();
    while (sending && !stopping_) {
        std::vector<std::string> lines;
        if (plan.end != End::Silent) lines = pending(watch, request, route);
        lines.insert(lines.end(), plan.lines.begin(), plan.lines.end());
        plan.lines.clear();
        if (watch.ends != ends_) plan.end = end_;
        lock.unlock();
        for (const std::string& each : lines)
            sending = sending && connection.send(chunk(each + "\n"));
        if (plan.end != End::Stay && plan.end != End::Silent) {
            finish(connection, plan.end);
            return;
        }
        lock.lock();
        const std::uint64_t before = version_;
        const std::uint64_t bookmarks = watch.bookmarks;
        changed_.wait_for(lock, std::chrono::milliseconds(50), [&] {
            return stopping_ || ends_ != watch.ends || bookmarks_ != bookmarks ||
                   (version_ != before && plan.end == End::Stay);
        });
        if (connection.gone()) return;
    }
}

}  // namespace hearth::test
