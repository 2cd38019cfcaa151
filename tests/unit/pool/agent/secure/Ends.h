#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "pool/agent/secure/Handshake.h"

/// Both ends of a connection without a socket, and a third party between them.
namespace hearth::agent::secure::test {

inline constexpr std::string_view kPod = "0f0e4c6a-2b1d-4a52-9d63-1c6a8a3a7b90";

/// The keys of one server and one Pod.
struct World {
    World() : server(ServerKey::generate()), identity(AgentIdentity::generate()) {}
    static bool ready() { return initialise(); }
    const bool initialised = ready();
    ServerKey server;
    AgentIdentity identity;
};

/// May change a message on its way.
using Change = std::function<void(std::string&)>;

/// One handshake. Each message is changed as requested, and goes on in pieces of `piece` bytes.
struct Meeting {
    Meeting(AgentHandshake& agent, ServerHandshake& server, const Change& greeting = {},
            const Change& answer = {}, const Change& proof = {}, std::size_t piece = 4096) {
        std::string first = agent.greeting();
        if (greeting) greeting(first);
        server_says = feed(server, first, answered, piece);
        std::string second = answered;
        if (answer) answer(second);
        agent_says = feed(agent, second, proven, piece);
        std::string third = proven;
        if (proof) proof(third);
        if (server_says == Progress::Waiting) server_says = feed(server, third, answered, piece);
    }

    template <typename Side>
    static Progress feed(Side& side, std::string_view bytes, std::string& out, std::size_t piece) {
        Progress progress = Progress::Waiting;
        while (!bytes.empty() && progress == Progress::Waiting) {
            std::string_view part = bytes.substr(0, piece);
            const std::size_t given = part.size();
            progress = side.receive(part, out);
            bytes.remove_prefix(given - part.size());
        }
        return progress;
    }

    std::string answered;  ///< all that the server sent
    std::string proven;    ///< all that the agent sent after its greeting
    Progress server_says = Progress::Waiting;
    Progress agent_says = Progress::Waiting;
};

}  // namespace hearth::agent::secure::test
