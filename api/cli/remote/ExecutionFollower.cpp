#include "api/cli/remote/ExecutionFollower.h"

#include <unistd.h>

#include "base/Error.h"
#include "base/http/Url.h"

namespace hearth::cli {
namespace {
/// A cluster's lease of 15 s and the 5 s in which a follower takes over, and some more.
constexpr std::chrono::seconds kReconnectTime{30};
constexpr std::chrono::milliseconds kReconnectPause{500};
constexpr int kReconnects = static_cast<int>(kReconnectTime / kReconnectPause);
constexpr int kUnavailable = 503;
}  // namespace

void ExecutionFollower::follow(const RunRequest& request) {
    http::ClientRequest post;
    post.method = "POST";
    post.target = request.target;
    post.headers = {{"Content-Type", "application/json"},
                    {"Idempotency-Key", request.idempotency_key}};
    post.body = dumpJson(request.body);
    attempt(post);
    reconnect(post);
}

void ExecutionFollower::follow(const std::string& execution) {
    http::ClientRequest events;
    events.target = "/v1/executions/" + percentEncode(execution) + "/events";
    attempt(events);
    reconnect(events);
}

void ExecutionFollower::reconnect(const http::ClientRequest& post) {
    for (int i = 0; i < kReconnects && !output_.finished() && !output_.unheard(); ++i) {
        ::usleep(std::chrono::microseconds(kReconnectPause).count());
        if (output_.executionId().empty()) {
            attempt(post);  // because of the key the answer is the first one's execution
            continue;
        }
        http::ClientRequest again;
        again.target = "/v1/executions/" + output_.executionId() + "/events";
        if (!last_id_.empty()) again.headers.emplace_back("Last-Event-ID", last_id_);
        attempt(again);
    }
    if (!output_.finished() && !output_.unheard()) {
        const std::string& id = output_.executionId();
        throw Error(ErrorCode::Unavailable, "the connection was lost before the end")
            .hint(id.empty() ? "nothing is known to have begun; see `hearth ls`"
                             : "the execution may still run: hearth get execution " + id);
    }
}

void ExecutionFollower::attempt(const http::ClientRequest& request) {
    bool streaming = false;
    try {
        remote_.events(request, [&](const http::SseEvent& event) {
            connected_ = streaming = true;
            last_id_ = event.id;
            if (event.type == "exit" && milestones_.ending) milestones_.ending();
            output_.take(event);
            if (!output_.executionId().empty() && milestones_.named) {
                milestones_.named(output_.executionId());
            }
            return !output_.finished() && !output_.unheard();
        });
        connected_ = true;
    } catch (const Error& e) {
        // If the server never answered, fail at once; a lost connection may come back.
        if (e.code() != ErrorCode::Unavailable || !connected_) throw;
    } catch (const RemoteError& e) {
        // A server that has just started, or is about to lead, cannot serve the stream yet. One
        // that ends the stream of a claim that waits has refused it.
        const bool refused = streaming && output_.executionId().empty();
        if (e.status() != kUnavailable || !connected_ || refused) throw;
    }
}

}  // namespace hearth::cli
