#include "pool/launcher/LauncherClient.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
#include "pool/isolation/SandboxPaths.h"
#include "pool/launcher/Launcher.h"
#include "pool/launcher/LauncherCapabilities.h"
#include "pool/launcher/UidLeases.h"
#include "pool/launcher/protocol/OperationRules.h"
#include "pool/sys/Capabilities.h"
#include "pool/sys/Files.h"
#include "pool/sys/Process.h"

namespace hearth::pool {
namespace {

constexpr auto kLauncherEnd = std::chrono::seconds(8);
constexpr int kSocketBuffer = 2 << 20;

void makeDirectories(const LauncherOptions& options) {
    const launcher::SandboxPaths names(options.instance);
    const uid_t uid = options.server_uid;
    const gid_t gid = options.server_gid;
    sys::ensureDirectory(options.instance.run_dir, 0755, 0, 0);
    sys::ensureDirectory(names.uidLeases(), 0755, 0, 0);
    sys::ensureDirectory(names.sockets(), 0700, uid, gid);
    sys::ensureDirectory(names.marks(), 0700, uid, gid);
    sys::ensureDirectory(names.state(), 0700, uid, gid);
    // Hooks that run as a sandbox's root must reach its own bundle.
    sys::ensureDirectory(names.sandboxes(), 0711, 0, 0);
    sys::ensureDirectory(names.runtimeRoot(), 0700, 0, 0);
    sys::ensureDirectory(names.mountPoint(), 0700, 0, 0);
    sys::ensureDirectory(names.devices(), 0700, 0, 0);
    sys::ensureDirectory(names.storage(), 0700, 0, 0);
    sys::ensureDirectory(names.images(), 0755, 0, 0);
    // Root inside a user namespace is a stranger here and must reach the trees.
    sys::ensureDirectory(names.rootfs(), 0711, 0, 0);
    sys::ensureDirectory(names.rootView(), 0711, 0, 0);
    sys::ensureDirectory(names.emptyTree(), 0755, 0, 0);
    sys::ensureDirectory(names.rootScratch(), 0711, 0, 0);
    // The server reads this folder.
    sys::ensureDirectory(names.layers(), 0755, 0, 0);
    sys::ensureDirectory(names.layerView(), 0711, 0, 0);
    sys::ensureDirectory(names.emptyLayer(), 0755, 0, 0);
    sys::ensureDirectory(names.inside(), 0711, 0, 0);
    sys::ensureDirectory(names.insideView(), 0711, 0, 0);
    sys::ensureDirectory(names.emptyInside(), 0755, 0, 0);
}

[[noreturn]] void runLauncher(const LauncherOptions& options, Fd socket) {
    metrics::Log log(2, metrics::LogLevel::Info, options.log_format);
    try {
        LauncherOptions absolute = options;
        absolute.agent_path = std::filesystem::absolute(options.agent_path);
        ::setsid();  // a Ctrl-C at the terminal is for the server
        ::prctl(PR_SET_NAME, "hearth-launch");
        ::umask(022);
        sys::closeFrom(3, socket.get());
        const rlimit no_core{0, 0};
        if (::setrlimit(RLIMIT_CORE, &no_core) != 0) throwErrno("setrlimit", "core");
        sys::boundCapabilities(launcher::capabilities());
        sys::holdCapabilities(launcher::capabilities());
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

LauncherClient::LauncherClient(Fd socket, metrics::Log& log, std::function<void()> on_death,
                               Waiting waiting)
    : socket_(std::move(socket)),
      log_(log),
      on_death_(std::move(on_death)),
      waiting_(std::move(waiting)),
      reader_([this] { readLoop(); }) {
    for (const std::string& operation : launcher::operationNames()) tellStuck(operation, 0);
}

LauncherClient::~LauncherClient() {
    {
        const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    return pid_;
}

LauncherClient::State LauncherClient::state() {
    const MutexLock lock(mutex_);
    return {pid_ != 0 && !dead_, pending_.size() + late_.size()};
}

std::string LauncherClient::stuckOperation() {
    const MutexLock lock(mutex_);
    for (const auto& [seq, late] : late_) {
        if (late.answers == answers_) return late.operation;
    }
    return {};
}

std::size_t LauncherClient::leasedRanges(const Instance& instance) {
    const launcher::SandboxPaths names(instance);
    return launcher::UidLeases(names.uidLeases(), names.instance(), 0, 0).holders().size();
}

void LauncherClient::readLoop() {
    std::vector<char> packet(launcher::kMaxPacket);
    for (;;) {
        const ssize_t n = ::recv(socket_.get(), packet.data(), packet.size(), MSG_TRUNC);
        // A reset (the launcher had not read all) comes before its last messages.
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
        const MutexLock lock(mutex_);
        dead_ = true;
        died = !closing_ && pid_ != 0;
    }
    answered_.notifyAll();
    if (died && on_death_) on_death_();
}

void LauncherClient::deliver(launcher::Reply reply) {
    std::optional<Late> late;
    std::size_t left = 0;
    const std::string error = reply.error;
    {
        const MutexLock lock(mutex_);
        if (reply.seq == launcher::kReadySeq) {
            if (reply.error.empty()) {
                pid_ = reply.result.value("pid", 0);
            } else {
                unable_ = std::move(reply);
            }
            return;
        }
        ++answers_;
        if (const auto found = late_.find(reply.seq); found != late_.end()) {
            late = std::move(found->second);
            late_.erase(found);
            left = stuck(late->operation);
        } else if (const auto waits = pending_.find(reply.seq); waits != pending_.end()) {
            waits->second->reply = std::move(reply);
            waits->second->done = true;
        } else {
            return;  // answered twice: killed just after its answer
        }
    }
    answered_.notifyAll();
    if (!late) return;
    tellStuck(late->operation, left);
    log_.info("launcher.late_answer",
              {{"operation", late->operation}, {"subject", late->subject}, {"error", error}});
}

int LauncherClient::send(const launcher::Request& request, int fd) const {
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
        if (errno != EINTR) return errno;
    }
    return 0;
}

std::size_t LauncherClient::stuck(const std::string& operation) const {
    return static_cast<std::size_t>(
        std::count_if(late_.begin(), late_.end(),
                      [&](const auto& each) { return each.second.operation == operation; }));
}

void LauncherClient::tellStuck(const std::string& operation, std::size_t count) const {
    if (waiting_.stuck) waiting_.stuck(operation, count);
}

void LauncherClient::giveUp(const launcher::Request& request, std::chrono::milliseconds after) {
    const launcher::OperationRules rules = launcher::rulesOf(request.body);
    std::size_t count = 0;
    {
        const MutexLock lock(mutex_);
        count = stuck(rules.name);
    }
    tellStuck(rules.name, count);
    log_.error("launcher.stuck",
               {{"operation", rules.name}, {"subject", rules.subject}, {"ms", after.count()}});
    throw Error(ErrorCode::Deadline,
                std::string("the launcher did not answer in time (operation ") + rules.name + ")")
        .hint("it is stopped, or a disk hangs: see hearth_launcher_operations_stuck, and dmesg");
}

Json LauncherClient::call(launcher::RequestBody body, int fd, bool stoppable) {
    Pending pending;
    launcher::Request request{0, std::move(body)};
    const launcher::OperationRules rules = launcher::rulesOf(request.body);
    const std::chrono::milliseconds patience =
        waiting_.patience ? waiting_.patience(request.body) : rules.patience;
    const auto until = std::chrono::steady_clock::now() + patience;
    {
        const MutexLock lock(mutex_);
        if (dead_ && unable_) launcher::throwFailure(*unable_);
        if (dead_) throw Error(ErrorCode::Unavailable, "the launcher is not running");
        for (const auto& [seq, late] : late_) {
            if (late.operation != rules.name || late.subject != rules.subject) continue;
            throw Error(ErrorCode::Unavailable,
                        std::string("the launcher has not answered the last operation (") +
                            rules.name + ")")
                .hint("it is stopped, or a disk hangs: see hearth_launcher_operations_stuck");
        }
        request.seq = next_++;
        pending_.emplace(request.seq, &pending);
    }
    const int error = send(request, fd);
    bool late = false;
    {
        const MutexLock lock(mutex_);
        // If it has just ended, the reader receives its last messages.
        if (error == 0 || error == EPIPE || error == ECONNRESET) {
            const auto over = [&]() HEARTH_REQUIRES(mutex_) {
                return pending.done || dead_ || (stoppable && !fetching_);
            };
            const auto end = [&]() HEARTH_REQUIRES(mutex_) { return std::min(until, finish_by_); };
            while (!over() && std::chrono::steady_clock::now() < end())
                answered_.waitUntil(mutex_, end());
            late = !over();
            if (late) late_.emplace(request.seq, Late{rules.name, rules.subject, answers_});
        }
        pending_.erase(request.seq);
        if (!pending.done && dead_ && unable_) launcher::throwFailure(*unable_);
        if (!pending.done && !dead_ && stoppable && !fetching_) {
            throw Error(ErrorCode::Unavailable, "the server is shutting down");
        }
    }
    if (late) giveUp(request, patience);
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

std::vector<LauncherClient::Found> LauncherClient::list(bool count_files) {
    std::vector<Found> all;
    for (bool more = true; more;) {
        const Json page =
            call(launcher::ListRequest{all.empty() ? std::string() : all.back().id, count_files});
        for (const Json& item : page.at("items")) all.push_back(launcher::decodeFound(item));
        more = page.at("more").get<bool>();
    }
    return all;
}

std::optional<LauncherClient::Found> LauncherClient::find(const SandboxId& id) {
    const Json result = call(launcher::FindRequest{id});
    if (!result.contains("found")) return std::nullopt;
    return launcher::decodeFound(result.at("found"));
}

std::vector<Leftover> LauncherClient::sweep(const std::vector<SandboxId>& keep) {
    std::vector<SandboxId> all = keep;
    std::sort(all.begin(), all.end());
    std::vector<Leftover> leftovers;
    launcher::SweepRequest page;
    for (auto at = all.begin();;) {
        const auto end =
            at + std::min<std::ptrdiff_t>(launcher::kMostKept, std::distance(at, all.end()));
        page.keep.assign(at, end);
        page.until = end == all.end() ? std::string() : page.keep.back();
        for (Leftover& left : launcher::decodeLeftovers(call(page))) {
            leftovers.push_back(std::move(left));
        }
        if (end == all.end()) return leftovers;
        page.after = page.until;
        at = end;
    }
}

image::Image LauncherClient::prepareImage(const std::string& name) {
    return launcher::decodeImage(call(launcher::PrepareImageRequest{name}, -1, true));
}

image::Image LauncherClient::describeImage(const std::string& name) {
    return launcher::decodeImage(call(launcher::DescribeImageRequest{name}));
}

launcher::Fetched LauncherClient::fetchImage(const launcher::FetchImageRequest& fetch,
                                             int gateway) {
    return launcher::decodeFetched(call(fetch, gateway, true));
}

void LauncherClient::stopFetching() {
    {
        const MutexLock lock(mutex_);
        fetching_ = false;
    }
    answered_.notifyAll();
}

void LauncherClient::finishWithin(std::chrono::milliseconds most) {
    {
        const MutexLock lock(mutex_);
        finish_by_ = std::chrono::steady_clock::now() + most;
    }
    answered_.notifyAll();
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
