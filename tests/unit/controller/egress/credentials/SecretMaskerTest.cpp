#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "controller/egress/credentials/SecretMasker.h"

// KeyringTest has the cases of whole texts and of one spelling per text.

namespace hearth::egress {
namespace {

std::string maskedIn(SecretMasker& masker, const std::string& text, std::size_t piece) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); at += piece) {
        out += masker.pass(std::string_view(text).substr(at, piece));
    }
    return out + masker.rest();
}

std::string masked(const std::string& secret, const std::string& text, std::size_t piece = 1'000) {
    SecretMasker masker({secret});
    return maskedIn(masker, text, piece);
}

/// Returns the text with all characters except breaks overwritten.
std::string stars(const std::string& text) {
    std::string out = text;
    for (char& c : out) {
        if (c != '\n' && c != '\r' && c != '\0') c = '*';
    }
    return out;
}

using Random = std::mt19937;

template <typename... Values>
std::string print(const char* format, Values... values) {
    char text[32];
    std::snprintf(text, sizeof(text), format, values...);
    return text;
}

/// Returns one character in one of the ways that servers, languages and markup write it.
std::string spelt(char c, Random& random) {
    static const std::vector<const char*> kFormats{
        "%%%02X",  "%%u%04x",   "=%02X",   "\\x%02x", "\\x%X",   "\\x{%x}", "\\u%04x",
        "\\u{%X}", "\\u{%06x}", "\\U%08X", "\\%03o",  "\\0%03o", "&#%u;",   "&#%08u;",
        "&#x%x;",  "&#X%08X;",  "&#%u",    "&#x%X",   "\\%06x",  "\\%x "};
    const std::size_t how = random() % (kFormats.size() + 6);
    const auto number = static_cast<unsigned>(static_cast<unsigned char>(c));
    if (how < kFormats.size()) {
        const std::string out = print(kFormats[how], number);
        return out;
    }
    if (how == kFormats.size()) return std::string("\\") + c;
    return {c};
}

std::string broken(Random& random) {
    static const std::vector<std::string> kBreaks{"\n",
                                                  "\r\n",
                                                  "=\r\n",
                                                  "=\n",
                                                  "\\\n",
                                                  "\\\r\n",
                                                  "\n    ",
                                                  "\r\n\t",
                                                  "\\n",
                                                  "\\r\\n",
                                                  "%0D%0A",
                                                  "&#13;&#10;",
                                                  "\\u000a",
                                                  "\\x0d\\x0a",
                                                  "<br>",
                                                  "<BR />\n",
                                                  "=0D=0A",
                                                  "\\012",
                                                  "&#10;",
                                                  "\n        \t",
                                                  std::string(1, '\0'),
                                                  std::string("\0\0\0", 3)};
    return kBreaks[random() % kBreaks.size()];
}

}  // namespace

TEST_CASE("every escape that languages and markup know is read", "[unit][egress]") {
    const std::string secret = "sk-A1b2/C3d4+Z9_";
    const auto each = [&](const char* format) {
        std::string out;
        for (const char c : secret) {
            out += print(format, static_cast<unsigned>(static_cast<unsigned char>(c)));
        }
        return out;
    };
    for (const char* format :
         {"%%%02X",  "%%u%04x",   "=%02X",    "\\x%02x", "\\x%X",  "\\x{%x}", "\\u%04x",
          "\\u{%X}", "\\u{%06x}", "\\U%08X",  "\\%o",    "\\%03o", "\\0%03o", "&#%u;",
          "&#%08u;", "&#x%x;",    "&#X%08X;", "&#%u",    "&#x%X",  "\\%06x",  "\\%x "}) {
        const std::string written = each(format);
        INFO(written);
        for (const std::size_t piece : {1'000U, 1U, 7U}) {
            CHECK(masked(secret, "'" + written + "'", piece) == "'" + stars(written) + "'");
        }
    }
    CHECK(masked("a.b/c:d=e_f", "a&period;b&sol;c&colon;d&equals;e&lowbar;f") ==
          std::string(42, '*'));
    CHECK(masked("1<2>3&4\"5", "1&lt2&gt3&amp4&quot5") == std::string(20, '*'));
}

TEST_CASE("a secret that is broken over lines is overwritten, its breaks stay", "[unit][egress]") {
    const std::string secret = "hearth-0123456789abcdef";
    for (const std::string end : {"\n",           "\r\n",         "\r",           "=\r\n",
                                  "=\n",          "\\\n",         "\\\r\n",       "\n        ",
                                  "\r\n\t",       "\v",           "\f",           "\xC2\x85",
                                  "\xC2\xAD",     "\xE2\x80\x8B", "\xE2\x80\xA8", "\xE2\x80\xA9\n",
                                  "\xE2\x81\xA0", "\xEF\xBB\xBF", "&shy;",        "&#8203;",
                                  "\\u200b",      "\xE2\x81\xA2", "\xCD\x8F",     "\xE2\x80\x8E"}) {
        for (std::size_t at = 1; at < secret.size(); ++at) {
            const std::string text =
                "token: " + secret.substr(0, at) + end + secret.substr(at) + "\nnext\n";
            const std::string wanted = "token: " + std::string(at, '*') + end +
                                       std::string(secret.size() - at, '*') + "\nnext\n";
            for (const std::size_t piece : {1'000U, 1U, 5U}) {
                INFO(text);
                REQUIRE(masked(secret, text, piece) == wanted);
            }
        }
    }
    // A break after each character, and spelled breaks.
    std::string text;
    for (const char c : secret) text += std::string(1, c) + "=\r\n";
    CHECK(masked(secret, text, 3).find_first_of("0123456789abcdef") == std::string::npos);
    for (const char* spelled : {"\\n", "\\r\\n", "%0D%0A", "&#10;", "<br>", "<br />\n", "=0A"}) {
        const std::string whole = "hearth-0123" + std::string(spelled) + "456789abcdef";
        CHECK(masked(secret, whole) == "***********" + std::string(spelled) + "************");
    }
    CHECK(masked(secret, "hearth-01234\n\n\t\n\tx 56789abcdef") ==
          "hearth-01234\n\n\t\n\tx 56789abcdef");
}

TEST_CASE("undeclared wide characters hide no secret", "[unit][egress]") {
    const std::string secret = "hearth-0123456789abcdef";
    for (const std::size_t zeros : {1U, 3U}) {
        std::string little;
        std::string big;
        for (const char c : secret) {
            little += c + std::string(zeros, '\0');
            big += std::string(zeros, '\0') + c;
        }
        for (const std::string& text : {little, big}) {
            for (const std::size_t piece : {1'000U, 1U, 3U}) {
                CHECK(masked(secret, text, piece) == stars(text));
            }
        }
    }
}

TEST_CASE("random mixtures of escapes and breaks are overwritten however they are cut",
          "[unit][egress]") {
    Random random(13);
    for (int i = 0; i < 3'000; ++i) {
        std::string secret;
        const std::size_t size = 8 + random() % (i % 10 == 0 ? 300 : 40);
        while (secret.size() < size) secret += static_cast<char>(0x21 + random() % 0x5E);
        // CSS and octal escapes would take following digits as theirs: spelt() prevents that.
        std::string written;
        const bool breaks = i % 2 == 0;
        for (const char c : secret) {
            written += spelt(c, random);
            if (breaks && random() % 8 == 0) written += broken(random);
        }
        const std::string text = "\x01[" + written + "]\x01";
        SecretMasker masker({secret});
        std::string got;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t n = 1 + random() % 40;
            got += masker.pass(std::string_view(text).substr(at, n));
            at += n;
        }
        got += masker.rest();
        INFO(secret);
        INFO(written);
        REQUIRE(got.size() == text.size());
        // The secret cannot be found again, and the text around it is untouched.
        CHECK(masked(secret, got) == got);
        CHECK(got.starts_with("\x01["));
        CHECK(got.ends_with("]\x01"));
        for (std::size_t at = 0; at < written.size(); ++at) {
            const bool free = got[at + 2] == '*' || got[at + 2] == written[at];
            REQUIRE(free);
        }
        if (!breaks) REQUIRE(got == "\x01[" + std::string(written.size(), '*') + "]\x01");
        const auto shown = std::count_if(got.begin(), got.end(), [](char c) { return c == '*'; });
        REQUIRE(static_cast<std::size_t>(shown) >= secret.size());
    }
}

TEST_CASE("bytes without the secret pass unchanged", "[unit][egress]") {
    Random random(17);
    const std::vector<std::string> words{
        "\\x", "\\u00", "&#", "=",  "%",        "\r\n", "\n\n",    ";",          "41",   "\\",
        "{",   "}",     "+",  "\0", "\xC3\xA4", "abc",  "hearth-", "0123456789", "<br>", " "};
    for (int i = 0; i < 500; ++i) {
        std::string text;
        while (text.size() < 4'000) {
            if (random() % 4 == 0) {
                text += static_cast<char>(random() % 256);
            } else {
                text += words[random() % words.size()];
            }
        }
        SecretMasker masker({"hearth-Not-in-there-0123456789", "An0ther~that~is~n0t"});
        REQUIRE(maskedIn(masker, text, 1 + random() % 2'000) == text);
    }
}

TEST_CASE("the masker holds a line back until a pause, and an empty line not at all",
          "[unit][egress]") {
    const std::string secret = "hearth-0123456789abcdef";
    SecretMasker masker({secret});
    CHECK(masker.pass("data: hello\n\n") == "data: hello\n\n");  // an event
    CHECK(masker.pass("data: hello\r\n\r\n") == "data: hello\r\n\r\n");
    CHECK(masker.pass("{\"object\": 1}\n").empty());
    CHECK(masker.pause() == "{\"object\": 1}\n");
    CHECK(masker.pause().empty());
    CHECK(masker.pass("no line").empty());
    CHECK(masker.pause().empty());  // a secret may continue here after any time
    CHECK(masker.pass("\n\n") == "no line\n\n");
    // The part already passed on is remembered: the rest of the secret is overwritten.
    CHECK(masker.pass("hearth-0123\n").empty());
    CHECK(masker.pause() == "hearth-0123\n");
    CHECK(maskedIn(masker, "456789abcdef;", 1) == "************;");
    const std::string longer = "<" + std::string(60, 'y') + "0123456789";
    SecretMasker of_long({longer});
    std::string escaped;
    for (const char c : longer.substr(0, 61)) {
        escaped += print("&#x%08x;", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    CHECK(of_long.pass(escaped + "\n").empty());
    CHECK(of_long.pause() == escaped + "\n");
    CHECK(maskedIn(of_long, "0123456789.", 2) == "**********.");
}

TEST_CASE("the bytes that a masker holds back have a bound, however large the answer is",
          "[unit][egress]") {
    SecretMasker masker({std::string(4'096, 'k'), "12345678"});
    std::size_t given = 0;
    std::size_t got = 0;
    for (int i = 0; i < 2'000; ++i) {
        got += masker.pass("some text & more = text\n").size();
        given += 24;
        REQUIRE(given - got < 64 * (kLongestSpelling + kLongestBreak));
    }
}

}  // namespace hearth::egress
