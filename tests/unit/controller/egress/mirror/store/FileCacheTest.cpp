
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "base/Digest.h"
#include "controller/egress/mirror/store/FileCache.h"
#include "controller/egress/policy/Refused.h"

// Files by their hash: fetched once, verified before they are whole, bounded.

namespace hearth::egress {
namespace {

namespace fs = std::filesystem;

struct Folder {
    Folder() {
        char name[] = "/tmp/hearth-cache-XXXXXX";
        REQUIRE(::mkdtemp(name) != nullptr);
        path = name;
    }
    ~Folder() { fs::remove_all(path); }
    std::string path;
};

ContentHash hashOf(const std::string& bytes) {
    return {"sha256", toHex(sha256(bytes))};
}

/// Runs the fetches when a test says so.
struct Later {
    std::vector<std::function<void()>> tasks;
    FileCache::Run run() {
        return [this](const std::string&, std::function<void()> task) {
            tasks.push_back(std::move(task));
            return true;
        };
    }
    void all() {
        for (const auto& task : std::exchange(tasks, {})) task();
    }
};

FileCache::Run atOnce() {
    return [](const std::string&, const std::function<void()>& task) {
        task();
        return true;
    };
}

FileCache::Fetch giving(const std::string& bytes, std::atomic<int>& count) {
    return [bytes, &count](const FileCache::Sink& sink) {
        ++count;
        sink.begun(bytes.size());
        for (std::size_t at = 0; at < bytes.size(); at += 1'000)
            sink.bytes(bytes.substr(at, 1'000));
    };
}

std::string readAll(CachedFile& file) {
    std::string out;
    char piece[777];
    while (const std::size_t n = file.read(out.size(), piece, sizeof(piece))) out.append(piece, n);
    return out;
}

std::string readRefusal(CachedFile& file) {
    try {
        readAll(file);
        return "";
    } catch (const Refused& e) {
        return e.reason();
    }
}

}  // namespace

TEST_CASE("a file is fetched once and found again, also by the next server", "[unit][egress]") {
    const Folder folder;
    const std::string bytes(100'000, 'x');
    std::atomic<int> fetched = 0;
    {
        FileCache cache(folder.path, 1U << 30U, atOnce());
        const auto first = cache.open(hashOf(bytes), "", giving(bytes, fetched));
        CHECK_FALSE(first.hit);
        CHECK(readAll(*first.file) == bytes);
        CHECK(first.file->size() == bytes.size());
        const auto second = cache.open(hashOf(bytes), "", giving(bytes, fetched));
        CHECK(second.hit);
        CHECK(readAll(*second.file) == bytes);
        CHECK(cache.bytes() == bytes.size());
    }
    std::ofstream(folder.path + "/partial.7") << "half";
    FileCache cache(folder.path, 1U << 30U, atOnce());
    CHECK(cache.open(hashOf(bytes), "", giving(bytes, fetched)).hit);
    CHECK(fetched == 1);
    CHECK_FALSE(fs::exists(folder.path + "/partial.7"));
}

TEST_CASE("a wait for the whole file yields its size or the error", "[unit][egress]") {
    const Folder folder;
    const std::string bytes(50'000, 'w');
    std::atomic<int> fetched = 0;
    Later later;
    FileCache cache(folder.path, 1U << 30U, later.run());
    const auto good = cache.open(hashOf(bytes), "", giving(bytes, fetched));
    const auto bad = cache.open(hashOf("other"), "", giving(bytes, fetched));
    CHECK_FALSE(cache.sizeOf(hashOf(bytes)));
    std::thread fetching([&] { later.all(); });
    CHECK(good.file->whole() == bytes.size());
    CHECK_THROWS_WITH(bad.file->whole(), "the file is not what the index says it is");
    fetching.join();
    CHECK(cache.sizeOf(hashOf(bytes)) == bytes.size());
    CHECK_FALSE(cache.sizeOf(hashOf("other")));
}

TEST_CASE("many simultaneous requests cause one download", "[unit][egress]") {
    const Folder folder;
    const std::string bytes(50'000, 'y');
    std::atomic<int> fetched = 0;
    Later later;
    FileCache cache(folder.path, 1U << 30U, later.run());
    std::vector<FileCache::Found> found;
    for (int i = 0; i < 10; ++i)
        found.push_back(cache.open(hashOf(bytes), "", giving(bytes, fetched)));
    CHECK(later.tasks.size() == 1);
    std::vector<std::thread> readers;
    std::atomic<int> right = 0;
    for (auto& one : found) {
        readers.emplace_back(
            [&right, &bytes, file = one.file] { right += readAll(*file) == bytes; });
    }
    later.all();
    for (std::thread& reader : readers) reader.join();
    CHECK(right == 10);
    CHECK(fetched == 1);
}

TEST_CASE("a file with a wrong hash is never read to its end, and is removed", "[unit][egress]") {
    const Folder folder;
    const std::string wanted(20'000, 'a');
    std::string poisoned = wanted;
    poisoned[3] = 'b';
    std::atomic<int> fetched = 0;
    FileCache cache(folder.path, 1U << 30U, atOnce());
    const auto bad = cache.open(hashOf(wanted), "", giving(poisoned, fetched));
    CHECK(readRefusal(*bad.file) == "hash_mismatch");
    CHECK(fs::is_empty(folder.path));
    const auto good = cache.open(hashOf(wanted), "", giving(wanted, fetched));
    CHECK_FALSE(good.hit);
    CHECK(readAll(*good.file) == wanted);
}

TEST_CASE("a failed download fails all its waiters, and the next request tries again",
          "[unit][egress]") {
    const Folder folder;
    Later later;
    FileCache cache(folder.path, 1U << 30U, later.run());
    const std::string bytes = "content";
    const auto failing = [](const FileCache::Sink&) {
        throw Refused(502, "index_unreachable", "x");
    };
    const auto one = cache.open(hashOf(bytes), "", failing);
    const auto two = cache.open(hashOf(bytes), "", failing);
    later.all();
    CHECK(readRefusal(*one.file) == "index_unreachable");
    CHECK(readRefusal(*two.file) == "index_unreachable");
    CHECK_THROWS_AS(one.file->size(), Refused);
    std::atomic<int> fetched = 0;
    const auto three = cache.open(hashOf(bytes), "", giving(bytes, fetched));
    later.all();
    CHECK(readAll(*three.file) == bytes);
}

TEST_CASE("the least recently used file is evicted, and its open readers go on", "[unit][egress]") {
    const Folder folder;
    std::atomic<int> fetched = 0;
    FileCache cache(folder.path, 25'000, atOnce());
    const std::string a(10'000, 'a');
    const std::string b(10'000, 'b');
    const std::string c(10'000, 'c');
    const auto held = cache.open(hashOf(b), "", giving(b, fetched));
    cache.open(hashOf(a), "", giving(a, fetched));
    cache.open(hashOf(a), "", giving(a, fetched));
    const auto again = cache.open(hashOf(b), "", giving(b, fetched));
    cache.open(hashOf(a), "", giving(a, fetched));
    cache.open(hashOf(c), "", giving(c, fetched));
    CHECK(cache.bytes() == 20'000);
    CHECK(readAll(*again.file) == b);
    CHECK(cache.open(hashOf(a), "", giving(a, fetched)).hit);
    CHECK_FALSE(cache.open(hashOf(b), "", giving(b, fetched)).hit);
    const std::string large(30'000, 'd');
    CHECK(readRefusal(*cache.open(hashOf(large), "", giving(large, fetched)).file) == "too_large");
}

TEST_CASE("an abandoned download ends, and incoming bytes are bounded", "[unit][egress]") {
    const Folder folder;
    Later later;
    FileCache cache(folder.path, 50'000, later.run());
    const std::string bytes(40'000, 'x');
    std::atomic<int> fetched = 0;
    cache.open(hashOf(bytes), "", giving(bytes, fetched));  // and releases the file at once
    later.all();
    CHECK(cache.bytes() == 0);
    CHECK(fs::is_empty(folder.path));
    // Without a length, only the bytes themselves show that there are too many.
    const std::string large(80'000, 'y');
    const auto endless = cache.open(hashOf(large), "", [&](const FileCache::Sink& sink) {
        sink.begun(std::nullopt);
        for (int i = 0; i < 80; ++i) sink.bytes(std::string(1'000, 'y'));
    });
    later.all();
    CHECK(readRefusal(*endless.file) == "cache_full");
    CHECK(fs::is_empty(folder.path));
    CHECK(cache.bytes() == 0);
}

TEST_CASE("a download that never begins fails its waiters", "[unit][egress]") {
    const Folder folder;
    Later later;
    FileCache cache(folder.path, 50'000, later.run());
    std::atomic<int> fetched = 0;
    const auto found = cache.open(hashOf("x"), "", giving("x", fetched));
    later.tasks.clear();  // like a server that stops
    CHECK(readRefusal(*found.file) == "stopped");
    CHECK(fetched == 0);
}

TEST_CASE("a file that waits for a tenant's turn is fetched in an earlier turn of another",
          "[unit][egress]") {
    const Folder folder;
    Later later;
    FileCache cache(folder.path, 50'000, later.run());
    const std::string bytes(5'000, 'x');
    std::atomic<int> fetched = 0;
    const auto first = cache.open(hashOf(bytes), "greedy", giving(bytes, fetched));
    const auto second = cache.open(hashOf(bytes), "modest", giving(bytes, fetched));
    cache.open(hashOf(bytes), "modest", giving(bytes, fetched));
    REQUIRE(later.tasks.size() == 2);
    later.tasks.back()();
    CHECK(readAll(*first.file) == bytes);
    CHECK(readAll(*second.file) == bytes);
    later.all();
    CHECK(fetched == 1);
}

TEST_CASE("the tenant with most incoming bytes gives way when the cache is full",
          "[unit][egress]") {
    const Folder folder;
    const std::string large(45'000, 'l');
    const std::string small(20'000, 's');
    std::atomic<int> fetched = 0;
    const auto pieces = [](const FileCache::Sink& sink, const std::string& bytes) {
        for (std::size_t at = 0; at < bytes.size(); at += 1'000)
            sink.bytes(bytes.substr(at, 1'000));
    };
    // The other files arrive before the last piece of the large file.
    Later later;
    FileCache cache(folder.path, 50'000, later.run());
    const auto of_greedy = cache.open(hashOf(large), "greedy", [&](const FileCache::Sink& sink) {
        sink.begun(large.size());
        pieces(sink, large.substr(0, 44'000));
        later.all();  // the modest tenant's
        pieces(sink, large.substr(44'000));
    });
    const auto begin = std::exchange(later.tasks, {});
    const auto of_modest = cache.open(hashOf(small), "modest", giving(small, fetched));
    begin.front()();
    CHECK(readAll(*of_modest.file) == small);
    CHECK(readRefusal(*of_greedy.file) == "cache_full");
    CHECK(cache.bytes() == small.size());
    // A second attempt succeeds: no other tenant needs the room.
    const auto again = cache.open(hashOf(large), "greedy", giving(large, fetched));
    later.all();
    CHECK(readAll(*again.file) == large);
}

TEST_CASE("a hash of an unknown kind or form is no key", "[unit][egress]") {
    const Folder folder;
    FileCache cache(folder.path, 1'000, atOnce());
    for (const ContentHash& hash :
         {ContentHash{"md5", std::string(32, 'a')}, ContentHash{"sha256", ""},
          ContentHash{"sha256", "../../etc/passwd"}, ContentHash{"sha256", std::string(64, 'A')},
          ContentHash{"", ""}}) {
        CHECK_THROWS_AS(cache.open(hash, "", [](const FileCache::Sink&) {}), Refused);
    }
}

}  // namespace hearth::egress
