#include <atomic>
#include <catch2/catch.hpp>
#include <latch>
#include <thread>
#include <vector>

#include "controller/journal/JournalReaders.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;

TEST_CASE("slow reads of one tenant leave a connection for another", "[unit][controller]") {
    TempDir dir;
    JournalReaders readers(dir.file("hearth.db"));
    std::latch over(1);
    std::atomic<std::size_t> under_way{0};
    std::atomic<std::size_t> most{0};
    std::atomic<std::size_t> done{0};
    std::vector<std::jthread> slow;
    for (std::size_t i = 0; i < 4 * JournalReaders::kConnections; ++i) {
        slow.emplace_back([&] {
            readers.read("evil", [&](Database&) {
                const std::size_t now = ++under_way;
                for (std::size_t seen = most; seen < now;) most.compare_exchange_weak(seen, now);
                over.wait();
                --under_way;
            });
            ++done;
        });
    }
    CHECK(eventually([&] { return under_way > 0; }));
    std::atomic<std::size_t> read{0};
    std::jthread others([&] {
        for (const char* tenant : {"good", "other", ""}) {
            readers.read(tenant, [&](Database&) { ++read; });
        }
    });
    CHECK(eventually([&] { return read == 3; }));
    CHECK(done == 0);
    over.count_down();
    others.join();
    slow.clear();
    CHECK(done == 4 * JournalReaders::kConnections);  // each slow read had its turn, too
    CHECK(most < JournalReaders::kConnections);
}

TEST_CASE("a connection whose read failed serves the next one", "[unit][controller]") {
    TempDir dir;
    JournalReaders readers(dir.file("hearth.db"));
    for (std::size_t i = 0; i < 2 * JournalReaders::kConnections; ++i) {
        CHECK_THROWS(readers.read("t", [](Database& database) {
            Statement(database, "SELECT none FROM nothing").run();
        }));
    }
    bool read = false;
    readers.read("t", [&](Database&) { read = true; });
    CHECK(read);
}
