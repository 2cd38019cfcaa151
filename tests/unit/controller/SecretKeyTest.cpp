#include <sys/stat.h>

#include "controller/SecretKey.h"
#include "tests/unit/base/Support.h"

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

TEST_CASE("a damaged secret key is told, not replaced", "[unit][controller]") {
    const TempDir dir;
    writeText(dir.file("key"), "short");
    CHECK_THROWS_AS(loadSecretKey(dir.file("key")), std::runtime_error);
    CHECK(readText(dir.file("key")) == "short");
    std::filesystem::create_symlink(dir.file("key"), dir.file("link"));
    CHECK_THROWS_AS(loadSecretKey(dir.file("link")), std::system_error);
}
