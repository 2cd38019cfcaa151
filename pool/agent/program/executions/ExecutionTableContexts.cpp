// The operations on contexts: interpreters that stay, and executions in them.

#include "pool/agent/program/executions/ExecutionTable.h"

namespace hearth::agent {

namespace {

bool validContextId(std::string_view id) {
    return !id.empty() && id.size() <= 64 &&
           id.find_first_not_of(
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
               std::string_view::npos;
}

}  // namespace

void ExecutionTable::context(Connection& connection, std::uint32_t stream, const JsonValue& body) {
    const std::string id(body["id"].text());
    const std::string language(body["language"].text());
    if (!validContextId(id))
        return connection.fail(stream, "BAD_REQUEST",
                               "id is missing or not of [A-Za-z0-9_-]{1,64}");
    JsonValue reply = JsonValue::object();
    reply.set("id", id).set("language", language);
    if (const auto known = contexts_.find(id); known != contexts_.end() && known->second->alive()) {
        if (known->second->facts().language != language)
            return connection.fail(stream, "FINGERPRINT_MISMATCH",
                                   "the context exists with another language");
        return connection.reply(stream, reply.set("repeated", true));
    }
    if (languages_.context(language).empty())
        return connection.fail(stream, "UNSUPPORTED",
                               "the image keeps no context of this language");
    if (contexts_.size() >= kMaxContexts)
        return connection.fail(stream, "TOO_MANY", "too many contexts");
    Context::Facts facts;
    facts.id = id;
    facts.language = language;
    facts.file = languages_.file(language);
    facts.cwd = workingDirectory(settings_, body["cwd"].text());
    if (facts.cwd.find('\0') != std::string::npos ||
        !environment_.with(body["env"], false, facts.env)) {
        return connection.fail(stream, "BAD_REQUEST", "cwd or env holds what cannot be in one");
    }
    auto made = std::make_unique<Context>(loop_, settings_, std::move(facts));
    if (const Refusal refusal = startContext(*made))
        return connection.fail(stream, refusal.code, refusal.text);
    contexts_[id] = std::move(made);
    deadlines_.touch(nowNs());
    connection.reply(stream, reply.set("repeated", false));
}

Refusal ExecutionTable::startContext(Context& context) {
    const Context::Facts& facts = context.facts();
    if (std::unique_ptr<Parked> parked = zygotes_.take(facts.language, facts.env)) {
        context.startParked(std::move(parked));
        zygotes_.answered();
        return {};
    }
    return {context.startCold(languages_.context(facts.language), nextLabel())};
}

Context* ExecutionTable::findContext(Connection& connection, std::uint32_t stream,
                                     const JsonValue& body) {
    const auto found = contexts_.find(std::string(body["id"].text()));
    if (found != contexts_.end() && found->second->alive()) return found->second.get();
    connection.fail(stream, "NOT_FOUND", "no such context");
    return nullptr;
}

void ExecutionTable::execInContext(Connection& connection, std::uint32_t stream,
                                   const JsonValue& body, Execution::Request request) {
    const auto found = contexts_.find(std::string(body["context"].text()));
    if (found == contexts_.end() || !found->second->alive())
        return connection.fail(stream, "NOT_FOUND", "no such context");
    Context& context = *found->second;
    if (!request.spawn.argv.empty() || request.spawn.pty || request.spawn.with_stdin ||
        !body["cwd"].text().empty() || !body["env"].keys().empty() ||
        request.code.find('\0') != std::string::npos) {
        return connection.fail(stream, "BAD_REQUEST",
                               "a context takes code only, without cwd, env, pty and stdin");
    }
    if (!request.language.empty() && request.language != context.facts().language)
        return connection.fail(stream, "BAD_REQUEST", "the context is of another language");
    if (context.busy()) return connection.fail(stream, "BUSY", "the context runs something else");
    request.language = context.facts().language;
    request.context = context.facts().id;
    request.spawn.cwd = context.facts().cwd;
    request.spawn.env = context.facts().env;
    ExecutionOwner& self = *this;
    auto execution = std::make_unique<Execution>(loop_, settings_, self, std::move(request));
    if (const Refusal refusal = start(*execution))
        return connection.fail(stream, refusal.code, refusal.text);
    follow(connection, stream, keep(std::move(execution)), 0, 0, false);
}

Refusal ExecutionTable::runInContext(Execution& execution) {
    // The context may have ended, or become busy, while the execution was prepared.
    const auto found = contexts_.find(execution.request().context);
    if (found == contexts_.end() || !found->second->alive()) return {"its context has ended"};
    if (found->second->busy()) return {"its context runs something else"};
    found->second->run(execution, execution.request().code);
    return {};
}

void ExecutionTable::contextEnd(Connection& connection, std::uint32_t stream,
                                const JsonValue& body) {
    Context* const context = findContext(connection, stream, body);
    if (context == nullptr) return;
    context->end();  // tick() removes it
    deadlines_.touch(nowNs());
    connection.reply(stream, JsonValue::object());
}

void ExecutionTable::contextRestart(Connection& connection, std::uint32_t stream,
                                    const JsonValue& body) {
    Context* const context = findContext(connection, stream, body);
    if (context == nullptr) return;
    Context::Facts facts = context->facts();
    context->end();
    auto fresh = std::make_unique<Context>(loop_, settings_, std::move(facts));
    const Refusal refusal = startContext(*fresh);
    deadlines_.touch(nowNs());
    if (refusal) return connection.fail(stream, refusal.code, refusal.text);
    contexts_[fresh->facts().id] = std::move(fresh);
    connection.reply(stream, JsonValue::object());
}

void ExecutionTable::interrupt(Connection& connection, std::uint32_t stream,
                               const JsonValue& body) {
    Context* const context = findContext(connection, stream, body);
    if (context == nullptr) return;
    if (!context->interrupt()) return connection.fail(stream, "NOT_FOUND", "it runs nothing");
    deadlines_.touch(nowNs());
    connection.reply(stream, JsonValue::object());
}

JsonValue ExecutionTable::listContexts() const {
    JsonValue out = JsonValue::array();
    for (const auto& [id, context] : contexts_) {
        if (!context->alive()) continue;
        JsonValue item = JsonValue::object();
        item.set("id", id).set("language", context->facts().language);
        item.set("running", context->busy());
        out.push(std::move(item));
    }
    return out;
}

}  // namespace hearth::agent
