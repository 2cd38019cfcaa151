#include "pool/runtime/kubernetes/client/ClusterAccess.h"

#include <fstream>
#include <iterator>

#include "base/Version.h"
#include "base/http/Url.h"
#include "base/http/client/ServerUrl.h"

namespace hearth::pool::kubernetes {
namespace {

constexpr std::chrono::minutes kOldest{1};
constexpr std::chrono::seconds kConnectTimeout{5};
constexpr std::chrono::seconds kDeadPeer{30};
/// An unpaged list may be large: 10,000 Pods are about 100 MiB.
constexpr std::size_t kMostBody = 512U << 20U;

std::string contents(const CredentialSource& source) {
    if (source.file.empty()) return source.text;
    std::ifstream in(source.file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.good() && !in.eof()) text.clear();
    if (text.empty()) {
        throw Error(ErrorCode::InvalidArgument, source.file + " is missing or empty")
            .hint("the API server's credentials are read from it");
    }
    return text;
}

std::string oneLine(const std::string& text) {
    const std::size_t last = text.find_last_not_of(" \t\r\n");
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string::npos) return {};
    return text.substr(first, last - first + 1);
}

}  // namespace

bool ClusterAccess::Read::sameTls(const Read& other) const {
    return authority == other.authority && certificate == other.certificate && key == other.key;
}

ClusterAccess::ClusterAccess(ClusterConfig config, const Clock& clock)
    : config_(std::move(config)), tls_(config_.url.starts_with("https://")), clock_(clock) {
    const http::ServerUrl url = http::ServerUrl::parse(config_.url);
    if (!tls_ && !config_.token.empty() && url.socket.empty() && !http::isLoopbackHost(url.host)) {
        throw Error(ErrorCode::InvalidArgument, "a token would be sent in clear to " + config_.url)
            .hint("write the API server's URL with https://");
    }
    Read read = readAll();
    std::shared_ptr<const http::TlsContext> context;
    if (tls_) {
        context = std::make_shared<const http::TlsContext>(
            http::TlsContext::Pem{read.authority, read.certificate, read.key});
    }
    const MutexLock lock(mutex_);
    take(std::move(read), std::move(context));
}

ClusterAccess::Read ClusterAccess::readAll() const {
    return {contents(config_.authority), contents(config_.certificate), contents(config_.key),
            oneLine(contents(config_.token))};
}

void ClusterAccess::take(Read read, std::shared_ptr<const http::TlsContext> tls) {
    if (tls) {
        credentials_.tls = std::move(tls);
        ++credentials_.tls_version;
    }
    credentials_.authorization = read.token.empty() ? "" : "Bearer " + read.token;
    ++credentials_.version;
    read_ = std::move(read);
    read_at_ = clock_.now();
}

void ClusterAccess::reread() {
    Read before;
    {
        const MutexLock lock(mutex_);
        before = read_;
        read_at_ = clock_.now();  // other threads continue with the present values
    }
    try {
        Read read = readAll();
        const bool same_tls = read.sameTls(before);
        if (same_tls && read.token == before.token) return;
        std::shared_ptr<const http::TlsContext> context;
        if (tls_ && !same_tls) {
            context = std::make_shared<const http::TlsContext>(
                http::TlsContext::Pem{read.authority, read.certificate, read.key});
        }
        const MutexLock lock(mutex_);
        take(std::move(read), std::move(context));
    } catch (const Error&) {
        // A file may be half written or missing for a moment. The next minute reads it again, and
        // if the old credentials have expired, the API server answers 401.
    }
}

ClusterCredentials ClusterAccess::credentials() {
    bool old = false;
    {
        const MutexLock lock(mutex_);
        old = clock_.now() - read_at_ >= kOldest;
    }
    if (old) reread();
    const MutexLock lock(mutex_);
    return credentials_;
}

bool ClusterAccess::refused(const ClusterCredentials& used) {
    {
        const MutexLock lock(mutex_);
        if (credentials_.version != used.version) return true;  // another thread has read them
    }
    reread();
    const MutexLock lock(mutex_);
    return credentials_.version != used.version;
}

http::ClientOptions ClusterAccess::clientOptions(const ClusterCredentials& credentials) const {
    http::ClientOptions options;
    options.connect_timeout = kConnectTimeout;
    options.headers = {{"User-Agent", std::string("hearth/") + kHearthVersion},
                       {"Accept", "application/json"}};
    options.tls = credentials.tls;
    options.proxies = {.http = config_.proxy, .https = config_.proxy, .except = {}};
    options.dead_peer = kDeadPeer;
    options.max_body = kMostBody;
    return options;
}

}  // namespace hearth::pool::kubernetes
