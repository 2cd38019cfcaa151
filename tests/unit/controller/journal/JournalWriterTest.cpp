#include <atomic>
#include <map>

#include "base/Error.h"
#include "controller/journal/Database.h"
#include "controller/journal/DiskReserve.h"
#include "controller/journal/JournalWriter.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::test;
using namespace std::chrono_literals;

namespace {

/// A disk that the test fills and breaks. Items record their names when they are written.
class Disk {
public:
    JournalWriter::Commit commit() {
        return [this](const std::vector<const JournalWriter::Item*>& items) { write(items); };
    }
    /// Returns an item of `bytes`. With `fault`, the item itself fails.
    JournalWriter::Item item(const std::string& name, std::size_t bytes = 100, bool alone = false,
                             bool fault = false) {
        JournalWriter::Item item;
        item.bytes = bytes;
        item.alone = alone;
        item.write = [this, name, bytes, fault](Database&) {
            ++tries[name];
            if (fault) throw std::runtime_error("a fault of the item's own");
            if (bytes > room_for) throw Error(ErrorCode::DiskFull, "full");
            round.push_back(name);
        };
        item.written = [this, name](bool durable) {
            const std::lock_guard lock(mutex);
            told[name] = durable;
        };
        return item;
    }
    std::vector<std::string> onDisk() {
        const std::lock_guard lock(mutex);
        return written;
    }
    std::optional<bool> durable(const std::string& name) {
        const std::lock_guard lock(mutex);
        const auto found = told.find(name);
        return found == told.end() ? std::nullopt : std::optional(found->second);
    }

    /// The size of the largest item that the disk takes.
    std::atomic<std::size_t> room_for{SIZE_MAX};
    std::atomic<unsigned> failures{0};
    /// While this is true, no commit begins.
    std::atomic<bool> stands{false};

private:
    void write(const std::vector<const JournalWriter::Item*>& items) {
        while (stands) std::this_thread::yield();
        round.clear();
        try {
            for (const JournalWriter::Item* each : items) each->write(database);
        } catch (const std::exception&) {
            ++failures;
            throw;
        }
        const std::lock_guard lock(mutex);
        written.insert(written.end(), round.begin(), round.end());
    }

    Database database{":memory:"};
    std::vector<std::string> round;
    std::map<std::string, int> tries;
    std::mutex mutex;
    std::vector<std::string> written;
    std::map<std::string, bool> told;
};

struct Setup {
    metrics::Log log{-1};
    metrics::Metrics metrics;
    Disk disk;
};

}  // namespace

TEST_CASE("items that a full disk refuses wait in order, and are written when there is room",
          "[unit][controller]") {
    Setup setup;
    JournalWriter writer(setup.disk.commit(), nullptr, setup.log, &setup.metrics);
    setup.disk.room_for = 0;
    std::vector<std::string> names;
    for (int i = 0; i < 50; ++i) {
        names.push_back("i" + std::to_string(i));
        writer.add(setup.disk.item(names.back()));
    }
    CHECK(eventually([&] { return setup.disk.failures > 2; }));
    CHECK(setup.disk.onDisk().empty());
    CHECK(writer.pendingBytes() == 50 * 100);
    CHECK_FALSE(setup.disk.durable("i0"));  // no failure is reported
    writer.flush(10s);                      // does not wait for a disk that refuses
    setup.disk.room_for = SIZE_MAX;
    CHECK(eventually([&] { return setup.disk.durable("i49").has_value(); }));
    CHECK(setup.disk.onDisk() == names);
    CHECK(setup.disk.durable("i0") == true);
    CHECK(eventually([&] { return writer.pendingBytes() == 0; }));
}

TEST_CASE("an item that always fails is tried a few times and takes no other with it",
          "[unit][controller]") {
    Setup setup;
    JournalWriter writer(setup.disk.commit(), nullptr, setup.log, &setup.metrics);
    writer.add(setup.disk.item("before"));
    writer.add(setup.disk.item("faulty", 100, false, true));
    writer.add(setup.disk.item("behind"));
    CHECK(eventually([&] { return setup.disk.durable("behind").has_value(); }));
    CHECK(setup.disk.onDisk() == std::vector<std::string>{"before", "behind"});
    CHECK(setup.disk.durable("faulty") == false);
    CHECK(setup.metrics.render().find("\nhearth_journal_records_lost_total 1\n") !=
          std::string::npos);
}

TEST_CASE("a large item that depends on no other is overtaken by what the disk still takes",
          "[unit][controller]") {
    Setup setup;
    JournalWriter writer(setup.disk.commit(), nullptr, setup.log, &setup.metrics);
    setup.disk.room_for = 1000;
    writer.add(setup.disk.item("large", 5000, true));
    writer.add(setup.disk.item("small"));
    CHECK(eventually([&] { return setup.disk.durable("small") == true; }));
    writer.flush(10s);
    writer.add(setup.disk.item("later"));
    CHECK(eventually([&] { return setup.disk.durable("later") == true; }));
    CHECK_FALSE(setup.disk.durable("large"));
    CHECK(writer.pendingBytes() == 5000);
    setup.disk.room_for = SIZE_MAX;
    CHECK(eventually([&] { return setup.disk.durable("large") == true; }));
}

TEST_CASE("a large item is not even tried while the disk has only its reserve left",
          "[unit][controller]") {
    Setup setup;
    std::atomic<std::uint64_t> free{50};
    const DiskReserve reserve([&] { return DiskSpace{1000, free.load()}; }, 100);
    JournalWriter writer(setup.disk.commit(), &reserve, setup.log, &setup.metrics);
    writer.add(setup.disk.item("large", 1U << 20U, true));
    writer.add(setup.disk.item("small"));
    CHECK(eventually([&] { return setup.disk.durable("small") == true; }));
    CHECK(setup.disk.failures == 0);
    CHECK_FALSE(setup.disk.durable("large"));
    free = 500;
    CHECK(eventually([&] { return setup.disk.durable("large") == true; }));
    CHECK(setup.disk.failures == 0);
}

TEST_CASE("a writer that ends tries once more, then reports the items that it gives up",
          "[unit][controller]") {
    Setup setup;
    {
        JournalWriter writer(setup.disk.commit(), nullptr, setup.log, &setup.metrics);
        setup.disk.room_for = 50;
        writer.add(setup.disk.item("refused"));
        writer.add(setup.disk.item("large", 5000, true));
        writer.add(setup.disk.item("tiny", 10));
        CHECK(eventually([&] { return setup.disk.failures > 2; }));
        setup.disk.room_for = 1000;
    }
    CHECK(setup.disk.durable("refused") == true);
    CHECK(setup.disk.durable("tiny") == true);
    CHECK(setup.disk.durable("large") == false);
}

TEST_CASE("a burst of one tenant's items is written in small steps, in turn with other tenants",
          "[unit][controller]") {
    Setup setup;
    JournalWriter writer(setup.disk.commit(), nullptr, setup.log, &setup.metrics);
    setup.disk.stands = true;
    const auto add = [&](const std::string& tenant, const std::string& name, bool alone) {
        JournalWriter::Item item = setup.disk.item(name, 1U << 20U, alone);
        item.tenant = tenant;
        writer.add(std::move(item));
    };
    for (int i = 0; i < 64; ++i) add("loud", "loud" + std::to_string(i), true);
    add("quiet", "result", true);
    add("quiet", "record", false);
    CHECK(writer.pendingOf("loud") == 64U << 20U);
    CHECK(writer.pendingOf("quiet") == 2U << 20U);
    CHECK(writer.pendingShares(3U << 20U) == 5U << 20U);
    setup.disk.stands = false;
    CHECK(eventually([&] { return writer.pendingBytes() == 0; }));
    const std::vector<std::string> written = setup.disk.onDisk();
    const auto place = [&](const std::string& name) {
        return std::find(written.begin(), written.end(), name) - written.begin();
    };
    CHECK(written.size() == 66);
    CHECK(place("result") < 10);
    CHECK(place("record") < 10);
    CHECK(place("loud63") == 65);
    CHECK(writer.pendingOf("loud") == 0);
}
