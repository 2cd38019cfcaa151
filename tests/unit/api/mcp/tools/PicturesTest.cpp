#include <catch2/catch.hpp>

#include "api/mcp/tools/Content.h"
#include "api/mcp/tools/Pictures.h"
#include "api/mcp/tools/RunText.h"
#include "controller/contract/RichResults.h"

using namespace hearth;
using namespace hearth::mcp;

namespace {

std::string base64(std::size_t size) {
    return std::string(size / 4 * 4, 'A');
}

/// Returns an execution that showed one result for each of these bundles.
controller::ExecutionView showing(const std::vector<Json>& bundles) {
    controller::ExecutionView view;
    for (const Json& mime : bundles) {
        const Json document{{"main", false}, {"mime", mime}};
        view.results.push_back(controller::readResult(dumpJson(document), 0));
        REQUIRE(view.results.back());
    }
    return view;
}

}  // namespace

TEST_CASE("a picture has its full size if there is room, else its smaller size", "[unit][mcp]") {
    const Json both{{"image/png", base64(400'000)}, {"image/jpeg", base64(80'000)}};
    const ShownPictures one = picturesOf(showing({both}), 700'000);
    REQUIRE(one.of_result.size() == 1);
    CHECK(one.of_result.at(0).type == "image/png");
    const ShownPictures two = picturesOf(showing({both, both}), 700'000);
    REQUIRE(two.of_result.size() == 2);
    CHECK(two.of_result.at(0).type == "image/jpeg");
    CHECK(two.of_result.at(1).base64.size() == 80'000);
    CHECK(two.left_out.empty());
}

TEST_CASE("pictures without room are counted by their types", "[unit][mcp]") {
    const Json large{{"image/png", base64(800'000)}};
    const Json small{{"image/png", base64(1'000)}, {"text/plain", "a"}};
    const Json other{{"image/gif", base64(1'000)}};
    const ShownPictures shown =
        picturesOf(showing({large, other, small, small, small, small}), 700'000);
    CHECK(shown.of_result.size() == 3);  // three of the first four results
    CHECK(shown.left_out.at("image/png") == 2);
    CHECK(shown.left_out.at("image/gif") == 1);
}

TEST_CASE("a refused form of a result is named with its reason, and other forms are shown",
          "[unit][mcp]") {
    Json bundle{{"text/plain", "shown"}};
    bundle["application/json"] = std::string("a\0b", 3);
    bundle["no type"] = "text";
    const ToolResult result = runResult(showing({bundle}));
    const std::string text = result.content.at(0).at("text");
    INFO(text);
    CHECK(text.find("--- shown ---\nshown") != std::string::npos);
    CHECK(text.find("\nno type is left out of a result: ") != std::string::npos);
}

TEST_CASE("a tool result is never longer than clients take", "[unit][mcp]") {
    ToolResult result;
    result.text("first").encodedImage(base64(700'000), "image/png");
    CHECK(result.room() < 200'000);
    result.encodedImage(base64(400'000), "image/jpeg").text(std::string(300'000, '\x01'));
    CHECK(result.room() == 0);
    const Json message = result.message();
    CHECK(dumpJson(message).size() <= kResultCap + 100);
    REQUIRE(message.at("content").size() == 4);
    CHECK(message["content"][0]["text"] == "first");
    CHECK(message["content"][1]["type"] == "image");
    CHECK(message["content"][2]["text"].get<std::string>().find("left out") != std::string::npos);
    ToolResult fits;
    fits.text(std::string(100'000, '\n'));
    CHECK(fits.message()["content"] == fits.content);
}
