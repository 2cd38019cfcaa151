#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/auth/Authenticator.h"
#include "api/auth/RateLimits.h"
#include "api/auth/WorkerShares.h"
#include "api/http/Handler.h"
#include "api/http/Routes.h"
#include "api/mcp/tools/Toolbox.h"
#include "controller/Services.h"

namespace hearth::mcp {

/// The seeds' tools without MCP: `POST /compat/{seed}/tools/{tool}` and `POST /mcp/tools/{tool}`
/// take the arguments as a JSON object (no body: none) and answer with the result as JSON: an
/// object, an array or a text. `GET /sandbox/file` gives a file of a sandbox. Failures are problem
/// details. A call that waits for an execution or a sandbox holds no worker.
class PlainTools final : public api::Handler {
public:
    /// `seed` selects the tools at /mcp/tools: "s0" to "s3". All references must outlive the
    /// handler, and the front must stop before it is destroyed.
    PlainTools(const controller::Services& services, const auth::Authenticator& authenticator,
               const auth::WorkerShares& shares, const auth::RateLimits& limits,
               const std::string& seed = "s1");

    /// True if this handler serves the path.
    static bool takes(const std::string& path);
    api::Response handle(api::Request& request) override;

    /// The largest body: room for a program of 10 MB as JSON.
    static constexpr std::size_t kMaxBody = 24U << 20U;
    /// A body of this size or more takes one of its tenant's kLargeAtOnce places.
    static constexpr std::uint64_t kLargeBody = 1U << 20U;
    static constexpr std::size_t kLargeAtOnce = 2;

private:
    api::Response callTool(api::Request& request, const std::string& seed,
                           const std::string& name) const;
    /// Handles a call that holds a place of the tenant's share.
    api::Response called(api::Request& request, const std::string& seed, const std::string& name,
                         const CallContext& call) const;
    Task<api::Response> answer(const Tool& tool, CallContext call, Arguments arguments) const;
    api::Response sandboxFile(api::Request& request) const;
    std::string sandboxOf(const controller::Principal& who, const api::Request& request) const;

    const controller::Services& services_;
    const auth::Authenticator& authenticator_;
    const auth::WorkerShares& shares_;
    const auth::RateLimits& limits_;
    const auth::WorkerShares large_{kLargeAtOnce};
    std::map<std::string, std::vector<Tool>> tools_;  ///< by seed
    api::Router router_;
};

}  // namespace hearth::mcp
