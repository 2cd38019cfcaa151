#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "api/cli/top/Screen.h"

using namespace hearth;
using namespace hearth::cli;

namespace {

const WallTime kNow = fromUnixMillis(1'795'773'600'000);

Json poolDocument(const std::string& name, int ready, const std::string& degraded = {}) {
    Json conditions = {{{"type", "Ready"}, {"status", "True"}, {"reason", "Filled"}}};
    if (!degraded.empty()) {
        conditions.push_back({{"type", "Degraded"}, {"status", "True"}, {"message", degraded}});
    }
    return {{"metadata", {{"name", name}}},
            {"status",
             {{"ready", ready},
              {"claimed", 1},
              {"creating", 2},
              {"desired", 4},
              {"waiting", 3},
              {"missRate", 0.25},
              {"conditions", conditions}}}};
}

Json workspaceDocument(const std::string& id, const std::string& name, int age) {
    return {{"id", id},
            {"name", name},
            {"tenant", "red"},
            {"pool", "shell"},
            {"phase", "Active"},
            {"createdAt", formatRfc3339(kNow - std::chrono::seconds(age))},
            {"idleExpiresAt", formatRfc3339(kNow + std::chrono::seconds(90))}};
}

Overview overviewOf(const std::vector<Json>& pools, const std::vector<Json>& workspaces) {
    Overview seen{.url = "http://127.0.0.1:8080", .version = "hearth 0.1.0, fake"};
    seen.pools = pools;
    seen.workspaces = workspaces;
    seen.loaded = true;
    return seen;
}

Overview usual() {
    Overview seen = overviewOf({poolDocument("shell", 3), poolDocument("python", 12)},
                               {workspaceDocument("ws_1111222233334444", "one", 30),
                                workspaceDocument("ws_aaaabbbbccccdddd", "two", 20),
                                workspaceDocument("ws_5555666677778888", "three", 300)});
    seen.running["ws_aaaabbbbccccdddd"] = 2;
    return seen;
}

std::vector<std::string> texts(const Screen& screen) {
    std::vector<std::string> lines;
    for (const ScreenLine& line : screen) lines.push_back(line.text);
    return lines;
}

/// Returns the number of the first line that contains the text; fails the test if none does.
std::size_t lineWith(const Screen& screen, const std::string& text) {
    const std::vector<std::string> lines = texts(screen);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].find(text) != std::string::npos) return i;
    }
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    FAIL("no \"" << text << "\" in\n" << all);
    return 0;
}

bool shows(const Screen& screen, const std::string& text) {
    return std::ranges::any_of(texts(screen), [&](const std::string& line) {
        return line.find(text) != std::string::npos;
    });
}

/// A user in front of a screen, with the data that the screen shows.
struct User {
    Overview seen = usual();
    TopState state = {};
    ScreenSize size = {};

    void press(char32_t key) { state.press(key, seen, 5, kNow); }
    void type(std::u32string_view keys) {
        for (const char32_t one : keys) press(one);
    }
    Screen screen() const { return composeFrame(seen, state, size, kNow).lines; }
    std::string chosen() const {
        const TopTable rows = state.table(state.focus, seen, kNow);
        return rows.rows.at(state.placeIn(state.focus, rows)).key;
    }
};

}  // namespace

TEST_CASE("every screen fits its terminal, whatever its size", "[unit][cli][top]") {
    User user;
    user.seen =
        overviewOf({poolDocument("shell", 3, "its image cannot be unpacked: no space"),
                    poolDocument("a-name-that-is-much-longer-than-any-column", 1)},
                   {workspaceDocument("ws_1111222233334444", "日本語の名前です日本語", 30)});
    user.seen.failure = "nobody listens";
    for (const std::size_t columns : {1U, 2U, 5U, 20U, 80U, 300U}) {
        for (const std::size_t rows : {1U, 2U, 5U, 10U, 14U, 24U, 100U}) {
            for (const char32_t mode : {U' ', U'?', U'/', U'd'}) {
                user.size = {columns, rows};
                user.state = {};
                user.type(std::u32string(1, mode));
                const Screen screen = user.screen();
                REQUIRE(screen.size() == rows);
                for (const std::string& line : texts(screen)) REQUIRE(columnsOf(line) <= columns);
            }
        }
    }
}

TEST_CASE("a screen of 80 by 24 has sums, both lists and the keys", "[unit][cli][top]") {
    User user;
    std::vector<Json> claimed;
    for (int i = 0; i < 30; ++i) {
        claimed.push_back(workspaceDocument("ws_" + std::to_string(i), "", i));
        if (i < 7) claimed.back()["claim"] = {{"totalMs", i == 6 ? 40 : i}};
    }
    user.seen.claims.add(claimed, kNow);
    user.seen.pressure = {{"cpu", 12}, {"memory", 0}, {"io", 3}};
    const Screen screen = user.screen();
    CHECK(shows(screen, "http://127.0.0.1:8080  hearth 0.1.0, fake"));
    CHECK(shows(screen, "every 2s"));
    CHECK(shows(screen, "sandboxes: 15 ready, 2 claimed, 4 creating; waiting claims: 6"));
    CHECK(
        shows(screen, "claims seen in the last minute: 0.50/s, median 3.0 ms, worst 40.0 ms (7)"));
    CHECK_FALSE(shows(screen, "…"));
    CHECK(shows(screen, "cpu 12%, memory 0%, disk 3%"));
    CHECK(shows(screen, "[ ] pools 2 of 2, by NAME"));
    CHECK(shows(screen, "[*] workspaces 3 of 3, by AGE"));
    CHECK(lineWith(screen, "python") < lineWith(screen, "shell  "));
    const std::vector<std::string> lines = texts(screen);
    const std::string two = lines[lineWith(screen, "ws_aaaabbbb")];
    CHECK(two.starts_with("> ws_aaaabbbb  two"));  // the youngest, under the cursor
    for (const char* text : {"red", "shell", "Active", "20s", "90s", "  2"}) {
        CHECK(two.find(text) != std::string::npos);
    }
    CHECK(lines.back().find("q quit") != std::string::npos);
}

TEST_CASE("the reason of a degraded pool is shown in words", "[unit][cli][top]") {
    User user;
    user.seen = overviewOf({poolDocument("shell", 0, "no space"), poolDocument("b", 0, "x"),
                            poolDocument("c", 0, "x")},
                           {});
    const Screen screen = user.screen();
    CHECK(shows(screen, "degraded pool shell: no space"));
    CHECK(shows(screen, "and 1 more degraded"));
    CHECK(shows(screen, "Degraded: no"));
}

TEST_CASE("names from tenants neither move the cursor nor shift a column", "[unit][cli][top]") {
    const std::string hostile = "a\x1b[2J\r\n\t\x07\u009b31m\u202e\u200b\u2028\ufeffz";
    const std::string shown = cellText(hostile);
    CHECK(shown == "a?[2J?????31m????z");
    CHECK(cellText("\u0301e\u0301\u0301\u0301\u0301") == "e\u0301\u0301");
    CHECK(cellText("\xff\xfe") == "\ufffd\ufffd");
    CHECK(columnsOf("日本") == 4);
    CHECK(columnsOf("e\u0301") == 1);
    CHECK(fitted("日本語", 5) == "日本…");
    CHECK(fitted("日本語", 4) == "日… ");
    CHECK(fitted("ab", 4, true) == "  ab");
    CHECK(fitted("abc", 0).empty());

    User user;
    user.seen = overviewOf({poolDocument(hostile, 1, hostile)},
                           {workspaceDocument("ws_\x1b[2J", hostile, 1)});
    user.type(U"d");
    for (const std::string& line : texts(user.screen())) {
        CHECK(std::ranges::none_of(line, [](char c) { return c >= 0 && c < ' '; }));
    }
}

TEST_CASE("rows sort by number or text, either way, and keep the rest stable", "[unit][cli][top]") {
    User user;
    user.press(Key::Tab);
    CHECK(user.chosen() == "python");
    user.type(U"s");  // by READY
    CHECK(user.chosen() == "shell");
    user.type(U"r");
    CHECK(user.chosen() == "python");  // 12 before 3: numbers, not texts
    CHECK(shows(user.screen(), "[*] pools 2 of 2, by READY reversed"));
    user.state.sortBy("runs");
    CHECK_THROWS_WITH(user.state.sortBy("colour"), "there is no column \"colour\"");
    user.press(Key::Tab);
    CHECK(user.state.lists.at(TopList::Workspaces).sort == 7);
}

TEST_CASE("the cursor stays on its row when rows are added, and at its place when the row goes",
          "[unit][cli][top]") {
    User user;
    user.press(Key::Down);
    CHECK(user.chosen() == "ws_1111222233334444");
    user.seen.workspaces.push_back(workspaceDocument("ws_new", "new", 1));
    CHECK(user.chosen() == "ws_1111222233334444");
    user.press(Key::End);
    CHECK(user.chosen() == "ws_5555666677778888");
    user.seen.workspaces.erase(2);
    CHECK(user.chosen() == "ws_1111222233334444");
    user.press(Key::PageUp);
    CHECK(user.chosen() == "ws_new");
    user.type(U"jjk");
    CHECK(user.chosen() == "ws_aaaabbbbccccdddd");
}

TEST_CASE("a filter shows rows with a text in any column until Esc", "[unit][cli][top]") {
    User user;
    user.type(U"/THREq");
    CHECK(user.state.mode == TopMode::Filter);
    CHECK(shows(user.screen(), "filter: THREq_"));
    user.press(Key::Backspace);
    user.press(Key::Enter);
    CHECK(shows(user.screen(), "workspaces 1 of 3, by AGE, with \"THRE\""));
    CHECK(user.chosen() == "ws_5555666677778888");
    user.press(Key::Escape);
    CHECK(shows(user.screen(), "workspaces 3 of 3"));
    user.type(U"/5555666677778888");  // longer than the part of the id that the table shows
    CHECK(shows(user.screen(), "workspaces 1 of 3"));
    user.press(Key::Backspace);
    user.press(Key::Escape);
    CHECK(user.state.filter.empty());
}

TEST_CASE("a workspace ends after a yes to the question, which names it", "[unit][cli][top]") {
    User user;
    user.type(U"d");
    CHECK(user.state.endings.empty());
    CHECK(shows(user.screen(), "end workspace ws_aaaabbbb (two) and all that runs in it? y/N"));
    user.seen.workspaces.erase(1);
    user.type(U"y");
    // The one that the question named.
    CHECK(user.state.endings == std::vector<std::string>{"ws_aaaabbbbccccdddd"});
    CHECK(shows(user.screen(), "ending ws_aaaabbbb …"));
    user.press(Key::Delete);
    user.press(Key::Enter);
    CHECK(user.state.endings.size() == 1);
    CHECK(shows(user.screen(), "not ended"));
    user.press(Key::Tab);
    user.type(U"d");
    CHECK(user.state.mode == TopMode::Browse);
    CHECK(shows(user.screen(), "Tab chooses the workspaces"));
}

TEST_CASE("an opened workspace shows its runs, its use and its sentence", "[unit][cli][top]") {
    User user;
    user.press(Key::Enter);
    CHECK(user.state.mode == TopMode::Detail);
    CHECK(shows(user.screen(), "asking"));
    user.seen.opened = {.id = user.state.target,
                        .sentence = "Its 12 ms were spent mostly on bind.",
                        .usage = {{"cpuMs", 1500},
                                  {"memoryBytes", 1024 * 1024},
                                  {"memoryPeakBytes", 20 * 1024 * 1024},
                                  {"diskBytes", 512},
                                  {"diskLimitBytes", 67108864},
                                  {"processes", 3}},
                        .runs = {{{"id", "ex_1"},
                                  {"status", "ok"},
                                  {"language", nullptr},
                                  {"exitCode", 0},
                                  {"durationMs", 12.34},
                                  {"startedAt", formatRfc3339(kNow)}}},
                        .loaded = true};
    const Screen screen = user.screen();
    for (const char* text :
         {"ws_aaaabbbbccccdddd", "two", "1.5 s", "1 MiB (at most 20 MiB)", "512 B of 64 MiB",
          "Its 12 ms", "ex_1", "12.3ms", "command", "0s ago", "Esc back"}) {
        CHECK(shows(screen, text));
    }
    user.type(U"d");
    CHECK(shows(user.screen(), "Its 12 ms"));  // still shown under the question
    user.type(U"n");
    CHECK(user.state.mode == TopMode::Detail);
    user.press(Key::Escape);
    CHECK(user.state.mode == TopMode::Browse);
}

TEST_CASE("a lost server is reported at the top, and the last numbers stay in grey",
          "[unit][cli][top]") {
    User user;
    user.seen.failure = "connection refused";
    user.seen.retry_in = std::chrono::seconds(4);
    const Screen screen = user.screen();
    CHECK(texts(screen)[0].starts_with("LOST THE SERVER, asks again in 4 s: connection refused"));
    CHECK(screen[lineWith(screen, "sandboxes: 15 ready")].style == LineStyle::Dim);
}

TEST_CASE("keys change the interval within its bounds, and pause", "[unit][cli][top]") {
    User user;
    user.type(U"+");
    CHECK(user.state.interval == std::chrono::seconds(4));
    user.type(U"---------");
    CHECK(user.state.interval == kShortestInterval);
    user.type(U"+++++++++++");
    CHECK(user.state.interval == kLongestInterval);
    user.type(U"p");
    CHECK(user.state.paused);
    CHECK(shows(user.screen(), "PAUSED"));
    user.type(U"q");
    CHECK(user.state.quit);
}

TEST_CASE("text for a pipe has every row, in full", "[unit][cli][top]") {
    std::vector<Json> workspaces;
    for (int i = 0; i < 60; ++i) {
        workspaces.push_back(workspaceDocument("ws_" + std::to_string(i), std::string(40, 'n'), i));
    }
    const Overview seen = overviewOf({poolDocument("shell", 3)}, workspaces);
    const std::string text = composeText(seen, {}, kNow);
    CHECK(std::ranges::count(text, '\n') > 64);
    CHECK(text.find("ws_59 ") != std::string::npos);
    CHECK(text.find(std::string(40, 'n') + " ") != std::string::npos);
    CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("answers with holes make rows with zeros and dashes", "[unit][cli][top]") {
    User user;
    user.seen.pools = nullptr;
    user.seen.workspaces = Json::array();
    CHECK(shows(user.screen(), "pools 0 of 0"));
    CHECK(shows(user.screen(), "workspaces 0 of 0"));
    user.seen.pools = {nullptr, {{"status", "odd"}}, 7};
    user.seen.workspaces = {1, Json::object()};
    CHECK(shows(user.screen(), "sandboxes: 0 ready"));
    CHECK(shows(user.screen(), "pools 3 of 3"));
    CHECK(shows(user.screen(), "workspaces 2 of 2"));
    CHECK(shows(user.screen(), "> -"));
}

TEST_CASE("claims of the last minute have a rate and times", "[unit][cli][top]") {
    ClaimWindow window;
    const auto claim = [](const char* id, int age, const Json& ms) {
        Json one = workspaceDocument(id, "", age);
        one["claim"] = {{"totalMs", ms}};
        return one;
    };
    window.add({claim("old", 61, 500), claim("a", 50, 1), claim("b", 40, nullptr),
                claim("c", 30, nullptr)},
               kNow);
    CHECK(window.perSecond() == Approx(3.0 / 60));
    CHECK(window.unmeasured() == "c");
    window.measured("c", 9.0);
    CHECK(window.unmeasured() == "b");
    window.measured("b", std::nullopt);  // it ended before its figures were fetched
    CHECK(window.unmeasured().empty());
    window.add(Json::array({claim("d", 20, 2)}), kNow);
    CHECK(window.milliseconds() == std::vector<double>{1, 2, 9});
    window.add(nullptr, kNow + std::chrono::seconds(35));
    CHECK(window.milliseconds() == std::vector<double>{2});
}
