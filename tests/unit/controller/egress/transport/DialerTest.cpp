#include <arpa/inet.h>
#include <netinet/in.h>

#include <catch2/catch.hpp>
#include <random>

#include "base/Error.h"
#include "controller/egress/policy/Refused.h"
#include "controller/egress/transport/Dialer.h"

// The targets that sandboxes may reach; an operator's permission opens nothing that is denied.

namespace hearth::egress {
namespace {

IpAddress address(const std::string& text) {
    const auto parsed = IpAddress::parse(text);
    REQUIRE(parsed);
    return *parsed;
}

/// Resolves names to the test's addresses. Nothing leaves the machine.
class ScriptedDialer final : public Dialer {
public:
    explicit ScriptedDialer(std::vector<std::string> answers, DenySet deny = {})
        : Dialer(std::move(deny)), answers_(std::move(answers)) {}
    mutable int asked = 0;

protected:
    std::vector<IpAddress> resolve(const std::string&) const override {
        ++asked;
        std::vector<IpAddress> out;
        for (const std::string& text : answers_) out.push_back(address(text));
        return out;
    }

private:
    std::vector<std::string> answers_;
};

NetworkPolicy egress(const std::vector<std::string>& allow) {
    NetworkPolicy policy;
    policy.mode = NetworkMode::Egress;
    policy.lists.emplace_back(allow);
    return policy;
}

std::string refusal(const Dialer& dialer, const NetworkPolicy& policy, const std::string& to) {
    const auto destination = Destination::parse(to, 80);
    if (!destination) return "bad_destination";
    try {
        dialer.permitted(policy, *destination);
        return "";
    } catch (const Refused& e) {
        return e.reason();
    }
}

const std::vector<std::string> kDenied{"0.0.0.0",
                                       "10.0.0.1",
                                       "10.255.255.255",
                                       "100.64.0.1",
                                       "100.100.100.200",
                                       "127.0.0.1",
                                       "127.255.0.3",
                                       "169.254.169.254",
                                       "169.254.170.2",
                                       "172.16.0.1",
                                       "172.31.255.254",
                                       "192.0.0.192",
                                       "192.0.2.1",
                                       "192.168.1.1",
                                       "198.18.0.1",
                                       "198.51.100.7",
                                       "203.0.113.9",
                                       "224.0.0.1",
                                       "239.255.255.255",
                                       "240.0.0.1",
                                       "255.255.255.255",
                                       "168.63.129.16",
                                       "::",
                                       "::1",
                                       "::ffff:127.0.0.1",
                                       "::ffff:10.0.0.1",
                                       "::127.0.0.1",
                                       "64:ff9b::7f00:1",
                                       "64:ff9b:1::a00:1",
                                       "2002:7f00:1::",
                                       "2002:a00:1::1",
                                       "2001::1",
                                       "2001:db8::1",
                                       "fe80::1",
                                       "fc00::1",
                                       "fd00:ec2::254",
                                       "ff02::1",
                                       "100::1",
                                       "fec0::1",
                                       "5f00::1"};

}  // namespace

TEST_CASE("an address outside the public Internet is denied in every spelling", "[unit][egress]") {
    const DenySet deny;
    for (const std::string& text : kDenied) {
        INFO(text);
        CHECK(deny.denies(address(text)));
    }
    for (const char* text : {"8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "192.167.1.1",
                             "100.128.0.1", "2606:4700:4700::1111", "2a00:1450::1"}) {
        INFO(text);
        CHECK_FALSE(deny.denies(address(text)));
    }
    // A mapped address equals its IPv4 address.
    CHECK(address("::ffff:8.8.8.8") == address("8.8.8.8"));
}

TEST_CASE("a host is a name or an address in its usual spelling, and nothing else",
          "[unit][egress]") {
    for (const char* odd : {"127.1",
                            "2130706433",
                            "0x7f000001",
                            "0x7f.0.0.1",
                            "0177.0.0.1",
                            "017700000001",
                            "127.0.0.1.",
                            "127.0.0.01",
                            "1.2.3.4.5",
                            "[127.0.0.1]",
                            "[::1",
                            "::1]",
                            "::1",
                            "[fe80::1%25eth0]",
                            "[fe80::1%eth0]",
                            "example.com:0",
                            "example.com:65536",
                            "example.com:",
                            "example.com:80:90",
                            "exa mple.com",
                            "example..com",
                            ".example.com",
                            "-x.example",
                            "user@example.com",
                            "example.com/path",
                            "ex\xC3\xA4mple.com",
                            "",
                            ":80",
                            "[::ffff:127.0.0.1",
                            "localhost:8o",
                            "a.0x7f",
                            "1.2.3.0x4"}) {
        INFO(odd);
        CHECK_FALSE(Destination::parse(odd, 80).has_value());
    }
    CHECK(Destination::parse("EXAMPLE.com.", 443)->text() == "example.com:443");
    CHECK(Destination::parse("example.com:8443", 443)->port == 8443);
    CHECK(Destination::parse("[2001:4860::1]:80", 443)->text() == "[2001:4860::1]:80");
    CHECK(Destination::parse("[::ffff:8.8.8.8]", 80)->text() == "8.8.8.8:80");
    CHECK(Destination::parse("8.8.8.8", 80)->literal == IpAddress::parse("8.8.8.8"));
}

TEST_CASE("an allow-list allows what it names, and its ports", "[unit][egress]") {
    const AllowList list({"api.example.com", "*.data.example:8443", "203.0.114.0/24:80"});
    const auto allows = [&](const std::string& to) {
        return list.allows(*Destination::parse(to, 443));
    };
    CHECK(allows("api.example.com"));
    CHECK(allows("API.Example.com.:80"));
    CHECK_FALSE(allows("api.example.com:8080"));
    CHECK_FALSE(allows("evil-api.example.com"));
    CHECK_FALSE(allows("api.example.com.evil.org"));
    CHECK(allows("a.b.data.example:8443"));
    CHECK_FALSE(allows("data.example:8443"));
    CHECK_FALSE(allows("evildata.example:8443"));
    CHECK(allows("203.0.114.77:80"));
    CHECK_FALSE(allows("203.0.114.77:443"));
    CHECK_FALSE(allows("203.0.115.77:80"));
    for (const char* wrong : {"", "http://x.example", "x.example/path", "*", "*.", "a*.example",
                              "10.0.0.0/33", "x.example:0", "[::1", "127.1"}) {
        INFO(wrong);
        CHECK(AllowList::wrong(wrong).has_value() == (std::string(wrong) != "*"));
    }
}

TEST_CASE("only the mode Egress with a matching allow-list lets a request out", "[unit][egress]") {
    const ScriptedDialer dialer({"8.8.8.8"});
    NetworkPolicy policy = egress({"*"});
    CHECK(refusal(dialer, policy, "example.com").empty());
    policy.mode = NetworkMode::Mirror;
    CHECK(refusal(dialer, policy, "example.com") == "not_allowed");
    policy.mode = NetworkMode::None;
    CHECK(refusal(dialer, policy, "example.com") == "not_allowed");
    policy = {};
    policy.mode = NetworkMode::Egress;
    CHECK(refusal(dialer, policy, "example.com") == "not_allowed");
    // The claim's own list narrows the pool's.
    policy = egress({"*.example.com"});
    policy.lists.emplace_back(std::vector<std::string>{"api.example.com", "evil.org"});
    CHECK(refusal(dialer, policy, "api.example.com").empty());
    CHECK(refusal(dialer, policy, "www.example.com") == "not_allowed");
    CHECK(refusal(dialer, policy, "evil.org") == "not_allowed");
}

TEST_CASE("a name that is not allowed is never resolved", "[unit][egress]") {
    const ScriptedDialer dialer({"8.8.8.8"});
    CHECK(refusal(dialer, egress({"api.example.com"}), "secret-0123.canary.example") ==
          "not_allowed");
    CHECK(dialer.asked == 0);
}

TEST_CASE("a name that resolves to a denied address is refused, alone or among others",
          "[unit][egress]") {
    for (const std::string& text : kDenied) {
        INFO(text);
        CHECK(refusal(ScriptedDialer({text}), egress({"*"}), "rebind.example") == "denied_address");
        CHECK(refusal(ScriptedDialer({"8.8.8.8", text}), egress({"*"}), "rebind.example") ==
              "denied_address");
    }
}

TEST_CASE("no allow-list whatever lets a denied address through", "[unit][egress]") {
    std::mt19937 random(20261121);
    const auto pick = [&](unsigned most) {
        return std::uniform_int_distribution<unsigned>(0, most)(random);
    };
    const auto anyAddress = [&] {
        if (pick(1) == 0) return kDenied[pick(static_cast<unsigned>(kDenied.size()) - 1)];
        if (pick(1) == 0) {
            return std::to_string(pick(255)) + "." + std::to_string(pick(255)) + "." +
                   std::to_string(pick(255)) + "." + std::to_string(pick(255));
        }
        in6_addr raw{};
        for (std::uint8_t& byte : raw.s6_addr) byte = static_cast<std::uint8_t>(pick(255));
        if (pick(1) == 0) raw.s6_addr[0] = static_cast<std::uint8_t>(0x20 + pick(15));
        char text[INET6_ADDRSTRLEN] = {};
        ::inet_ntop(AF_INET6, &raw, text, sizeof(text));
        return std::string(text);
    };
    const auto bracketed = [](const std::string& text) {
        return text.find(':') == std::string::npos ? text : "[" + text + "]";
    };
    const DenySet deny;
    unsigned passed = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::vector<std::string> allow{"*", "0.0.0.0/0", "::/0"};
        const std::string wanted = anyAddress();
        allow.push_back(wanted);
        const bool v6 = wanted.find(':') != std::string::npos;
        allow.push_back(wanted + "/" + std::to_string(pick(v6 ? 128 : 32)));
        const ScriptedDialer dialer({wanted});
        const bool literal = pick(1) == 0;
        const std::string to = literal ? bracketed(wanted) : "any.example";
        if (!refusal(dialer, egress(allow), to).empty()) continue;
        ++passed;
        INFO(wanted);
        REQUIRE_FALSE(deny.denies(address(wanted)));
    }
    CHECK(passed > 1'000);  // addresses pass, so a denied one could have passed
}

TEST_CASE("an operator denies further ranges and exempts internal services", "[unit][egress]") {
    const DenySet deny(parseRanges({"8.8.8.0/24", "2a00::/16"}, "deny"),
                       parseRanges({"10.1.2.3", "127.0.0.5/32"}, "exempt"));
    CHECK(deny.denies(address("8.8.8.8")));
    CHECK(deny.denies(address("2a00:1450::1")));
    CHECK_FALSE(deny.denies(address("10.1.2.3")));
    CHECK_FALSE(deny.denies(address("::ffff:127.0.0.5")));
    CHECK(deny.denies(address("10.1.2.4")));
    CHECK_THROWS_AS(parseRanges({"10.0.0.0/8/8"}, "deny"), Error);
}

TEST_CASE("the longer prefix of a denied and an exempt range wins, and the same one is denied",
          "[unit][egress]") {
    const DenySet services(
        parseRanges({"10.96.0.0/12", "10.1.2.3", "2a00:1::/32"}, "deny"),
        parseRanges({"10.0.0.0/8", "10.96.7.0/24", "10.1.2.3", "2a00::/16"}, "exempt"));
    CHECK_FALSE(services.denies(address("10.1.2.4")));
    CHECK(services.denies(address("10.96.0.1")));
    CHECK(services.denies(address("::ffff:10.111.255.255")));
    CHECK_FALSE(services.denies(address("10.96.7.1")));
    CHECK(services.denies(address("10.1.2.3")));
    CHECK(services.denies(address("2a00:1::1")));
    CHECK_FALSE(services.denies(address("2a00:2::1")));
    // An exemption from the built-in ranges counts even if its prefix is short.
    const DenySet open({}, parseRanges({"0.0.0.0/0", "::/0"}, "exempt"));
    CHECK_FALSE(open.denies(address("127.0.0.1")));
    CHECK_FALSE(open.denies(address("fe80::1")));
    const DenySet closed(parseRanges({"::/0"}, "deny"), parseRanges({"8.8.8.8"}, "exempt"));
    CHECK(closed.denies(address("1.1.1.1")));
    CHECK(closed.denies(address("10.1.2.3")));
    CHECK_FALSE(closed.denies(address("8.8.8.8")));
}

}  // namespace hearth::egress
