#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "base/Error.h"
#include "base/Json.h"
#include "base/Mutex.h"
#include "base/http/client/HttpClient.h"
#include "pool/runtime/docker/engine/EngineAddress.h"

namespace hearth::pool::docker {

struct EngineRequest {
    std::string method = "GET";
    std::string target;                       ///< path and query, encoded
    std::string body;                         ///< JSON; empty: none
    http::BodySource archive = {};            ///< instead of `body`: a tar, streamed
    const std::atomic<bool>* stop = nullptr;  ///< ends the call when it becomes true
};

struct EngineResponse {
    int status = 0;
    std::string api_version;  ///< the header Api-Version
    std::string body;
};

/// The versions of the Engine API that Hearth speaks: from Docker 20.10 on.
inline constexpr int kOldestApi = 41;  // 1.41
inline constexpr int kNewestApi = 51;

/// The minor API version to use with an Engine whose newest version is `told` ("1.47"). Throws
/// Error(Unsupported) if it is too old, std::runtime_error if it is no version.
int negotiateApi(const std::string& told);

/// Converts an Engine's refusal to an exception: Error for those that a client may see (NotFound,
/// Conflict, DiskFull, Unsupported, Unavailable), std::runtime_error for the rest.
[[noreturn]] void throwRefusal(const EngineRequest& request, const EngineResponse& response);

/// The Docker Engine API. Each call has its own connection and ends by its deadline, even if the
/// daemon hangs: Error(Deadline). After that, each call first checks whether the daemon answers, so
/// a hanging daemon costs a caller only two seconds. Thread-safe.
class EngineClient {
public:
    explicit EngineClient(EngineAddress address);

    /// Calls `target` under the negotiated version; throws what throwRefusal() does.
    EngineResponse call(EngineRequest request, TimePoint until);
    Json get(const std::string& target, TimePoint until);
    /// nullopt if it does not exist.
    std::optional<Json> find(const std::string& target, TimePoint until);
    /// `body` null: no body. Returns null for an empty answer.
    Json post(const std::string& target, const Json& body, TimePoint until);

    /// A connection that the Engine turned into a stream, with the bytes received so far.
    struct Attachment {
        http::ClientConnection stream;
        std::string early;
    };
    Attachment attach(const std::string& target, const Json& body, TimePoint until);

    /// Reads from a stream of attach(); 0 at the end.
    std::size_t read(http::ClientConnection& stream, char* out, std::size_t size,
                     TimePoint until) const;

    /// Throws Error if no Engine answers or its API is too old.
    void ping(TimePoint until);
    const EngineAddress& address() const noexcept { return address_; }

private:
    EngineResponse send(const EngineRequest& request, TimePoint until);
    /// Calls with its own client, and converts its failures to this class's.
    template <typename Call>
    auto ask(Call call);
    std::string prefix(TimePoint until);

    EngineAddress address_;
    std::optional<http::TlsContext> tls_;
    std::atomic<int> api_{0};  ///< 0: not negotiated yet
    std::atomic<bool> hung_{false};
};

/// Limits concurrent callers to `places`. Thread-safe.
class Gate {
public:
    explicit Gate(unsigned places) : free_(places) {}
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;

    /// A place, released by the destructor. The gate must outlive it.
    class Place {
    public:
        explicit Place(Gate& gate) : gate_(gate) {}
        ~Place() { gate_.leave(); }
        Place(const Place&) = delete;
        Place& operator=(const Place&) = delete;

    private:
        Gate& gate_;
    };
    /// Throws Error(Deadline) if no place becomes free by `until`.
    Place enter(TimePoint until);

private:
    void leave();

    Mutex mutex_;
    Condition freed_;
    unsigned free_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth::pool::docker
