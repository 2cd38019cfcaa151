#include <nlohmann/json.hpp>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "api/config/ServeConfig.h"
#include "api/serve/OfflineState.h"
#include "base/Error.h"
#include "base/http/Url.h"
#include "controller/contract/RoleName.h"

namespace hearth::cli {
namespace {

controller::Role roleOf(const std::string& name) {
    if (const auto role = controller::kRoles.find(name)) return *role;
    throw UsageError("--role is \"" + name + "\"", "use " + anyOf(controller::kRoles.all()));
}

Json viewJson(const controller::TokenView& view) {
    Json json = {{"id", view.id},
                 {"name", view.name},
                 {"tenant", view.tenant},
                 {"role", controller::kRoles.of(view.role)},
                 {"createdAt", view.created_at},
                 {"expiresAt", nullptr},
                 {"source", view.source}};
    if (view.expires_at) json["expiresAt"] = *view.expires_at;
    return json;
}

/// The operations of the three verbs, on a server or on a data directory.
class TokenSource {
public:
    virtual ~TokenSource() = default;
    /// Returns the view, which has the token itself in `token`.
    virtual Json create(const std::string& name, const std::string& tenant, controller::Role role,
                        std::optional<std::int64_t> ttl_seconds) = 0;
    virtual std::vector<Json> list() = 0;
    virtual void remove(const std::string& id) = 0;
};

class RemoteTokens final : public TokenSource {
public:
    explicit RemoteTokens(const Options& options) : remote_(options) {}

    Json create(const std::string& name, const std::string& tenant, controller::Role role,
                std::optional<std::int64_t> ttl_seconds) override {
        Json body = {{"name", name}, {"tenant", tenant}, {"role", controller::kRoles.of(role)}};
        if (ttl_seconds) body["expiresInSeconds"] = *ttl_seconds;
        return remote_.send("POST", "/v1/tokens", body).body;
    }
    std::vector<Json> list() override { return remote_.list("/v1/tokens"); }
    void remove(const std::string& id) override {
        remote_.send("DELETE", "/v1/tokens/" + percentEncode(id));
    }

private:
    Remote remote_;
};

class StoredTokens final : public TokenSource {
public:
    explicit StoredTokens(std::unique_ptr<controller::Tokens> tokens)
        : tokens_(std::move(tokens)) {}

    Json create(const std::string& name, const std::string& tenant, controller::Role role,
                std::optional<std::int64_t> ttl_seconds) override {
        // From the first token on, the server does not serve callers without one.
        if (role != controller::Role::Admin && !tokens_->configured()) {
            throw Error(ErrorCode::Conflict, "the first token must be an admin's")
                .hint(
                    "create an admin first: hearth token create --name NAME --role admin "
                    "--offline");
        }
        const auto [view, token] = tokens_->create(owner(), name, tenant, role, ttl_seconds);
        Json json = viewJson(view);
        json["token"] = token;
        return json;
    }
    std::vector<Json> list() override {
        std::vector<Json> items;
        for (const auto& view : tokens_->list(owner())) items.push_back(viewJson(view));
        return items;
    }
    void remove(const std::string& id) override { tokens_->remove(owner(), id); }

private:
    /// A user who may write the data directory has all rights.
    static controller::Principal owner() {
        return {"default", controller::Role::Admin, controller::kOwnerOfState};
    }

    std::unique_ptr<controller::Tokens> tokens_;
};

int perform(const Invocation& call, TokenSource& tokens) {
    const Options& options = call.options;
    const std::string& verb = options.positional()[0];
    const bool json = wantsJson(options);
    if (verb == "create") {
        std::optional<std::int64_t> ttl;
        if (const auto duration = options.duration("ttl")) ttl = duration->count() / 1000;
        const Json made =
            tokens.create(options.get("name", "cli"), options.get("tenant", "default"),
                          roleOf(options.get("role", "user")), ttl);
        if (json) {
            call.console.out << jsonText(made) << '\n';
        } else {
            call.console.out << made.value("token", "") << '\n' << std::flush;
            call.console.note("token " + made.value("id", "") + ", role " + made.value("role", "") +
                              " of tenant " + made.value("tenant", "") + "; it is not shown again");
        }
    } else if (verb == "list") {
        const std::vector<Json> items = tokens.list();
        if (json) {
            call.console.out << jsonText(Json{{"items", items}}) << '\n';
        } else if (items.empty()) {
            call.console.note("no tokens");
        } else {
            call.console.out << tokenTable(items, SystemClock().wall());
        }
    } else {
        const std::string& id = options.positional()[1];
        tokens.remove(id);
        call.console.out << "token " << id << " deleted\n";
    }
    return kOk;
}

/// Works on the data directory; a server that uses it reads its tokens only at its start.
int performOffline(const Invocation& call) {
    const std::string directory = call.options.get("data-dir", kDataDirectory);
    StoredTokens tokens(program::offlineTokens(directory));
    const int status = perform(call, tokens);
    if (call.options.positional()[0] != "list") {
        call.console.note("this takes effect at the next start of the server");
    }
    return status;
}

int token(const Invocation& call) {
    const Options& options = call.options;
    const std::string& verb = options.positional()[0];
    if (verb != "create" && verb != "list" && verb != "delete") {
        throw unknownWord("token \"" + verb + "\" is unknown", verb, {"create", "list", "delete"});
    }
    if ((verb == "delete") != (options.positional().size() == 2)) {
        throw UsageError(verb == "delete" ? "which token?" : "too many arguments",
                         "hearth token create | list | delete ID");
    }
    roleOf(options.get("role", "user"));
    if (options.on("offline")) return performOffline(call);
    try {
        RemoteTokens tokens(options);
        return perform(call, tokens);
    } catch (const Error& e) {
        const bool elsewhere = options.source("url") != Source::Default;
        if (e.code() != ErrorCode::Unavailable || elsewhere) throw;
    }
    call.console.note("no server runs here: working on " + options.get("data-dir", kDataDirectory));
    return performOffline(call);
}

}  // namespace

Command makeToken() {
    return {{.name = "token",
             .arguments = "create|list|delete [ID]",
             .summary = "Make, list or delete bearer tokens.",
             .details =
                 "  hearth token create --name me --role admin\n"
                 "  hearth token create --name ci --tenant shop --ttl 720h\n"
                 "  hearth token list\n"
                 "  hearth token delete tk_12ab…\n\n"
                 "Asks the server; if none runs on this machine (and no --url is given), or\n"
                 "with --offline, edits the data directory, which the next start reads. The first\n"
                 "token must be an admin's: from then on every request needs one.",
             .flags = withClientFlags(withOutputFlags(
                 {Flag{.name = "name",
                       .value = "TEXT",
                       .help = "The name of its holder",
                       .fallback = "cli",
                       .environment = false},
                  Flag{.name = "tenant",
                       .value = "NAME",
                       .help = "The tenant whose workspaces it opens",
                       .fallback = "default"},
                  Flag{.name = "role",
                       .value = "ROLE",
                       .help = anyOf(controller::kRoles.all()),
                       .fallback = "user",
                       .environment = false,
                       .choices = controller::kRoles.all()},
                  Flag{.name = "ttl",
                       .value = "DURATION",
                       .help = "How long it is valid; default: for ever",
                       .environment = false},
                  Flag{.name = "offline", .help = "Do not ask a server", .environment = false},
                  Flag{.name = "data-dir",
                       .value = "DIR",
                       .help = "The data directory to edit",
                       .fallback = kDataDirectory}},
                 true)),
             .least = 1,
             .most = 2,
             .operands = {"create|list|delete", ""}},
            token};
}

}  // namespace hearth::cli
