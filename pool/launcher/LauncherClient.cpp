#include "pool/launcher/LauncherClient.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "pool/launcher/Launcher.h"
#include "pool/launcher/Names.h"
#include "pool/sys/Files.h"
#include "pool/sys/Process.h"

namespace hearth::pool {
namespace {

constexpr auto kLauncherEnd = std::chrono::seconds(8);
constexpr int kSocketBuffer = 2 << 20;

void makeDirectories(const LauncherOptions& options) {
    const launcher::Names names(options.instance);
    const uid_t uid = options.server_uid;
    const gid_t gid = options.server_gid;
    sys::ensureDirectory(options.instance.run_dir, 0755, 0, 0);
    sys::ensureDirectory(names.uidLeases(), 0755, 0, 0);
    sys::ensureDirectory(names.sockets(), 0700, uid, gid);
    sys::ensureDirectory(names.marks(), 0700, uid, gid);
    sys::ensureDirectory(names.state(), 0700, uid, gid);
    sys::ensureDirectory(names.sandboxes(), 0700, 0, 0);
    sys::ensureDirectory(names.runtimeRoot(), 0700, 0, 0);
    sys::ensureDirectory(names.mountPoint(), 0700, 0, 0);
    sys::ensureDirectory(names.storage(), 0700, 0, 0);
    sys::ensureDirectory(names.images(), 0755, 0, 0);
    // Root inside a user namespace is a stranger here and must reach the trees.
    sys::ensureDirectory(names.rootfs(), 0711, 0, 0);
    sys::ensureDirectory(names.rootView(), 0711, 0, 0);
    sys::ensureDirectory(names.emptyTree(), 0755, 0, 0);
    // The server looks at what is there.
    sys::ensureDirectory(names.layers(), 0755, 0, 0);
    sys::ensureDirectory(names.layerView(), 0711, 0, 0);
    sys::ensureDirectory(names.emptyLayer(), 0755, 0, 0);
    sys::ensureDirectory(names.inside(), 0711, 0, 0);
}

[[noreturn]] void runLauncher(const LauncherOptions& options, Fd socket) {
    metrics::Log log;
    try {
        LauncherOptions absolute = options;
        absolute.agent_path = std::filesystem::absolute(options.agent_path);
        ::setsid();  // a Ctrl-C at the terminal is for the server
        ::prctl(PR_SET_NAME, "hearth-launch");
        ::umask(022);
        sys::closeFrom(3, socket.get());
        const Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        if (!null || ::dup2(null.get(), 0) < 0 || ::chdir("/") != 0) throwErrno("prepare launcher");
        launcher::Launcher(absolute, std::move(socket)).run();
        ::_exit(0);
    } catch (const std::exception& e) {
        log.error("launcher_failed", {{"error", e.what()}});
    }
    ::_exit(1);
}

}  // namespace

Fd LauncherClient::forkLauncher(const LauncherOptions& options) {
    makeDirectories(options);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throwErrno("socketpair");
    Fd ours(ends[0]);
    Fd theirs(ends[1]);
    for (const Fd* fd : {&ours, &theirs}) {
        if (::setsockopt(fd->get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSocketBuffer,
                         sizeof kSocketBuffer) != 0) {
            throwErrno("setsockopt", "launcher socket");
        }
    }
    const pid_t pid = ::fork();
    if (pid < 0) throwErrno("fork", "launcher");
    if (pid == 0) {
        ours.reset();
        runLauncher(options, std::move(theirs));
    }
    return ours;
}

LauncherClient::LauncherClient(Fd socket, metrics::Log& log, std::function<void()> on_death)
    : socket_(std::move(socket)),
      log_(log),
      on_death_(std::move(on_death)),
      reader_([this] { readLoop(); }) {}

LauncherClient::~LauncherClient() {
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
    }
    ::shutdown(socket_.get(), SHUT_RDWR);
    if (reader_.joinable()) reader_.join();
    socket_.reset();
    waitEnd();
}

void LauncherClient::waitEnd() {
    const int launcher = pid();
    if (launcher <= 0) return;
    try {
        const std::optional<sys::Process> process = sys::Process::open(launcher);
        if (process && !process->waitEnd(kLauncherEnd)) {
            log_.warn("launcher_still_ends", {{"pid", launcher}});
            return;
        }
        ::waitpid(launcher, nullptr, WNOHANG);
    } catch (const std::exception& e) {
        log_.warn("launcher_end_unknown", {{"error", e.what()}});
    }
}

int LauncherClient::pid() {
    const std::lock_guard lock(mutex_);
    return pid_;
}

void LauncherClient::readLoop() {
    std::vector<char> packet(launcher::kMaxPacket);
    for (;;) {
        const ssize_t n = ::recv(socket_.get(), packet.data(), packet.size(), MSG_TRUNC);
        // A reset (it had not read all) comes before what it sent last.
        if (n < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
        if (n <= 0) break;
        try {
            const auto size = static_cast<std::size_t>(n);
            if (size > packet.size()) throw Error(ErrorCode::Internal, "a packet is too long");
            deliver(launcher::decodeReply({packet.data(), size}));
        } catch (const std::exception& e) {
            log_.error("launcher_answer_unreadable", {{"error", e.what()}});
            break;
        }
    }
    bool died = false;
    {
        const std::lock_guard lock(mutex_);
        dead_ = true;
        died = !closing_ && pid_ != 0;
    }
    answered_.notify_all();
    if (died && on_death_) on_death_();
}

void LauncherClient::deliver(launcher::Reply reply) {
    {
        const std::lock_guard lock(mutex_);
        if (reply.seq == launcher::kReadySeq) {
            if (reply.error.empty()) {
                pid_ = reply.result.value("pid", 0);
            } else {
                unable_ = std::move(reply);
            }
            return;
        }
        const auto found = pending_.find(reply.seq);
        if (found == pending_.end()) return;  // answered twice: killed just after its answer
        found->second->reply = std::move(reply);
        found->second->done = true;
    }
    answered_.notify_all();
}

Json LauncherClient::call(launcher::RequestBody body, int fd, bool stoppable) {
    Pending pending;
    launcher::Request request{0, std::move(body)};
    {
        const std::lock_guard lock(mutex_);
        if (dead_ && unable_) launcher::throwFailure(*unable_);
        if (dead_) throw Error(ErrorCode::Unavailable, "the launcher is not running");
        request.seq = next_++;
        pending_.emplace(request.seq, &pending);
    }
    int error = 0;
    const std::string packet = encodeRequest(request);
    iovec part{const_cast<char*>(packet.data()), packet.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        std::copy_n(reinterpret_cast<const unsigned char*>(&fd), sizeof fd, CMSG_DATA(c));
    }
    while (::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) {
        if (errno == EINTR) continue;
        error = errno;
        break;
    }
    {
        std::unique_lock lock(mutex_);
        // Where it has just ended, the reader hears its last words.
        if (error == 0 || error == EPIPE || error == ECONNRESET) {
            answered_.wait(lock,
                           [&] { return pending.done || dead_ || (stoppable && !fetching_); });
        }
        pending_.erase(request.seq);
        if (!pending.done && dead_ && unable_) launcher::throwFailure(*unable_);
        if (!pending.done && !dead_ && stoppable && !fetching_) {
            throw Error(ErrorCode::Unavailable, "the server is shutting down");
        }
    }
    if (!pending.done) {
        if (error == EMSGSIZE) throw Error(ErrorCode::InvalidArgument, "the request is too long");
        throw Error(ErrorCode::Unavailable, "the launcher ended");
    }
    launcher::throwFailure(pending.reply);
    return std::move(pending.reply.result);
}

void LauncherClient::create(const SandboxId& id, const SandboxSpec& spec, int listen) {
    call(launcher::CreateRequest{id, spec}, listen);
}

void LauncherClient::destroy(const SandboxId& id) {
    call(launcher::DestroyRequest{id});
}

std::optional<LimitInUse> LauncherClient::narrow(const SandboxId& id, const SandboxLimits& limits) {
    return launcher::decodeInUse(
        call(launcher::NarrowRequest{id, limits.milli_cpu, limits.memory_bytes, limits.pids}));
}

std::vector<LauncherClient::Found> LauncherClient::list() {
    std::vector<Found> all;
    for (bool more = true; more;) {
        const Json page = call(launcher::ListRequest{all.empty() ? std::string() : all.back().id});
        for (const Json& item : page.at("items")) all.push_back(launcher::decodeFound(item));
        more = page.at("more").get<bool>();
    }
    return all;
}

void LauncherClient::sweep(const std::vector<SandboxId>& keep) {
    call(launcher::SweepRequest{keep});
}

image::Image LauncherClient::prepareImage(const std::string& name) {
    return launcher::decodeImage(call(launcher::PrepareImageRequest{name}, -1, true));
}

image::Image LauncherClient::describeImage(const std::string& name) {
    return launcher::decodeImage(call(launcher::DescribeImageRequest{name}));
}

launcher::Fetched LauncherClient::fetchImage(const launcher::FetchImageRequest& fetch) {
    return launcher::decodeFetched(call(fetch, -1, true));
}

void LauncherClient::stopFetching() {
    {
        const std::lock_guard lock(mutex_);
        fetching_ = false;
    }
    answered_.notify_all();
}

void LauncherClient::forgetImages(const std::vector<std::string>& wanted) {
    call(launcher::ForgetImagesRequest{wanted});
}

void LauncherClient::addLayer(const std::string& digest, int tar) {
    call(launcher::AddLayerRequest{digest}, tar);
}

void LauncherClient::removeLayer(const std::string& digest) {
    call(launcher::RemoveLayerRequest{digest});
}

Json LauncherClient::facts() {
    return call(launcher::FactsRequest{});
}

}  // namespace hearth::pool
