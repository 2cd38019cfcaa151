#include <catch2/catch.hpp>

#include "controller/packages/PackageSpec.h"

// The packages that may be requested: names and versions of an index, but no option, place or
// program.

namespace hearth::controller {

TEST_CASE("names and versions of an index are packages", "[unit][controller]") {
    for (const char* spec : {"numpy", "numpy==2.1", "numpy >= 2, < 3", "requests[socks]>=2.0,!=2.1",
                             "Foo.Bar_baz~=1.0", "a", "zope.interface", "x; python_version < '3.9'",
                             "pkg (>=1.0)", "six==1.*"}) {
        INFO(spec);
        CHECK_FALSE(wrongSpec(spec, PackageManager::Pip));
        CHECK_FALSE(wrongSpec(spec, PackageManager::Auto));
    }
    for (const char* spec : {"left-pad", "left-pad@1.2.3", "@types/node", "@types/node@^20",
                             "lodash@>=4 <5", "react@latest", "x@~1.2", "x@1.x"}) {
        INFO(spec);
        CHECK_FALSE(wrongSpec(spec, PackageManager::Npm));
        CHECK_FALSE(wrongSpec(spec, PackageManager::Auto));
    }
    CHECK(packageName("requests[socks]>=2.0") == "requests");
    CHECK(packageName("@types/node@^20") == "@types/node");
    CHECK(packageName("left-pad@1") == "left-pad");
}

TEST_CASE("options, URLs, paths and shell commands are no packages", "[unit][controller]") {
    for (const char* spec : {"",
                             " ",
                             "-r",
                             "--index-url=https://evil.example",
                             "-e .",
                             "numpy --pre",
                             "numpy\n--pre",
                             "numpy @ https://evil.example/x.whl",
                             "git+https://evil.example/x",
                             "https://x.example/x.whl",
                             "./local",
                             "../local",
                             "/etc/passwd",
                             "file:///x",
                             "x.whl; rm -rf /",
                             "x$(id)",
                             "x`id`",
                             "x|y",
                             "x&y",
                             "x>y/z",
                             "numpy==2.1 evil",
                             "@types",
                             "@/x",
                             "x@npm:y@1",
                             "x@git://y",
                             "x@https://y.example",
                             "x@file:../y",
                             "user/repo",
                             "@a/b/c",
                             "x@../y",
                             "x[",
                             "x[a",
                             ".x",
                             "_x",
                             "x\\y",
                             "ä"}) {
        INFO(spec);
        CHECK(wrongSpec(spec, PackageManager::Pip));
        CHECK(wrongSpec(spec, PackageManager::Npm));
        CHECK(wrongSpec(spec, PackageManager::Auto));
    }
    CHECK(wrongSpec(std::string(301, 'x'), PackageManager::Pip));
    CHECK(wrongSpec("@types/node", PackageManager::Pip));
    CHECK(wrongSpec("numpy==2.1", PackageManager::Npm));
}

}  // namespace hearth::controller
