#include <sys/stat.h>

#include "controller/journal/Journal.h"
#include "controller/store/SecretKey.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

TEST_CASE("the secret key is made once and only its owner may read it", "[unit][controller]") {
    const TempDir dir;
    const std::string key = loadSecretKey(dir.file("key"));
    CHECK(key.size() == 32);
    CHECK(loadSecretKey(dir.file("key")) == key);
    CHECK(loadSecretKey(dir.file("other")) != key);
    struct stat status {};
    REQUIRE(::stat(dir.file("key").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == 0600);
}

TEST_CASE("a lost or damaged secret key comes back from its copy", "[unit][controller]") {
    const TempDir dir;
    const std::string path = dir.file("key");
    const std::string copy(32, 'k');
    CHECK(loadSecretKey(path, copy) == copy);
    CHECK(loadSecretKey(path) == copy);
    writeText(path, "");
    CHECK(loadSecretKey(path, copy) == copy);
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    CHECK(loadSecretKey(path, copy) == copy);
    CHECK(loadSecretKey(path, std::string(32, 'o')) == copy);  // the file takes precedence
    std::string damaged = readText(path);
    damaged[3] ^= 1;
    writeText(path, damaged);
    CHECK(loadSecretKey(path, copy) == copy);
    writeText(path, std::string(32, 'x'));  // without a checksum
    CHECK(loadSecretKey(path, copy) == copy);
    CHECK(loadSecretKey(dir.file("other"), "short") != "short");
}

TEST_CASE("a damaged secret key is reported, not replaced", "[unit][controller]") {
    const TempDir dir;
    for (const std::string& wrong : {std::string("short"), std::string(32, 'x')}) {
        writeText(dir.file("key"), wrong);
        CHECK_THROWS_WITH(loadSecretKey(dir.file("key")),
                          dir.file("key") +
                              " is damaged: restore it from a copy, or remove the file: then "
                              "claimed workspaces, sessions and links end");
        CHECK(readText(dir.file("key")) == wrong);
    }
    std::filesystem::create_symlink(dir.file("key"), dir.file("link"));
    CHECK_THROWS_AS(loadSecretKey(dir.file("link")), std::system_error);
}

TEST_CASE("the key and its copy in the journal bring each other back", "[unit][controller]") {
    const TempDir dir;
    const SystemClock clock;
    metrics::Log log{-1};
    Journal journal(dir.file("hearth.db"), clock, log);
    const std::string key = keptSecretKey(dir.file("key"), journal);
    std::filesystem::remove(dir.file("key"));
    CHECK(keptSecretKey(dir.file("key"), journal) == key);
    journal.setMeta("key", "nonsense");
    CHECK(keptSecretKey(dir.file("key"), journal) == key);
    std::filesystem::remove(dir.file("key"));
    CHECK(keptSecretKey(dir.file("key"), journal) == key);
}
