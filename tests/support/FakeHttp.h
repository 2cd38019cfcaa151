#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/http/Handler.h"
#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::test {

/// A request with the content that a test gives it.
class FakeRequest : public api::Request {
public:
    FakeRequest(const std::string& method, const std::string& target, std::string body = {})
        : body_(std::move(body)) {
        setMethod(method);
        setURI(target);
        const std::size_t mark = target.find('?');
        raw_path_ = target.substr(0, mark);
        path_ = percentDecode(raw_path_).value();
        if (mark != std::string::npos) query_ = parseQuery(target.substr(mark + 1)).value();
    }
    FakeRequest& with(const std::string& name, const std::string& value) {
        add(name, value);
        return *this;
    }
    FakeRequest& with(const std::vector<std::pair<std::string, std::string>>& headers) {
        clear();
        for (const auto& [name, value] : headers) add(name, value);
        return *this;
    }
    FakeRequest& json() { return with("Content-Type", "application/json"); }
    FakeRequest& from(std::string peer, bool loopback) {
        peer_ = std::move(peer);
        loopback_ = loopback;
        return *this;
    }

    const std::string& path() const override { return path_; }
    const std::string& rawPath() const override { return raw_path_; }
    std::optional<std::string> query(std::string_view name) const override {
        for (const auto& [key, value] : query_) {
            if (key == name) return value;
        }
        return std::nullopt;
    }
    const std::vector<std::pair<std::string, std::string>>& queryAll() const override {
        return query_;
    }
    const std::string& peer() const override { return peer_; }
    bool peerIsLoopback() const override { return loopback_; }
    const std::string& id() const override { return id_; }
    const TraceContext& trace() const override { return trace_; }
    TimePoint startedAt() const override { return started; }
    std::optional<std::uint64_t> contentLength() const override { return body_.size(); }
    std::string readBody(std::size_t limit) override {
        if (body_.size() > limit) throw Error(ErrorCode::PayloadTooLarge, "too large");
        return body_;
    }
    std::size_t readSome(char* out, std::size_t size) override {
        const std::size_t taken = std::min(size, body_.size());
        std::copy_n(body_.data(), taken, out);
        body_.erase(0, taken);
        return taken;
    }
    std::stop_token stopToken() const override { return stop.get_token(); }
    bool clientGone() const override { return gone; }

    // No consumer of a Request calls these.

    std::istream& stream() override { throw std::logic_error("a fake has no stream"); }
    const Poco::Net::SocketAddress& clientAddress() const override {
        throw std::logic_error("a fake has no address");
    }
    const Poco::Net::SocketAddress& serverAddress() const override { return clientAddress(); }
    const Poco::Net::HTTPServerParams& serverParams() const override {
        throw std::logic_error("a fake has no server");
    }
    Poco::Net::HTTPServerResponse& response() const override {
        throw std::logic_error("a fake is answered by what its handler returns");
    }
    bool secure() const override { return false; }

    TimePoint started{std::chrono::seconds(7)};
    std::stop_source stop;
    bool gone = false;

private:
    std::string path_;
    std::string raw_path_;
    std::string body_;
    std::vector<std::pair<std::string, std::string>> query_;
    std::string peer_ = "127.0.0.1";
    bool loopback_ = true;
    std::string id_ = "req_0";
    TraceContext trace_{"0123456789abcdef0123456789abcdef", "0123456789abcdef", false, ""};
};

/// A stream whose client reads only as much as the test allows.
class FakeStream final : public api::Stream {
public:
    explicit FakeStream(std::string tenant = {}) : tenant_(std::move(tenant)) {}

    const std::string& tenant() const override { return tenant_; }
    bool send(std::string bytes) override {
        const std::lock_guard lock(mutex_);
        if (closed_) return false;
        senders.insert(std::this_thread::get_id());
        queued_ += bytes.size();
        most = std::max(most, queued_);
        above_ = above_ || queued_ > kHighWater;
        sent.append(bytes);
        changed_.notify_all();
        return true;
    }
    std::size_t pending() const override {
        const std::lock_guard lock(mutex_);
        return automatic ? 0 : queued_;
    }
    void finish() override {
        finished = true;
        close();
    }
    void cut() override { close(); }
    bool closed() const override { return closed_; }
    void onDrained(std::function<void()> callback) override {
        const std::lock_guard lock(mutex_);
        drained_ = std::move(callback);
    }
    void onClosed(std::function<void()> callback) override {
        {
            const std::lock_guard lock(mutex_);
            if (!closed_) {
                on_closed_.push_back(std::move(callback));
                return;
            }
        }
        callback();
    }

    /// The client has read everything, which is reported. False if there was too little for that.
    bool drain() {
        std::function<void()> drained;
        {
            const std::lock_guard lock(mutex_);
            if (!above_ || closed_) return false;
            above_ = false;
            queued_ = 0;
            drained = drained_;
        }
        if (drained) drained();
        return true;
    }
    /// The client has gone, or the stream has ended.
    void close() {
        std::vector<std::function<void()>> callbacks;
        {
            const std::lock_guard lock(mutex_);
            if (closed_.exchange(true)) return;
            std::swap(callbacks, on_closed_);
            drained_ = nullptr;
            changed_.notify_all();
        }
        for (const auto& callback : callbacks) callback();
    }

    /// Returns everything sent once it contains `text` ("": once the stream has ended).
    std::string until(const std::string& text) {
        std::unique_lock lock(mutex_);
        const bool came = changed_.wait_for(lock, std::chrono::seconds(10), [&] {
            return text.empty() ? closed_.load() : sent.find(text) != std::string::npos;
        });
        if (!came) throw std::runtime_error("never came: " + text + "; but: " + sent);
        return sent;
    }
    /// Returns everything sent so far.
    std::string text() const {
        const std::lock_guard lock(mutex_);
        return sent;
    }

    // Read these only when nobody sends any more.

    std::string sent;
    bool automatic = true;  ///< the client reads at once
    std::atomic<bool> finished = false;
    std::size_t most = 0;  ///< the most bytes that were ever queued
    std::set<std::thread::id> senders;

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t queued_ = 0;
    const std::string tenant_;
    bool above_ = false;
    std::atomic<bool> closed_ = false;
    std::function<void()> drained_;
    std::vector<std::function<void()>> on_closed_;
};

/// Returns the value of a response's header, "" if it has none.
inline std::string headerOf(const api::Response& response, const std::string& name) {
    return response.headers.get(name, "");
}

/// Returns the body as the client gets it, if it is not a stream.
inline std::string bodyOf(const api::Response& response) {
    if (const auto* text = std::get_if<std::string>(&response.body)) return *text;
    std::string out;
    if (const auto* writer = std::get_if<api::BodyWriter>(&response.body)) {
        (*writer)([&out](std::string_view bytes) { out.append(bytes); });
    }
    return out;
}

}  // namespace hearth::test
