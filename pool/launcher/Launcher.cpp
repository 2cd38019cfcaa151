#include "pool/launcher/Launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "base/Error.h"
#include "base/Ids.h"
#include "pool/image/LayerStore.h"
#include "pool/isolation/AgentFolder.h"
#include "pool/launcher/HostFacts.h"
#include "pool/launcher/ImageFetch.h"
#include "pool/launcher/TreesInUse.h"
#include "pool/launcher/protocol/OperationRules.h"
#include "pool/sys/Files.h"
#include "pool/sys/Namespaces.h"
#include "pool/sys/Process.h"
#include "pool/sys/StoppedHolder.h"

namespace hearth::pool::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kMostWaiting = 4096;
constexpr auto kCollectEvery = std::chrono::minutes(10);
constexpr auto kClosingGrace = seconds(5);
constexpr auto kLockWait = seconds(10);
constexpr int kTurnsForLock = 10;
constexpr int kLockTurnMs = 20;
/// After this time an operation no longer yields to others, since somebody may wait for it.
constexpr auto kGivesWay = milliseconds(150);
/// Number of operations that yield at a time. They leave one processor free, because even a group
/// that yields makes others wait: the kernel owes it a small share, and pays up to a tick at once.
const std::size_t kYielding = std::max(std::thread::hardware_concurrency(), 2U) - 1;
constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();
/// Exit status of a child that has reported a failure to the server.
constexpr int kAnsweredFailure = 2;

bool isStream(int fd, bool listening) {
    const auto option = [fd](int name) {
        int value = -1;
        socklen_t size = sizeof value;
        return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
    };
    return option(SO_DOMAIN) == AF_UNIX && option(SO_TYPE) == SOCK_STREAM &&
           option(SO_ACCEPTCONN) == (listening ? 1 : 0);
}

bool isFile(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

/// Checks that the request brings a descriptor of the right kind, or none.
void checkDescriptor(const Request& request, const Fd& fd) {
    const bool listens = std::holds_alternative<CreateRequest>(request.body);
    const bool holds = std::holds_alternative<AddLayerRequest>(request.body);
    const bool fetches = std::holds_alternative<FetchImageRequest>(request.body);
    if ((listens || holds || fetches) != static_cast<bool>(fd)) {
        throw BadRequest(request.seq,
                         "create, addLayer and fetchImage, and nothing else, bring a descriptor");
    }
    // Only the server's listening socket may become a descriptor of the agent.
    if (listens && !isStream(fd.get(), true)) {
        throw BadRequest(request.seq, "create brings a listening socket");
    }
    if (fetches && !isStream(fd.get(), false)) {
        throw BadRequest(request.seq, "fetchImage brings a connected socket");
    }
    if (holds && !isFile(fd.get())) throw BadRequest(request.seq, "addLayer brings a file");
}

/// Limits for all of root's user namespaces together, so for all sandboxes: if they were lower than
/// those of one namespace, a few sandboxes could shut out the rest.
constexpr std::array<std::pair<const char*, std::uint64_t>, 2> kSharedLimits{
    {{"/proc/sys/fs/inotify/max_user_instances", 65'536},
     {"/proc/sys/fs/inotify/max_user_watches", 4'194'304}}};

void raiseLimit(const char* path, std::uint64_t least) {
    const std::string now = sys::readFile(path).value_or("");
    std::uint64_t value = 0;
    std::from_chars(now.data(), now.data() + now.size(), value);
    if (value == 0 || value >= least) return;
    try {
        sys::writeKernelFile(path, std::to_string(least));
    } catch (const std::system_error&) {
        return;  // a container whose /proc/sys is read-only: the limit stays as it is
    }
}

[[noreturn]] void throwStillEnds(const std::string& lock) {
    const std::string pid = sys::readFile(lock, 32).value_or("");
    const std::string number = pid.substr(0, pid.find('\n'));
    throw Error(ErrorCode::Unavailable,
                "the launcher of the previous server, process " + number + ", has not ended")
        .hint("a disk or the kernel hangs, see dmesg");
}

}  // namespace

Launcher::Launcher(const LauncherOptions& options, Fd socket)
    : options_(options), names_(options.instance), socket_(std::move(socket)) {}

void Launcher::prepare() {
    sigset_t blocked;
    ::sigemptyset(&blocked);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE})
        ::sigaddset(&blocked, signal);
    if (::sigprocmask(SIG_SETMASK, &blocked, nullptr) != 0) throwErrno("sigprocmask");
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    signals_ = Fd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) throwErrno("signalfd");
    // When runc ends, the agents of containers become children of this process and are reaped here.
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throwErrno("prctl", "subreaper");
    sys::enterPrivateMounts();
    for (const auto& [name, least] : kSharedLimits) raiseLimit(name, least);

    // An earlier launcher may still be ending its operations.
    lock_ =
        Fd(::open(names_.launcherLock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_) throwErrno("open", names_.launcherLock());
    auto end = std::chrono::steady_clock::now() + kLockWait;
    bool killed = false;
    while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK) throwErrno("flock", names_.launcherLock());
        if (std::chrono::steady_clock::now() > end) {
            if (killed || !sys::killStoppedHolder(names_.launcherLock())) {
                throwStillEnds(names_.launcherLock());
            }
            killed = true;
            end = std::chrono::steady_clock::now() + kLockWait;
        }
        ::poll(nullptr, 0, 5);
    }
    sys::writeFile(names_.launcherLock(), std::to_string(::getpid()) + "\n", 0600);
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);  // the clock of file times
    image::ImageStore(names_.dataDir()).removeUnfinished();
    image::LayerStore(names_.layers()).removeUnfinished();
    const std::string inside =
        installInside(names_.inside(), options_.agent_path, seccomp::AgentIdentity::Root);
    sandboxes_.emplace(options_, inside, now);
    background_.emplace(sys::Cgroups::detect(), names_.cgroupOfBackground());
    const std::set<std::string> used = sandboxes_->insideInUse();
    for (const std::string& name : sys::listDirectory(names_.inside())) {
        const std::string path = names_.inside() + "/" + name;
        if (path == names_.insideView() || path == names_.emptyInside()) continue;
        if (path != inside && !used.contains(path)) sys::removeTree(path);
    }
}

void Launcher::run() {
    try {
        prepare();
    } catch (const std::exception& e) {
        Reply why = failureReply(kReadySeq, e);
        if (why.hint.empty() && why.error == errorCodeName(ErrorCode::DiskFull)) {
            why.hint = "make room in " + names_.dataDir() + ", or choose another with --data-dir";
        }
        reply(why);
        throw;
    }
    reply({kReadySeq, {{"pid", static_cast<std::uint64_t>(::getpid())}}, {}, {}, {}});
    while (!closing_ || !running_.empty()) {
        std::array<pollfd, 2> polled{
            {{signals_.get(), POLLIN, 0}, {closing_ ? -1 : socket_.get(), POLLIN, 0}}};
        if (::poll(polled.data(), polled.size(), nextTimeout()) < 0 && errno != EINTR) {
            throwErrno("poll");
        }
        if (polled[0].revents != 0) {
            signalfd_siginfo info[16];
            static_cast<void>(::read(signals_.get(), info, sizeof info));
        }
        reap();
        if (polled[1].revents != 0) receive();
        killLate();
        hurryLate();
        startJobs();
        collectImages();
    }
    if (collector_ > 0) ::kill(collector_, SIGKILL);
    background_.reset();
    // The parent group stays if a sandbox lives on.
    sys::Cgroups::detect().remove(names_.cgroupParent(), milliseconds(0));
    lock_.reset();
    // The folder stays too then, and also if another server has begun. A server that is just ending
    // may have closed this socket, but not yet its lock.
    const std::string& run_dir = options_.instance.run_dir;
    for (int turn = 0; turn < kTurnsForLock && std::filesystem::exists(run_dir); ++turn) {
        if (removeDeadRunDir(run_dir)) break;
        ::poll(nullptr, 0, kLockTurnMs);
    }
}

void Launcher::receive() {
    static std::array<char, kMaxPacket> packet;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{packet.data(), packet.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        closing_ = std::chrono::steady_clock::now() + kClosingGrace;
        waiting_.clear();
        return;
    }
    Job job;
    job.accepted = std::chrono::steady_clock::now();
    bool one_too_many = false;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        // The space for one is, for its alignment, large enough for two.
        const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            one_too_many = one_too_many || job.fd;
            job.fd = Fd(fd);
        }
    }
    try {
        if (one_too_many) throw BadRequest(0, "one descriptor at most comes with a request");
        if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
            throw BadRequest(0, "the packet is too long");
        }
        job.request = decodeRequest({packet.data(), static_cast<std::size_t>(n)});
        checkDescriptor(job.request, job.fd);
        if (waiting_.size() >= kMostWaiting) {
            throw Error(ErrorCode::Unavailable, "the launcher has too much to do");
        }
        accept(std::move(job));
    } catch (const BadRequest& e) {
        reply(failureReply(e.seq(), e));
    } catch (const Error& e) {
        reply(failureReply(job.request.seq, e));
    }
}

void Launcher::accept(Job job) {
    if (const auto* create = std::get_if<CreateRequest>(&job.request.body))
        born_.insert(create->id);
    if (const auto* destroy = std::get_if<DestroyRequest>(&job.request.body))
        born_.erase(destroy->id);
    waiting_.push_back(std::move(job));
}

void Launcher::startJobs() {
    std::vector<Underway> underway;
    for (const auto& [pid, item] : running_) {
        underway.push_back({&item.job.request.body, item.killed, yields(item.job)});
    }
    // Operations on one sandbox keep their order; operations on others may overtake.
    std::set<SandboxId> passed;
    for (auto it = waiting_.begin(); it != waiting_.end();) {
        const SandboxId* id = sandboxOf(it->request.body);
        const bool behind = id != nullptr && passed.contains(*id);
        const std::size_t yielding = yields(*it) ? kYielding : kAnyNumber;
        if (!behind && mayStart(it->request.body, underway, yielding)) {
            Job job = std::move(*it);
            it = waiting_.erase(it);
            if (const Running* begun = start(std::move(job))) {
                underway.push_back({&begun->job.request.body, false, yields(begun->job)});
            }
        } else {
            if (id != nullptr) passed.insert(*id);
            ++it;
        }
    }
}

const Launcher::Running* Launcher::start(Job job) {
    const Time deadline = std::chrono::steady_clock::now() + rulesOf(job.request.body).limit;
    const pid_t parent = ::getpid();
    if (std::holds_alternative<SweepRequest>(job.request.body)) {
        try {
            job.present = sandboxes_->present();
        } catch (const std::exception& e) {
            reply(failureReply(job.request.seq, e));
            return nullptr;
        }
    }
    const pid_t pid = ::fork();
    if (pid < 0) {
        reply(failureReply(job.request.seq, Error(ErrorCode::Unavailable, "cannot fork")));
        return nullptr;
    }
    if (pid == 0) perform(job, parent);
    ::setpgid(pid, pid);  // the child does it too; the order does not matter
    job.fd.reset();
    return &running_.emplace(pid, Running{std::move(job), deadline}).first->second;
}

void Launcher::perform(const Job& job, pid_t parent) {
    int status = 1;
    try {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        ::prctl(PR_SET_NAME, "hearth-op");
        if (rulesOf(job.request.body).behind) background_->enter();
        Reply answer{job.request.seq, Json::object(), {}, {}, {}};
        try {
            answer.result = result(job);
        } catch (const std::exception& e) {
            answer = failureReply(job.request.seq, e);
        }
        reply(job.failed ? *job.failed : answer);
        status = answer.error.empty() ? 0 : kAnsweredFailure;
    } catch (const std::exception& e) {
        static_cast<void>(::write(2, e.what(), std::char_traits<char>::length(e.what())));
    }
    ::_exit(status);
}

Json Launcher::result(const Job& job) {
    const image::ImageStore images(names_.dataDir());
    if (const auto* create = std::get_if<CreateRequest>(&job.request.body)) {
        sandboxes_->create(*create, job.fd.get());
    } else if (const auto* destroy = std::get_if<DestroyRequest>(&job.request.body)) {
        sandboxes_->destroy(destroy->id);
    } else if (const auto* narrow = std::get_if<NarrowRequest>(&job.request.body)) {
        return encodeInUse(sandboxes_->narrow(*narrow));
    } else if (const auto* list = std::get_if<ListRequest>(&job.request.body)) {
        Json items = Json::array();
        bool more = false;
        std::size_t bytes = 0;
        for (const Found& found : sandboxes_->list(*list, more)) {
            Json item = encodeFound(found);
            bytes += dumpJson(item).size();
            if (bytes > kMaxPacket / 2 && !items.empty()) {
                more = true;  // long labels: the rest goes to another page
                break;
            }
            items.push_back(std::move(item));
        }
        return {{"items", std::move(items)}, {"more", more}};
    } else if (const auto* find = std::get_if<FindRequest>(&job.request.body)) {
        const std::optional<Found> found = sandboxes_->find(find->id);
        if (found) return {{"found", encodeFound(*found)}};
    } else if (const auto* sweep = std::get_if<SweepRequest>(&job.request.body)) {
        return encodeLeftovers(sandboxes_->sweep(goneOf(*sweep, job.present, born_)));
    } else if (const auto* prepare_image = std::get_if<PrepareImageRequest>(&job.request.body)) {
        return encodeImage(images.prepare(prepare_image->name));
    } else if (const auto* describe = std::get_if<DescribeImageRequest>(&job.request.body)) {
        return encodeImage(images.find(describe->name));
    } else if (const auto* fetch = std::get_if<FetchImageRequest>(&job.request.body)) {
        return fetchImage(names_.dataDir(), *fetch, job.fd.get());
    } else if (const auto* forget = std::get_if<ForgetImagesRequest>(&job.request.body)) {
        images.forget(forget->wanted);
        images.collect([this] { return treesInUse(options_.instance); });
    } else if (const auto* add = std::get_if<AddLayerRequest>(&job.request.body)) {
        image::LayerStore(names_.layers()).add(add->digest, job.fd.get());
    } else if (const auto* remove = std::get_if<RemoveLayerRequest>(&job.request.body)) {
        image::LayerStore(names_.layers()).remove(remove->digest);
    } else {
        const OciCommand runtime(options_.runtime, names_);
        return hostFacts(runtime, images);
    }
    return Json::object();
}

void Launcher::reap() {
    for (;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, WNOHANG);
        if (pid <= 0) return;
        if (pid == collector_) collector_ = -1;
        const auto found = running_.find(pid);
        if (found == running_.end()) continue;  // an agent, or a process left by a runtime
        Running ended = std::move(found->second);
        running_.erase(found);
        finish(std::move(ended.job), status, ended.killed);
    }
}

void Launcher::finish(Job job, int status, bool killed) {
    const auto* create = std::get_if<CreateRequest>(&job.request.body);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kAnsweredFailure) {
        if (create != nullptr) born_.erase(create->id);
        return;
    }
    Reply failure = failureReply(
        job.request.seq, Error(killed ? ErrorCode::Deadline : ErrorCode::Unavailable,
                               killed ? "the operation took too long" : "the operation broke off"));
    if (create == nullptr || closing_) {
        reply(job.failed ? *job.failed : failure);
        return;
    }
    // Half a sandbox may be there: it is removed before the caller hears of the failure.
    Job clearing;
    clearing.accepted = job.accepted;
    clearing.request = {job.request.seq, DestroyRequest{create->id}};
    clearing.failed = std::move(failure);
    born_.erase(create->id);
    waiting_.push_front(std::move(clearing));
}

void Launcher::killLate() {
    const Time now = std::chrono::steady_clock::now();
    for (auto& [pid, item] : running_) {
        // Nobody waits for an image after the server's end; the next start removes a half-done one.
        const bool idle =
            closing_ && (std::holds_alternative<FetchImageRequest>(item.job.request.body) ||
                         std::holds_alternative<PrepareImageRequest>(item.job.request.body));
        const bool late = item.deadline <= now || (closing_ && *closing_ <= now);
        if (item.killed || !(late || idle)) continue;
        item.killed = true;
        ::kill(-pid, SIGKILL);  // its whole group; not yet reaped, so the number is still its own
    }
}

bool Launcher::yields(const Job& job) const {
    return !hurried_ && rulesOf(job.request.body).behind;
}

void Launcher::hurryLate() {
    const Time now = std::chrono::steady_clock::now();
    const auto late = [&](const Job& job) {
        return rulesOf(job.request.body).behind && now - job.accepted >= kGivesWay;
    };
    hurried_ = closing_ || std::any_of(waiting_.begin(), waiting_.end(), late) ||
               std::any_of(running_.begin(), running_.end(), [&](const auto& item) {
                   return !item.second.killed && late(item.second.job);
               });
    background_->hurry(hurried_);
}

void Launcher::collectImages() {
    const Time now = std::chrono::steady_clock::now();
    if (closing_ || collector_ > 0 || now < collect_at_) return;
    collect_at_ = now + kCollectEvery;
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid != 0) {
        collector_ = pid;  // no collector this time if the fork failed
        return;
    }
    int status = 0;
    try {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        ::prctl(PR_SET_NAME, "hearth-collect");
        image::ImageStore(names_.dataDir()).collect([this] {
            return treesInUse(options_.instance);
        });
    } catch (const std::exception& e) {
        metrics::Log().warn("launcher_collect_failed", {{"error", e.what()}});
        status = 1;
    }
    ::_exit(status);
}

int Launcher::nextTimeout() const {
    std::optional<Time> next = closing_;
    if (!next && collector_ < 0) next = collect_at_;
    const Time now = std::chrono::steady_clock::now();
    const auto earlier = [&next](Time at) {
        if (!next || at < *next) next = at;
    };
    for (const Job& job : waiting_) {
        if (yields(job)) earlier(job.accepted + kGivesWay);
    }
    for (const auto& [pid, item] : running_) {
        if (!item.killed) earlier(item.deadline);
        if (yields(item.job)) earlier(item.job.accepted + kGivesWay);
    }
    if (!next) return -1;
    const auto left = std::chrono::ceil<milliseconds>(*next - now).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 1, 60'000));
}

void Launcher::reply(const Reply& reply) const {
    const std::string packet = encodeReply(reply);
    if (::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET) {
        throwErrno("send");
    }
}

}  // namespace hearth::pool::launcher
