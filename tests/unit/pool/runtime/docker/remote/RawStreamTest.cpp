#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "pool/runtime/docker/remote/RawStream.h"

using hearth::pool::docker::RawStream;

namespace {

std::string frame(int kind, const std::string& payload, std::uint32_t length) {
    std::string bytes{static_cast<char>(kind), 0, 0, 0};
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes += static_cast<char>(length >> shift & 0xFFU);
    return bytes + payload;
}

std::string frame(int kind, const std::string& payload) {
    return frame(kind, payload, static_cast<std::uint32_t>(payload.size()));
}

}  // namespace

TEST_CASE("a raw stream is split into its outputs, however it is cut", "[unit][docker]") {
    const std::string bytes =
        frame(1, "one ") + frame(2, "oops") + frame(1, "") + frame(1, "two") + frame(3, "!");
    for (std::size_t cut = 1; cut <= bytes.size(); ++cut) {
        RawStream stream;
        std::string out;
        for (std::size_t at = 0; at < bytes.size(); at += cut) {
            REQUIRE(stream.feed(std::string_view(bytes).substr(at, cut), out));
        }
        CHECK(out == "one two");
        CHECK(stream.complaint() == "oops!");
    }
}

TEST_CASE("bytes that are no raw stream are refused for good, with their beginning",
          "[unit][docker]") {
    for (const std::string& bytes :
         {std::string("OCI runtime exec failed: no such file"), frame(0, "x"), frame(4, "x"),
          std::string("\1\0\1\0\0\0\0\1x", 9), std::string("\1\0\0\1\0\0\0\1x", 9),
          std::string("\xff\0\0\0\0\0\0\1x", 9)}) {
        RawStream stream;
        std::string out;
        CHECK_FALSE(stream.feed(bytes, out));
        CHECK_FALSE(stream.feed(frame(1, "late"), out));
        CHECK(out.empty());
        CHECK(stream.complaint().substr(0, bytes.size()) == bytes);
    }
}

TEST_CASE("no length that a header claims costs memory, and a flood of errors is cut",
          "[unit][docker]") {
    RawStream stream;
    std::string out;
    REQUIRE(stream.feed(frame(1, "abc", 0xFFFFFFFFU), out));
    CHECK(out == "abc");
    CHECK(out.capacity() < 1000);
    RawStream errors;
    out.clear();
    REQUIRE(errors.feed(frame(2, "", 0xFFFFFFFFU), out));
    for (int i = 0; i < 100; ++i) REQUIRE(errors.feed(std::string(10'000, 'e'), out));
    CHECK(out.empty());
    CHECK(errors.complaint().size() == 500);
}

TEST_CASE("random bytes never give more than came in", "[unit][docker]") {
    std::mt19937 random(20261121);
    for (int round = 0; round < 500; ++round) {
        RawStream stream;
        std::string out;
        std::size_t fed = 0;
        for (int piece = 0; piece < 20; ++piece) {
            std::string bytes(random() % 300, '\0');
            for (char& c : bytes)
                c = static_cast<char>(random() % 4 != 0 ? random() % 3 : random());
            fed += bytes.size();
            if (!stream.feed(bytes, out)) break;
        }
        REQUIRE(out.size() <= fed);
        REQUIRE(stream.complaint().size() <= 500);
    }
}
