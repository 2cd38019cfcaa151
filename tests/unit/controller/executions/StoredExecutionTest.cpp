#include <catch2/catch.hpp>

#include "controller/executions/StoredExecution.h"
#include "tests/support/Support.h"
#include "tests/unit/controller/journal/Desk.h"

using namespace hearth;
using namespace hearth::controller;
using namespace hearth::controller::test;
using namespace hearth::test;

namespace {

/// The stored data of an execution that has just ended.
class Kept final : public Execution {
public:
    const std::string& id() const override { return state.id; }
    ExecutionView viewUpTo(std::uint64_t most) const override {
        ExecutionView view = state;
        for (const OutputChunk& chunk : chunks) {
            view.kept_bytes += chunk.bytes.size();
            view.output_end = chunk.offset + chunk.bytes.size();
        }
        for (const ResultPtr& result : results) view.result_bytes += result->document.size();
        view.result_count = results.size();
        view.withheld = view.kept_bytes + view.result_bytes > most;
        return view;
    }
    bool finished() const override { return true; }
    bool wait(std::chrono::milliseconds) override { return true; }
    std::optional<OutputChunk> read(std::uint64_t offset, std::size_t most) const override {
        for (const OutputChunk& chunk : chunks) {
            if (chunk.offset + chunk.bytes.size() <= offset) continue;
            const std::uint64_t from = std::max(offset, chunk.offset);
            return OutputChunk{
                from, chunk.channel,
                chunk.bytes.substr(static_cast<std::size_t>(from - chunk.offset), most),
                from > offset ? state.gap_stderr : 0};
        }
        return std::nullopt;
    }
    ResultPtr resultAt(std::size_t index) const override {
        return index < results.size() ? results[index] : nullptr;
    }
    std::shared_ptr<void> subscribe(std::function<void()>) override { return nullptr; }

    void print(int channel, std::string bytes, std::uint64_t gap = 0) {
        const std::uint64_t at =
            chunks.empty() ? 0 : chunks.back().offset + chunks.back().bytes.size();
        chunks.push_back({at + gap, channel, std::move(bytes)});
    }

    ExecutionView state;
    std::vector<OutputChunk> chunks;
    std::vector<ResultPtr> results;
};

struct ExecutionDesk : JournalDesk {
    std::shared_ptr<Execution> store(const std::shared_ptr<Kept>& kept) {
        kept->state.id = "ex_1";
        kept->state.status = ExecutionStatus::Ok;
        const ExecutionView view = kept->viewUpTo(0);
        ExecutionRecord record{"ex_1", "ws_1",           "t", "f", executionDocument(view),
                               {},     1'700'000'000'000};
        std::function<void(const Journal::PutPiece&)> apart;
        if (keepsApart(view)) {
            apart = [kept](const Journal::PutPiece& put) { putApart(*kept, put); };
        } else {
            record.output = packedOutput(*kept);
        }
        journal.record(record, {}, std::move(apart));
        return storedExecution(*journal.execution("ex_1"), journal);
    }
};

/// Returns all that a reader gets, in order, each piece with its offset and channel.
std::string toldFrom(const Execution& execution, std::uint64_t from, std::size_t most) {
    std::string all;
    std::uint64_t at = from;
    std::uint64_t end = UINT64_MAX;
    int channel = 0;
    while (const auto chunk = execution.read(at, most)) {
        CHECK(chunk->offset >= at);
        CHECK(chunk->bytes.size() <= most);
        if (chunk->offset != end || chunk->channel != channel) {
            all += "\n" + std::to_string(chunk->offset) + "/" + std::to_string(chunk->channel);
        }
        all += chunk->bytes;
        channel = chunk->channel;
        at = end = chunk->offset + chunk->bytes.size();
    }
    return all;
}

void compare(const Execution& stored, const Execution& kept) {
    const ExecutionView view = stored.viewUpTo(0);
    const ExecutionView was = kept.viewUpTo(0);
    CHECK(view.kept_bytes == was.kept_bytes);
    CHECK(view.output_end == was.output_end);
    CHECK(view.result_count == was.result_count);
    CHECK(view.result_bytes == was.result_bytes);
    for (const std::size_t most : {1'000U, 100'000U, 3'000'000U}) {
        CHECK(toldFrom(stored, 0, most) == toldFrom(kept, 0, most));
    }
    for (std::uint64_t from = was.output_end + 1; from > 0; from = from * 2 / 3) {
        CHECK(toldFrom(stored, from, 1U << 20U) == toldFrom(kept, from, 1U << 20U));
    }
    for (std::size_t i = 0; i < was.result_count; ++i) {
        REQUIRE(stored.resultAt(i));
        CHECK(stored.resultAt(i)->document == kept.resultAt(i)->document);
        CHECK(stored.resultAt(i)->behind == kept.resultAt(i)->behind);
    }
    CHECK_FALSE(stored.resultAt(was.result_count));
}

}  // namespace

TEST_CASE("a short output is stored in the record", "[unit][controller]") {
    ExecutionDesk executions;
    const auto kept = std::make_shared<Kept>();
    kept->print(1, "out");
    kept->print(2, "err", 10);
    kept->state.gap_stderr = 4;
    kept->results.push_back(readResult("{\"main\":true,\"mime\":{\"text/plain\":\"1\"}}", 3));
    CHECK_FALSE(keepsApart(kept->viewUpTo(0)));
    const auto stored = executions.store(kept);
    compare(*stored, *kept);
    CHECK(stored->view().stdout_bytes == "out\n[… 6 bytes were not kept …]\n");
    CHECK(stored->view().stderr_bytes == "[… 4 bytes were not kept …]\nerr");
    CHECK(stored->view().results.size() == 1);
    CHECK_FALSE(stored->readsDisk());
}

TEST_CASE("a long output is read back from the journal unchanged, from any place",
          "[unit][controller]") {
    ExecutionDesk executions;
    const auto kept = std::make_shared<Kept>();
    for (int i = 0; i < 30; ++i) {
        kept->print(1 + i % 2, std::string(static_cast<std::size_t>(i) * 4'000 + 1, 'a'),
                    i == 20 ? 1'000'000 : 0);
    }
    for (int i = 0; i < 3'000; ++i) kept->print(1 + i % 2, "x");
    kept->state.gap_stderr = 400'000;
    kept->results.push_back(readResult("{\"main\":true,\"mime\":{\"text/plain\":\"1\"}}", 3));
    kept->results.push_back(readResult(
        "{\"main\": false, \"mime\": {\"text/html\": \"" + std::string(200'000, 'h') + "\"}}", 9));
    const auto stored = executions.store(kept);
    compare(*stored, *kept);
    CHECK(stored->viewUpTo(1000).withheld);
    CHECK(stored->readsDisk());
    const std::string_view mark = "\n[… 600000 bytes were not kept …]\n";  // in each channel
    CHECK(stored->view().stdout_bytes.size() + stored->view().stderr_bytes.size() ==
          kept->viewUpTo(0).kept_bytes + 2 * mark.size());
}

TEST_CASE("output that has left the journal is missing, and asking for it is no error",
          "[unit][controller]") {
    ExecutionDesk executions;
    const auto kept = std::make_shared<Kept>();
    kept->print(1, std::string(500'000, 'a'));
    const auto stored = executions.store(kept);
    REQUIRE(stored->read(0, 10));
    executions.journal.writeNow([](Database& database) {
        Statement(database, "DELETE FROM outputs WHERE place > 100000").run();
    });
    std::uint64_t at = 0;
    while (const auto chunk = stored->read(at, 50'000)) at = chunk->offset + chunk->bytes.size();
    CHECK(at >= 100'000);
    CHECK(at < 500'000);
    CHECK(stored->view().stdout_bytes.size() == at);
}
