#include "tests/fake/runtime/FakeLoop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/Error.h"
#include "tests/fake/runtime/FakeAgent.h"

namespace hearth::pool {
namespace {

/// How often running executions read the clock, which a test may have changed.
constexpr int kWorkEveryMs = 2;

}  // namespace

void FakePeer::send(agent::FrameType type, std::uint32_t stream, std::string_view payload,
                    agent::Channel channel) {
    std::array<unsigned char, agent::kHeaderSize> head;
    agent::FrameHeader header;
    header.length = static_cast<std::uint32_t>(payload.size());
    header.stream = stream;
    header.type = type;
    header.channel = channel;
    agent::encodeHeader(header, head.data());
    out.append(reinterpret_cast<const char*>(head.data()), head.size());
    out.append(payload);
}

void FakePeer::sendJson(agent::FrameType type, std::uint32_t stream, const Json& json) {
    send(type, stream, dumpJson(json));
}

FakeLoop::FakeLoop()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!epoll_) throwErrno("epoll_create1");
    if (!wake_) throwErrno("eventfd");
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) throwErrno("epoll_ctl");
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

FakeLoop::~FakeLoop() {
    thread_.request_stop();
    static_cast<void>(::eventfd_write(wake_.get(), 1));
}

void FakeLoop::watch(FakePeer& peer, std::uint32_t events, int operation) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = peer.id;
    if (::epoll_ctl(epoll_.get(), operation, peer.fd.get(), &event) != 0) throwErrno("epoll_ctl");
}

Fd FakeLoop::connect(const std::shared_ptr<FakeAgent>& agent) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
        throwErrno("socketpair");
    }
    Fd client(ends[0]);
    auto peer = std::make_unique<FakePeer>();
    peer->fd = Fd(ends[1]);
    peer->agent = agent;
    const MutexLock lock(mutex_);
    if (!agent->alive()) throwErrno(ECONNREFUSED, "connect");
    peer->id = next_id_++;
    watch(*peer, agent->hangs() ? EPOLLONESHOT : EPOLLIN, EPOLL_CTL_ADD);
    ids_[agent.get()].insert(peer->id);
    peers_.emplace(peer->id, std::move(peer));
    return client;
}

void FakeLoop::kill(FakeAgent& agent) {
    const MutexLock lock(mutex_);
    agent.die();
    for (FakePeer* peer : peersOf(agent)) drop(*peer);
    std::erase_if(busy_, [&](const auto& entry) { return entry.get() == &agent; });
}

void FakeLoop::hang(FakeAgent& agent) {
    const MutexLock lock(mutex_);
    agent.hang();
    for (FakePeer* peer : peersOf(agent)) watch(*peer, EPOLLONESHOT, EPOLL_CTL_MOD);
    std::erase_if(busy_, [&](const auto& entry) { return entry.get() == &agent; });
}

void FakeLoop::resume(FakeAgent& agent) {
    const MutexLock lock(mutex_);
    agent.resume();
    for (FakePeer* peer : peersOf(agent)) {
        peer->writing = false;
        watch(*peer, EPOLLIN, EPOLL_CTL_MOD);
        if (agent.running() > 0) busy_.insert(peer->agent);
    }
}

void FakeLoop::sever(FakeAgent& agent) {
    const MutexLock lock(mutex_);
    for (FakePeer* peer : peersOf(agent)) {
        agent.closed(*peer);
        drop(*peer);
    }
}

std::vector<FakePeer*> FakeLoop::peersOf(const FakeAgent& agent) const {
    std::vector<FakePeer*> peers;
    const auto found = ids_.find(&agent);
    if (found == ids_.end()) return peers;
    for (const std::uint64_t id : found->second) peers.push_back(peers_.at(id).get());
    return peers;
}

void FakeLoop::drop(const FakePeer& peer) {
    const std::uint64_t id = peer.id;
    const auto found = ids_.find(peer.agent.get());
    found->second.erase(id);
    if (found->second.empty()) ids_.erase(found);
    peers_.erase(id);
}

void FakeLoop::run(const std::stop_token& stop) {
    std::array<epoll_event, 64> events;
    int timeout = -1;
    while (!stop.stop_requested()) {
        const int count =
            ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
        if (count < 0 && errno != EINTR) throwErrno("epoll_wait");
        const MutexLock lock(mutex_);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.u64 != 0) serve(event.data.u64, event.events);
        }
        work();
        closeEnded();
        timeout = -1;
        for (const auto& agent : busy_) {
            if (timeout != 0) timeout = agent->floods() ? 0 : kWorkEveryMs;
        }
    }
}

void FakeLoop::serve(std::uint64_t id, std::uint32_t events) {
    const auto it = peers_.find(id);
    if (it == peers_.end() || it->second->agent->hangs()) return;
    FakePeer& peer = *it->second;
    const bool new_here = peer.kind == FakePeer::Kind::Unknown;
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0 && !receive(peer)) peer.ended = true;
    peer.agent->pump(peer);
    flush(peer);
    if (peer.agent->running() > 0) busy_.insert(peer.agent);
    // A new control connection ends the previous one.
    const bool took_over = new_here && peer.kind == FakePeer::Kind::Control;
    if (peer.ended || took_over || !peer.agent->alive()) some_ended_.insert(peer.agent);
}

bool FakeLoop::receive(FakePeer& peer) {
    std::array<char, 64U << 10U> chunk;
    const ssize_t n = ::recv(peer.fd.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    peer.in.append(chunk.data(), static_cast<std::size_t>(n));
    std::size_t used = 0;
    bool sound = true;
    while (sound && !peer.ended && peer.in.size() - used >= agent::kHeaderSize) {
        agent::FrameHeader header;
        const char* at = peer.in.data() + used;
        sound = agent::decodeHeader(reinterpret_cast<const unsigned char*>(at), header);
        if (!sound || peer.in.size() - used < agent::kHeaderSize + header.length) break;
        sound = peer.agent->frame(peer, header, {at + agent::kHeaderSize, header.length});
        used += agent::kHeaderSize + header.length;
    }
    peer.in.erase(0, used);
    return sound;
}

void FakeLoop::flush(FakePeer& peer) {
    while (!peer.out.empty()) {
        const ssize_t n =
            ::send(peer.fd.get(), peer.out.data(), peer.out.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno != EAGAIN) {
                peer.ended = true;
                peer.out.clear();
            }
            break;
        }
        peer.out.erase(0, static_cast<std::size_t>(n));
        peer.agent->pump(peer);
    }
    const bool writing = !peer.out.empty();
    if (writing == peer.writing) return;
    peer.writing = writing;
    watch(peer, writing ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
}

void FakeLoop::work() {
    for (const auto& agent : busy_) {
        agent->work();
        for (FakePeer* peer : peersOf(*agent)) {
            agent->pump(*peer);
            flush(*peer);
        }
        some_ended_.insert(agent);  // perhaps
    }
    std::erase_if(busy_, [](const auto& agent) { return agent->running() == 0; });
}

void FakeLoop::closeEnded() {
    for (const auto& agent : std::exchange(some_ended_, {})) {
        for (FakePeer* peer : peersOf(*agent)) {
            if ((agent->alive() && !peer->ended) || !peer->out.empty()) continue;
            agent->closed(*peer);
            drop(*peer);
        }
    }
}

}  // namespace hearth::pool
