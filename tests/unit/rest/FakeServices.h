#pragma once

#include <map>
#include <set>

#include "api/auth/Authenticator.h"
#include "api/rest/RestHandler.h"
#include "base/Error.h"
#include "base/Ids.h"
#include "controller/Services.h"
#include "tests/unit/auth/FakeTokens.h"

namespace hearth::test {

inline const std::string kWorkspace = "ws_00000000000000000000000000000001";
inline const std::string kExecution = "ex_00000000000000000000000000000001";
inline const std::string kSandbox = "sb_00000000000000000000000000000001";
inline const std::string kContext = "cx_00000000000000000000000000000001";
inline const std::string kTime = "2026-11-21T03:04:05.678Z";

inline controller::PoolView poolView(const std::string& name) {
    controller::PoolView view;
    controller::Pool pool;
    pool.name = name;
    pool.spec.image = "python";
    pool.spec.warm_min = 2;
    pool.resource_version = 7;
    view.pool = std::make_shared<const controller::Pool>(std::move(pool));
    view.status.conditions.push_back({"Ready", true, "AllWarm", "2 of 2 ready", kTime});
    return view;
}

class FakePools final : public controller::Pools {
public:
    using Principal = controller::Principal;
    std::vector<controller::PoolView> list(const Principal&) override {
        return {poolView("python")};
    }
    controller::PoolView get(const Principal&, const std::string& name) override {
        if (name != "python") throw Error(ErrorCode::NotFound, "no such pool");
        return poolView(name);
    }
    controller::PoolView create(const Principal&, const Json& given) override {
        document = given;
        return poolView(given.at("metadata").at("name").get<std::string>());
    }
    controller::PoolView put(const Principal&, const std::string& name, const Json& given,
                             std::optional<std::int64_t> version, bool& created) override {
        document = given;
        if_match = version;
        created = name != "python";
        if (version && *version != 7) throw Error(ErrorCode::PreconditionFailed, "changed");
        return poolView(name);
    }
    controller::PoolView patch(const Principal&, const std::string& name, const Json& merge,
                               std::optional<std::int64_t> version) override {
        document = merge;
        if_match = version;
        return poolView(name);
    }
    void remove(const Principal&, const std::string& name) override { removed = name; }
    std::uint32_t drain(const Principal&, const std::string&) override { return 3; }
    std::uint32_t drainAll(const Principal&) override { return 5; }
    std::vector<controller::SandboxView> sandboxes(
        const Principal& who, const std::optional<std::string>& pool) override {
        asked_pool = pool;
        return {sandbox(who, kSandbox)};
    }
    controller::SandboxView sandbox(const Principal&, const std::string& id) override {
        controller::SandboxView view;
        view.id = id;
        view.pool = "python";
        view.phase = "Claimed";
        view.workspace_id = kWorkspace;
        view.created_at = kTime;
        view.image = "python";
        view.runtime = "oci";
        return view;
    }
    void destroySandbox(const Principal&, const std::string& id) override { removed = id; }

    Json document;
    std::optional<std::int64_t> if_match;
    std::optional<std::string> asked_pool;
    std::string removed;
};

class FakeWorkspaces final : public controller::Workspaces {
public:
    using Principal = controller::Principal;
    controller::WorkspaceView view() const {
        controller::WorkspaceView out;
        out.id = kWorkspace;
        out.pool = "python";
        out.sandbox_id = kSandbox;
        out.phase = "Active";
        out.tenant = "default";
        out.labels = {{"app", "x"}};
        out.created_at = out.last_active_at = kTime;
        out.expires_at = kTime;
        return out;
    }
    controller::WorkspaceView create(const Principal&,
                                     const controller::WorkspaceRequest& given) override {
        controller::WorkspaceView out = view();
        out.claim = controller::ClaimLedger{};
        out.replayed = !given.idempotency_key.empty() && !keys.insert(given.idempotency_key).second;
        request = given;
        return out;
    }
    controller::WorkspaceView get(const Principal&, const std::string& id) override {
        if (id != kWorkspace) throw Error(ErrorCode::NotFound, "there is no such workspace");
        return view();
    }
    controller::Page<controller::WorkspaceView> list(const Principal&,
                                                     const controller::ListQuery& given) override {
        query = given;
        return {{view()}, "next"};
    }
    controller::WorkspaceView patch(const Principal&, const std::string&,
                                    const controller::WorkspacePatch& given) override {
        patched = given;
        return view();
    }
    controller::WorkspaceView touch(const Principal&, const std::string&) override {
        return view();
    }
    void close(const Principal&, const std::string& id) override { closed = id; }
    controller::WorkspaceUsage usage(const Principal&, const std::string&) override { return {}; }
    broker::EgressReport egress(const Principal&, const std::string&) override { return {}; }
    std::vector<std::string> languages(const Principal&, const std::string&) override {
        return {"python"};
    }

    agent::FileStat stat(const Principal&, const std::string&, const std::string& path) override {
        agent::FileStat out;
        out.path = path;
        out.mode = 0644;
        out.modified_unix_ms = 1'700'000'000'000;
        const auto at = files.find(path);
        if (at == files.end() && path != "dir") throw Error(ErrorCode::NotFound, "no such file");
        out.type = path == "dir" ? "directory" : "file";
        out.size = path == "dir" ? 0 : at->second.size();
        out.etag = "e" + std::to_string(version);
        return out;
    }
    void readFile(const Principal& who, const std::string& id, const std::string& path,
                  std::uint64_t offset, std::uint64_t length,
                  const std::function<void(const agent::FileStat&)>& begin,
                  const std::function<bool(std::string_view)>& chunk) override {
        if (change_before_read) ++version;
        begin(stat(who, id, path));
        std::string_view bytes = files.at(path);
        bytes = bytes.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
        while (!bytes.empty()) {
            if (!chunk(bytes.substr(0, 100'000))) return;
            bytes.remove_prefix(std::min<std::size_t>(100'000, bytes.size()));
        }
    }
    agent::FileStat writeFile(const Principal& who, const std::string& id, const std::string& path,
                              std::optional<unsigned> given_mode,
                              const std::function<std::size_t(char*, std::size_t)>& next) override {
        std::string content;
        char piece[7];
        while (const std::size_t size = next(piece, sizeof piece)) content.append(piece, size);
        files[path] = content;
        mode = given_mode;
        return stat(who, id, path);
    }
    void readArchive(const Principal&, const std::string&, const std::string& path,
                     const std::function<bool(std::string_view)>& chunk) override {
        chunk("tar of " + path);
    }
    agent::ArchiveCount writeArchive(
        const Principal&, const std::string&, const std::string&,
        const std::function<std::size_t(char*, std::size_t)>& next) override {
        agent::ArchiveCount count;
        char piece[7];
        while (const std::size_t size = next(piece, sizeof piece)) count.bytes += size;
        return count;
    }
    agent::FileList listFiles(const Principal& who, const std::string& id, const std::string& path,
                              bool recursive, std::size_t limit,
                              const std::string& after) override {
        listed = path + (recursive ? " recursive " : " ") + std::to_string(limit) + " " + after;
        agent::FileList out;
        for (const auto& [name, content] : files) out.items.push_back(stat(who, id, name));
        return out;
    }
    void makeDirectory(const Principal&, const std::string&, const std::string& path) override {
        made = path;
    }
    void moveFile(const Principal&, const std::string&, const std::string& from,
                  const std::string& to) override {
        moved = from + " " + to;
    }
    void removeFile(const Principal&, const std::string&, const std::string& path,
                    bool recursive) override {
        removed = path + (recursive ? " recursive" : "");
    }

    controller::WorkspaceRequest request;
    controller::WorkspacePatch patched;
    controller::ListQuery query;
    std::set<std::string> keys;
    std::string closed;
    std::map<std::string, std::string> files{{"a.txt", "hello world"}};
    int version = 1;
    bool change_before_read = false;
    std::optional<unsigned> mode;
    std::string listed, made, moved, removed;
};

/// An execution whose output and end the test makes.
class FakeExecution final : public controller::Execution {
public:
    FakeExecution() {
        state.id = kExecution;
        state.workspace_id = kWorkspace;
        state.tenant = "default";
        state.pool = "python";
        state.status = "running";
        state.started_at = kTime;
    }
    const std::string& id() const override { return state.id; }
    controller::ExecutionView viewUpTo(std::uint64_t most) const override {
        controller::ExecutionView out = state;
        for (const controller::OutputChunk& chunk : chunks) {
            out.kept_bytes += chunk.bytes.size();
            out.output_end = chunk.offset + chunk.bytes.size();
        }
        for (const controller::ResultPtr& each : out.results) {
            out.result_bytes += each->document.size();
        }
        out.result_count = out.results.size();
        out.withheld = out.kept_bytes + out.result_bytes > most;
        if (out.withheld) {
            out.stdout_bytes = out.stderr_bytes = {};
            out.results.clear();
        }
        return out;
    }
    bool finished() const override { return state.status != "running"; }
    bool wait(std::chrono::milliseconds timeout) override {
        waits.push_back(timeout);
        if (on_wait) on_wait();
        return finished();
    }
    std::optional<controller::OutputChunk> read(std::uint64_t offset,
                                                std::size_t most) const override {
        for (const controller::OutputChunk& chunk : chunks) {
            const std::uint64_t end = chunk.offset + chunk.bytes.size();
            if (end <= offset) continue;
            const std::uint64_t from = std::max(offset, chunk.offset);
            return controller::OutputChunk{
                from, chunk.channel,
                chunk.bytes.substr(static_cast<std::size_t>(from - chunk.offset), most)};
        }
        return std::nullopt;
    }
    controller::ResultPtr resultAt(std::size_t index) const override {
        return index < state.results.size() ? state.results[index] : nullptr;
    }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        changed_ = std::move(changed);
        ++subscriptions;
        return {nullptr, [this](void*) {
                    --subscriptions;
                    changed_ = nullptr;
                }};
    }

    void print(int channel, std::string bytes) {
        const std::uint64_t at =
            chunks.empty() ? skip : chunks.back().offset + chunks.back().bytes.size() + skip;
        skip = 0;
        (channel == 1 ? state.stdout_bytes : state.stderr_bytes) += bytes;
        chunks.push_back({at, channel, std::move(bytes)});
        notify();
    }
    void show(const std::string& mime, const std::string& value, bool main = false) {
        const std::uint64_t at =
            chunks.empty() ? skip : chunks.back().offset + chunks.back().bytes.size() + skip;
        const Json document{{"main", main}, {"mime", {{mime, value}}}};
        state.results.push_back(controller::readResult(document.dump(), at));
        notify();
    }
    void end(const std::string& status, int code) {
        state.status = status;
        state.exit_code = code;
        state.duration_ms = 3.5;
        notify();
    }
    void notify() {
        if (const auto call = changed_) call();
    }

    controller::ExecutionView state;
    std::vector<controller::OutputChunk> chunks;
    std::uint64_t skip = 0;  ///< bytes that are lost before the next piece
    std::vector<std::chrono::milliseconds> waits;
    std::function<void()> on_wait;
    int subscriptions = 0;

private:
    std::function<void()> changed_;
};

class FakeExecutions final : public controller::Executions {
public:
    using Principal = controller::Principal;
    std::shared_ptr<controller::Execution> start(
        const Principal&, const std::string& given_workspace,
        const controller::ExecutionRequest& given) override {
        workspace = given_workspace;
        request = given;
        return execution;
    }
    std::shared_ptr<controller::Execution> startOneShot(
        const Principal&, const controller::WorkspaceRequest& given_where,
        const controller::ExecutionRequest& given) override {
        where = given_where;
        request = given;
        execution->state.claim = controller::ClaimLedger{};
        return execution;
    }
    std::shared_ptr<controller::Execution> find(const Principal&, const std::string& id) override {
        if (id != kExecution) throw Error(ErrorCode::NotFound, "there is no such execution");
        return execution;
    }
    std::vector<std::shared_ptr<controller::Execution>> list(const Principal&,
                                                             const std::string&) override {
        return std::vector<std::shared_ptr<controller::Execution>>(listed, execution);
    }
    void signal(const Principal&, const std::string&, std::string_view name) override {
        did = "signal " + std::string(name);
    }
    void resize(const Principal&, const std::string&, unsigned columns, unsigned rows) override {
        did = "resize " + std::to_string(columns) + " " + std::to_string(rows);
    }
    void writeStdin(const Principal&, const std::string&, std::string_view bytes,
                    bool close) override {
        input.append(bytes);
        input_closed = close;
    }
    void kill(const Principal&, const std::string&) override { did = "kill"; }

    std::shared_ptr<FakeExecution> execution = std::make_shared<FakeExecution>();
    std::size_t listed = 1;  ///< how often it stands in a list
    std::string workspace, did, input;
    bool input_closed = false;
    controller::ExecutionRequest request;
    controller::WorkspaceRequest where;
};

class FakeContexts final : public controller::Contexts {
public:
    using Principal = controller::Principal;
    static controller::ContextView view() {
        controller::ContextView out;
        out.id = kContext;
        out.workspace_id = kWorkspace;
        out.tenant = "default";
        out.language = "python";
        out.created_at = kTime;
        return out;
    }
    controller::ContextView create(const Principal&, const std::string& given_workspace,
                                   const controller::ContextRequest& given) override {
        workspace = given_workspace;
        request = given;
        controller::ContextView out = view();
        out.name = given.name;
        out.replayed = given.name == "known";
        return out;
    }
    std::vector<controller::ContextView> list(const Principal&, const std::string&) override {
        return {view()};
    }
    controller::ContextView get(const Principal&, const std::string& id) override {
        if (id != kContext) throw Error(ErrorCode::NotFound, "there is no such context");
        return view();
    }
    void interrupt(const Principal&, const std::string& id) override { did = "interrupt " + id; }
    controller::ContextView restart(const Principal&, const std::string& id) override {
        did = "restart " + id;
        return view();
    }
    void remove(const Principal&, const std::string& id) override { did = "remove " + id; }

    std::string workspace, did;
    controller::ContextRequest request;
};

class FakeEvents final : public controller::Events {
public:
    std::vector<controller::Event> list(const controller::Principal&,
                                        const controller::EventQuery& query) override {
        asked = query;
        std::vector<controller::Event> out;
        for (const controller::Event& event : all) {
            if (event.id > query.since && out.size() < query.limit) out.push_back(event);
        }
        return out;
    }
    std::shared_ptr<void> subscribe(std::function<void()> given) override {
        changed = std::move(given);
        return {nullptr, [this](void*) { changed = nullptr; }};
    }
    void add(const std::string& type) {
        controller::Event event;
        event.id = all.size() + 1;
        event.time = kTime;
        event.type = type;
        event.resource = kWorkspace;
        all.push_back(event);
        if (const auto call = changed) call();
    }

    std::vector<controller::Event> all;
    controller::EventQuery asked;
    std::function<void()> changed;
};

/// The whole surface over fakes.
struct House {
    FakePools pools;
    FakeWorkspaces workspaces;
    FakeExecutions executions;
    FakeContexts contexts;
    FakeEvents events;
    FakeTokens tokens;
    metrics::Metrics metrics;
    metrics::Log log{-1};
    ManualClock clock;
    std::string secret = std::string(32, 'k');
    controller::Packages packages{executions, workspaces, {"pypi", "npm"}};
    controller::Services services{pools,
                                  workspaces,
                                  executions,
                                  contexts,
                                  packages,
                                  events,
                                  tokens,
                                  metrics,
                                  log,
                                  clock,
                                  [] {
                                      return Json{{"runtime", "oci"}};
                                  },
                                  secret};
    auth::Authenticator authenticator{tokens};
    auth::WorkerShares shares{8};
    auth::RateLimits limits{0, 0, clock};
    rest::RestHandler rest{services, authenticator, shares, limits};
};

}  // namespace hearth::test
