#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "api/mcp/stdio/StdioBridge.h"
#include "base/Error.h"

namespace hearth::mcp {
namespace {

/// A directory that is removed at the end.
class TempDirectory {
public:
    TempDirectory() : path_("/tmp/hearth-unit-XXXXXX") {
        REQUIRE(::mkdtemp(path_.data()) != nullptr);
    }
    TempDirectory(const TempDirectory&) = delete;
    TempDirectory& operator=(const TempDirectory&) = delete;
    ~TempDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

std::string contentOf(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

void saveIn(const LocalFiles& files, const std::string& path, const std::string& bytes) {
    files.save(path, "default.txt", [&](const LocalFiles::Append& append) { append(bytes); });
}

/// Runs a bridge without a reachable server on these lines. Returns the bridge's output.
std::string bridged(const std::string& lines, const std::string& root = "/tmp") {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    REQUIRE(::pipe2(in.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(out.data(), O_CLOEXEC) == 0);
    const Fd in_read(in[0]);
    Fd in_write(in[1]);
    const Fd out_read(out[0]);
    Fd out_write(out[1]);
    REQUIRE(::write(in_write.get(), lines.data(), lines.size()) ==
            static_cast<ssize_t>(lines.size()));
    in_write.reset();
    metrics::Log log(2, metrics::LogLevel::Error);
    BridgeOptions options;
    options.url = "http://127.0.0.1:9";
    options.root = root;
    {
        StdioBridge bridge(options, in_read.get(), out_write.get(), log);
        CHECK(bridge.run() == 0);
    }
    out_write.reset();
    std::string text;
    std::array<char, 4096> buffer{};
    for (ssize_t n; (n = ::read(out_read.get(), buffer.data(), buffer.size())) > 0;) {
        text.append(buffer.data(), static_cast<std::size_t>(n));
    }
    return text;
}

}  // namespace

TEST_CASE("local files are written whole, with their parent directories", "[unit][mcp]") {
    const TempDirectory root;
    const LocalFiles files(root.path());
    saveIn(files, "a/b/c.txt", "one");
    CHECK(contentOf(root / "a/b/c.txt") == "one");
    saveIn(files, "a/b/c.txt", "two");
    CHECK(contentOf(root / "a/b/c.txt") == "two");
    saveIn(files, "a/b/", "three");
    CHECK(contentOf(root / "a/b/default.txt") == "three");
    saveIn(files, root / "absolute.txt", "four");
    CHECK(contentOf(root / "absolute.txt") == "four");
    CHECK(files.open("a/b/c.txt").size == 3);
}

TEST_CASE("a local file that fails half way leaves nothing", "[unit][mcp]") {
    const TempDirectory root;
    const LocalFiles files(root.path());
    CHECK_THROWS_AS(files.save("x", "x",
                               [](const LocalFiles::Append& append) {
                                   append("half");
                                   throw Error(ErrorCode::Unavailable, "gone");
                               }),
                    Error);
    CHECK(std::filesystem::is_empty(root.path()));
}

TEST_CASE("no local path leads outside of the root", "[unit][mcp]") {
    const TempDirectory outside;
    const TempDirectory root;
    std::ofstream(outside / "secret") << "s";
    std::filesystem::create_symlink(outside.path(), root / "link");
    std::filesystem::create_symlink(outside / "secret", root / "file");
    std::filesystem::create_symlink("/", root / "slash");
    const LocalFiles files(root.path());
    const std::string name = outside.path().substr(5);
    for (const std::string& path :
         {"../" + name + "/secret", outside / "secret", std::string("link/secret"),
          std::string("file"), "slash/" + outside.path().substr(1) + "/secret",
          root.path() + "/../" + name + "/secret", root.path() + "x/secret"}) {
        INFO(path);
        CHECK_THROWS_AS(files.open(path), Error);
        if (path != "file") CHECK_THROWS_AS(saveIn(files, path, "x"), Error);
    }
    saveIn(files, "file", "mine");  // replaces the link itself
    CHECK(contentOf(outside / "secret") == "s");
}

TEST_CASE("only regular local files are read", "[unit][mcp]") {
    const TempDirectory root;
    REQUIRE(::mkfifo((root / "pipe").c_str(), 0600) == 0);
    const LocalFiles files(root.path());
    CHECK_THROWS_AS(files.open("pipe"), Error);
    CHECK_THROWS_AS(files.open("."), Error);
    CHECK_THROWS_AS(files.open("missing"), Error);
}

TEST_CASE("the bridge adds its arguments to the file tools only", "[unit][mcp]") {
    Json answer = parseJson(R"({"result":{"tools":[{"name":"file_put","inputSchema":{}},
        {"name":"file_get","inputSchema":{}},{"name":"run","inputSchema":{}}]}})");
    addLocalArguments(answer, "/home");
    const Json& tools = answer["result"]["tools"];
    CHECK(tools[0]["inputSchema"]["properties"].contains("local_path"));
    CHECK(tools[1]["inputSchema"]["properties"].contains("save_to"));
    CHECK_FALSE(tools[2]["inputSchema"].contains("properties"));
}

TEST_CASE("without a root no local file is reached and the tools say so", "[unit][mcp]") {
    Json answer = parseJson(R"({"result":{"tools":[{"name":"file_put","description":"Puts.",
        "inputSchema":{}},{"name":"run","description":"Runs.","inputSchema":{}}]}})");
    addLocalArguments(answer, "");
    const Json& tools = answer["result"]["tools"];
    CHECK_FALSE(tools[0]["inputSchema"].contains("properties"));
    CHECK(tools[0]["description"].get<std::string>().find("--root") != std::string::npos);
    CHECK(tools[1]["description"] == "Runs.");
    for (const char* call : {R"("file_put","arguments":{"local_path":"/etc/passwd"})",
                             R"("file_get","arguments":{"save_to":"x"})"}) {
        const Json told =
            parseJson(bridged(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":)" +
                                  std::string(call) + "}}\n",
                              ""));
        CHECK(told["result"]["isError"] == true);
        CHECK(dumpJson(told["result"]).find("--root DIRECTORY") != std::string::npos);
    }
}

TEST_CASE("the whole file system is no root", "[unit][mcp]") {
    for (const char* root : {"/", "//", "/tmp/.."}) CHECK_THROWS_AS(LocalFiles(root), Error);
}

TEST_CASE("without a server every request is answered with what to do", "[unit][mcp]") {
    const std::string out = bridged(
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}\r\n\n"
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
        "nonsense\n"
        "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"tools/list\"}");
    std::vector<Json> lines;
    for (std::size_t from = 0, end; (end = out.find('\n', from)) != std::string::npos;
         from = end + 1) {
        lines.push_back(parseJson(out.substr(from, end - from)));
    }
    REQUIRE(lines.size() == 3);
    CHECK(lines[0]["id"] == 0);
    CHECK(lines[0]["error"]["message"].get<std::string>().find("hearth serve") !=
          std::string::npos);
    CHECK(lines[1]["error"]["code"] == -32700);
    CHECK_FALSE(lines[1].contains("id"));
    CHECK(lines[2]["id"] == "x");
}

}  // namespace hearth::mcp
