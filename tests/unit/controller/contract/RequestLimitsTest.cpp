#include <sys/resource.h>

#include "base/Error.h"
#include "controller/contract/RequestLimits.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

namespace {

WorkspaceRequest with(const std::vector<std::string>& paths) {
    WorkspaceRequest request;
    for (const std::string& path : paths) request.files.push_back({path, "x"});
    return request;
}

std::string pointerOf(const std::function<void()>& call) {
    const Error error = errorOf(call);
    return error.fields().empty() ? "" : error.fields().front().pointer;
}

}  // namespace

TEST_CASE("a file that the workspace cannot hold is refused before a sandbox is claimed",
          "[unit][controller]") {
    for (const std::string wrong : {"../x", "/etc/x", ".", "", "a/..", "a//b", "a/../../b"}) {
        CAPTURE(wrong);
        CHECK(pointerOf([&] { checkRequest(with({"fine", wrong})); }) == "/files/1/path");
    }
    CHECK(pointerOf([&] { checkRequest(with({std::string(256, 'x')})); }) == "/files/0/path");
    CHECK(pointerOf([&] { checkRequest(with({"a", "a/b"})); }) == "/files/1/path");
    CHECK(pointerOf([&] { checkRequest(with({"a/b/c", "./a//b"})); }) == "/files/1/path");
    CHECK(pointerOf([&] { checkRequest(with({"a/b/c", "a/b"})); }) == "/files/1/path");
    CHECK_NOTHROW(checkRequest(with({"a", "a", "b/c", "b/d", "/workspace/e", "f/../g"})));
}

TEST_CASE("files whose paths have thousands of folders cost no more memory than they are long",
          "[unit][controller]") {
    std::vector<std::string> paths;
    for (int i = 0; i < 256; ++i) {
        std::string path = std::to_string(i);
        while (path.size() < 4'000) path += "/a";
        paths.push_back(path);
    }
    const WorkspaceRequest request = with(paths);
    const auto peak = [] {
        rusage usage{};
        ::getrusage(RUSAGE_SELF, &usage);
        return usage.ru_maxrss;  // KiB
    };
    const long before = peak();
    checkRequest(request);
    CHECK(peak() - before < 200L * 1024);
    paths.push_back("7/a/a");
    CHECK(pointerOf([&] { checkRequest(with(paths)); }) == "/files/256/path");
    paths.back() = "7/a.txt";
    checkRequest(with(paths));
}

TEST_CASE("an execution has exactly one program, and fits an agent's message",
          "[unit][controller]") {
    ExecutionRequest request;
    CHECK(codeOf([&] { checkRequest(request); }) == ErrorCode::InvalidArgument);
    request.command = "";
    CHECK(pointerOf([&] { checkRequest(request); }) == "/command");
    request.command = "true";
    CHECK_NOTHROW(checkRequest(request));
    request.code = "1";
    CHECK(codeOf([&] { checkRequest(request); }) == ErrorCode::InvalidArgument);
    request.command.reset();
    request.code = "";
    CHECK_NOTHROW(checkRequest(request));
    request.code = std::string(250'000, 'x');
    CHECK_NOTHROW(checkRequest(request));
    request.code = std::string(130'000, '\n');  // two bytes per character in a message
    CHECK(codeOf([&] { checkRequest(request); }) == ErrorCode::PayloadTooLarge);
    request.code.reset();
    request.argv = {"", "x"};
    CHECK(pointerOf([&] { checkRequest(request); }) == "/argv/0");
}
