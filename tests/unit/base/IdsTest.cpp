#include <set>

#include "base/Ids.h"
#include "tests/support/Support.h"

using namespace hearth;

TEST_CASE("new ids are of their form and never the same", "[unit][base]") {
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        const std::string id = newId("ws_");
        CHECK(isId(id, "ws_"));
        seen.insert(id);
    }
    CHECK(seen.size() == 1000);
    CHECK_FALSE(isId("ws_", "ws_"));
    CHECK_FALSE(isId(newId("ws_"), "sb_"));
    CHECK_FALSE(isId("ws_" + std::string(32, 'A'), "ws_"));
    CHECK_FALSE(isId("ws_" + std::string(31, 'a') + "/", "ws_"));
    CHECK_FALSE(isId("ws_" + std::string(33, 'a'), "ws_"));
}

TEST_CASE("a derived id depends on the key and on each part", "[unit][base]") {
    const std::string id = derivedId("ws_", "key", {"a", "bc"});
    CHECK(isId(id, "ws_"));
    CHECK(derivedId("ws_", "key", {"a", "bc"}) == id);
    CHECK(derivedId("ws_", "kez", {"a", "bc"}) != id);
    CHECK(derivedId("ws_", "key", {"ab", "c"}) != id);
    CHECK(derivedId("ws_", "key", {"abc"}) != id);
    CHECK(derivedId("ws_", "key", {"a", "bc", ""}) != id);
    CHECK(derivedId("ws_", "key", {"1:a2:bc"}) != id);
    CHECK(derivedId("ex_", "key", {"a", "bc"}).substr(3) == id.substr(3));
}

TEST_CASE("base64 reads what it writes, in both alphabets", "[unit][base]") {
    CHECK(base64Encode("foob") == "Zm9vYg==");
    CHECK(base64UrlEncode("foob") == "Zm9vYg");
    CHECK(base64Encode("\xfb\xff") == "+/8=");
    CHECK(base64UrlEncode("\xfb\xff") == "-_8");
    std::string bytes;
    for (int length = 0; length < 70; ++length) {
        std::string out;
        CHECK(base64Decode(base64Encode(bytes), out));
        CHECK(out == bytes);
        CHECK(base64UrlDecode(base64UrlEncode(bytes), out));
        CHECK(out == bytes);
        bytes.push_back(static_cast<char>(length * 37));
    }
}

TEST_CASE("base64 accepts only the canonical spelling", "[unit][base]") {
    std::string out;
    for (const char* bad : {"Zm9vYg", "Zm9vYg=", "Zm9v Yg=", "Zm9vYg==\n", "Zm9vYh==", "====", "=",
                            "Zg==Zg==", "-_8=", "Z", "A===", "Zm9=vYg="}) {
        CAPTURE(bad);
        CHECK_FALSE(base64Decode(bad, out));
    }
    for (const char* bad : {"Zm9vYg==", "Z", "Zm9vYh", "+/8", "Zm9v\n"}) {
        CAPTURE(bad);
        CHECK_FALSE(base64UrlDecode(bad, out));
    }
}

TEST_CASE("secrets are equal only when every byte is", "[unit][base]") {
    CHECK(constantTimeEqual("", ""));
    CHECK(constantTimeEqual("abc", "abc"));
    CHECK_FALSE(constantTimeEqual("abc", "abd"));
    CHECK_FALSE(constantTimeEqual("abc", "ab"));
    CHECK_FALSE(constantTimeEqual(std::string_view("a\0b", 3), std::string_view("a\0c", 3)));
}
