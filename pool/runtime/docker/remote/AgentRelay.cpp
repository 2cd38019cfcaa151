#include "pool/runtime/docker/remote/AgentRelay.h"

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "base/Error.h"
#include "base/http/Url.h"
#include "pool/agent/protocol/Frame.h"

namespace hearth::pool::docker {
namespace {

constexpr std::string_view kReady = agent::kRelayReady;

[[noreturn]] void notBegun(const RawStream& decoder, const std::string& said) {
    const std::string words = toUtf8((decoder.complaint() + said).substr(0, 300));
    throw Error(ErrorCode::Unavailable, "the way to the sandbox's agent could not be opened")
        .hint("the Docker Engine's docker exec says: " + (words.empty() ? "nothing" : words));
}

}  // namespace

AgentRelay startRelay(EngineClient& engine, const std::string& container, const char* mode,
                      TimePoint until) {
    const Json made =
        engine.post("/containers/" + container + "/exec",
                    {{"AttachStdin", true},
                     {"AttachStdout", true},
                     {"AttachStderr", true},
                     {"Tty", false},
                     {"Privileged", false},
                     {"User", "0:0"},
                     {"WorkingDir", "/"},
                     {"Cmd", Json::array({"/.hearth/agent", mode, "/.hearth/start"})}},
                    until);
    const std::string id = made.is_object() ? made.value("Id", "") : "";
    if (id.empty()) throw std::runtime_error("the Docker Engine made an exec without an id");
    EngineClient::Attachment attached = engine.attach("/exec/" + percentEncode(id) + "/start",
                                                      {{"Detach", false}, {"Tty", false}}, until);
    AgentRelay relay{std::move(attached.stream), {}, {}};
    std::string said;
    bool framed = relay.decoder.feed(attached.early, said);
    std::array<char, 4096> piece;
    while (framed && said.size() < kReady.size()) {
        const std::size_t n = engine.read(relay.stream, piece.data(), piece.size(), until);
        if (n == 0) break;
        framed = relay.decoder.feed({piece.data(), n}, said);
    }
    if (!framed || !said.starts_with(kReady)) notBegun(relay.decoder, said);
    relay.early = said.substr(kReady.size());
    return relay;
}

}  // namespace hearth::pool::docker
