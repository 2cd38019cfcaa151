#include <catch2/catch.hpp>

#include "tests/unit/pool/agent/secure/Ends.h"

using namespace hearth::agent::secure;
using namespace hearth::agent::secure::test;
using Refusal = ServerHandshake::Refusal;

namespace {

Change flip(std::size_t at) {
    return [at](std::string& message) { message.at(at) ^= 1; };
}

/// Returns the agent's result for an answer of a server with these keys.
Progress agentHears(World& world, const std::string& answer) {
    AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
    std::string out;
    const Progress progress = Meeting::feed(agent, answer, out, 4096);
    CHECK(out.empty());
    return progress;
}

}  // namespace

TEST_CASE("agent and server with the right keys meet, however the bytes are cut",
          "[unit][agent][secure]") {
    World world;
    const Purpose purpose = GENERATE(Purpose::Control, Purpose::Data);
    const std::size_t piece = GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{4096});
    AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
    ServerHandshake server(world.server, world.identity.publicKey(), kPod, purpose);
    CHECK(agent.greeting().size() == kGreetingSize);
    const Meeting meeting(agent, server, {}, {}, {}, piece);
    REQUIRE(meeting.agent_says == Progress::Done);
    REQUIRE(meeting.server_says == Progress::Done);
    CHECK(meeting.answered.size() == kAnswerSize);
    CHECK(meeting.proven.size() == kProofSize);

    Session of_agent = agent.take();
    Session of_server = server.take();
    CHECK(of_agent.purpose == purpose);
    CHECK(of_server.purpose == purpose);
    std::string wire;
    std::string heard;
    of_server.sealer->seal("to the agent", wire);
    CHECK(of_agent.opener->open(wire, heard) == Opener::State::Open);
    CHECK(heard == "to the agent");
    wire.clear();
    heard.clear();
    of_agent.sealer->seal("to the server", wire);
    CHECK(of_server.opener->open(wire, heard) == Opener::State::Open);
    CHECK(heard == "to the server");
}

TEST_CASE("bytes after a message of the handshake are left for the records",
          "[unit][agent][secure]") {
    World world;
    AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
    ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
    std::string answer;
    std::string_view greeting = agent.greeting();
    REQUIRE(server.receive(greeting, answer) == Progress::Waiting);
    answer += "more";
    std::string_view wire = answer;
    std::string proof;
    REQUIRE(agent.receive(wire, proof) == Progress::Done);
    CHECK(wire == "more");
}

TEST_CASE("one flipped bit anywhere in the handshake ends it", "[unit][agent][secure]") {
    World world;
    for (std::size_t at = 0; at < kGreetingSize; ++at) {
        AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
        ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
        const Meeting meeting(agent, server, flip(at));
        INFO("byte " << at << " of the greeting");
        // The server detects what it can compare. The agent detects the rest.
        CHECK(meeting.agent_says != Progress::Done);
        CHECK(meeting.server_says != Progress::Done);
        CHECK(meeting.proven.empty());
    }
    for (std::size_t at = 0; at < kAnswerSize; ++at) {
        AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
        ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
        const Meeting meeting(agent, server, {}, flip(at));
        INFO("byte " << at << " of the answer");
        CHECK(meeting.agent_says == Progress::Refused);
        CHECK(meeting.proven.empty());
        CHECK(meeting.server_says == Progress::Waiting);
    }
    for (std::size_t at = 0; at < kProofSize; ++at) {
        AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
        ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
        const Meeting meeting(agent, server, {}, {}, flip(at));
        INFO("byte " << at << " of the proof");
        CHECK(meeting.server_says == Progress::Refused);
        CHECK(server.refusal() == Refusal::NoProof);
    }
}

TEST_CASE("an agent refuses a server with another key, silently", "[unit][agent][secure]") {
    World world;
    const ServerKey stranger = ServerKey::generate();
    AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
    ServerHandshake server(stranger, world.identity.publicKey(), kPod, Purpose::Control);
    const Meeting meeting(agent, server);
    CHECK(meeting.agent_says == Progress::Refused);
    CHECK(meeting.proven.empty());
}

TEST_CASE("an agent refuses a peer at the first byte that no server would send",
          "[unit][agent][secure]") {
    World world;
    CHECK(agentHears(world, "G") == Progress::Refused);
    CHECK(agentHears(world, "hrthX") == Progress::Refused);
    CHECK(agentHears(world, std::string("hrthsrv\2", 8)) == Progress::Refused);  // another version
    CHECK(agentHears(world, "hrth") == Progress::Waiting);
}

TEST_CASE("a server sends nothing to a peer that is not its agent", "[unit][agent][secure]") {
    World world;
    const AgentIdentity other = AgentIdentity::generate();
    const auto refusal = [&](const std::string& greeting) {
        ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
        std::string out;
        CHECK(Meeting::feed(server, greeting, out, 4096) == Progress::Refused);
        CHECK(out.empty());
        return server.refusal();
    };
    CHECK(refusal("SSH-2.0-x") == Refusal::NoAgent);
    CHECK(refusal(AgentHandshake(world.server.publicKey(), world.identity, "another").greeting()) ==
          Refusal::OtherPod);
    CHECK(refusal(AgentHandshake(world.server.publicKey(), world.identity, std::string(kPod) + "0")
                      .greeting()) == Refusal::OtherPod);
    CHECK(refusal(AgentHandshake(world.server.publicKey(), world.identity, "").greeting()) ==
          Refusal::OtherPod);
    CHECK(refusal(AgentHandshake(world.server.publicKey(), other, kPod).greeting()) ==
          Refusal::OtherIdentity);
    ServerHandshake unnamed(world.server, world.identity.publicKey(), "", Purpose::Control);
    AgentHandshake agent(world.server.publicKey(), world.identity, "");
    std::string_view greeting = agent.greeting();
    std::string out;
    CHECK(unnamed.receive(greeting, out) == Progress::Refused);
}

TEST_CASE("a tenant that repeats an agent's UID and public key cannot prove them",
          "[unit][agent][secure]") {
    World world;
    // The tenant has the agent's port and repeats what the agent tells anybody. The fresh key that
    // it names is its own.
    AgentHandshake real(world.server.publicKey(), world.identity, kPod);
    const AgentIdentity own = AgentIdentity::generate();
    AgentHandshake tenant(world.server.publicKey(), own, kPod);
    std::string greeting = tenant.greeting();
    const std::string& shown = real.greeting();
    greeting.replace(8 + 64, 32, shown, 8 + 64, 32);
    ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
    std::string answer;
    std::string_view wire = greeting;
    REQUIRE(server.receive(wire, answer) == Progress::Waiting);
    REQUIRE(answer.size() == kAnswerSize);
    // The tenant can ignore the signature. But it lacks the identity's secret, and so the keys. Its
    // best guess is a key of its own.
    std::string proof;
    CHECK(Meeting::feed(tenant, answer, proof, 4096) == Progress::Refused);
    StreamKey guess;
    Sealer sealer(guess);
    sealer.seal(std::string(32, 'x'), proof);
    REQUIRE(proof.size() == kProofSize);
    wire = proof;
    CHECK(server.receive(wire, answer) == Progress::Refused);
    CHECK(server.refusal() == Refusal::NoProof);
}

TEST_CASE("a recorded answer of a server opens no other connection", "[unit][agent][secure]") {
    World world;
    AgentHandshake first(world.server.publicKey(), world.identity, kPod);
    ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
    const Meeting meeting(first, server);
    REQUIRE(meeting.agent_says == Progress::Done);
    CHECK(agentHears(world, meeting.answered) == Progress::Refused);
    // The agent's old messages do not deceive a new handshake of the server, either.
    ServerHandshake again(world.server, world.identity.publicKey(), kPod, Purpose::Control);
    std::string out;
    CHECK(Meeting::feed(again, first.greeting(), out, 4096) == Progress::Waiting);
    CHECK(Meeting::feed(again, meeting.proven, out, 4096) == Progress::Refused);
    CHECK(again.refusal() == Refusal::NoProof);
}

TEST_CASE("an answer made for one agent is refused by another", "[unit][agent][secure]") {
    World world;
    const AgentIdentity other = AgentIdentity::generate();
    AgentHandshake meant(world.server.publicKey(), world.identity, kPod);
    ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
    std::string answer;
    std::string_view wire = meant.greeting();
    REQUIRE(server.receive(wire, answer) == Progress::Waiting);
    AgentHandshake elsewhere(world.server.publicKey(), other, kPod);
    std::string out;
    CHECK(Meeting::feed(elsewhere, answer, out, 4096) == Progress::Refused);
    AgentHandshake elsewhere_too(world.server.publicKey(), world.identity, "another");
    CHECK(Meeting::feed(elsewhere_too, answer, out, 4096) == Progress::Refused);
}

TEST_CASE("a man in the middle who swaps a fresh key for his own is shut out on both sides",
          "[unit][agent][secure]") {
    World world;
    const AgentIdentity his = AgentIdentity::generate();
    const std::string key(reinterpret_cast<const char*>(his.publicKey().bytes.data()), 32);
    const Change agents = [&](std::string& message) { message.replace(8, 32, key); };
    const Change servers = [&](std::string& message) { message.replace(9, 32, key); };
    {
        AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
        ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
        const Meeting meeting(agent, server, agents);
        CHECK(meeting.agent_says == Progress::Refused);
        CHECK(meeting.server_says == Progress::Waiting);
    }
    {
        AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
        ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
        const Meeting meeting(agent, server, agents, servers);
        CHECK(meeting.agent_says == Progress::Refused);
        CHECK(meeting.proven.empty());
    }
    {
        AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
        ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
        const Meeting meeting(agent, server, {}, servers);
        CHECK(meeting.agent_says == Progress::Refused);
    }
}

TEST_CASE("a fresh key of the agent that makes every secret zero is refused",
          "[unit][agent][secure]") {
    World world;
    AgentHandshake agent(world.server.publicKey(), world.identity, kPod);
    ServerHandshake server(world.server, world.identity.publicKey(), kPod, Purpose::Control);
    const Meeting meeting(agent, server,
                          [](std::string& message) { message.replace(8, 32, 32, '\0'); });
    CHECK(meeting.server_says == Progress::Refused);
    CHECK(meeting.answered.empty());
}

TEST_CASE("two handshakes never have the same bytes", "[unit][agent][secure]") {
    World world;
    AgentHandshake one(world.server.publicKey(), world.identity, kPod);
    AgentHandshake two(world.server.publicKey(), world.identity, kPod);
    const std::string a = one.greeting();
    const std::string b = two.greeting();
    CHECK(a.substr(8, 32) != b.substr(8, 32));
    CHECK(a.substr(40, 32) != b.substr(40, 32));
    CHECK(a.substr(72) == b.substr(72));
}
