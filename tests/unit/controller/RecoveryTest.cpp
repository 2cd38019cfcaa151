#include <algorithm>

#include "controller/Recovery.h"
#include "controller/workspaces/BindNote.h"
#include "tests/support/FlakyReads.h"
#include "tests/unit/controller/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace std::chrono_literals;

namespace {

/// The facts that a claim binds to a sandbox and that its agent reports later.
struct Told {
    std::string claim = newId("cl_");
    std::string tenant = "default";
    std::string workspace = newId("ws_");
    std::string pool = "p";
};

agent::BindRequest bindOf(House& house, const Told& told, const std::string& sealed) {
    WorkspaceFacts facts;
    facts.pool = told.pool;
    facts.sealed = sealed;
    agent::BindRequest bind;
    bind.epoch = house.epoch.get();
    bind.claim_id = told.claim;
    bind.tenant = told.tenant;
    bind.workspace_id = told.workspace;
    bind.fingerprint = "f";
    facts.claim_id = told.claim;
    bind.note = bindNote(facts, house.gateway.claimSeal());
    return bind;
}

std::string sealOf(House& house, const Told& told,
                   egress::NetworkMode mode = egress::NetworkMode::None) {
    return house.gateway.claimSeal().close({mode, {}, {}, told.tenant, told.workspace}, told.claim);
}

/// The state that the first server leaves behind when it dies.
struct Left {
    WorkspaceView workspace;
    std::string finished;
    std::string running;
    std::string marked;
    std::uint64_t epoch = 0;
};

Left liveAndDie(Ground& ground) {
    House house(ground);
    Left left;
    house.declare("p", smallSpec(3));
    house.recover();
    REQUIRE(house.filled("p", 3));
    WorkspaceRequest request = House::request("key");
    request.name = "work";
    request.labels = {{"a", "1"}};
    left.workspace = house.open(house.who, request);
    REQUIRE(house.filled("p", 3));
    const auto done = house.executions.start(house.who, left.workspace.id, inBackground("echo hi"));
    left.finished = done->id();
    REQUIRE(house.settleUntil([&] { return done->finished(); }));
    REQUIRE(house.settleUntil([&] { return house.journal.execution(left.finished).has_value(); }));
    ground.manual.advance(1s);  // until the agent is asked to forget it
    house.loop.settle();
    left.running =
        house.executions.start(house.who, left.workspace.id, inBackground("sleep 1000"))->id();
    // This sandbox is between its mark and its bind: a new server cannot tell if it is bound.
    for (const pool::Member& member : house.warm.members("p")) {
        if (member.phase == pool::Phase::Ready) left.marked = member.id;
    }
    house.marks.set(left.marked);
    left.epoch = house.epoch.get();
    house.journal.flush(1s);
    return left;
}

void checkAdopted(House& house, const Left& left) {
    const WorkspaceView view = house.workspaces.get(house.who, left.workspace.id);
    CHECK(view.sandbox_id == left.workspace.sandbox_id);
    CHECK(view.name == "work");
    CHECK(view.labels == left.workspace.labels);
    CHECK(view.created_at == left.workspace.created_at);
    CHECK(view.limits == left.workspace.limits);
    CHECK_FALSE(view.idle_expires_at);  // something runs in it
    CHECK(house.epoch.get() > left.epoch);
    CHECK(house.open(house.who, House::request("key")).replayed);

    const auto running = house.executions.find(house.who, left.running);
    CHECK_FALSE(running->finished());
    house.executions.kill(house.who, left.running);
    CHECK(house.settleUntil([&] { return running->finished(); }));
    CHECK(running->view().status == ExecutionStatus::Killed);
    // File operations work, too.
    house.workspaces.makeDirectory(house.who, left.workspace.id, "d");
    CHECK(house.workspaces.stat(house.who, left.workspace.id, "d").type ==
          agent::FileType::Directory);
    house.workspaces.touch(house.who, left.workspace.id);
}

}  // namespace

TEST_CASE("after a crash a new server takes over the workspaces and sandboxes of the old one",
          "[unit][controller]") {
    Ground ground;
    const Left left = liveAndDie(ground);
    const std::size_t created = ground.runtime.created();
    ground.manual.advance(1s);

    House house(ground);
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.workspaces == 1);
    CHECK(outcome.warm == 2);
    CHECK(outcome.swept == 1);
    CHECK_FALSE(exists(ground, left.marked));
    CHECK_FALSE(house.marks.exists(left.marked));
    CHECK(house.marks.exists(left.workspace.sandbox_id));
    checkAdopted(house, left);
    CHECK(house.executions.find(house.who, left.finished)->view().stdout_bytes == "hi\n");
    REQUIRE(house.filled("p", 3));
    CHECK(ground.runtime.created() == created + 1);  // only the marked sandbox was replaced
    house.workspaces.close(house.who, left.workspace.id);
    CHECK(house.settleUntil([&] { return !exists(ground, left.workspace.sandbox_id); }));
}

TEST_CASE("a lost data file loses history, never a running workspace", "[unit][controller]") {
    Ground ground;
    const Left left = liveAndDie(ground);
    ground.loseData();

    House house(ground);
    house.declare("p", smallSpec(3));  // as its manifest file says
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.workspaces == 1);
    CHECK(outcome.warm == 2);
    checkAdopted(house, left);
    CHECK(codeOf([&] { house.executions.find(house.who, left.finished); }) == ErrorCode::NotFound);
    // The adopted warm sandboxes take claims of the new epoch.
    CHECK(house.open(house.who, House::request()).phase == WorkspacePhase::Active);
    CHECK(house.open(house.who, House::request()).phase == WorkspacePhase::Active);
    house.workspaces.close(house.who, left.workspace.id);
    house.loop.settle();
    CHECK(errorOf([&] { house.workspaces.get(house.who, left.workspace.id); }).code() ==
          ErrorCode::Gone);
}

TEST_CASE("every life of a server has a higher epoch", "[unit][controller]") {
    Ground ground;
    std::uint64_t before = 0;
    for (int life = 0; life < 6; ++life) {
        if (life % 2 == 1) ground.loseData();
        House house(ground);
        house.declare("p", smallSpec(1));
        house.recover();
        CHECK(house.epoch.get() > before);
        before = house.epoch.get();
        REQUIRE(house.filled("p", 1));
    }
    CHECK(ground.runtime.created() == 1);
}

TEST_CASE("warm sandboxes of a pool with a changed template are swept", "[unit][controller]") {
    Ground ground;
    {
        House house(ground);
        house.declare("p", smallSpec(2));
        REQUIRE(house.filled("p", 2));
    }
    House house(ground);
    PoolSpec changed = smallSpec(2);
    changed.image = "node";
    house.declare("p", changed);
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.warm == 0);
    CHECK(outcome.swept == 2);
    CHECK(ground.runtime.list().empty());
}

TEST_CASE("recovery rejects an agent's word that its workspace is of another pool",
          "[unit][controller]") {
    // Otherwise the agent could choose the network that it may reach.
    Ground ground;
    {
        House house(ground);
        house.declare("p", smallSpec(2));
        house.declare("q", smallSpec(0));
        REQUIRE(house.filled("p", 2));
        for (const char* pool : {"p", "q"}) {
            const pool::Member member = house.warm.members("p").at(*pool == 'p' ? 0 : 1);
            Told told;
            told.pool = pool;
            member.agent->bind(bindOf(house, told, sealOf(house, told)), 2s);
        }
    }
    House house(ground);
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.workspaces == 1);
    CHECK(outcome.swept == 1);
    CHECK(ground.runtime.list().size() == 1);
}

TEST_CASE("a sandbox claimed just before a crash has the ordinary CPU weight after it",
          "[unit][controller]") {
    Ground ground;
    std::string claimed;
    {
        House house(ground);
        house.declare("p", smallSpec(2));
        REQUIRE(house.filled("p", 2));
        claimed = house.open(house.who, House::request()).sandbox_id;
        REQUIRE(ground.runtime.first().contains(claimed));
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    CHECK_FALSE(ground.runtime.first().contains(claimed));
    CHECK(ground.runtime.first().size() == 1);  // the warm one
}

TEST_CASE("a narrowed network stays so after a crash, and a foreign seal opens nothing",
          "[unit][controller]") {
    Ground ground;
    std::string open;
    const std::string narrowed = newId("ws_");
    const std::string foreign = newId("ws_");
    {
        House house(ground);
        PoolSpec spec = smallSpec(3);
        spec.network = egress::NetworkMode::Mirror;
        house.declare("p", spec);
        REQUIRE(house.filled("p", 3));
        open = house.open(house.who, House::request()).id;
        Told other;
        other.workspace = foreign;
        const std::string others = sealOf(house, other, egress::NetworkMode::Mirror);
        std::size_t at = 0;
        for (const pool::Member& member : house.warm.members("p")) {
            if (member.phase != pool::Phase::Ready || at == 2) continue;
            const bool takes_anothers = at++ == 1;
            Told told;
            told.workspace = takes_anothers ? foreign : narrowed;
            const agent::BindRequest bind =
                bindOf(house, told, takes_anothers ? others : sealOf(house, told));
            member.agent->bind(bind, 2s);
        }
        REQUIRE(at == 2);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 2);
    CHECK(house.workspaces.get(house.who, open).network == egress::NetworkMode::Mirror);
    CHECK(house.workspaces.get(house.who, narrowed).network == egress::NetworkMode::None);
    CHECK(codeOf([&] { house.workspaces.get(house.who, foreign); }) == ErrorCode::NotFound);
}

TEST_CASE("recovery rejects an agent's word that its workspace is another one, or another tenant's",
          "[unit][controller]") {
    Ground ground;
    std::string mine;
    std::string claim;
    const Told unsealed;  // the journal has it
    const Told invented{.tenant = "other"};
    const Told given_away;
    {
        House house(ground);
        house.declare("p", smallSpec(6));
        REQUIRE(house.filled("p", 6));
        mine = house.open(house.who, House::request("k")).id;
        claim = house.table.find(mine)->facts().claim_id;
        std::vector<pool::Member> ready;
        for (const pool::Member& member : house.warm.members("p")) {
            if (member.phase == pool::Phase::Ready) ready.push_back(member);
        }
        REQUIRE(ready.size() >= 5);
        const Told copy{.claim = claim, .workspace = mine};
        ready[0].agent->bind(bindOf(house, copy, ""), 2s);
        ready[1].agent->bind(bindOf(house, copy, sealOf(house, copy)), 2s);
        ready[2].agent->bind(bindOf(house, invented, ""), 2s);
        Told other = given_away;
        other.tenant = "other";
        ready[3].agent->bind(bindOf(house, other, sealOf(house, given_away)), 2s);
        ready[4].agent->bind(bindOf(house, unsealed, ""), 2s);
        house.journal.record(WorkspaceRecord{unsealed.workspace, unsealed.tenant, "p", ready[4].id,
                                             unsealed.claim, "f", "", 1, std::nullopt, ""});
        house.journal.flush(5s);
    }
    const std::string sandbox = [&] {
        House house(ground);
        CHECK(house.recover().workspaces == 1);
        CHECK_FALSE(house.table.find(unsealed.workspace));
        CHECK_FALSE(house.table.find(invented.workspace));
        CHECK_FALSE(house.table.find(given_away.workspace));
        return house.workspaces.get(house.who, mine).sandbox_id;
    }();
    ground.loseData();
    House house(ground);
    house.declare("p", smallSpec(6));
    CHECK(house.recover().workspaces == 1);  // a seal is believed without the journal
    CHECK(house.workspaces.get(house.who, mine).sandbox_id == sandbox);
}

TEST_CASE("an agent decides neither its limits nor its lifetime", "[unit][controller]") {
    Ground ground;
    const Told forged;
    const Told without;
    const Told honest;
    {
        House house(ground);
        PoolSpec spec = smallSpec(3);
        spec.max_lifetime = 1h;
        house.declare("p", spec);
        REQUIRE(house.filled("p", 3));
        const std::vector<pool::Member> members = house.warm.members("p");
        agent::BindRequest bind = bindOf(house, forged, sealOf(house, forged));
        bind.note["memory"] = 1;  // a smaller part of its tenant's quota
        members[0].agent->bind(bind, 2s);
        bind = bindOf(house, without, sealOf(house, without));
        bind.note.erase("proof");
        members[1].agent->bind(bind, 2s);
        house.journal.record(WorkspaceRecord{without.workspace, without.tenant, "p", members[1].id,
                                             without.claim, "f", "", 12'345, std::nullopt, ""});
        house.journal.flush(5s);
        members[2].agent->bind(bindOf(house, honest, sealOf(house, honest)), 2s);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    CHECK_FALSE(house.table.find(forged.workspace));
    CHECK_FALSE(house.table.find(without.workspace));
    CHECK(house.table.find(honest.workspace));
}

TEST_CASE("a workspace that ended just before a crash does not come back", "[unit][controller]") {
    Ground ground;
    std::string ended;
    std::string open;
    {
        House house(ground);
        house.declare("p", smallSpec(2));
        REQUIRE(house.filled("p", 2));
        ended = house.open(house.who, House::request("ended")).id;
        open = house.open(house.who, House::request("open")).id;
        house.journal.flush(5s);
        house.journal.ended(ended, 1, "deleted", "");  // its sandbox was not ended in time
        house.journal.flush(5s);
    }
    House house(ground);
    CHECK(house.recover().workspaces == 1);
    CHECK_FALSE(house.table.find(ended));
    CHECK(house.workspaces.get(house.who, open).phase == WorkspacePhase::Active);
}

/// Removes the ends that the first server's journal wrote after its answers.
void forgetEnds(Ground& ground) {
    Database database(ground.dir.file("hearth.db"));
    database.execute("UPDATE workspaces SET ended_ms = NULL, reason = ''");
}

TEST_CASE("an answered end holds even if the crash came before its records", "[unit][controller]") {
    Ground ground;
    const bool silent = GENERATE(false, true);
    const bool recorded = GENERATE(false, true);  // the workspace's end, not what it cut off
    WorkspaceView gone;
    std::string retired;
    std::string running;
    std::string kept;
    {
        House house(ground);
        house.declare("p", smallSpec(3));
        house.recover();
        REQUIRE(house.filled("p", 3));
        gone = house.open(house.who, House::request("key"));
        kept = house.open(house.who, House::request()).id;
        running = house.executions.start(house.who, gone.id, inBackground("sleep 1000"))->id();
        for (const pool::Member& member : house.warm.members("p")) {
            if (member.phase == pool::Phase::Ready) retired = member.id;
        }
        house.journal.flush(1s);
        house.workspaces.close(house.who, gone.id);
        house.pools.destroySandbox(house.who, retired);
    }
    REQUIRE(exists(ground, gone.sandbox_id));
    REQUIRE(exists(ground, retired));
    if (!recorded) forgetEnds(ground);
    if (silent) ground.runtime.hang(gone.sandbox_id);

    House house(ground);
    house.recover();
    const Error ended = errorOf([&] { house.workspaces.get(house.who, gone.id); });
    CHECK(ended.code() == ErrorCode::Gone);
    CHECK(ended.endedReason() == "deleted");
    CHECK(codeOf([&] { house.open(house.who, House::request("key")); }) == ErrorCode::Gone);
    CHECK(house.workspaces.get(house.who, kept).phase == WorkspacePhase::Active);
    CHECK(house.settleUntil([&] { return !exists(ground, gone.sandbox_id); }));
    CHECK_FALSE(exists(ground, retired));
    CHECK_FALSE(house.marks.exists(gone.sandbox_id));
    CHECK_FALSE(house.marks.exists(retired));
    if (silent) return;  // then nobody knows what ran
    REQUIRE(house.settleUntil([&] { return house.journal.execution(running).has_value(); }));
    CHECK(house.executions.find(house.who, running)->finished());  // as without a crash
}

TEST_CASE("a workspace whose sandbox ended before the next start keeps its end reason",
          "[unit][controller]") {
    Ground ground;
    WorkspaceView gone;
    {
        House house(ground);
        house.declare("p", smallSpec(1));
        house.recover();
        REQUIRE(house.filled("p", 1));
        gone = house.open(house.who, House::request());
        house.journal.flush(1s);
        house.workspaces.close(house.who, gone.id);
    }
    forgetEnds(ground);
    ground.runtime.destroy(gone.sandbox_id);
    House house(ground);
    house.recover();
    CHECK(errorOf([&] { house.workspaces.get(house.who, gone.id); }).endedReason() == "deleted");
}

TEST_CASE("a claim with two sandboxes keeps the one of its later attempt", "[unit][controller]") {
    // The order of the ids does not matter: the later attempt stays in either order.
    for (const bool later_first : {false, true}) {
        Ground ground;
        std::string kept;
        Told told;
        {
            House house(ground);
            house.declare("p", smallSpec(2));
            house.recover();
            REQUIRE(house.filled("p", 2));
            std::vector<pool::Member> members = house.warm.members("p");  // by id, like list()
            std::uint32_t attempt = later_first ? 2 : 1;
            for (const pool::Member& member : members) {
                agent::BindRequest bind = bindOf(house, told, sealOf(house, told));
                bind.attempt = attempt;
                member.agent->bind(bind, 2s);
                if (attempt == 2) kept = member.id;
                attempt = 3 - attempt;
            }
        }
        House house(ground);
        CHECK(house.recover().workspaces == 1);
        CHECK(house.workspaces.get(house.who, told.workspace).sandbox_id == kept);
        REQUIRE(ground.runtime.list().size() == 1);
    }
}

TEST_CASE("a workspace has the same deadlines before and after a crash", "[unit][controller]") {
    Ground ground;
    std::string id;
    WorkspaceView before;
    {
        House house(ground);
        house.declare("p", smallSpec(1));
        house.recover();
        REQUIRE(house.filled("p", 1));
        ground.manual.advance(123'456'789ns);
        WorkspaceRequest request = House::request();
        request.max_lifetime = 1h;
        // Time passes between the claim's beginning and its bind.
        std::jthread time([&](const std::stop_token& stop) {
            while (!stop.stop_requested()) ground.manual.advance(10us);
        });
        before = house.open(house.who, request);
        time = {};
        house.journal.flush(5s);
    }
    ground.manual.advance(1'987'654ns);
    House house(ground);
    REQUIRE(house.recover().workspaces == 1);
    const WorkspaceView after = house.workspaces.get(house.who, before.id);
    CHECK(after.created_at == before.created_at);
    CHECK(after.expires_at == before.expires_at);
    CHECK(after.idle_expires_at == before.idle_expires_at);
}

TEST_CASE("an unreadable history loses no workspace", "[unit][controller]") {
    Ground ground;
    const Left left = liveAndDie(ground);
    FlakyReads disk;
    House house(ground);
    disk.failing = 1'000'000;
    const Recovery::Outcome outcome = house.recover();
    REQUIRE(disk.failed > 0);
    disk.failing = 0;
    CHECK(outcome.workspaces == 0);
    REQUIRE(outcome.silent == std::vector<std::string>{left.workspace.sandbox_id});
    CHECK(exists(ground, left.workspace.sandbox_id));
    REQUIRE(eventually([&] {
        ground.manual.advance(1s);
        house.loop.settle();
        return house.table.find(left.workspace.id) != nullptr;
    }));
    checkAdopted(house, left);
}

TEST_CASE("a workspace whose sandbox died with the server is gone as lost", "[unit][controller]") {
    Ground ground;
    const Left left = liveAndDie(ground);
    ground.runtime.kill(left.workspace.sandbox_id);
    House house(ground);
    const Recovery::Outcome outcome = house.recover();
    CHECK(outcome.workspaces == 0);
    CHECK(outcome.swept == 2);
    CHECK_FALSE(exists(ground, left.workspace.sandbox_id));
    CHECK_FALSE(house.marks.exists(left.workspace.sandbox_id));
    const Error gone = errorOf([&] { house.workspaces.get(house.who, left.workspace.id); });
    CHECK(gone.code() == ErrorCode::Gone);
    CHECK(gone.endedReason() == "lost");
}

TEST_CASE("an agent lost after its hello ends its workspace, not the server's start",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.declare("p", smallSpec(1));
    REQUIRE(house.filled("p", 1));
    const WorkspaceView view = house.open(house.who, House::request());
    const auto workspace = house.table.find(view.id);
    ground.runtime.kill(view.sandbox_id);
    REQUIRE(house.settleUntil([&] { return workspace->agent()->lost(); }));

    agent::KnownExecution known;
    known.id = newId("ex_");
    known.running = true;
    house.execution_starter.adopt(workspace, known);
    const auto adopted = house.executions.find(house.who, known.id);
    REQUIRE(house.settleUntil([&] { return adopted->finished(); }));
    CHECK(adopted->view().status == ExecutionStatus::Lost);
    REQUIRE(house.settleUntil([&] { return house.journal.execution(known.id).has_value(); }));
    CHECK(codeOf([&] { house.workspaces.get(house.who, view.id); }) == ErrorCode::Gone);
}

TEST_CASE("an agent that was lost before its sandbox was a member is noticed",
          "[unit][controller]") {
    Ground ground;
    House house(ground);
    ground.runtime.create("sb_a", {});
    const auto agent = house.agents.connect("sb_a", 5s);
    ground.runtime.kill("sb_a");
    REQUIRE(eventually([&] { return agent->lost(); }));
    pool::Member member;
    member.id = "sb_a";
    member.pool = "p";
    member.phase = pool::Phase::Ready;
    member.agent = agent;
    house.warm.adopt(std::move(member));
    CHECK(house.warm.counts("p").ready == 1);
    house.agents.notice("sb_a", *agent);
    house.loop.settle();
    CHECK(house.warm.counts("p").ready == 0);
}

TEST_CASE("a full disk does not keep the server from starting", "[unit][controller]") {
    Ground ground;
    House house(ground);
    house.journal.writeNow(
        [](Database& database) { database.execute("PRAGMA max_page_count = 1"); });
    int next = 0;
    for (const std::size_t size : {1000U, 100U, 0U}) {
        while (!codeOf(
            [&] { house.journal.setMeta("a" + std::to_string(++next), std::string(size, 'x')); })) {
        }
    }
    CHECK(codeOf([&] { house.journal.setMeta("epoch", "1"); }) == ErrorCode::DiskFull);
    const std::uint64_t before = house.epoch.get();
    house.recover();
    CHECK(house.epoch.get() >= before);
}
