#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/Json.h"
#include "controller/egress/ProxyConnection.h"
#include "controller/egress/credentials/AnswerCharset.h"
#include "controller/egress/credentials/KeyringFactory.h"
#include "tests/unit/controller/egress/Outside.h"

// Requests with a credential to a server of the test on loopback, in plain HTTP.

namespace hearth::egress {
namespace {

constexpr const char* kSecret = "hearth-0123456789";

/// A workspace with a credential for one service. The service sends the answer it is given.
struct House {
    House() {
        policy.mode = NetworkMode::Egress;
        policy.lists.emplace_back(std::vector<std::string>{outside.authority()});
        egress.emplace(WorkspaceEgress::Facts{"ws_1", "default", "p"}, policy, EgressLimits{}, log,
                       metrics, clock, tracer);
        std::vector<FieldError> errors;
        Credential credential = readCredential(
            Json{{"host", outside.authority()}, {"scheme", "http"}, {"value", kSecret}},
            CredentialSource::Claim, "/c", errors);
        REQUIRE(errors.empty());
        keyring = keyrings.make({}, {credential}).keyring;
    }

    std::string ask(const std::string& head, const std::string& reply) {
        {
            const std::lock_guard lock(mutex);
            answer = reply;
        }
        const ProxyFacts facts{.egress = *egress,
                               .dialer = dialer,
                               .keyring = keyring.get(),
                               .ca_file = {},
                               .clock = clock};
        int pair[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
        const Fd tenant(pair[0]);
        std::thread server([&, end = Fd(pair[1])] {
            ProxyConnection(end.get(), facts, [] {}).run();
            ::shutdown(end.get(), SHUT_RDWR);
        });
        say(tenant.get(), "GET http://" + outside.authority() +
                              "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + head + "\r\n");
        const std::string out = receiveUntil(tenant.get(), "\x01never");
        server.join();
        return out;
    }
    std::string decision() const { return egress->report().latest.at(0).decision; }

    std::mutex mutex;
    std::string seen;
    std::string answer;
    Outside outside{[this](int fd) {
        const std::string head = receiveUntil(fd, "\r\n\r\n");
        std::string reply;
        {
            const std::lock_guard lock(mutex);
            seen = head;
            reply = answer;
        }
        say(fd, reply);
    }};
    metrics::Log log{-1};
    metrics::Metrics metrics;
    metrics::Tracer tracer;
    SystemClock clock;
    const KeyringFactory keyrings{""};
    const Dialer dialer{DenySet({}, parseRanges({"127.0.0.0/8"}, "exempt"))};
    NetworkPolicy policy;
    std::optional<WorkspaceEgress> egress;
    std::shared_ptr<const Keyring> keyring;
};

std::string plain(const std::string& body, const std::string& fields = "") {
    return "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

}  // namespace

TEST_CASE("a request with credentials asks for no charset", "[unit][egress]") {
    House house;
    const std::string got = house.ask(
        "Accept: text/html;charset=utf-16;q=0.5, */*;q=0.1\r\nAccept-Charset: utf-16\r\n"
        "accept_charset: utf-7\r\nAccept_Encoding: gzip\r\nX-Kept: 1\r\n",
        plain("ok"));
    CHECK(got.ends_with("\r\n\r\nok"));
    CHECK(house.seen.find("Authorization: Bearer hearth-0123456789\r\n") != std::string::npos);
    CHECK(house.seen.find("Accept: text/html;q=0.5, */*;q=0.1\r\n") != std::string::npos);
    CHECK(toLower(house.seen).find("charset") == std::string::npos);
    CHECK(house.seen.find("gzip") == std::string::npos);
    CHECK(house.seen.find("X-Kept: 1\r\n") != std::string::npos);
    house.ask("Accept: text/html;x=\"charset=utf-16\r\n", plain("ok"));
    CHECK(house.seen.find("Accept:") == std::string::npos);
}

TEST_CASE("an answer in a charset that is no superset of ASCII is refused with the reason",
          "[unit][egress]") {
    House house;
    using namespace std::string_literals;
    const std::string body = "h\0e\0a\0r\0t\0h\0"s;
    for (const std::string type :
         {"text/plain; charset=utf-16", "text/plain;CHARSET=\"UTF-16LE\"",
          "text/plain; charset=utf-8; charset=ibm037", "text/plain; charset=utf-7",
          "application/json; charset=UTF-32", "text/plain; charset=iso-2022-jp",
          "text/plain; charset=hz-gb-2312", "text/plain; charset=shift_jis",
          "text/plain; charset*=utf-8''utf-16", "text/plain; charset=\"utf-8",
          "text/plain; charset", "text/plain; charset=", "text/plain; x=\"a\", charset=utf-16",
          "text/plain; charset=utf-8, text/plain; charset=utf-16"}) {
        INFO(type);
        const std::string got = house.ask("", plain(body, "Content-Type: " + type + "\r\n"));
        CHECK(got.starts_with("HTTP/1.1 502 "));
        CHECK(got.find("charset") != std::string::npos);
        CHECK(got.find("Connection: close") != std::string::npos);
        CHECK(house.decision() == "charset");
    }
    for (const std::string type :
         {"text/plain", "text/plain; charset=utf-8", "text/html; charset='UTF8'",
          "text/plain;charset=\"ISO-8859-15\"", "text/plain; charset=windows-1252",
          "text/plain; charset=us-ascii", "text/plain; charset=GB18030",
          "text/plain; charset=EUC-KR", "application/octet-stream; charset=binary",
          "text/plain; charset=utf-8; charset=utf-8"}) {
        INFO(type);
        const std::string got = house.ask("", plain("fine", "Content-Type: " + type + "\r\n"));
        CHECK(got.ends_with("\r\n\r\nfine"));
        CHECK(house.decision() == "allowed");
    }
    for (const std::string& begins : {"\xFF\xFEh\0"s, "\xFE\xFF\0h"s, "\0\0\xFE\xFF"s, "\xFF\xFE"s,
                                      "\x4C\x6F\xA7\x94"s, "+/v8AGg"s}) {
        const std::string got = house.ask("", plain(begins, "Content-Type: text/plain\r\n"));
        CHECK(got.starts_with("HTTP/1.1 502 "));
        CHECK(house.decision() == "charset");
    }
    const std::string got = house.ask("", plain("\xEF\xBB\xBF{}"));
    CHECK(got.ends_with("\xEF\xBB\xBF{}"));
    CHECK(house.ask("", plain("")).find("Content-Length: 0") != std::string::npos);
}

TEST_CASE("a head whose fields go on in a second line is refused", "[unit][egress]") {
    House house;
    const std::string secret(kSecret);
    for (const std::string blank : {" ", "\t"}) {
        const std::string got =
            house.ask("", "HTTP/1.1 200 OK\r\nX-Token: " + secret.substr(0, 9) + "\r\n" + blank +
                              secret.substr(9) + "\r\nContent-Length: 0\r\n\r\n");
        CHECK(got.starts_with("HTTP/1.1 502 "));
        CHECK(got.find(secret.substr(0, 9)) == std::string::npos);
        CHECK(house.decision() == "folded");
    }
}

TEST_CASE("status 101 is refused, and other interim answers are skipped", "[unit][egress]") {
    House house;
    const std::string switched = house.ask(
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" +
            std::string(kSecret));
    CHECK(switched.starts_with("HTTP/1.1 502 "));
    CHECK(switched.find("another protocol") != std::string::npos);
    CHECK(switched.find("Connection: close") != std::string::npos);
    CHECK(switched.find(kSecret) == std::string::npos);
    CHECK(house.decision() == "switched");
    const std::string early = house.ask("",
                                        "HTTP/1.1 100 Continue\r\nX-Seen: hearth-0123456789\r\n\r\n"
                                        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" +
                                            plain("hearth-0123456789"));
    CHECK(early.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(early.find("Link") == std::string::npos);
    CHECK(early.ends_with("\r\n\r\n*****************"));
    // An endless series of them is not followed for ever.
    std::string endless;
    for (int i = 0; i < 4'000; ++i) endless += "HTTP/1.1 102 Processing\r\n\r\n";
    CHECK(house.ask("", endless + plain("x")).starts_with("HTTP/1.1 502 "));
}

namespace {

/// A service that stops in the middle of its answer until the test resumes it, and a tenant that
/// has sent it a request with a credential.
class StoppedAnswer {
public:
    StoppedAnswer(std::string first, std::string second)
        : service_([this, first = std::move(first), second = std::move(second)](int fd) {
              receiveUntil(fd, "\r\n\r\n");
              say(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n" + first);
              char byte = 0;
              static_cast<void>(::recv(waits_.get(), &byte, 1, 0));
              say(fd, second);
              ::shutdown(fd, SHUT_RDWR);
          }) {
        policy_.mode = NetworkMode::Egress;
        policy_.lists.emplace_back(std::vector<std::string>{service_.authority()});
        egress_.emplace(WorkspaceEgress::Facts{"ws_1", "default", "p"}, policy_, EgressLimits{},
                        house_.log, house_.metrics, house_.clock, house_.tracer);
        std::vector<FieldError> errors;
        keyring_ = house_.keyrings
                       .make({}, {readCredential(Json{{"host", service_.authority()},
                                                      {"scheme", "http"},
                                                      {"value", kSecret}},
                                                 CredentialSource::Claim, "/c", errors)})
                       .keyring;
        auto [ours, theirs] = pair();
        constexpr int kLittle = 4'096;  // so that the proxy soon waits for the tenant to read
        ::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &kLittle, sizeof(kLittle));
        tenant = std::move(ours);
        proxy_ = std::thread([this, end = std::move(theirs)] {
            const ProxyFacts facts{.egress = *egress_,
                                   .dialer = house_.dialer,
                                   .keyring = keyring_.get(),
                                   .ca_file = {},
                                   .clock = house_.clock};
            ProxyConnection(end.get(), facts, [] {}).run();
            ::shutdown(end.get(), SHUT_RDWR);
        });
        say(tenant.get(), "GET http://" + service_.authority() + "/ HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    ~StoppedAnswer() {
        goOn();
        ::shutdown(tenant.get(), SHUT_RDWR);
        proxy_.join();
    }
    void goOn() { say(goes_on_.get(), "x"); }

    Fd tenant;

private:
    static std::pair<Fd, Fd> pair() {
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        return {Fd(ends[0]), Fd(ends[1])};
    }

    std::pair<Fd, Fd> signal_ = pair();
    const Fd& waits_ = signal_.first;
    const Fd& goes_on_ = signal_.second;
    House house_;
    NetworkPolicy policy_;
    std::optional<WorkspaceEgress> egress_;
    std::shared_ptr<const Keyring> keyring_;
    std::thread proxy_;
    Outside service_;
};

}  // namespace

TEST_CASE("a line without a successor is forwarded before the next line comes", "[unit][egress]") {
    StoppedAnswer answer("{\"n\": 1}\n", "{\"n\": 2}\n");
    CHECK(receiveUntil(answer.tenant.get(), "1}\n").find("{\"n\": 1}\n") != std::string::npos);
    answer.goOn();
    CHECK(receiveUntil(answer.tenant.get(), "2}\n").find("{\"n\": 2}\n") != std::string::npos);
}

TEST_CASE("a tenant that does not read does not count as a pause of the service",
          "[unit][egress]") {
    const std::string secret = kSecret;
    // More than the tenant's socket holds, then lines. One line ends inside the secret.
    const std::string filler(10'000, '#');
    const std::string more = secret.substr(10) + "\n";
    bool masked = false;
    for (int turn = 0; turn < 5 && !masked; ++turn) {  // a delay of the test is a pause, too
        StoppedAnswer answer(filler + "END\n\n" + secret.substr(0, 10) + "\n", more);
        const std::string head = receiveUntil(answer.tenant.get(), "\r\n\r\n");
        ::poll(nullptr, 0, 1'300);  // a silence takes real time
        std::string all = receiveUntil(answer.tenant.get(), "END\n\n");
        pollfd entry{answer.tenant.get(), POLLIN, 0};
        ::poll(&entry, 1, 100);
        answer.goOn();
        all += receiveUntil(answer.tenant.get(), "\x01never");
        CHECK(all.find(secret.substr(10)) == std::string::npos);
        masked = all.find(secret.substr(0, 10)) == std::string::npos;
    }
    CHECK(masked);
}

}  // namespace hearth::egress
