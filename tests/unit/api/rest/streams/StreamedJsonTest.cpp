#include <catch2/catch.hpp>
#include <future>
#include <thread>

#include "api/rest/streams/StreamedJson.h"
#include "tests/support/FakeHttp.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// Streams that end before their carrier does, like those of a front.
class Streams {
public:
    std::shared_ptr<FakeStream> of(const std::string& tenant) {
        return all_.emplace_back(std::make_shared<FakeStream>(tenant));
    }
    ~Streams() {
        for (const auto& stream : all_) stream->close();
    }

private:
    std::vector<std::shared_ptr<FakeStream>> all_;
};

/// Returns a source that blocks, as on a slow disk, until the test releases it.
rest::PieceSource held(std::shared_future<void> until) {
    return [until = std::move(until)](std::string&) {
        until.wait();
        return false;
    };
}

}  // namespace

TEST_CASE("long answers of one tenant leave another one every second turn", "[unit][rest]") {
    std::promise<void> all_there;
    std::promise<void> over;
    std::promise<void> done;
    std::atomic<int> theirs{0};
    std::atomic<int> between{0};
    rest::StreamedJson carrier;
    Streams streams;
    // Occupy the threads: one until all requests stand in line, the others until the end.
    const std::shared_future<void> to_the_end = over.get_future().share();
    carrier.send(streams.of("w"), held(to_the_end));
    carrier.send(streams.of("x"), held(to_the_end));
    carrier.send(streams.of("y"), held(to_the_end));
    carrier.send(streams.of("z"), held(all_there.get_future().share()));
    for (int i = 0; i < 50; ++i) {
        carrier.send(streams.of("greedy"),
                     [&, left = 100](std::string&) mutable { return ++theirs, --left > 0; });
    }
    carrier.send(streams.of("other"), [&, left = 24](std::string&) mutable {
        if (--left > 0) return true;
        between = theirs.load();
        done.set_value();
        return false;
    });
    all_there.set_value();
    const auto came = done.get_future().wait_for(std::chrono::seconds(20));
    over.set_value();
    REQUIRE(came == std::future_status::ready);
    CHECK(between < 24 * 8);  // a turn has at most eight pieces; theirs has 5000 in all
}

TEST_CASE("slow sources of one tenant do not delay another's answer", "[unit][rest]") {
    std::promise<void> over;
    const std::shared_future<void> until = over.get_future().share();
    const auto other = std::make_shared<FakeStream>("other");
    bool came = false;
    {
        rest::StreamedJson carrier;
        Streams streams;
        for (int i = 0; i < 8; ++i) carrier.send(streams.of("slow"), held(until));
        carrier.send(other, [](std::string& out) {
            out.append("all");
            return false;
        });
        came = eventually([&] { return other->finished.load(); });
        over.set_value();
    }
    CHECK(came);
    CHECK(other->sent == "all");
}

TEST_CASE("an answer is made by one thread at a time, however often it is asked for",
          "[unit][rest]") {
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    const auto stream = std::make_shared<FakeStream>("a");
    stream->automatic = false;
    {
        rest::StreamedJson carrier;
        carrier.send(stream, [&, left = 200](std::string& out) mutable {
            if (++inside != 1) met = true;
            out.append(64U << 10U, 'x');
            std::this_thread::yield();
            --inside;
            return --left > 0;
        });
        std::vector<std::jthread> readers;
        for (int i = 0; i < 3; ++i) {
            readers.emplace_back([&] {
                while (!stream->closed()) {
                    stream->drain();
                    std::this_thread::yield();
                }
            });
        }
        REQUIRE(eventually([&] { return stream->finished.load(); }));
    }
    CHECK_FALSE(met);
    CHECK(stream->sent.size() == 200U * (64U << 10U));
}

TEST_CASE("an answer ends with its client, even if its tenant has no turn left", "[unit][rest]") {
    std::promise<void> over;
    const std::shared_future<void> until = over.get_future().share();
    auto kept = std::make_shared<int>(0);
    const std::weak_ptr<int> seen = kept;
    bool gone = false;
    {
        rest::StreamedJson carrier;
        Streams streams;
        for (int i = 0; i < 4; ++i) carrier.send(streams.of("slow"), held(until));
        const auto stream = std::make_shared<FakeStream>("slow");
        carrier.send(stream, [kept = std::move(kept)](std::string&) { return *kept == 0; });
        stream->close();
        gone = eventually([&] { return seen.expired() && stream.use_count() == 1; });
        over.set_value();
    }
    CHECK(gone);
}
