#include "controller/contract/ChannelText.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;

namespace {

ExecutionView viewOf(const std::vector<OutputChunk>& chunks) {
    ExecutionView view;
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

TEST_CASE("each channel has a mark of the size of lost output at its place", "[unit][controller]") {
    const ExecutionView out = viewOf({{0, 1, "a\n"}, {12, 1, "b\n"}, {14, 2, "error\n"}});
    CHECK(out.stdout_bytes == "a\n[… 10 bytes were not kept …]\nb\n");
    CHECK(out.stderr_bytes == "error\n");
    const ExecutionView err = viewOf({{0, 1, "a\n"}, {12, 1, "b\n", 10}, {14, 2, "error\n"}});
    CHECK(err.stdout_bytes == "a\nb\n");
    CHECK(err.stderr_bytes == "[… 10 bytes were not kept …]\nerror\n");
    const ExecutionView both = viewOf({{0, 1, "a\n"}, {12, 2, "error\n", 4}});
    CHECK(both.stdout_bytes == "a\n[… 6 bytes were not kept …]\n");
    CHECK(both.stderr_bytes == "[… 4 bytes were not kept …]\nerror\n");
    const ExecutionView around =
        viewOf({{0, 2, "w\n"}, {2, 1, "a\n"}, {14, 1, "b\n", 3}, {16, 2, "e\n"}});
    CHECK(around.stdout_bytes == "a\n[… 7 bytes were not kept …]\nb\n");
    CHECK(around.stderr_bytes == "w\n[… 3 bytes were not kept …]\ne\n");
}
