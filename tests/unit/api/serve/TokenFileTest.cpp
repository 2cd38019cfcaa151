#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/config/ConfigFile.h"
#include "api/serve/PartOptions.h"
#include "api/serve/TokenFile.h"
#include "base/Clock.h"
#include "base/Digest.h"
#include "base/Fd.h"
#include "controller/store/TokenStore.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::test;
using hearth::program::TokenFile;

namespace {

std::string token(const std::string& name, const std::string& secret,
                  const std::string& role = "user") {
    return "- {name: " + name + ", role: " + role + ", sha256: " + toHex(sha256(secret)) + "}\n";
}

/// A file of settings, and a store with the file's first tokens.
struct Place {
    explicit Place(const std::string& text) { write(text); }

    TokenFile& file() {
        if (!made) {
            cli::Layers layers;
            known = *cli::readConfigFile(path, layers);
            store = std::make_unique<controller::TokenStore>(
                journal, history, program::configuredTokens(known), clock);
            made = std::make_unique<TokenFile>(path, known, *store, metrics, log);
            made->look();
            made->look();
        }
        return *made;
    }
    void write(const std::string& text) const {
        const std::string fresh = path + ".new";
        std::ofstream(fresh) << text;
        std::filesystem::rename(fresh, path);
    }
    /// Acts as if two seconds had passed.
    void pass() {
        file().look();
        file().look();
    }
    bool knows(const std::string& secret) {
        file();
        return store->authenticate(secret).has_value();
    }
    std::size_t logged(const std::string& event) const {
        const std::string text = readText(dir.file("log"));
        std::size_t count = 0;
        for (std::size_t at = text.find("event=" + event + " "); at != std::string::npos;
             at = text.find("event=" + event + " ", at + 1)) {
            ++count;
        }
        return count;
    }
    std::string log_text() const { return readText(dir.file("log")); }

    TempDir dir;
    const std::string path = dir.file("hearth.yaml");
    ManualClock clock;
    const Fd log_file = Fd(::open(dir.file("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    metrics::Log log{log_file.get()};
    metrics::Metrics metrics;
    controller::Journal journal{dir.file("hearth.db"), clock, log};
    controller::TokenHistory history{dir.file("had-tokens"), false};
    std::vector<cli::TokenConfig> known;
    std::unique_ptr<controller::TokenStore> store;
    std::unique_ptr<TokenFile> made;
};

const std::string kTwo = "tokens:\n" + token("ops", "secret-ops", "admin") + token("app", "s-app");
const std::string kOne = "tokens:\n" + token("ops", "secret-ops", "admin");

}  // namespace

TEST_CASE("a token removed from the file is refused and its right ends, and others stay",
          "[unit][serve]") {
    Place at(kTwo);
    REQUIRE(at.knows("s-app"));
    const std::stop_token gone = at.store->authenticate("s-app")->right.withdrawn;
    const std::stop_token stays = at.store->authenticate("secret-ops")->right.withdrawn;
    at.write(kOne);
    at.pass();
    CHECK_FALSE(at.knows("s-app"));
    CHECK(gone.stop_requested());
    CHECK(at.knows("secret-ops"));
    CHECK_FALSE(stays.stop_requested());
    at.write(kOne + token("new", "s-new"));
    at.pass();
    CHECK(at.knows("s-new"));
    CHECK(at.logged("tokens.reloaded") == 2);
}

TEST_CASE("a token whose role or tenant changes has the new one, and its old right ends",
          "[unit][serve]") {
    Place at("tokens:\n" + token("ops", "secret-ops", "admin"));
    REQUIRE(at.knows("secret-ops"));
    const std::stop_token before = at.store->authenticate("secret-ops")->right.withdrawn;
    at.write("tokens:\n" + token("ops", "secret-ops", "user"));
    at.pass();
    REQUIRE(at.knows("secret-ops"));
    CHECK(at.store->authenticate("secret-ops")->who.role == controller::Role::User);
    CHECK(before.stop_requested());
}

TEST_CASE("a wrong file keeps the earlier tokens, and the log names it once", "[unit][serve]") {
    Place at(kTwo);
    const std::string wrong = GENERATE(std::string("tokens: [\n"), std::string("tokens: 7\n"),
                                       std::string("nonsense: true\n"), std::string(),
                                       std::string("tokens:\n- {name: a, sha256: beef}\n"),
                                       std::string("tokens:\n- {name: a, tokenFile: nowhere}\n"));
    REQUIRE(at.knows("s-app"));
    at.write(wrong);
    at.pass();
    at.pass();
    CHECK(at.knows("s-app"));
    CHECK(at.logged("tokens.not_reloaded") == 1);
    CHECK(at.log_text().find("level=warn event=tokens.not_reloaded file=" + at.path) !=
          std::string::npos);
    CHECK(at.metrics.render().find("hearth_tokens_file_stale 1") != std::string::npos);
    at.write(kOne);
    at.pass();
    CHECK_FALSE(at.knows("s-app"));
    CHECK(at.logged("tokens.reloaded") == 1);
    CHECK(at.metrics.render().find("hearth_tokens_file_stale 0") != std::string::npos);
}

TEST_CASE("an unreadable file keeps the earlier tokens until it can be read", "[unit][serve]") {
    Place at(kTwo);
    REQUIRE(at.knows("s-app"));
    std::filesystem::remove(at.path);
    at.pass();
    CHECK(at.knows("s-app"));
    CHECK(at.logged("tokens.not_reloaded") == 1);
    at.write(kTwo);  // the same content
    at.pass();
    CHECK(at.knows("s-app"));
    CHECK(at.logged("tokens.reloaded") == 1);
}

TEST_CASE("a file is read once it no longer changes", "[unit][serve]") {
    Place at(kTwo);
    REQUIRE(at.knows("s-app"));
    at.write("tokens: []\n");  // the writer is not ready yet
    at.file().look();
    CHECK(at.knows("s-app"));
    at.write(kTwo);
    at.pass();
    CHECK(at.knows("s-app"));
    CHECK(at.knows("secret-ops"));
    CHECK(at.logged("tokens.reloaded") == 0);
}

TEST_CASE("the last token can be taken away, and then nobody is served", "[unit][serve]") {
    Place at(kTwo);
    REQUIRE(at.knows("s-app"));
    at.write("tokens: []\n");
    at.pass();
    CHECK_FALSE(at.store->configured());
    CHECK_FALSE(at.store->open());
    CHECK(at.logged("auth.closed") == 1);
}

TEST_CASE("the first token closes an open instance, also for earlier callers", "[unit][serve]") {
    Place at("logLevel: info\n");
    at.file();
    REQUIRE(at.store->open());
    const std::stop_token anybody = at.store->anonymous()->right.withdrawn;
    at.write(kOne);
    at.pass();
    CHECK_FALSE(at.store->open());
    CHECK(anybody.stop_requested());
    CHECK(at.history.had());
}

TEST_CASE("the separate file of a token is followed, too", "[unit][serve]") {
    Place at("tokens:\n");
    std::ofstream(at.dir.file("app.token")) << "the-first-secret-of-app\n";
    at.write("tokens:\n- {name: app, tokenFile: app.token}\n");
    REQUIRE(at.knows("the-first-secret-of-app"));
    std::ofstream(at.dir.file("app.token")) << "the-second-secret-of-the-app\n";
    at.pass();
    CHECK_FALSE(at.knows("the-first-secret-of-app"));
    CHECK(at.knows("the-second-secret-of-the-app"));
}

TEST_CASE("a Secret is followed, whose files are links that change all at once", "[unit][serve]") {
    Place at(kTwo);
    const auto mount = [&](const std::string& version, const std::string& text) {
        std::filesystem::create_directory(at.dir.file(version));
        std::ofstream(at.dir.file(version + "/config.yaml")) << text;
        std::filesystem::create_directory_symlink(version, at.dir.file("..data_tmp"));
        std::filesystem::rename(at.dir.file("..data_tmp"), at.dir.file("..data"));
    };
    mount("..1", kTwo);
    std::filesystem::remove(at.path);
    std::filesystem::create_symlink("..data/config.yaml", at.path);
    REQUIRE(at.knows("s-app"));
    mount("..2", kOne);
    at.pass();
    CHECK_FALSE(at.knows("s-app"));
    CHECK(at.knows("secret-ops"));
}

TEST_CASE("the file is read at once when the follower begins, and on request", "[unit][serve]") {
    Place at(kTwo);
    at.file();
    at.write(kOne);
    at.made->begin();
    CHECK_FALSE(at.knows("s-app"));
    at.write(kTwo);
    at.made->hurry();
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!at.knows("s-app") && std::chrono::steady_clock::now() < until) {
        std::this_thread::yield();
    }
    CHECK(at.knows("s-app"));
}
