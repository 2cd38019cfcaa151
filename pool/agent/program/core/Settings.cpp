#include "pool/agent/program/core/Settings.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "base/Fd.h"
#include "base/Version.h"
#include "pool/agent/program/core/OomWatch.h"
#include "pool/agent/secure/Handshake.h"

namespace hearth::agent {

namespace {

constexpr const char* kHelp =
    "usage: hearth-agent [--receive PATH | --listen PATH] [--uid N] [--gid N]\n"
    "       hearth-agent [--tcp PORT] --server-key KEY --pod UID --identity FILE\n"
    "       hearth-agent --make-identity FILE PUBLIC\n"
    "       hearth-agent --begin-pod DIR FILE PUBLIC\n"
    "       hearth-agent --open DIR | --relay DIR\n"
    "The program inside a Hearth sandbox. It serves the agent protocol on descriptor 3.\n"
    "  --receive PATH  take the listening socket from who listens at PATH instead\n"
    "  --listen PATH   make the listening socket at PATH (outside a sandbox only)\n"
    "  --tcp PORT      listen on this port of every address\n"
    "  --server-key KEY  serve only who has the other half of this key (64 digits)\n"
    "  --pod UID       the UID of our Pod\n"
    "  --identity FILE  take our own key from FILE, and remove it\n"
    "  --make-identity FILE PUBLIC  make that file, and write the key's public half to PUBLIC\n"
    "  --begin-pod DIR FILE PUBLIC  copy the agent's folder to DIR, and make an identity\n"
    "  --open DIR      make the agent's socket in DIR and give it to one with --receive "
    "DIR/socket\n"
    "  --relay DIR     carry bytes between that agent and standard input and output\n"
    "  --uid N, --gid N  the tenant's identity (default 1000)\n"
    "  --version, --help\n";

/// The agent's own group, where a container runtime mounts the container's view of its group.
constexpr const char* kOwnGroup = "/sys/fs/cgroup";

bool number(std::string_view text, std::int64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

bool isPodUid(std::string_view text) {
    return !text.empty() && text.size() <= secure::kMaxPodUid;
}

const char* env(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

bool haveCapability(unsigned capability) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2] = {};
    if (syscall(SYS_capget, &header, data) != 0) return false;
    return ((data[capability / 32].effective >> (capability % 32)) & 1U) != 0;
}

/// A filter is an array of sock_filter in a file beside the program: /.hearth/tenant.bpf.
bool readFilter(const char* name, std::vector<sock_filter>& filter, bool& absent) {
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    std::string path(self, length > 0 ? static_cast<std::size_t>(length) : 0);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
    path += name;
    struct stat st {};
    absent = stat(path.c_str(), &st) != 0 && errno == ENOENT;
    std::string bytes;
    if (!readFile(path.c_str(), BPF_MAXINSNS * sizeof(sock_filter), bytes)) return false;
    if (bytes.empty() || bytes.size() % sizeof(sock_filter) != 0) return false;
    filter.resize(bytes.size() / sizeof(sock_filter));
    std::memcpy(filter.data(), bytes.data(), bytes.size());
    return true;
}

/// Returns the environment without the variables of Hearth, the container runtime or the cluster.
std::vector<std::string> inheritedEnvironment() {
    constexpr std::array<std::string_view, 6> kOthers{
        "HEARTH_", "KUBERNETES_", "HOME=", "HOSTNAME=", "TERM=", "PWD="};
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        if (std::none_of(kOthers.begin(), kOthers.end(), [text](std::string_view other) {
                return text.substr(0, other.size()) == other;
            })) {
            all.emplace_back(text);
        }
    }
    return all;
}

/// Returns the program's exit status, or -1 to go on.
int readArguments(int argc, char** argv, Settings& s) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view flag = argv[i];
        if (flag == "--version" || flag == "--help") {
            if (flag == "--help") {
                std::fputs(kHelp, stdout);
            } else {
                std::printf("hearth-agent %s\n", kHearthVersion);
            }
            return 0;
        }
        std::int64_t n = 0;
        if (flag == "--listen" && i + 1 < argc) {
            s.listen = argv[++i];
        } else if (flag == "--receive" && i + 1 < argc) {
            s.receive = argv[++i];
        } else if (flag == "--tcp" && i + 1 < argc && number(argv[++i], n) && n > 0 && n < 65'536) {
            s.tcp = static_cast<std::uint16_t>(n);
        } else if (flag == "--server-key" && i + 1 < argc &&
                   (s.server = secure::ServerPublicKey::parse(argv[i + 1]))) {
            ++i;
        } else if (flag == "--pod" && i + 1 < argc && isPodUid(argv[i + 1])) {
            s.pod = argv[++i];
        } else if (flag == "--identity" && i + 1 < argc) {
            s.identity = argv[++i];
        } else if (flag == "--uid" && i + 1 < argc && number(argv[++i], n)) {
            s.uid = static_cast<uid_t>(n);
        } else if (flag == "--gid" && i + 1 < argc && number(argv[++i], n)) {
            s.gid = static_cast<gid_t>(n);
        } else {
            std::fprintf(stderr, "hearth-agent: bad argument %s\n%s", argv[i], kHelp);
            return 2;
        }
    }
    const bool all = s.server && !s.pod.empty() && !s.identity.empty();
    const bool none = !s.server && s.pod.empty() && s.identity.empty() && s.tcp == 0;
    if (!all && !none) {
        std::fputs("hearth-agent: over a network --server-key, --pod and --identity are needed\n",
                   stderr);
        return 2;
    }
    return -1;
}

/// Returns true if the agent may run without a filter.
bool readEnvironment(Settings& s) {
    if (s.server) s.inherited = inheritedEnvironment();
    s.sandbox = env("HEARTH_SANDBOX");
    s.image = env("HEARTH_IMAGE");
    s.layer = env("HEARTH_LAYER");
    s.gpu = env("HEARTH_GPU");
    std::int64_t n = 0;
    if (number(env("HEARTH_CPUS"), n) && n > 0) s.cpus = std::to_string(n);
    if (s.init) {
        s.listen.clear();
        // The server itself reads the group of any other sandbox.
        if (s.server) s.group = kOwnGroup;
        return false;
    }
    if (*env("HEARTH_AGENT_ROOT") != '\0') s.root = env("HEARTH_AGENT_ROOT");
    if (*env("HEARTH_AGENT_RUN") != '\0') s.run = env("HEARTH_AGENT_RUN");
    if (*env("HEARTH_AGENT_LANGUAGES") != '\0') s.languages = env("HEARTH_AGENT_LANGUAGES");
    if (number(env("HEARTH_AGENT_ORPHAN_MS"), n) && n > 0) s.orphan_ms = n;
    if (number(env("HEARTH_AGENT_PROOF_MS"), n) && n > 0) s.proof_ms = n;
    s.outside = env("HEARTH_AGENT_OUTSIDE");
    s.group = env("HEARTH_AGENT_GROUP");
    s.keep_identity = std::string_view(env("HEARTH_AGENT_KEEP_IDENTITY")) == "1";
    return std::string_view(env("HEARTH_AGENT_UNCONFINED")) == "1";
}

}  // namespace

int readSettings(int argc, char** argv, Settings& s) {
    s.init = getpid() == 1;
    if (const int status = readArguments(argc, argv, s); status >= 0) return status;
    const bool unconfined = readEnvironment(s);
    if (geteuid() != 0) s.keep_identity = true;  // one uid for both, as under docker
    if (s.keep_identity) {
        s.uid = geteuid();
        s.gid = getegid();
    }
    if (s.init) s.watch_scores = sinkOomScore(s.oom_own);
    if (s.init && s.keep_identity && !s.oom_own.empty()) {
        s.oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    }
    if (haveCapability(CAP_SETGID)) s.mark = Mark::Group;
    bool absent = false;
    const bool read = readFilter("tenant.bpf", s.filter, absent);
    bool no_zygotes = false;
    readFilter("zygote.bpf", s.zygote_filter, no_zygotes);
    s.confined = !(absent && unconfined);
    if (s.confined && !read)
        std::fputs("hearth-agent: no valid tenant.bpf: nothing will be run\n", stderr);
    return -1;
}

std::string workingDirectory(const Settings& settings, std::string_view cwd) {
    const std::string_view workspace = kWorkspace;
    if (cwd.empty()) return settings.root;
    if (cwd.substr(0, workspace.size()) == workspace &&
        (cwd.size() == workspace.size() || cwd[workspace.size()] == '/')) {
        return settings.root + std::string(cwd.substr(workspace.size()));
    }
    if (cwd.front() == '/') return std::string(cwd);
    return settings.root + "/" + std::string(cwd);
}

bool readFile(const char* path, std::size_t limit, std::string& out) {
    const Fd fd(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat st {};
    if (!fd || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return false;
    char buffer[4096];
    ssize_t n = 0;
    while ((n = read(fd.get(), buffer, sizeof(buffer))) > 0) {
        if (out.size() + static_cast<std::size_t>(n) > limit) return false;
        out.append(buffer, static_cast<std::size_t>(n));
    }
    return n == 0;
}

std::int64_t nowNs() noexcept {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

TenantFiles::TenantFiles(const Settings& settings) noexcept : switched_(!settings.keep_identity) {
    if (!switched_) return;
    setfsgid(settings.gid);
    setfsuid(settings.uid);
}

TenantFiles::~TenantFiles() {
    if (!switched_) return;
    setfsuid(0);
    setfsgid(0);
}

}  // namespace hearth::agent
