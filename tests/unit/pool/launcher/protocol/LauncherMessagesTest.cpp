#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <system_error>

#include "base/Ids.h"
#include "pool/launcher/protocol/LauncherMessages.h"

namespace hearth::pool::launcher {
namespace {

Request createRequest() {
    CreateRequest create;
    create.id = newId("sb_");
    create.spec.image = "python-3.11";
    create.spec.image_digest = "sha256:" + std::string(64, 'a');
    create.spec.storage = Storage::Memory;
    create.spec.layer = "sha256:" + std::string(64, 'b');
    create.spec.gpus = {"GPU-0f3c2a9e-1111-2222-3333-444455556666",
                        "MIG-0f3c2a9e-1111-2222-3333-444455556667"};
    create.spec.labels = {{"pool", "python"}, {"generation", "3"}};
    return {7, create};
}

/// Returns the packet of createRequest() with one change.
std::string changed(const std::function<void(Json&)>& change) {
    Json json = parseJson(encodeRequest(createRequest()));
    change(json);
    return dumpJson(json);
}

/// True for a name or a reference that is neither a path nor a flag.
bool plainImage(const std::string& image) {
    return image.front() != '/' && image.front() != '.' && image.front() != '-' &&
           image.find("..") == std::string::npos;
}

}  // namespace

TEST_CASE("every request is decoded as it was encoded", "[unit][launcher]") {
    const Request create = createRequest();
    const Request decoded = decodeRequest(encodeRequest(create));
    const auto& before = std::get<CreateRequest>(create.body);
    const auto& after = std::get<CreateRequest>(decoded.body);
    CHECK(decoded.seq == 7);
    CHECK(after.id == before.id);
    CHECK(after.spec.image == before.spec.image);
    CHECK(after.spec.image_digest == before.spec.image_digest);
    CHECK(after.spec.limits == before.spec.limits);
    CHECK(after.spec.storage == before.spec.storage);
    CHECK(after.spec.layer == before.spec.layer);
    CHECK(after.spec.gpus == before.spec.gpus);
    CHECK(after.spec.labels == before.spec.labels);

    const SweepRequest sweep{{newId("sb_"), newId("sb_")}, newId("sb_"), newId("sb_")};
    const auto swept = std::get<SweepRequest>(decodeRequest(encodeRequest({1, sweep})).body);
    CHECK(swept.keep == sweep.keep);
    CHECK((swept.after == sweep.after && swept.until == sweep.until));
    CHECK(std::get<PrepareImageRequest>(
              decodeRequest(encodeRequest({1, PrepareImageRequest{"shell"}})).body)
              .name == "shell");
    for (const char* name : {"shell", "python:3.9-slim", "registry:5000/team/app:1"}) {
        CHECK(std::get<DescribeImageRequest>(
                  decodeRequest(encodeRequest({1, DescribeImageRequest{name}})).body)
                  .name == name);
    }
    const FindRequest find{newId("sb_")};
    CHECK(std::get<FindRequest>(decodeRequest(encodeRequest({1, find})).body).id == find.id);
    const NarrowRequest narrow{newId("sb_"), 500, 64ULL << 20U, 32};
    const auto narrowed = std::get<NarrowRequest>(decodeRequest(encodeRequest({1, narrow})).body);
    CHECK(narrowed.id == narrow.id);
    CHECK((narrowed.milli_cpu == 500 && narrowed.memory_bytes == 64ULL << 20U));
    CHECK(narrowed.pids == 32);
    for (const bool count_files : {false, true}) {
        const ListRequest list{"", count_files};
        const auto listed = std::get<ListRequest>(decodeRequest(encodeRequest({1, list})).body);
        CHECK((listed.after.empty() && listed.count_files == count_files));
    }
    CHECK(std::holds_alternative<FactsRequest>(
        decodeRequest(encodeRequest({1, FactsRequest{}})).body));
}

TEST_CASE("the outcome of a limits change is decoded as it was encoded, and wrong ones are refused",
          "[unit][launcher]") {
    CHECK_FALSE(decodeInUse(encodeInUse(std::nullopt)));
    for (const LimitInUse& in_use : {LimitInUse{LimitInUse::Of::Memory, 43'000'000},
                                     LimitInUse{LimitInUse::Of::Processes, 12}}) {
        CHECK(decodeInUse(encodeInUse(in_use)) == in_use);
    }
    for (const char* bad : {R"([])", R"({"inUse":"memory"})", R"({"inUse":"cpu","used":1})",
                            R"({"inUse":"pids","used":-1})", R"({"used":1})"}) {
        CHECK_THROWS_AS(decodeInUse(parseJson(bad)), Error);
    }
}

TEST_CASE("a page of a sweep that keeps thousands fits into one packet", "[unit][launcher]") {
    SweepRequest sweep{{}, newId("sb_"), newId("sb_")};
    for (std::size_t i = 0; i < kMostKept; ++i) sweep.keep.push_back(newId("sb_"));
    const std::string packet = encodeRequest({UINT32_MAX, sweep});
    CHECK(packet.size() <= kMaxPacket);
    CHECK(std::get<SweepRequest>(decodeRequest(packet).body).keep.size() == kMostKept);
    sweep.keep.push_back(newId("sb_"));
    CHECK_THROWS_AS(decodeRequest(encodeRequest({1, sweep})), BadRequest);
    CHECK_THROWS_AS(decodeRequest(encodeRequest({1, SweepRequest{{}, "../etc", ""}})), BadRequest);
}

TEST_CASE("pages of a sweep meet every sandbox once", "[unit][launcher]") {
    std::set<SandboxId> present;
    for (int i = 0; i < 20; ++i) present.insert(newId("sb_"));
    const std::vector<SandboxId> all(present.begin(), present.end());
    const std::set<SandboxId> born{all[9], all[19]};
    std::set<SandboxId> gone;
    for (const SweepRequest& page :
         {SweepRequest{{all[0]}, "", all[9]}, SweepRequest{{}, all[9], ""}}) {
        for (const SandboxId& id : goneOf(page, present, born)) CHECK(gone.insert(id).second);
    }
    CHECK(gone.size() == 17);
    for (const std::size_t kept : {0U, 9U, 19U}) CHECK_FALSE(gone.contains(all[kept]));
}

TEST_CASE("the leftovers of a sweep are decoded as they were encoded, within bounds",
          "[unit][launcher]") {
    const std::vector<Leftover> two{{newId("sb_"), "a control group stays busy"},
                                    {newId("sb_"), "it is mounted"}};
    CHECK(decodeLeftovers(encodeLeftovers(two)) == two);
    CHECK(decodeLeftovers(encodeLeftovers({})).empty());
    const std::vector<Leftover> many(kMostLeftovers + 5, {newId("sb_"), std::string(9999, 'x')});
    const Json told = encodeLeftovers(many);
    CHECK(encodeReply({1, told, {}, {}, {}}).size() <= kMaxPacket);
    CHECK(decodeLeftovers(told).size() == kMostLeftovers);
    for (const char* bad : {R"([])", R"({})", R"({"left":{}})", R"({"left":[{"id":"sb_"}]})",
                            R"({"left":[{"id":"../x","why":""}]})", R"({"left":[],"more":1})"}) {
        CHECK_THROWS_AS(decodeLeftovers(parseJson(bad)), Error);
    }
}

TEST_CASE("a request that breaks a rule is refused with its number", "[unit][launcher]") {
    const std::vector<std::function<void(Json&)>> changes{
        [](Json& j) { j["id"] = "sb_../../../../etc/passwd00000000"; },
        [](Json& j) { j["id"] = "ws_" + std::string(32, '0'); },
        [](Json& j) { j["more"] = 1; },
        [](Json& j) { j["spec"]["more"] = 1; },
        [](Json& j) { j["spec"].erase("pids"); },
        [](Json& j) { j["spec"]["image"] = "../x"; },
        [](Json& j) { j["spec"]["image"] = "-o"; },
        [](Json& j) { j["spec"]["image"] = "/etc"; },
        [](Json& j) { j["spec"]["image"] = "a/../../b:1"; },
        [](Json& j) { j["spec"]["image"] = "a:1:2"; },
        [](Json& j) { j["spec"]["image"] = ""; },
        [](Json& j) { j["spec"]["imageDigest"] = "sha256:../../../etc"; },
        [](Json& j) { j["spec"]["memory"] = -1; },
        [](Json& j) { j["spec"]["memory"] = 1.5; },
        [](Json& j) { j["spec"]["memory"] = 1; },
        [](Json& j) { j["spec"]["pids"] = "128"; },
        [](Json& j) { j["spec"]["pids"] = 40'000'000; },
        [](Json& j) { j["spec"]["milliCpu"] = 0; },
        [](Json& j) { j["spec"]["storage"] = "Tape"; },
        [](Json& j) { j["spec"]["layer"] = "../../etc"; },
        [](Json& j) { j["spec"].erase("layer"); },
        [](Json& j) { j["spec"].erase("gpus"); },
        [](Json& j) { j["spec"]["gpus"] = "GPU-0f3c2a9e-1111-2222-3333-444455556666"; },
        [](Json& j) { j["spec"]["gpus"][0] = "all"; },
        [](Json& j) { j["spec"]["gpus"][0] = "GPU-0F3C2A9E-1111-2222-3333-444455556666"; },
        [](Json& j) { j["spec"]["gpus"][1] = j["spec"]["gpus"][0]; },
        [](Json& j) { j["spec"]["gpus"][0] = 0; },
        [](Json& j) { j["spec"]["labels"]["x"] = 1; },
        [](Json& j) { j["spec"]["labels"]["x"] = std::string(300, 'x'); },
        [](Json& j) { j["spec"]["labels"][std::string(64, 'x')] = ""; },
        [](Json& j) { j["op"] = "format"; },
        [](Json& j) { j["op"] = "destroy"; },
    };
    for (const auto& change : changes) {
        const std::string packet = changed(change);
        INFO(packet);
        try {
            decodeRequest(packet);
            FAIL("it was taken");
        } catch (const BadRequest& e) {
            CHECK(e.seq() == 7);
        }
    }
    const std::vector<std::function<void(Json&)>> narrowings{
        [](Json& j) { j["id"] = "../" + std::string(32, '0'); },
        [](Json& j) { j["milliCpu"] = 9; },
        [](Json& j) { j["milliCpu"] = 1'024'001; },
        [](Json& j) { j["memory"] = 1 << 20; },
        [](Json& j) { j["memory"] = -1; },
        [](Json& j) { j["memory"] = "64Mi"; },
        [](Json& j) { j["pids"] = 3; },
        [](Json& j) { j["pids"] = 32'769; },
        [](Json& j) { j.erase("pids"); },
        [](Json& j) { j["workspace"] = 1 << 20; },
    };
    for (const auto& change : narrowings) {
        Json json = parseJson(encodeRequest({7, NarrowRequest{newId("sb_"), 500, 64 << 20, 32}}));
        change(json);
        INFO(json.dump());
        CHECK_THROWS_AS(decodeRequest(dumpJson(json)), BadRequest);
    }
    for (const char* op : {"addLayer", "removeLayer"}) {
        const std::string begin = std::string(R"({"seq":7,"op":")") + op + R"(","digest":")";
        CHECK_NOTHROW(decodeRequest(begin + "sha256:" + std::string(64, 'a') + "\"}"));
        CHECK_THROWS_AS(decodeRequest(begin + "sha256:../../../etc\"}"), BadRequest);
        CHECK_THROWS_AS(decodeRequest(begin + "\"}"), BadRequest);
    }
    CHECK_THROWS_AS(decodeRequest("[]"), BadRequest);
    CHECK_THROWS_AS(decodeRequest(""), BadRequest);
    CHECK_THROWS_AS(decodeRequest(R"({"seq":0,"op":"facts"})"), BadRequest);
}

TEST_CASE("a mutated request is refused or a valid one", "[unit][launcher]") {
    std::mt19937 random(7);
    const std::vector<std::string> seeds{
        encodeRequest(createRequest()), encodeRequest({2, SweepRequest{{newId("sb_")}}}),
        encodeRequest({3, PrepareImageRequest{"shell"}}), encodeRequest({4, ListRequest{}}),
        encodeRequest({5, NarrowRequest{newId("sb_"), 500, 64 << 20, 32}})};
    int taken = 0;
    for (int round = 0; round < 20'000; ++round) {
        std::string packet = seeds[static_cast<std::size_t>(round) % seeds.size()];
        for (auto changes = random() % 3 + 1; changes > 0 && !packet.empty(); --changes) {
            const std::size_t at = random() % packet.size();
            switch (random() % 4) {
                case 0:
                    packet[at] = static_cast<char>(random());
                    break;
                case 1:
                    packet.erase(at, random() % 8);
                    break;
                case 2:
                    packet.insert(at, packet, random() % packet.size(), random() % 16);
                    break;
                default:
                    packet.resize(at);
            }
        }
        try {
            const Request request = decodeRequest(packet);
            ++taken;
            if (const auto* create = std::get_if<CreateRequest>(&request.body)) {
                REQUIRE(isId(create->id, "sb_"));
                REQUIRE(plainImage(create->spec.image));
                REQUIRE(create->spec.limits.pids <= 32'768);
            } else if (const auto* image = std::get_if<PrepareImageRequest>(&request.body)) {
                REQUIRE(plainImage(image->name));
            }
        } catch (const BadRequest&) {
            continue;  // as it should be
        }
    }
    CHECK(taken > 0);  // some changes, as of a label's letters, do no harm
    CHECK(taken < 10'000);
}

TEST_CASE("no mutation of an answer crashes the server", "[unit][launcher]") {
    std::mt19937 random(11);
    const std::string seed = encodeReply({9, {{"digest", "sha256:x"}}, {}, {}, {}});
    for (int round = 0; round < 5'000; ++round) {
        std::string packet = seed;
        packet[random() % packet.size()] = static_cast<char>(random());
        try {
            decodeReply(packet);
        } catch (const Error&) {
            continue;
        }
    }
    SUCCEED();
}

TEST_CASE("failures cross with the code that a client may see", "[unit][launcher]") {
    const auto crossed = [](const std::exception& e) {
        return decodeReply(encodeReply(failureReply(5, e)));
    };
    try {
        throwFailure(crossed(Error(ErrorCode::NotFound, "no image").hint("build it")));
        FAIL("nothing was thrown");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::NotFound);
        CHECK(e.hint() == "build it");
    }
    try {
        throwFailure(crossed(std::system_error(ENOSPC, std::generic_category(), "write /secret")));
        FAIL("nothing was thrown");
    } catch (const Error& e) {
        CHECK(e.code() == ErrorCode::DiskFull);
        CHECK(std::string(e.what()).find("secret") == std::string::npos);
    }
    const Reply internal = crossed(std::runtime_error("runc create failed"));
    CHECK(internal.error == "INTERNAL");
    CHECK_THROWS_AS(throwFailure(internal), std::runtime_error);
    CHECK_NOTHROW(throwFailure(decodeReply(encodeReply({5, Json::object(), {}, {}, {}}))));
}

TEST_CASE("a found sandbox is decoded as it was encoded", "[unit][launcher]") {
    const Found found{newId("sb_"), true, {{"pool", "a"}}, 1'700'000'000'123, 121'600};
    const Found decoded = decodeFound(parseJson(dumpJson(encodeFound(found))));
    CHECK(decoded.id == found.id);
    CHECK(decoded.alive);
    CHECK(decoded.labels == found.labels);
    CHECK(decoded.created_unix_ms == found.created_unix_ms);
    CHECK(decoded.open_files == found.open_files);
}

TEST_CASE("an image is sent with its names and its digest", "[unit][launcher]") {
    const image::Image before{"slim", "sha256:" + std::string(64, 'a'), true, "", "python:3.9", "",
                              ""};
    const image::Image after = decodeImage(encodeImage(before));
    CHECK(after.name == before.name);
    CHECK(after.digest == before.digest);
    CHECK(after.unpacked);
    CHECK(after.reference == before.reference);
    CHECK_THROWS_AS(decodeImage(Json{{"name", "x"}}), Error);
}

TEST_CASE("a fetch and its outcome are decoded as they were encoded", "[unit][launcher]") {
    const FetchImageRequest fetch{"registry.example:5000/team/app:1", true, 60};
    const auto decoded = std::get<FetchImageRequest>(decodeRequest(encodeRequest({1, fetch})).body);
    CHECK(decoded.reference == fetch.reference);
    CHECK(decoded.insecure);
    CHECK(decoded.limit_s == 60);
    for (const char* bad : {"", "/etc/passwd", "--help", "a b"}) {
        CHECK_THROWS_AS(decodeRequest(encodeRequest({1, FetchImageRequest{bad, false, 60}})),
                        BadRequest);
    }
    CHECK_THROWS_AS(decodeRequest(encodeRequest({1, FetchImageRequest{"a:1", false, 4000}})),
                    BadRequest);
    const ForgetImagesRequest forget{{"sha256:" + std::string(64, 'a'), "python"}};
    CHECK(std::get<ForgetImagesRequest>(decodeRequest(encodeRequest({1, forget})).body).wanted ==
          forget.wanted);
    image::Image image;
    image.name = "ondemand-0123456789ab";
    image.digest = "sha256:" + std::string(64, 'b');
    const Fetched back = decodeFetched(encodeFetched({image, 12, 34}));
    CHECK(back.image.name == image.name);
    CHECK(back.pull_ms == 12);
    CHECK(back.unpack_ms == 34);
}

}  // namespace hearth::pool::launcher
