#include "tests/kernel/SmallAgent.h"

#include <sys/socket.h>

#include <cerrno>
#include <stdexcept>

#include "base/Error.h"
#include "base/Ids.h"

namespace hearth::kernel_test {
namespace {

using agent::FrameHeader;
using agent::FrameType;

constexpr int kReceiveSeconds = 30;

}  // namespace

SmallAgent::SmallAgent(Fd connection) : fd_(std::move(connection)) {
    const timeval limit{kReceiveSeconds, 0};
    if (::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0) {
        throwErrno("setsockopt");
    }
    hello_ = reply(request({{"op", "hello"}, {"protocol", 1}, {"kind", "control"}, {"epoch", 1}}),
                   nullptr);
    reply(request({{"op", "bind"},
                   {"protocol", 1},
                   {"epoch", 1},
                   {"claimId", "claim"},
                   {"attempt", 1},
                   {"tenant", "default"},
                   {"workspaceId", newId("ws_")},
                   {"fingerprint", "f"},
                   {"labels", Json::object()},
                   {"note", Json::object()},
                   {"env", Json::object()},
                   {"secrets", Json::object()},
                   {"deadlines", {{"expiresAtNs", 0}, {"idleTimeoutMs", 0}}}}),
          nullptr);
}

SmallAgent::Outcome SmallAgent::run(const std::string& command, int timeout_ms) {
    Outcome outcome;
    const Json reply = exec(command, timeout_ms, false, &outcome.output);
    outcome.result = reply.at("result");
    return outcome;
}

std::string SmallAgent::start(const std::string& command) {
    std::string id = newId("ex_");
    request({{"op", "exec"},
             {"id", id},
             {"fingerprint", "f"},
             {"command", command},
             {"stdin", false},
             {"timeoutMs", 60'000},
             {"outputLimit", 65'536},
             {"background", true}});
    while (readFrame().first.type != FrameType::Note) continue;
    return id;
}

Json SmallAgent::exec(const std::string& command, int timeout_ms, bool background,
                      std::string* output) {
    return reply(request({{"op", "exec"},
                          {"id", newId("ex_")},
                          {"fingerprint", "f"},
                          {"command", command},
                          {"stdin", false},
                          {"timeoutMs", timeout_ms},
                          {"outputLimit", 200'000},
                          {"background", background}}),
                 output);
}

std::uint32_t SmallAgent::request(const Json& body) {
    const std::string payload = dumpJson(body);
    const std::uint32_t stream = next_++;
    std::string frame(agent::kHeaderSize, '\0');
    agent::encodeHeader({static_cast<std::uint32_t>(payload.size()), stream, FrameType::Request,
                         agent::Channel::Bytes},
                        reinterpret_cast<unsigned char*>(frame.data()));
    frame += payload;
    for (std::size_t at = 0; at < frame.size();) {
        const ssize_t n = ::send(fd_.get(), frame.data() + at, frame.size() - at, MSG_NOSIGNAL);
        if (n < 0) throwErrno("send", "agent");
        at += static_cast<std::size_t>(n);
    }
    return stream;
}

std::pair<FrameHeader, std::string> SmallAgent::readFrame() {
    const auto read = [this](char* out, std::size_t size) {
        for (std::size_t at = 0; at < size;) {
            const ssize_t n = ::recv(fd_.get(), out + at, size - at, 0);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) throwErrno("recv", "agent");
            if (n == 0) throw std::runtime_error("the agent closed the connection");
            at += static_cast<std::size_t>(n);
        }
    };
    unsigned char bytes[agent::kHeaderSize];
    read(reinterpret_cast<char*>(bytes), sizeof bytes);
    FrameHeader header;
    if (!agent::decodeHeader(bytes, header)) throw std::runtime_error("not a frame");
    std::string payload(header.length, '\0');
    read(payload.data(), payload.size());
    return {header, std::move(payload)};
}

Json SmallAgent::reply(std::uint32_t stream, std::string* output) {
    for (;;) {
        const auto [header, payload] = readFrame();
        if (header.stream != stream) continue;  // a frame of an earlier request
        if (header.type == FrameType::Reply) return parseJson(payload);
        if (header.type == FrameType::Error) throw std::runtime_error("agent: " + payload);
        if (header.type == FrameType::Data && output != nullptr) {
            output->append(payload, agent::kOffsetSize);
        }
    }
}

}  // namespace hearth::kernel_test
