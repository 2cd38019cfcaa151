// The streams of a FakeAgent: output and input of executions, reads and writes of files.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "tests/fake/runtime/FakeAgent.h"

namespace hearth::pool {
namespace {

using agent::FrameType;

/// The most bytes queued for the socket; the rest waits in the log or the file.
constexpr std::size_t kMaxOut = 512U << 10U;
constexpr std::size_t kPiece = 64U << 10U;

}  // namespace

void FakeAgent::openFile(FakePeer& peer, std::uint32_t stream, const std::string& op,
                         const Json& json) {
    FakeStream open;
    open.name = json.at("path").get<std::string>();
    if (op == "write") {
        files_.checkWrite(open.name);
        open.kind = FakeStream::Kind::Write;
        if (json.contains("mode")) open.mode = json["mode"].get<unsigned>();
        if (json.value("pass", false)) {
            peer.sendJson(FrameType::Note, stream, {{"passed", false}});
        }
    } else {
        open.kind = FakeStream::Kind::Read;
        open.content = files_.read(open.name);
        const std::uint64_t size = open.content->size();
        const auto length = json.value("length", std::uint64_t{0});
        open.position = std::min(json.value("offset", std::uint64_t{0}), size);
        open.begin = open.position;
        open.end = length == 0 ? size : std::min(size, open.position + std::min(length, size));
        peer.sendJson(FrameType::Note, stream, {{"stat", files_.stat(open.name)}});
    }
    peer.streams.emplace(stream, std::move(open));
}

void FakeAgent::input(FakePeer& peer, std::uint32_t stream, FakeStream& open,
                      std::string_view bytes) {
    bool taken = true;
    if (open.kind == FakeStream::Kind::Write) {
        open.written += bytes;
    } else if (open.owns_input) {
        for (const auto& known : executions_) {
            if (known->id() != open.name) continue;
            known->input(bytes);
            taken = known->reads();
        }
        deadlines_.touch(now());
    }
    std::array<unsigned char, 4> credit;
    agent::putU32(credit.data(), static_cast<std::uint32_t>(bytes.size()));
    if (taken && !bytes.empty()) {
        peer.send(FrameType::Credit, stream,
                  {reinterpret_cast<const char*>(credit.data()), credit.size()});
    }
}

void FakeAgent::endOfInput(FakePeer& peer, std::uint32_t stream, FakeStream& open) {
    if (open.kind == FakeStream::Kind::Write) {
        Json answer;
        auto type = FrameType::Reply;
        try {
            answer = {{"stat", files_.write(open.name, open.mode, std::move(open.written))}};
            deadlines_.touch(now());
        } catch (const FakeRefusal& refusal) {
            type = FrameType::Error;
            answer = refusal.body();
        }
        peer.streams.erase(stream);
        peer.sendJson(type, stream, answer);
    } else if (open.owns_input) {
        FakeExecution& known = execution(open.name);
        const bool ran = known.running();
        known.endOfInput(now());
        if (ran && !known.running()) settle(known);
    }
}

void FakeAgent::pump(FakePeer& peer) {
    for (auto it = peer.streams.begin(); it != peer.streams.end();) {
        bool done = false;
        if (it->second.kind == FakeStream::Kind::Execution) {
            done = pumpExecution(peer, it->first, it->second);
        } else if (it->second.kind == FakeStream::Kind::Read) {
            done = pumpFile(peer, it->first, it->second);
        }
        it = done ? peer.streams.erase(it) : std::next(it);
    }
}

/// False if the stream must wait for credit.
bool FakeAgent::pumpResults(FakePeer& peer, std::uint32_t stream, FakeStream& open,
                            const FakeExecution& known, std::uint64_t end) {
    while (open.results < end) {
        if (open.credit == 0 || peer.out.size() >= kMaxOut) return false;
        const std::size_t piece = static_cast<std::size_t>(
            std::min<std::uint64_t>({end - open.results, open.credit, kPiece}));
        std::string payload(agent::kOffsetSize, '\0');
        agent::putU64(reinterpret_cast<unsigned char*>(payload.data()), open.results);
        payload.append(known.results(), static_cast<std::size_t>(open.results), piece);
        peer.send(FrameType::Data, stream, payload, agent::Channel::Results);
        open.credit -= piece;
        open.results += piece;
    }
    return true;
}

bool FakeAgent::pumpExecution(FakePeer& peer, std::uint32_t stream, FakeStream& open) {
    const auto it = std::find_if(executions_.begin(), executions_.end(),
                                 [&](const auto& known) { return known->id() == open.name; });
    if (it == executions_.end()) {
        peer.sendJson(FrameType::Error, stream, {{"code", "NOT_FOUND"}, {"message", "forgotten"}});
        return true;
    }
    const FakeExecution& known = **it;
    for (;;) {
        const FakeExecution::Shown* shown = known.shownAt(open.results);
        auto chunk = known.output().read(open.position, kPiece);
        if (shown != nullptr && (chunk.bytes.empty() || shown->behind <= chunk.offset)) {
            if (!pumpResults(peer, stream, open, known, shown->end)) return false;
            continue;
        }
        if (chunk.bytes.empty()) break;
        if (open.credit == 0 || peer.out.size() >= kMaxOut) return false;
        chunk.bytes = chunk.bytes.substr(0, open.credit);
        if (shown != nullptr) chunk.bytes = chunk.bytes.substr(0, shown->behind - chunk.offset);
        std::string payload(agent::kOffsetSize, '\0');
        agent::putU64(reinterpret_cast<unsigned char*>(payload.data()), chunk.offset);
        payload += chunk.bytes;
        peer.send(FrameType::Data, stream, payload, chunk.channel);
        open.credit -= chunk.bytes.size();
        open.position = chunk.offset + chunk.bytes.size();
    }
    if (known.running()) return false;
    peer.sendJson(FrameType::Reply, stream, {{"result", known.result()}});
    return true;
}

bool FakeAgent::pumpFile(FakePeer& peer, std::uint32_t stream, FakeStream& open) {
    while (open.position < open.end) {
        if (open.credit == 0 || peer.out.size() >= kMaxOut) return false;
        const std::size_t piece = static_cast<std::size_t>(
            std::min<std::uint64_t>({open.end - open.position, open.credit, kPiece}));
        peer.send(
            FrameType::Data, stream,
            std::string_view(*open.content).substr(static_cast<std::size_t>(open.position), piece));
        open.credit -= piece;
        open.position += piece;
    }
    peer.sendJson(FrameType::Reply, stream, {{"bytes", open.end - open.begin}});
    return true;
}

}  // namespace hearth::pool
