#include <catch2/catch.hpp>
#include <string>

#include "pool/agent/protocol/OutputCut.h"

using hearth::agent::Channel;
using hearth::agent::OutputCut;
using hearth::agent::OutputLog;

namespace {

struct Parts {
    std::string head;
    std::string tail;
    std::uint64_t gap = 0;
};

/// The output on both sides of the gap.
Parts partsOf(const OutputLog& log, std::size_t piece = 1'000'000) {
    const OutputCut cut(log);
    Parts parts;
    for (std::uint64_t at = 0;;) {
        const OutputLog::Chunk chunk = cut.read(at, piece);
        if (chunk.bytes.empty()) break;
        parts.gap += chunk.offset - at;
        (parts.gap == 0 ? parts.head : parts.tail) += chunk.bytes;
        at = chunk.offset + chunk.bytes.size();
    }
    CHECK(cut.dropped(UINT64_MAX) == parts.gap);
    CHECK(parts.head.size() + parts.gap + parts.tail.size() == log.total());
    return parts;
}

/// All that a reader gets who has read up to `from`.
std::string restOf(const OutputLog& log, std::uint64_t from) {
    std::string rest;
    while (true) {
        const OutputLog::Chunk chunk = OutputCut(log).read(from, 100);
        if (chunk.bytes.empty()) return rest;
        rest += chunk.bytes;
        from = chunk.offset + chunk.bytes.size();
    }
}

Parts cutOf(std::size_t limit, const std::string& bytes) {
    OutputLog log(limit);
    log.append(Channel::Stdout, bytes);
    const Parts parts = partsOf(log);
    const Parts small = partsOf(log, 3);
    CHECK(small.head == parts.head);
    CHECK(small.tail == parts.tail);
    return parts;
}

}  // namespace

TEST_CASE("output that is kept whole is not cut", "[unit][agent]") {
    const Parts parts = cutOf(20, "one\ntwo\nthree");
    CHECK(parts.head == "one\ntwo\nthree");
    CHECK(parts.gap == 0);
    CHECK(cutOf(20, "").gap == 0);
}

TEST_CASE("head and tail are cut between lines", "[unit][agent]") {
    std::string lines;
    for (int i = 0; i < 400; ++i) lines += std::to_string(1000 + i) + "\n";
    const Parts parts = cutOf(104, lines);
    CHECK(parts.head == lines.substr(0, 50));
    CHECK(parts.tail == lines.substr(lines.size() - 50));
    CHECK(parts.gap == 1'900);
}

TEST_CASE("a long line is cut between two characters and outside of a control sequence",
          "[unit][agent]") {
    std::string text;
    while (text.size() < 30'000) text += "\xE6\xA8\x99";  // three bytes
    for (const std::size_t half : {10'000U, 10'001U, 10'002U}) {
        const Parts parts = cutOf(2 * half, text);
        CHECK(parts.head == text.substr(0, half / 3 * 3));
        CHECK(parts.tail == text.substr(text.size() - half / 3 * 3));
    }
    CHECK(cutOf(20, "12345\x1b[31m" + std::string(40, 'x')).head == "12345\x1b[31m");
    CHECK(cutOf(20, "123456\x1b[31m" + std::string(40, 'x')).head == "123456");
    // Bytes of no character are kept as they are.
    CHECK(cutOf(20, std::string(40, '\x80')).head == std::string(10, '\x80'));
}

TEST_CASE("each channel is cut where its own line ends", "[unit][agent]") {
    OutputLog log(40);
    log.append(Channel::Stdout, "a line\nand");
    log.append(Channel::Stderr, "warning: a long story");
    log.append(Channel::Stdout, std::string(30, '.') + "\nlast line\nend\n");
    const Parts parts = partsOf(log);
    CHECK(parts.head == "a line\nandwarning: a");
    CHECK(parts.tail == "last line\nend\n");
    CHECK(OutputCut(log).droppedStderr() == 11);  // " long story"
}

TEST_CASE("a reader that keeps up loses nothing by the cut", "[unit][agent]") {
    OutputLog log(20);
    log.append(Channel::Stdout, "123456\n890");
    CHECK(restOf(log, 0) == "123456\n890");
    log.append(Channel::Stdout, "abcdef\nhij");  // full, and nothing is dropped
    CHECK(restOf(log, 10) == "abcdef\nhij");
    log.append(Channel::Stdout, "klm");
    CHECK(restOf(log, 0) == "123456\nhijklm");
    CHECK(restOf(log, 8) == "90hijklm");
    CHECK(restOf(log, 20) == "klm");
    CHECK(restOf(log, 14) == "ef\nhijklm");
    CHECK(restOf(log, 10) == "hijklm");
    CHECK(OutputCut(log).read(10, 100).offset == 17);
}
