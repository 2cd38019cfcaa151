#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/Ids.h"
#include "base/Subscribers.h"
#include "controller/Services.h"

namespace hearth::mcp::fake {

/// A pool "python" that is always ready, and others like it.
class FakePools final : public controller::Pools {
public:
    std::vector<std::string> names{"python"};

    std::vector<controller::PoolView> list(const controller::Principal&) override {
        std::vector<controller::PoolView> views;
        for (const std::string& name : names) {
            controller::PoolView view;
            controller::Pool pool;
            pool.name = name;
            pool.spec.image = "python";
            pool.spec.prewarm_packages = {"numpy==2.1"};
            view.status.packages = {"sha256:1", "x.lock", {{"numpy", "2.1"}}};
            view.pool = std::make_shared<const controller::Pool>(std::move(pool));
            view.status.ready = 2;
            views.push_back(std::move(view));
        }
        return views;
    }
    controller::PoolView get(const controller::Principal& who, const std::string&) override {
        return list(who).front();
    }
    controller::PoolView create(const controller::Principal&, const Json&) override { refuse(); }
    controller::PoolView put(const controller::Principal&, const std::string&, const Json&,
                             std::optional<std::int64_t>, bool&) override {
        refuse();
    }
    controller::PoolView patch(const controller::Principal&, const std::string&, const Json&,
                               std::optional<std::int64_t>) override {
        refuse();
    }
    void remove(const controller::Principal&, const std::string&) override { refuse(); }
    std::uint32_t drain(const controller::Principal&, const std::string&) override { refuse(); }
    std::uint32_t drainAll(const controller::Principal&) override { refuse(); }
    std::vector<controller::SandboxView> sandboxes(const controller::Principal&,
                                                   const std::optional<std::string>&) override {
        return {};
    }
    controller::SandboxView sandbox(const controller::Principal&, const std::string&) override {
        refuse();
    }
    void destroySandbox(const controller::Principal&, const std::string&) override { refuse(); }

private:
    [[noreturn]] static void refuse() { throw Error(ErrorCode::Unsupported, "not in this fake"); }
};

/// The sandboxes of a fake house: always ready, unless a test holds them back.
class FakeStock {
public:
    void hold() {
        const std::lock_guard lock(mutex_);
        held_ = true;
    }
    /// Every claim that waits gets one, or this error, and later ones too.
    void free(std::optional<Error> instead = std::nullopt) {
        const std::lock_guard lock(mutex_);
        held_ = false;
        refusal_ = std::move(instead);
        changed_.notify_all();
    }
    /// A claim, which waits as its patience says.
    void take(const controller::Patience& patience) {
        std::unique_lock lock(mutex_);
        if (held_ && !patience.waits) throw controller::MustWait("a sandbox of pool python");
        ++waiting_;
        changed_.notify_all();
        const bool got = changed_.wait(lock, patience.stop, [this] { return !held_; });
        --waiting_;
        changed_.notify_all();
        if (!got) throw controller::takenBack();
        if (refusal_) throw Error(*refusal_);
    }
    /// Whether so many claims wait, at once or soon.
    bool waiting(std::size_t count) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return waiting_ == count; });
    }

private:
    std::mutex mutex_;
    std::condition_variable_any changed_;
    bool held_ = false;             ///< guarded by mutex_
    std::size_t waiting_ = 0;       ///< guarded by mutex_
    std::optional<Error> refusal_;  ///< guarded by mutex_
};

/// Workspaces whose files are kept in memory. Each workspace belongs to the tenant that opened it.
class FakeWorkspaces final : public controller::Workspaces {
public:
    explicit FakeWorkspaces(FakeStock& stock) : stock_(stock) {}

    std::optional<Error> refuse_create;           ///< thrown by create() where set
    std::optional<std::set<std::string>> images;  ///< that there are; none: every one
    std::string network = "None";                 ///< of all workspaces

    controller::WorkspaceView create(const controller::Principal& who,
                                     const controller::WorkspaceRequest& request) override {
        if (refuse_create) throw Error(*refuse_create);
        if (images && request.image && !images->contains(*request.image)) {
            throw Error(ErrorCode::InvalidSpec, "no pool has image " + *request.image)
                .hint("pools have: python");
        }
        stock_.take(request.patience);
        controller::WorkspaceView view;
        view.id = newId("ws_");
        view.pool = request.pool.value_or("python");
        view.phase = "Active";
        view.tenant = who.tenant;
        view.name = request.name;
        view.labels = request.labels;
        view.network = network;
        view.created_at = "2026-01-01T00:00:00.000Z";
        view.idle_expires_at = "2026-01-01T00:10:00.000Z";
        view.expires_at = "2030-01-01T04:00:00.000Z";
        const std::lock_guard lock(mutex_);
        Entry& entry = entries_[view.id];
        entry.view = view;
        for (const controller::InlineFile& file : request.files) {
            entry.files[file.path] = file.bytes;
        }
        view.claim = controller::ClaimLedger{.bind_ms = 0.2, .total_ms = 0.3};
        return view;
    }
    controller::WorkspaceView get(const controller::Principal& who,
                                  const std::string& id) override {
        const std::lock_guard lock(mutex_);
        return find(who, id).view;
    }
    controller::Page<controller::WorkspaceView> list(const controller::Principal& who,
                                                     const controller::ListQuery& query) override {
        const std::lock_guard lock(mutex_);
        controller::Page<controller::WorkspaceView> page;
        for (const auto& [id, entry] : entries_) {
            const auto& labels = entry.view.labels;
            const bool fits =
                std::all_of(query.labels.begin(), query.labels.end(), [&](const auto& wanted) {
                    const auto found = labels.find(wanted.first);
                    return found != labels.end() && found->second == wanted.second;
                });
            if (fits && entry.view.tenant == who.tenant) page.items.push_back(entry.view);
        }
        return page;
    }
    controller::WorkspaceView patch(const controller::Principal& who, const std::string& id,
                                    const controller::WorkspacePatch& patch) override {
        {
            const std::lock_guard lock(mutex_);
            auto& labels = find(who, id).view.labels;
            if (patch.labels) {
                for (const auto& [key, value] : *patch.labels) {
                    if (value) {
                        labels[key] = *value;
                    } else {
                        labels.erase(key);
                    }
                }
            }
        }
        return get(who, id);
    }
    controller::WorkspaceView touch(const controller::Principal& who,
                                    const std::string& id) override {
        return get(who, id);
    }
    void close(const controller::Principal& who, const std::string& id) override {
        const std::lock_guard lock(mutex_);
        if (gone_.contains(id)) throw goneError();
        find(who, id);
        entries_.erase(id);
        gone_.insert(id);
    }
    controller::WorkspaceUsage usage(const controller::Principal&, const std::string&) override {
        return {};
    }
    broker::EgressReport egress(const controller::Principal&, const std::string&) override {
        return {};
    }
    std::vector<std::string> languages(const controller::Principal&, const std::string&) override {
        return {"python", "sh"};
    }
    agent::FileStat stat(const controller::Principal& who, const std::string& id,
                         const std::string& path) override {
        const std::lock_guard lock(mutex_);
        const Entry& entry = find(who, id);
        agent::FileStat out;
        out.path = path;
        out.type = "directory";
        if (path == ".") return out;
        const auto found = entry.files.find(path);
        if (found == entry.files.end()) throw Error(ErrorCode::NotFound, "no such file: " + path);
        out.type = "file";
        out.size = found->second.size();
        return out;
    }
    void readFile(const controller::Principal& who, const std::string& id, const std::string& path,
                  std::uint64_t offset, std::uint64_t length,
                  const std::function<void(const agent::FileStat&)>& begin,
                  const std::function<bool(std::string_view)>& chunk) override {
        begin(stat(who, id, path));
        const std::lock_guard lock(mutex_);
        chunk(std::string_view(find(who, id).files.at(path))
                  .substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length)));
    }
    agent::FileStat writeFile(const controller::Principal& who, const std::string& id,
                              const std::string& path, std::optional<unsigned>,
                              const std::function<std::size_t(char*, std::size_t)>& next) override {
        std::string bytes;
        std::string buffer(4096, '\0');
        while (const std::size_t n = next(buffer.data(), buffer.size())) bytes.append(buffer, 0, n);
        {
            const std::lock_guard lock(mutex_);
            find(who, id).files[path] = bytes;
        }
        return stat(who, id, path);
    }
    void readArchive(const controller::Principal&, const std::string&, const std::string&,
                     const std::function<bool(std::string_view)>&) override {}
    agent::ArchiveCount writeArchive(
        const controller::Principal&, const std::string&, const std::string&,
        const std::function<std::size_t(char*, std::size_t)>&) override {
        return {};
    }
    agent::FileList listFiles(const controller::Principal& who, const std::string& id,
                              const std::string&, bool, std::size_t limit,
                              const std::string& after) override {
        const std::lock_guard lock(mutex_);
        agent::FileList list;
        for (const auto& [path, bytes] : find(who, id).files) {
            if (path <= after) continue;
            if (list.items.size() == limit) {
                list.next = list.items.back().path;
                break;
            }
            agent::FileStat one;
            one.path = path;
            one.type = "file";
            one.size = bytes.size();
            list.items.push_back(one);
        }
        return list;
    }
    void makeDirectory(const controller::Principal&, const std::string&,
                       const std::string&) override {}
    void moveFile(const controller::Principal&, const std::string&, const std::string&,
                  const std::string&) override {}
    void removeFile(const controller::Principal&, const std::string&, const std::string&,
                    bool) override {}

private:
    struct Entry {
        controller::WorkspaceView view;
        std::map<std::string, std::string> files;
    };

    static Error goneError() {
        Error error(ErrorCode::Gone, "the workspace has ended");
        error.ended("deleted", "2026-01-01T00:00:00.000Z");
        return error;
    }
    Entry& find(const controller::Principal& who, const std::string& id) {
        const auto found = entries_.find(id);
        if (found == entries_.end() || found->second.view.tenant != who.tenant) {
            if (gone_.contains(id)) throw goneError();
            throw Error(ErrorCode::NotFound, "no such workspace: " + id);
        }
        return found->second;
    }

    FakeStock& stock_;
    std::mutex mutex_;
    std::map<std::string, Entry> entries_;
    std::set<std::string> gone_;
};

/// An execution that a test ends by hand.
class FakeExecution final : public controller::Execution {
public:
    /// What wait() tells instead.
    std::optional<Error> refusal;

    explicit FakeExecution(std::string workspace) {
        view_.id = newId("ex_");
        view_.workspace_id = std::move(workspace);
        view_.status = "running";
    }
    const std::string& id() const override { return view_.id; }
    controller::ExecutionView viewUpTo(std::uint64_t) const override {
        const std::lock_guard lock(mutex_);
        return view_;
    }
    bool finished() const override { return view().status != "running"; }
    bool wait(std::chrono::milliseconds timeout) override {
        if (refusal) throw Error(*refusal);
        std::unique_lock lock(mutex_);
        return ended_.wait_for(lock, timeout, [this] { return view_.status != "running"; });
    }
    std::optional<controller::OutputChunk> read(std::uint64_t offset,
                                                std::size_t most) const override {
        const std::lock_guard lock(mutex_);
        const std::string& out = view_.stdout_bytes;
        const std::string& err = view_.stderr_bytes;
        if (offset < out.size())
            return controller::OutputChunk{offset, 1, out.substr(offset, most)};
        if (offset < out.size() + err.size()) {
            return controller::OutputChunk{offset, 2, err.substr(offset - out.size(), most)};
        }
        return std::nullopt;
    }
    controller::ResultPtr resultAt(std::size_t index) const override {
        const std::lock_guard lock(mutex_);
        return index < view_.results.size() ? view_.results[index] : nullptr;
    }
    std::shared_ptr<void> subscribe(std::function<void()> changed) override {
        const std::lock_guard lock(mutex_);
        const auto place = std::make_shared<std::function<void()>>(std::move(changed));
        subscribers_.push_back(place);
        return place;
    }
    void show(const Json& mime, bool main) {
        const Json document{{"main", main}, {"mime", mime}};
        const std::lock_guard lock(mutex_);
        view_.results.push_back(controller::readResult(document.dump(), 0));
    }
    void print(const std::string& out, const std::string& err = {}) {
        {
            const std::lock_guard lock(mutex_);
            view_.stdout_bytes += out;
            view_.stderr_bytes += err;
        }
        tell();
    }
    void end(const std::string& status, int exit_code) {
        {
            const std::lock_guard lock(mutex_);
            if (view_.status != "running") return;
            view_.status = status;
            view_.exit_code = exit_code;
            view_.duration_ms = 3.1;
        }
        ended_.notify_all();
        tell();
    }

private:
    void tell() {
        std::vector<std::shared_ptr<std::function<void()>>> now;
        {
            const std::lock_guard lock(mutex_);
            for (const auto& weak : subscribers_) {
                if (auto one = weak.lock()) now.push_back(std::move(one));
            }
        }
        for (const auto& one : now) (*one)();
    }

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    controller::ExecutionView view_;
    std::vector<std::weak_ptr<std::function<void()>>> subscribers_;
};

/// Hands each new execution to `behave`, which may end it at once or later.
class FakeExecutions final : public controller::Executions {
public:
    explicit FakeExecutions(FakeStock& stock) : stock_(stock) {}

    using Behave = std::function<void(const controller::ExecutionRequest&,
                                      const std::shared_ptr<FakeExecution>&)>;
    Behave behave = [](const controller::ExecutionRequest& request,
                       const std::shared_ptr<FakeExecution>& execution) {
        execution->print(request.code.value_or(request.command.value_or("")) + "\n");
        execution->end("ok", 0);
    };
    controller::ExecutionRequest last;  ///< read by tests between calls

    std::shared_ptr<controller::Execution> start(
        const controller::Principal&, const std::string& workspace,
        const controller::ExecutionRequest& request) override {
        auto execution = std::make_shared<FakeExecution>(workspace);
        {
            const std::lock_guard lock(mutex_);
            all_[execution->id()] = execution;
            last = request;
        }
        behave(request, execution);
        return execution;
    }
    std::shared_ptr<controller::Execution> startOneShot(
        const controller::Principal& who, const controller::WorkspaceRequest& where,
        const controller::ExecutionRequest& request) override {
        stock_.take(where.patience);
        return start(who, "", request);
    }
    std::shared_ptr<controller::Execution> find(const controller::Principal&,
                                                const std::string& id) override {
        return at(id);
    }
    std::vector<std::shared_ptr<controller::Execution>> list(const controller::Principal&,
                                                             const std::string&) override {
        return {};
    }
    void signal(const controller::Principal&, const std::string& id, std::string_view) override {
        at(id)->end("killed", 143);
    }
    void resize(const controller::Principal&, const std::string&, unsigned, unsigned) override {}
    void writeStdin(const controller::Principal&, const std::string&, std::string_view,
                    bool) override {}
    void kill(const controller::Principal&, const std::string& id) override {
        if (refuse_kill) throw Error(*refuse_kill);
        at(id)->end("killed", 137);
    }
    std::optional<Error> refuse_kill;  ///< thrown by kill() where set; before the calls
    std::shared_ptr<FakeExecution> at(const std::string& id) {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find(id);
        if (found == all_.end()) throw Error(ErrorCode::NotFound, "no such execution: " + id);
        return found->second;
    }
    void endAll(const std::string& status, int exit_code) {
        std::map<std::string, std::shared_ptr<FakeExecution>> all;
        {
            const std::lock_guard lock(mutex_);
            all = all_;
        }
        for (const auto& [id, execution] : all) execution->end(status, exit_code);
    }
    std::shared_ptr<FakeExecution> newest() {
        const std::lock_guard lock(mutex_);
        return all_.size() == 1 ? all_.begin()->second : nullptr;
    }

private:
    FakeStock& stock_;
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<FakeExecution>> all_;
};

class FakeContexts final : public controller::Contexts {
public:
    controller::ContextView create(const controller::Principal&, const std::string& workspace,
                                   const controller::ContextRequest& request) override {
        last = request;
        controller::ContextView view;
        view.id = "cx_of_" + request.name;
        view.workspace_id = workspace;
        view.language = request.language.empty() ? "python" : request.language;
        view.name = request.name;
        return view;
    }
    std::vector<controller::ContextView> list(const controller::Principal&,
                                              const std::string&) override {
        return {};
    }
    controller::ContextView get(const controller::Principal&, const std::string&) override {
        return {};
    }
    void interrupt(const controller::Principal&, const std::string&) override {}
    controller::ContextView restart(const controller::Principal&, const std::string&) override {
        return {};
    }
    void remove(const controller::Principal&, const std::string&) override {}

    controller::ContextRequest last;
};

class FakeEvents final : public controller::Events {
public:
    std::vector<controller::Event> list(const controller::Principal&,
                                        const controller::EventQuery& query) override {
        const std::lock_guard lock(mutex_);
        std::vector<controller::Event> out;
        for (const controller::Event& event : events_) {
            if (event.id > query.since && out.size() < query.limit) out.push_back(event);
        }
        return out;
    }
    std::shared_ptr<void> subscribe(std::function<void()> wake) override {
        return subscribers_.add(std::move(wake));
    }
    void happen(controller::Event event) {
        {
            const std::lock_guard lock(mutex_);
            event.id = events_.size() + 1;
            events_.push_back(std::move(event));
        }
        subscribers_.notify();
    }

private:
    std::mutex mutex_;
    std::vector<controller::Event> events_;  ///< guarded by mutex_
    Subscribers subscribers_;
};

/// Tokens "token-a" and "token-b" of tenants a and b, and "second-a", another one of a; none is
/// configured unless asked for.
class FakeTokens final : public controller::Tokens {
public:
    bool required = false;

    bool configured() const override { return required; }
    std::optional<controller::Principal> authenticate(std::string_view token) const override {
        if (token != "token-a" && token != "token-b" && token != "second-a") return std::nullopt;
        return controller::Principal{std::string(token.substr(token.size() - 1)),
                                     controller::Role::User, std::string(token)};
    }
    std::pair<controller::TokenView, std::string> create(const controller::Principal&,
                                                         const std::string&, const std::string&,
                                                         controller::Role,
                                                         std::optional<std::int64_t>) override {
        throw Error(ErrorCode::Unsupported, "not in this fake");
    }
    std::vector<controller::TokenView> list(const controller::Principal&) const override {
        return {};
    }
    void remove(const controller::Principal&, const std::string&) override {}
};

/// All services of one fake house.
struct House {
    FakePools pools;
    FakeStock stock;
    FakeWorkspaces workspaces{stock};
    FakeExecutions executions{stock};
    FakeContexts contexts;
    FakeEvents events;
    FakeTokens tokens;
    metrics::Metrics metrics;
    metrics::Log log;
    SystemClock clock;
    std::string secret_key = std::string(32, 'k');
    controller::Packages packages{executions, workspaces, {"pypi", "npm"}};
    controller::Services services{
        pools,
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
            return Json{{"images", {{{"name", "python"}, {"languages", {"python", "sh"}}}}}};
        },
        secret_key};
};

}  // namespace hearth::mcp::fake
