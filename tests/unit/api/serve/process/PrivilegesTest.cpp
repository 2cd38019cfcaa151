#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "api/serve/process/Privileges.h"

namespace hearth::controller {
namespace {

/// The number of descriptors that the kernel's table of this process has room for.
rlim_t tableSize() {
    std::ifstream status("/proc/self/status");
    rlim_t size = 0;
    for (std::string word; status >> word;) {
        if (word == "FDSize:") status >> size;
    }
    return size;
}

/// The limit of open files of this process, which it sets back at the end.
class FileLimit {
public:
    FileLimit() { REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0); }
    ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

    rlim_t most() const { return before_.rlim_max; }
    void lower(rlim_t limit) const {
        const rlimit low{limit, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    }

private:
    rlimit before_{};
};

TEST_CASE("the table of descriptors is made as large as a busy server needs it") {
    const FileLimit limit;
    raiseFileLimit();
    widenFileTable();
    CHECK(tableSize() >= std::min(limit.most(), kFileTable));
}

TEST_CASE("the table of descriptors stays within the limit of open files") {
    const FileLimit limit;
    const rlim_t before = tableSize();
    limit.lower(100);
    widenFileTable();
    CHECK(tableSize() <= std::max<rlim_t>(before, 128));
}

}  // namespace
}  // namespace hearth::controller
