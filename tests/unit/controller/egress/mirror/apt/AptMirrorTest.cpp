#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/Digest.h"
#include "controller/egress/mirror/apt/AptMirror.h"
#include "controller/egress/policy/Refused.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/egress/Outside.h"

// Archives of Debian packages as sandboxes get them, from an archive of the test.

namespace hearth::broker {
namespace {

const std::string kIndex = "main/binary-all/Packages";
const std::string kRelease = "/d/dists/s/InRelease";
const std::string kPackages = "/d/dists/s/" + kIndex;
const std::string kBytes(10'000, 'd');

/// Serves the pages that it was given, and keeps the paths that it was asked for.
class Archive {
public:
    std::atomic<bool> broken{false};

    std::string authority() const { return outside_.authority(); }
    std::vector<std::string> asked() {
        const std::lock_guard lock(mutex_);
        return asked_;
    }
    std::string page(const std::string& path) {
        const std::lock_guard lock(mutex_);
        return pages_.at(path);
    }
    /// Returns the page that was there before.
    std::string put(const std::string& path, const std::string& body) {
        const std::lock_guard lock(mutex_);
        return std::exchange(pages_[path], body);
    }
    void drop(const std::string& path) {
        const std::lock_guard lock(mutex_);
        pages_.erase(path);
    }
    /// Publishes one package under this version's name.
    void publish(const std::string& version, bool by_hash) {
        const std::string packages = "Filename: pool/x_" + version +
                                     "_all.deb\nSize: " + std::to_string(kBytes.size()) +
                                     "\nSHA256: " + toHex(sha256(kBytes)) + "\n\n";
        const std::string hash = toHex(sha256(packages));
        put(kRelease, "Acquire-By-Hash: " + std::string(by_hash ? "yes" : "no") + "\nSHA256:\n " +
                          hash + " " + std::to_string(packages.size()) + " " + kIndex + "\n");
        put(kPackages, packages);
        if (by_hash) put("/d/dists/s/main/binary-all/by-hash/SHA256/" + hash, packages);
        put("/d/pool/x_" + version + "_all.deb", kBytes);
    }

private:
    std::string answer(const std::string& path) {
        const std::lock_guard lock(mutex_);
        asked_.push_back(path);
        const auto page = pages_.find(path);
        if (broken) return "500 Broken\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        if (page == pages_.end())
            return "404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        return "200 OK\r\nConnection: close\r\nContent-Length: " +
               std::to_string(page->second.size()) + "\r\n\r\n" + page->second;
    }

    std::mutex mutex_;
    std::map<std::string, std::string> pages_;  // guarded by mutex_
    std::vector<std::string> asked_;            // guarded by mutex_
    Outside outside_{[this](int fd) {
        const std::string head = receiveUntil(fd, "\r\n\r\n");
        if (head.size() < 5) return;
        say(fd, "HTTP/1.1 " + answer(head.substr(4, head.find(' ', 4) - 4)));
    }};
};

struct Mirrored {
    explicit Mirrored(Archive& archive)
        : fetcher(DenySet{}, {archive.authority()}, {}, clock),
          mirror({AptSource::parse("http://" + archive.authority() + "/d s main")}, fetcher, files,
                 clock) {}

    /// Returns the bytes of a path, or the reason of the refusal.
    std::string get(const std::string& path) {
        RequestHead head;
        REQUIRE(head.parse("GET /x HTTP/1.1\r\nHost: x\r\n\r\n", {}) == nullptr);
        MirrorAnswer answer;
        try {
            mirror.answer({head, "t"}, path, answer);
            if (answer.text) return *answer.text;
            std::string out;
            char piece[999];
            while (const std::size_t n = answer.file->read(out.size(), piece, sizeof(piece))) {
                out.append(piece, n);
            }
            return out;
        } catch (const Refused& e) {
            return e.reason();
        }
    }

    const test::TempDir folder;
    ManualClock clock;
    Fetcher fetcher;
    FileCache cache{folder.path(), 1U << 20U,
                    [](const std::string&, const std::function<void()>& task) {
                        task();
                        return true;
                    }};
    const IndexFiles files{fetcher, cache};
    AptMirror mirror;
};

}  // namespace

TEST_CASE("a package is had through its suite's Release and index, each asked for once",
          "[unit][broker]") {
    Archive archive;
    archive.publish("1", false);
    Mirrored mirrored(archive);
    CHECK(mirrored.mirror.tableBytes() == 0);
    CHECK(mirrored.get("s/pool/x_1_all.deb") == kBytes);
    CHECK(archive.asked() == std::vector<std::string>{kRelease, kPackages, "/d/pool/x_1_all.deb"});
    CHECK(mirrored.get("s/dists/s/InRelease") == archive.page(kRelease));
    CHECK(mirrored.get("s/dists/s/" + kIndex) == archive.page(kPackages));
    CHECK(mirrored.get("s/pool/x_1_all.deb") == kBytes);
    for (const char* path : {"", "s", "t/dists/t/InRelease", "s/dists/s/", "s/dists/s/Release",
                             "s/dists/s/Release.gpg", "s/pool/x_2_all.deb", "s/pool/x_1_all.debx",
                             "s/pool/../pool/x_1_all.deb", "s//pool/x_1_all.deb",
                             "s/dists/s/main/binary-all/Packages.gz"}) {
        INFO(path);
        CHECK(mirrored.get(path) == "not_found");
    }
    CHECK(archive.asked().size() == 3);
    CHECK(mirrored.mirror.tableBytes() > 0);
    mirrored.clock.advance(std::chrono::minutes(31));
    mirrored.mirror.tidy();
    CHECK(mirrored.mirror.tableBytes() == 0);
}

TEST_CASE("an archive that moves on is followed, and who has its Release of before can go on",
          "[unit][broker]") {
    Archive archive;
    archive.publish("1", true);
    Mirrored mirrored(archive);
    const std::string first = archive.page(kPackages);
    const std::string by_hash = "s/dists/s/main/binary-all/by-hash/SHA256/" + toHex(sha256(first));
    CHECK(mirrored.get("s/dists/s/InRelease") == archive.page(kRelease));
    archive.publish("2", true);
    CHECK(mirrored.get("s/pool/x_1_all.deb") == kBytes);  // the earlier Release is still fresh
    mirrored.clock.advance(std::chrono::minutes(6));
    CHECK(mirrored.get("s/pool/x_2_all.deb") == kBytes);
    CHECK(mirrored.get("s/pool/x_1_all.deb") == "not_found");
    CHECK(mirrored.get(by_hash) == first);
    CHECK(mirrored.get("s/dists/s/" + kIndex) == archive.page(kPackages));

    // The last Release of a failing archive stays in use. The archive is asked again soon.
    archive.broken = true;
    mirrored.clock.advance(std::chrono::minutes(6));
    CHECK(mirrored.get("s/pool/x_2_all.deb") == kBytes);
    archive.broken = false;
    archive.publish("3", true);
    mirrored.clock.advance(std::chrono::seconds(61));
    CHECK(mirrored.get("s/pool/x_3_all.deb") == kBytes);
    CHECK(mirrored.get(by_hash) == "not_found");
}

TEST_CASE("an archive that is away, empty or false has no packages, and is asked again",
          "[unit][broker]") {
    Archive archive;
    Mirrored mirrored(archive);
    const auto later = [&] { mirrored.clock.advance(std::chrono::seconds(6)); };
    CHECK(mirrored.get("s/pool/x_1_all.deb") == "index_failed");
    CHECK(mirrored.get("s/dists/s/InRelease") == "index_failed");
    CHECK(archive.asked().size() == 2);  // a request soon after gets the same refusal
    later();
    archive.put(kRelease, "<html>");
    CHECK(mirrored.get("s/dists/s/InRelease") == "bad_index");
    later();
    archive.publish("1", false);
    const std::string right = archive.put(kPackages, "false");
    CHECK(mirrored.get("s/pool/x_1_all.deb") == "hash_mismatch");
    CHECK(mirrored.get("s/dists/s/" + kIndex) == "hash_mismatch");
    archive.put(kPackages, right + right);
    CHECK(mirrored.get("s/dists/s/" + kIndex) == "too_large");
    archive.put(kPackages, right);
    CHECK(mirrored.get("s/pool/x_1_all.deb") == "index_failed");
    later();
    archive.put("/d/pool/x_1_all.deb", std::string(10'000, 'e'));
    CHECK(mirrored.get("s/pool/x_1_all.deb") == "hash_mismatch");
    CHECK(mirrored.cache.bytes() == right.size());
    archive.put("/d/pool/x_1_all.deb", kBytes);
    CHECK(mirrored.get("s/pool/x_1_all.deb") == kBytes);
}

TEST_CASE("a suite without an InRelease comes as a Release with its signature beside it",
          "[unit][broker]") {
    Archive archive;
    archive.publish("1", false);
    archive.put("/d/dists/s/Release", archive.page(kRelease));
    archive.drop(kRelease);
    archive.put("/d/dists/s/Release.gpg", "signed");
    Mirrored mirrored(archive);
    CHECK(mirrored.get("s/dists/s/InRelease") == "not_found");
    CHECK(mirrored.get("s/dists/s/Release") == archive.page("/d/dists/s/Release"));
    CHECK(mirrored.get("s/dists/s/Release.gpg") == "signed");
    CHECK(mirrored.get("s/pool/x_1_all.deb") == kBytes);
}

}  // namespace hearth::broker
