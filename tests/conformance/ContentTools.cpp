#include "tests/conformance/Conformance.h"

namespace hearth::mcp::conformance {
namespace {

/// Returns a tool that always answers the same blocks.
Tool fixed(const std::string& name, const std::string& description, Json content,
           bool is_error = false) {
    ToolResult result;
    result.content = std::move(content);
    result.is_error = is_error;
    return fixture(name, description, {},
                   [result](const CallContext&, const Arguments&) { return result; });
}

Json image() {
    return {{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}};
}

Json embedded(const std::string& uri, const std::string& mime, const std::string& text) {
    return {{"type", "resource"}, {"resource", {{"uri", uri}, {"mimeType", mime}, {"text", text}}}};
}

/// Returns a tool with keywords of JSON Schema 2020-12 that a server must pass on unchanged.
Tool schemaTool() {
    Tool tool = fixture("json_schema_2020_12_tool", "Has a schema with rare keywords.", {},
                        [](const CallContext&, const Arguments&) { return textResult("ok"); });
    tool.schema = {
        {"$schema", "https://json-schema.org/draft/2020-12/schema"},
        {"type", "object"},
        {"$defs",
         {{"address",
           {{"$anchor", "addressDef"},
            {"type", "object"},
            {"properties", {{"street", {{"type", "string"}}}, {"city", {{"type", "string"}}}}}}}}},
        {"properties",
         {{"name", {{"type", "string"}}},
          {"address", {{"$ref", "#/$defs/address"}}},
          {"contactMethod", {{"type", "string"}, {"enum", {"phone", "email"}}}},
          {"phone", {{"type", "string"}}},
          {"email", {{"type", "string"}}}}},
        {"allOf",
         Json::array(
             {{{"anyOf", Json::array({{{"required", {"phone"}}}, {{"required", {"email"}}}})}}})},
        {"if",
         {{"properties", {{"contactMethod", {{"const", "phone"}}}}},
          {"required", {"contactMethod"}}}},
        {"then", {{"required", {"phone"}}}},
        {"else", {{"required", {"email"}}}},
        {"additionalProperties", false}};
    return tool;
}

Tool headerTool() {
    Tool tool = fixture("test_x_mcp_header", "Has a parameter that travels as a header, too.",
                        {{"region", "string"}}, [](const CallContext&, const Arguments& arguments) {
                            return textResult("region " + arguments.textOr("region", ""));
                        });
    tool.schema["properties"]["region"]["x-mcp-header"] = "Region";
    return tool;
}

}  // namespace

std::vector<Tool> contentTools() {
    const Json text = {{"type", "text"}, {"text", "This is a simple text response for testing."}};
    return {
        fixed("test_simple_text", "Answers a text.", Json::array({text})),
        fixed("test_image_content", "Answers an image.", Json::array({image()})),
        fixed("test_audio_content", "Answers a sound.",
              Json::array({{{"type", "audio"}, {"data", kWav}, {"mimeType", "audio/wav"}}})),
        fixed("test_embedded_resource", "Answers an embedded resource.",
              Json::array({embedded("test://embedded-resource", "text/plain",
                                    "This is an embedded resource content.")})),
        fixed("test_multiple_content_types", "Answers a text, an image and a resource.",
              Json::array({{{"type", "text"}, {"text", "Multiple content types test:"}},
                           image(),
                           embedded("test://mixed-content-resource", "application/json",
                                    R"({"test":"data","value":123})")})),
        fixed("test_error_handling", "Answers that it failed.",
              Json::array({{{"type", "text"},
                            {"text", "This tool intentionally returns an error for testing"}}}),
              true),
        schemaTool(),
        headerTool(),
    };
}

}  // namespace hearth::mcp::conformance
