#include <catch2/catch.hpp>
#include <string>

#include "base/Digest.h"
#include "controller/contract/Fingerprint.h"

namespace hearth::controller {

TEST_CASE("a fingerprint is the same for the same request and key, and another for another",
          "[unit][controller]") {
    const std::string key(32, 'k');
    const std::string request = R"(POST /v1/workspaces {"secrets":{"PIN":"1234"}})";
    CHECK(fingerprintOf(key, request) == fingerprintOf(key, request));
    CHECK(fingerprintOf(key, request).size() == 64);
    CHECK(fingerprintOf(key, request) != fingerprintOf(key, request + " "));
    CHECK(fingerprintOf(key, request) != fingerprintOf(std::string(32, 'l'), request));
}

TEST_CASE("guesses on a fingerprint cannot be tried without the server's key",
          "[unit][controller]") {
    const std::string request = R"(POST /v1/workspaces {"secrets":{"PIN":"1234"}})";
    const std::string print = fingerprintOf(std::string(32, 'k'), request);
    CHECK(print != toHex(sha256(request)));
    CHECK(print != fingerprintOf("", request));
}

}  // namespace hearth::controller
