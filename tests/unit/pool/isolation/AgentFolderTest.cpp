#include <filesystem>
#include <fstream>

#include "pool/isolation/AgentFolder.h"
#include "tests/support/Support.h"

using namespace hearth;
namespace fs = std::filesystem;

TEST_CASE("only drivers that the build has compiled go into the agent's folder",
          "[unit][isolation]") {
    const test::TempDir place;
    const fs::path root = place.path();
    const fs::path compiled = root / "hearth-drivers/python/__pycache__";
    fs::create_directories(compiled);
    std::ofstream(root / "agent") << "program";
    std::ofstream(root / "hearth-drivers/python/run.py") << "pass";
    const std::string by_hash = std::string("\xa7\x0d\r\n\x03\0\0\0", 8) + "code";
    std::ofstream(compiled / "run.cpython-311.pyc") << by_hash;
    std::ofstream(compiled / "run.cpython-312.pyc")
        << std::string("\xcb\x0d\r\n\0\0\0\0", 8) + "code";
    std::ofstream(compiled / "run.cpython-313.pyc") << "short";
    fs::create_directory(root / "inside");

    const auto install = [&] {
        return fs::path(
            pool::launcher::installInside((root / "inside").string(), (root / "agent").string(),
                                          pool::launcher::seccomp::AgentIdentity::Root));
    };
    const fs::path folder = install();
    std::ifstream file(folder / "python/__pycache__/run.cpython-311.pyc");
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == by_hash);
    CHECK(fs::exists(folder / "python/run.py"));
    CHECK_FALSE(fs::exists(folder / "python/__pycache__/run.cpython-312.pyc"));
    CHECK_FALSE(fs::exists(folder / "python/__pycache__/run.cpython-313.pyc"));
    fs::remove(compiled / "run.cpython-312.pyc");
    CHECK(install() == folder);
}
