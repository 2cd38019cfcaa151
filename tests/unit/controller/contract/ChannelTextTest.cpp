#include "controller/contract/ChannelText.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;

namespace {

ExecutionView viewOf(const std::vector<OutputChunk>& chunks) {
    ExecutionView view;
    view.output_end = chunks.back().offset + chunks.back().bytes.size();
    OutputTexts texts(view);
    for (const OutputChunk& chunk : chunks) texts.add(chunk);
    return view;
}

}  // namespace

TEST_CASE("a gap in the output is marked on a line of its own", "[unit][controller]") {
    CHECK(viewOf({{0, 1, "a\n"}, {2, 1, "b\n"}}).stdout_bytes == "a\nb\n");
    CHECK(viewOf({{0, 1, "a\n"}, {12, 1, "b\n"}}).stdout_bytes ==
          "a\n[… 10 bytes were not kept …]\nb\n");
    CHECK(viewOf({{0, 1, "a"}, {12, 1, "b"}}).stdout_bytes == "a\n[… 11 bytes were not kept …]\nb");
    CHECK(viewOf({{5, 1, "b"}}).stdout_bytes == "[… 5 bytes were not kept …]\nb");
}

TEST_CASE("a channel is marked only where it may have lost something", "[unit][controller]") {
    const ExecutionView late =
        viewOf({{0, 1, "a\n"}, {12, 1, "bcdefghijklmnopqr\n"}, {30, 2, "error\n"}});
    CHECK(late.stderr_bytes == "error\n");
    const ExecutionView soon = viewOf({{0, 1, "a\n"}, {12, 1, "b\n"}, {14, 2, "error\n"}});
    CHECK(soon.stderr_bytes == "[… 10 bytes were not kept …]\nerror\n");
    const ExecutionView both = viewOf({{0, 1, "a\n"}, {12, 2, "error\n"}});
    CHECK(both.stdout_bytes == "a\n[… 10 bytes were not kept …]\n");
    CHECK(both.stderr_bytes == "[… 10 bytes were not kept …]\nerror\n");
    const ExecutionView around =
        viewOf({{0, 2, "w\n"}, {2, 1, "a\n"}, {14, 1, "b\n"}, {16, 2, "e\n"}});
    CHECK(around.stdout_bytes == "a\n[… 10 bytes were not kept …]\nb\n");
    CHECK(around.stderr_bytes == "w\n[… 10 bytes were not kept …]\ne\n");
}
