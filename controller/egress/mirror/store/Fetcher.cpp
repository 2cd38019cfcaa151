#include "controller/egress/mirror/store/Fetcher.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/Error.h"
#include "base/Version.h"
#include "base/http/Url.h"
#include "controller/egress/policy/NetworkPolicy.h"
#include "controller/egress/policy/Refused.h"
#include "controller/egress/transport/Curl.h"

namespace hearth::egress {
namespace {

constexpr int kMostRedirects = 5;
constexpr long kStallSeconds = 30;
constexpr std::size_t kMostIdle = 16;
constexpr long kOk = 200;
/// A failure is reported for this long: an index without later requests may work again.
constexpr auto kToldFor = std::chrono::minutes(10);

struct Url {
    Url() : handle(::curl_url()) {}
    Url(const Url&) = delete;
    Url& operator=(const Url&) = delete;
    ~Url() { ::curl_url_cleanup(handle); }
    bool set(const std::string& text) const {
        return ::curl_url_set(handle, CURLUPART_URL, text.c_str(), 0) == CURLUE_OK;
    }
    std::string part(CURLUPart what, unsigned flags = 0) const {
        char* text = nullptr;
        if (::curl_url_get(handle, what, &text, flags) != CURLUE_OK) return {};
        std::string out(text);
        ::curl_free(text);
        return out;
    }
    CURLU* handle;
};

/// True if the index works: "not found" is an answer, too.
bool serves(long status) {
    return (status >= 200 && status < 400) || status == 404 || status == 410;
}

bool isRedirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

/// One request in progress; libcurl's callbacks run in the calling thread.
struct Fetcher::Transfer {
    const Fetcher& fetcher;
    const Begun& begun;
    const Chunk& chunk;
    std::uint64_t max_bytes;
    bool trusted;
    FetchAnswer answer;
    std::string location;
    std::uint64_t received = 0;
    bool told = false;
    bool denied = false;
    bool too_much = false;
    std::exception_ptr thrown;

    static curl_socket_t openSocket(void* self, curlsocktype, curl_sockaddr* to) {
        auto& transfer = *static_cast<Transfer*>(self);
        const std::optional<IpAddress> address = IpAddress::of(to->addr);
        if (!transfer.trusted && (!address || transfer.fetcher.deny_.denies(*address))) {
            transfer.denied = true;
            return CURL_SOCKET_BAD;
        }
        return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    }

    /// Called by libcurl several times a second.
    static int progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
        return static_cast<Transfer*>(self)->fetcher.stopped_ ? 1 : 0;
    }

    static std::size_t header(char* bytes, std::size_t size, std::size_t count, void* self) {
        auto& transfer = *static_cast<Transfer*>(self);
        const std::string_view line = headLine(bytes, size * count);
        if (line.starts_with("HTTP/")) {  // the head of an interim answer may come first
            transfer.answer = {};
            transfer.location.clear();
        }
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return size * count;
        const std::string_view name = line.substr(0, colon);
        const std::string_view value = trim(line.substr(colon + 1));
        if (equalsIgnoreCase(name, "Content-Type")) transfer.answer.content_type = value;
        if (equalsIgnoreCase(name, "ETag")) transfer.answer.etag = value;
        if (equalsIgnoreCase(name, "Location")) transfer.location = value;
        return size * count;
    }

    static std::size_t body(char* bytes, std::size_t size, std::size_t count, void* self) {
        auto& transfer = *static_cast<Transfer*>(self);
        const std::size_t length = size * count;
        try {
            return transfer.take({bytes, length}) ? length : 0;
        } catch (...) {  // nothing may be thrown through C code
            transfer.thrown = std::current_exception();
            return 0;
        }
    }

    bool take(std::string_view bytes) {
        if (status() != kOk) return true;
        tell();
        received += bytes.size();
        too_much = received > max_bytes;
        return !too_much && chunk(bytes);
    }

    /// Reports the head when the body begins, or at the end of an empty body.
    void tell() {
        if (std::exchange(told, true)) return;
        curl_off_t length = -1;
        ::curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length >= 0) answer.length = static_cast<std::uint64_t>(length);
        answer.status = static_cast<int>(status());
        begun(answer);
    }

    long status() const {
        long code = 0;
        ::curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
        return code;
    }
    CURL* curl = nullptr;
};

Fetcher::Fetcher(DenySet deny, std::vector<std::string> trusted, std::vector<std::string> indexes,
                 const Clock& clock)
    : deny_(std::move(deny)),
      trusted_(std::move(trusted)),
      indexes_(std::move(indexes)),
      clock_(clock) {
    initialiseCurl();
}

Fetcher::~Fetcher() = default;

std::unique_ptr<CurlHandle> Fetcher::take() {
    {
        const MutexLock lock(mutex_);
        if (!idle_.empty()) {
            std::unique_ptr<CurlHandle> handle = std::move(idle_.back());
            idle_.pop_back();
            return handle;
        }
    }
    return std::make_unique<CurlHandle>();
}

void Fetcher::remember(const std::string& url, std::string why) {
    const auto of_url = [&](const std::string& index) { return url.starts_with(index); };
    const auto index = std::find_if(indexes_.begin(), indexes_.end(), of_url);
    if (index == indexes_.end()) return;
    const MutexLock lock(mutex_);
    if (why.empty()) {
        failing_.erase(*index);
        return;
    }
    Failing& failing = failing_[*index];
    failing.why = std::move(why);
    ++failing.times;
    failing.last = clock_.now();
}

std::string Fetcher::failureOf(const std::string& index) const {
    const MutexLock lock(mutex_);
    const auto found = failing_.find(index);
    if (found == failing_.end()) return {};
    const Failing& failing = found->second;
    // A single failure may be caused by one odd name in a request.
    if (failing.times < 2 || clock_.now() - failing.last > kToldFor) return {};
    return failing.why;
}

void Fetcher::giveBack(std::unique_ptr<CurlHandle> handle) {
    handle->reset();
    const MutexLock lock(mutex_);
    if (idle_.size() < kMostIdle) idle_.push_back(std::move(handle));
}

void Fetcher::logIn(CurlHandle& handle, const std::string& url) const {
    const Url there;
    if (!there.set(url) || !there.part(CURLUPART_USER).empty()) return;
    for (const std::string& each : indexes_) {
        const Url index;
        if (!index.set(each) || index.part(CURLUPART_USER).empty() ||
            index.part(CURLUPART_SCHEME) != there.part(CURLUPART_SCHEME) ||
            hostAndPort(each) != hostAndPort(url)) {
            continue;
        }
        handle.set(CURLOPT_USERNAME, index.part(CURLUPART_USER, CURLU_URLDECODE).c_str());
        handle.set(CURLOPT_PASSWORD, index.part(CURLUPART_PASSWORD, CURLU_URLDECODE).c_str());
        return;
    }
}

FetchAnswer Fetcher::once(const FetchRequest& request, const std::string& url,
                          std::string& location, const Begun& begun, const Chunk& chunk) {
    const std::optional<std::string> host = hostAndPort(url);
    if (!host) throw Refused(kBadGateway, "bad_url", "the index names something that is not a URL");
    const bool trusted = std::find(trusted_.begin(), trusted_.end(), *host) != trusted_.end();
    std::unique_ptr<CurlHandle> handle = take();
    CURL* const curl = handle->get();
    Transfer transfer{*this, begun, chunk, request.max_bytes, trusted, {}, {}, 0,
                      false, false, false, nullptr,           curl};
    CurlList headers;
    for (const std::string& header : request.headers) headers.add(header);
    handle->set(CURLOPT_URL, url.c_str());
    handle->set(CURLOPT_NOBODY, request.head ? 1L : 0L);
    logIn(*handle, url);
    handle->set(CURLOPT_PROTOCOLS_STR, "http,https");
    handle->set(CURLOPT_PROXY, "");  // the connection must go to the address that is checked
    handle->set(CURLOPT_NOSIGNAL, 1L);
    handle->set(CURLOPT_FOLLOWLOCATION, 0L);
    handle->set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    handle->set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    handle->set(CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    handle->set(CURLOPT_USERAGENT, (std::string("hearth/") + kHearthVersion).c_str());
    handle->set(CURLOPT_HTTPHEADER, headers.get());
    handle->set(CURLOPT_OPENSOCKETFUNCTION, &Transfer::openSocket);
    handle->set(CURLOPT_OPENSOCKETDATA, &transfer);
    handle->set(CURLOPT_NOPROGRESS, 0L);
    handle->set(CURLOPT_XFERINFOFUNCTION, &Transfer::progress);
    handle->set(CURLOPT_XFERINFODATA, &transfer);
    handle->set(CURLOPT_HEADERFUNCTION, &Transfer::header);
    handle->set(CURLOPT_HEADERDATA, &transfer);
    handle->set(CURLOPT_WRITEFUNCTION, &Transfer::body);
    handle->set(CURLOPT_WRITEDATA, &transfer);
    const CURLcode result = ::curl_easy_perform(curl);
    if (transfer.thrown) std::rethrow_exception(transfer.thrown);
    if (transfer.denied) {
        throw Refused(kBadGateway, "denied_address",
                      "the index points to an address that is denied; an operator may name its "
                      "host in mirrors.hosts");
    }
    if (transfer.too_much) {
        throw Refused(kBadGateway, "too_large", "the index sends more than the mirror accepts");
    }
    if (result != CURLE_OK) {
        const std::string why =
            std::string("the index is unreachable: ") + ::curl_easy_strerror(result);
        const bool ours = result == CURLE_ABORTED_BY_CALLBACK || result == CURLE_WRITE_ERROR;
        if (!ours) remember(url, why);
        throw Refused(kBadGateway, "index_unreachable", why);
    }
    const long status = transfer.status();
    remember(url, serves(status) ? "" : "the index answers " + std::to_string(status));
    if (transfer.status() == kOk) transfer.tell();
    transfer.answer.status = static_cast<int>(transfer.status());
    transfer.answer.url = url;
    location = transfer.location;
    FetchAnswer answer = std::move(transfer.answer);
    giveBack(std::move(handle));
    return answer;
}

FetchAnswer Fetcher::get(const FetchRequest& request, const Begun& begun, const Chunk& chunk) {
    std::string url = request.url;
    for (int i = 0; i <= kMostRedirects; ++i) {
        std::string location;
        FetchAnswer answer = once(request, url, location, begun, chunk);
        if (!isRedirect(answer.status) || location.empty()) return answer;
        const std::optional<std::string> next = resolveUrl(url, location);
        const bool weaker = next && url.starts_with("https:") && !next->starts_with("https:");
        if (!next || weaker) {
            throw Refused(kBadGateway, "bad_redirect", "the index redirects to an unusable URL");
        }
        url = *next;
    }
    throw Refused(kBadGateway, "bad_redirect", "the index redirects without end");
}

std::pair<FetchAnswer, std::string> Fetcher::text(const FetchRequest& request) {
    std::string body;
    FetchAnswer answer = get(
        request, [](const FetchAnswer&) {},
        [&](std::string_view bytes) {
            body.append(bytes);
            return true;
        });
    return {std::move(answer), std::move(body)};
}

Json parsePage(const std::string& body) {
    constexpr JsonLimits kPage{
        .bytes = 64U << 20U, .depth = 32, .values = 4'000'000, .members = 100'000};
    try {
        return parseJson(body, kPage);
    } catch (const Error& e) {
        throw Refused(kBadGateway, "bad_index", std::string("the index's page: ") + e.what());
    }
}

std::optional<std::string> resolveUrl(const std::string& base, const std::string& reference) {
    initialiseCurl();
    const Url url;
    if (!url.set(base) || !url.set(reference)) return std::nullopt;
    const std::string scheme = url.part(CURLUPART_SCHEME);
    if (scheme != "http" && scheme != "https") return std::nullopt;
    // Only the operator decides which host receives a login, never an index.
    if (!url.part(CURLUPART_USER).empty() && url.part(CURLUPART_HOST) != [&] {
            const Url from;
            from.set(base);
            return from.part(CURLUPART_HOST);
        }()) {
        return std::nullopt;
    }
    ::curl_url_set(url.handle, CURLUPART_FRAGMENT, nullptr, 0);
    return url.part(CURLUPART_URL);
}

std::optional<std::string> hostAndPort(const std::string& url) {
    initialiseCurl();
    const Url parsed;
    if (!parsed.set(url)) return std::nullopt;
    const std::string host = parsed.part(CURLUPART_HOST);
    const std::string port = parsed.part(CURLUPART_PORT, CURLU_DEFAULT_PORT);
    if (host.empty() || port.empty()) return std::nullopt;
    const std::optional<Destination> there = Destination::parse(host + ":" + port, 0);
    return there ? std::optional(there->text()) : std::nullopt;
}

}  // namespace hearth::egress
