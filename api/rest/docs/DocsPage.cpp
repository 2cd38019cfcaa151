#include "api/rest/docs/DocsPage.h"

#include <nlohmann/json.hpp>

#include "base/http/Html.h"

namespace hearth::rest {
namespace {

constexpr const char* kStyle = R"css(
:root{color-scheme:light dark;--ink:#1d2125;--soft:#626a73;--line:#dfe3e7;--back:#fff;--card:#f7f8f9;
--get:#1a7f5a;--post:#1f5fbf;--put:#9a6700;--delete:#b42318;--patch:#7a3fb8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--soft:#9aa3ac;--line:#343a40;--back:#15181b;
--card:#1d2125;--get:#4cc38a;--post:#70a7ff;--put:#e0b04c;--delete:#ff8b7e;--patch:#c29bff}}
*{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);
background:var(--back)}main{max-width:60rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{margin:0}h2{margin:2.5rem 0 .75rem;border-bottom:1px solid var(--line);padding-bottom:.25rem}
code,pre{font:13px/1.5 ui-monospace,monospace}p{margin:.5rem 0}a{color:var(--post)}
nav{display:flex;flex-wrap:wrap;gap:.5rem 1rem;margin:1rem 0}.soft{color:var(--soft)}
details{border:1px solid var(--line);border-radius:8px;margin:.5rem 0;background:var(--card)}
summary{cursor:pointer;padding:.5rem .75rem;display:flex;flex-wrap:wrap;gap:.25rem .75rem;
align-items:baseline}details>div{padding:0 .75rem .75rem;overflow-x:auto}
.verb{font:700 12px/1.5 ui-monospace,monospace;min-width:4.2rem}.GET,.HEAD{color:var(--get)}
.POST{color:var(--post)}.PUT{color:var(--put)}.DELETE{color:var(--delete)}.PATCH{color:var(--patch)}
table{border-collapse:collapse;width:100%;font-size:14px}td,th{text-align:left;vertical-align:top;
padding:.3rem .75rem .3rem 0;border-top:1px solid var(--line)}h4{margin:.9rem 0 .25rem}
pre{margin:.25rem 0;padding:.5rem .75rem;border:1px solid var(--line);border-radius:6px;
background:var(--back);overflow-x:auto}
)css";

std::string escaped(const Json& holder, const char* name) {
    return escapeHtml(holder.value(name, std::string()));
}

std::string code(std::string_view text) {
    return "<code>" + escapeHtml(text) + "</code>";
}

std::string schemaLink(const std::string& reference) {
    const std::string name = escapeHtml(reference.substr(reference.rfind('/') + 1));
    return "<a href=\"#schema-" + name + "\">" + name + "</a>";
}

/// The type of a schema in a few words, with a link where it is a named one.
std::string typeOf(const Json& schema) {
    if (schema.contains("$ref")) return schemaLink(schema.at("$ref").get<std::string>());
    if (schema.contains("anyOf")) {
        std::string all;
        for (const Json& one : schema.at("anyOf")) all += (all.empty() ? "" : " or ") + typeOf(one);
        return all;
    }
    if (!schema.contains("type")) return "any";
    const Json& type = schema.at("type");
    std::string text;
    if (type.is_array()) {
        for (const Json& one : type) {
            text += (text.empty() ? "" : " or ") + escapeHtml(one.get<std::string>());
        }
    } else {
        text = escapeHtml(type.get<std::string>());
    }
    if (schema.contains("items")) text += " of " + typeOf(schema.at("items"));
    const auto more = schema.find("additionalProperties");
    if (more != schema.end() && more->is_object()) text = "map of " + typeOf(*more);
    return text;
}

std::string rulesOf(const Json& schema) {
    std::string text;
    const auto add = [&text](const std::string& rule) {
        text += (text.empty() ? "" : ", ") + rule;
    };
    if (schema.contains("enum")) {
        for (const Json& value : schema.at("enum")) add(code(value.dump()));
    }
    if (schema.contains("minimum")) add("at least " + escapeHtml(schema.at("minimum").dump()));
    if (schema.contains("maximum")) add("at most " + escapeHtml(schema.at("maximum").dump()));
    if (schema.contains("default")) add("default " + code(schema.at("default").dump()));
    return text;
}

std::string examples(const Json& schema) {
    std::string html;
    if (!schema.contains("examples")) return html;
    for (const Json& example : schema.at("examples")) {
        html += "<pre>" + escapeHtml(example.dump(2)) + "</pre>";
    }
    return html;
}

std::string fieldTable(const Json& schema) {
    const auto properties = schema.find("properties");
    if (properties == schema.end()) return {};
    std::string html = "<table><tr><th>field<th>type<th></tr>";
    for (const auto& [name, field] : properties->items()) {
        bool needed = false;
        if (const auto list = schema.find("required"); list != schema.end()) {
            for (const Json& one : *list) needed = needed || one == name;
        }
        std::string text = escaped(field, "description");
        const std::string rules = rulesOf(field);
        if (!rules.empty()) text += (text.empty() ? "" : ". ") + rules;
        html += "<tr><td>" + code(name) + (needed ? " <b title=\"required\">*</b>" : "") + "<td>" +
                typeOf(field) + "<td>" + text + "</tr>";
    }
    return html + "</table>";
}

std::string contentOf(const Json& holder) {
    std::string html;
    const auto content = holder.find("content");
    if (content == holder.end()) return html;
    for (const auto& [media, shape] : content->items()) {
        html += " " + code(media);
        if (shape.contains("schema")) html += " " + typeOf(shape.at("schema"));
    }
    return html;
}

std::string operationHtml(const std::string& path, std::string method, const Json& operation) {
    for (char& c : method) c = static_cast<char>(c - 'a' + 'A');
    std::string html = "<details id=\"" + escaped(operation, "operationId") + "\"><summary>";
    html += "<span class=\"verb " + escapeHtml(method) + "\">" + escapeHtml(method) + "</span>";
    html += code(path) + "<span class=\"soft\">" + escaped(operation, "summary") + "</span>";
    html += "</summary><div>";
    if (operation.contains("description")) html += "<p>" + escaped(operation, "description");
    if (operation.contains("parameters")) {
        html += "<h4>Parameters</h4><table>";
        for (const Json& parameter : operation.at("parameters")) {
            const Json& schema = parameter.at("schema");
            html += "<tr><td>" + code(parameter.at("name").get<std::string>()) + "<td>" +
                    escaped(parameter, "in") + "<td>" + typeOf(schema) + "<td>" +
                    escaped(parameter, "description") + " " + rulesOf(schema) + "</tr>";
        }
        html += "</table>";
    }
    if (operation.contains("requestBody")) {
        html += "<h4>Body</h4><p>" + contentOf(operation.at("requestBody"));
    }
    html += "<h4>Answers</h4><table>";
    for (const auto& [status, answer] : operation.at("responses").items()) {
        html += "<tr><td>" + escapeHtml(status) + "<td>" + escaped(answer, "description") + "<td>" +
                contentOf(answer) + "</tr>";
    }
    return html + "</table></div></details>\n";
}

std::string tagSections(const Json& document) {
    std::string html;
    for (const Json& tag : document.at("tags")) {
        const std::string name = tag.at("name").get<std::string>();
        html += "<h2 id=\"" + escapeHtml(name) + "\">" + escapeHtml(name) + "</h2>\n";
        for (const auto& [path, methods] : document.at("paths").items()) {
            for (const auto& [method, operation] : methods.items()) {
                if (operation.at("tags").at(0) == name) {
                    html += operationHtml(path, method, operation);
                }
            }
        }
    }
    return html;
}

}  // namespace

std::string docsPage(const Json& document) {
    const Json& info = document.at("info");
    std::string html =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta "
        "name=\"viewport\" content=\"width=device-width\"><title>" +
        escaped(info, "title") + " API</title><style>" + kStyle + "</style><main>";
    html += "<h1>" + escaped(info, "title") + " API</h1><p class=\"soft\">Version " +
            escaped(info, "version") + " · <a href=\"/openapi.json\">openapi.json</a></p><p>" +
            escaped(info, "description") + "</p><nav>";
    for (const Json& tag : document.at("tags")) {
        const std::string name = escaped(tag, "name");
        html.append("<a href=\"#").append(name).append("\">").append(name).append("</a>");
    }
    html += "<a href=\"#schemas\">Shapes</a></nav>\n" + tagSections(document);
    html += "<h2 id=\"schemas\">Shapes</h2>\n";
    for (const auto& [name, schema] : document.at("components").at("schemas").items()) {
        html += "<details open id=\"schema-" + escapeHtml(name) + "\"><summary><b>" +
                escapeHtml(name) + "</b></summary><div>";
        if (schema.contains("description")) html += "<p>" + escaped(schema, "description");
        html += fieldTable(schema) + examples(schema) + "</div></details>\n";
    }
    return html + "</main></html>\n";
}

}  // namespace hearth::rest
