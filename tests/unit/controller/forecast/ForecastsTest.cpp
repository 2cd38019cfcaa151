#include "controller/forecast/Forecasts.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::controller;
using namespace std::chrono_literals;

TEST_CASE("a pool's claims are counted once and recorded, and its idle time is summed",
          "[unit][forecast]") {
    const hearth::test::TempDir dir;
    Forecasts forecasts(dir.path());
    Moment at{TimePoint(1h), WallTime(1'767'571'200s)};
    CHECK(forecasts.look("p", at, {}, {2, 1, 3}).idle_seconds == 0);
    at.now += 10s;
    const Forecasts::News news = forecasts.look("p", at, {}, {2, 1, 0});
    CHECK(news.idle_seconds == Approx(30));
    CHECK(news.outlook.missed == Approx(0.5));
    CHECK(news.recorded);
    CHECK(hearth::test::readText(dir.file("p.trace")) ==
          "2026-01-05T00:00:00.000Z\n2026-01-05T00:00:00.000Z\n");
    forecasts.started("p", 2s);
    CHECK(forecasts.look("p", at, {}, {2, 1, 0}).outlook.lead_seconds == Approx(2));
    forecasts.forget("p");
    forecasts.started("p", 2s);
    CHECK(forecasts.look("p", at, {}, {}).outlook.lead_seconds == 0);
    CHECK_FALSE(Forecasts(dir.file("none")).look("p", at, {}, {1, 0, 0}).recorded);
}
