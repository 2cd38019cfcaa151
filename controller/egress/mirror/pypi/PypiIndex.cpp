#include "controller/egress/mirror/pypi/PypiIndex.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/http/Html.h"
#include "base/http/Url.h"
#include "controller/egress/mirror/store/Fetcher.h"
#include "controller/egress/mirror/store/FileCache.h"
#include "controller/egress/policy/Refused.h"

namespace hearth::egress {
namespace {

constexpr std::size_t kMaxPypiName = 200;
constexpr std::size_t kMaxFiles = 50'000;

bool isFilename(std::string_view name) {
    return !name.empty() && name.size() <= kMaxPypiName && name.front() != '.' &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      std::string_view("._-+!").find(c) != std::string_view::npos;
           });
}

std::string soundHash(std::string hex) {
    hex = toLower(hex);
    return ContentHash{"sha256", hex}.key().empty() ? std::string() : hex;
}

/// Replaces the few entities that indexes write.
std::string unescaped(std::string_view text) {
    static const std::map<std::string_view, char> known{
        {"amp", '&'},  {"lt", '<'},    {"gt", '>'},   {"quot", '"'},
        {"#39", '\''}, {"#x27", '\''}, {"apos", '\''}};
    constexpr std::size_t kLongest = 4;
    std::string out;
    while (!text.empty()) {
        const std::size_t plain = std::min(text.find('&'), text.size());
        out += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) break;
        // Searches no further than an entity is long: a page may consist of ampersands.
        const std::size_t end = text.substr(1, kLongest + 1).find(';');
        const auto entity =
            end == std::string_view::npos ? known.end() : known.find(text.substr(1, end));
        out += entity == known.end() ? '&' : entity->second;
        text.remove_prefix(entity == known.end() ? 1 : end + 2);
    }
    return out;
}

/// The attributes of one tag: `name="value"`, `name='value'`, `name=value`, `name`.
std::map<std::string, std::string> attributes(std::string_view tag) {
    constexpr std::string_view kBetween = " \t\r\n\f/";
    std::map<std::string, std::string> out;
    while (true) {
        const std::size_t begin = tag.find_first_not_of(kBetween);
        if (begin == std::string_view::npos) return out;
        tag.remove_prefix(begin);
        const std::size_t end = std::min(tag.find_first_of(" \t\r\n\f/="), tag.size());
        if (end == 0) {  // a stray '='
            tag.remove_prefix(1);
            continue;
        }
        const std::string name = toLower(tag.substr(0, end));
        tag.remove_prefix(end);
        std::string value;
        if (tag.starts_with('=')) {
            tag.remove_prefix(1);
            const bool quoted = tag.starts_with('"') || tag.starts_with('\'');
            const std::size_t from = quoted ? 1 : 0;
            const std::size_t to = std::min(
                quoted ? tag.find(tag.front(), 1) : tag.find_first_of(" \t\r\n\f"), tag.size());
            value = unescaped(tag.substr(from, to - from));
            tag.remove_prefix(std::min(to + from, tag.size()));
        }
        out.emplace(name, value);
    }
}

/// The end of the tag that begins before `at`; a > within quotes does not count.
std::size_t endOfTag(std::string_view html, std::size_t at) {
    char quote = 0;
    for (; at < html.size(); ++at) {
        const char c = html[at];
        if (quote != 0) {
            if (c == quote) quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '>') {
            return at;
        }
    }
    return std::string_view::npos;
}

std::optional<std::string> metadataOf(std::string_view told) {
    constexpr std::string_view kPrefix = "sha256=";
    if (!told.starts_with(kPrefix)) return std::nullopt;  // no other hash is checked
    const std::string hash = soundHash(std::string(told.substr(kPrefix.size())));
    return hash.empty() ? std::nullopt : std::optional(hash);
}

void addHtmlFile(PypiProject& project, const std::string& base,
                 const std::map<std::string, std::string>& tag) {
    const auto href = tag.find("href");
    if (href == tag.end()) return;
    PypiFile file;
    const std::size_t mark = href->second.find('#');
    const std::string fragment = mark == std::string::npos ? "" : href->second.substr(mark + 1);
    const std::optional<std::string> url = resolveUrl(base, href->second.substr(0, mark));
    if (!url) return;
    file.url = *url;
    const std::string path = url->substr(0, url->find('?'));
    const std::optional<std::string> name = percentDecode(path.substr(path.rfind('/') + 1));
    if (!name || !isFilename(*name)) return;
    file.filename = *name;
    constexpr std::string_view kHash = "sha256=";
    if (fragment.starts_with(kHash)) file.sha256 = soundHash(fragment.substr(kHash.size()));
    if (const auto needs = tag.find("data-requires-python"); needs != tag.end()) {
        file.requires_python = needs->second;
    }
    if (const auto yanked = tag.find("data-yanked"); yanked != tag.end()) {
        file.yanked = yanked->second;
    }
    for (const char* key : {"data-core-metadata", "data-dist-info-metadata"}) {
        const auto told = tag.find(key);
        if (told == tag.end()) continue;
        file.metadata_sha256 = metadataOf(told->second);
        break;
    }
    project.files.push_back(std::move(file));
}

void parseHtml(PypiProject& project, std::string base, std::string_view html) {
    std::size_t at = 0;
    while ((at = html.find('<', at)) != std::string_view::npos) {
        const std::size_t end = endOfTag(html, at + 1);
        if (end == std::string_view::npos) return;
        const std::string_view tag = html.substr(at + 1, end - at - 1);
        const std::size_t blank = tag.find_first_of(" \t\r\n\f");
        at = end + 1;
        if (blank == std::string_view::npos) continue;
        const std::string name = toLower(tag.substr(0, blank));
        if (name == "base") {
            const auto found = attributes(tag.substr(blank));
            const auto href = found.find("href");
            if (href != found.end()) base = resolveUrl(base, href->second).value_or(base);
        }
        if (name == "a" && project.files.size() < kMaxFiles) {
            addHtmlFile(project, base, attributes(tag.substr(blank)));
        }
    }
}

std::optional<std::string> jsonMetadata(const Json& item) {
    for (const char* key : {"core-metadata", "dist-info-metadata"}) {
        const auto told = item.find(key);
        if (told == item.end()) continue;
        const std::string hash = told->is_object() ? soundHash(textAt(*told, "sha256")) : "";
        return hash.empty() ? std::nullopt : std::optional(hash);
    }
    return std::nullopt;
}

void parseDocument(PypiProject& project, const std::string& base, const std::string& body) {
    const Json document = parsePage(body);
    if (!document.is_object() || !document.contains("files") || !document["files"].is_array()) {
        throw Refused(kBadGateway, "bad_index", "the index's project page has no list of files");
    }
    for (const Json& item : document["files"]) {
        if (!item.is_object() || project.files.size() == kMaxFiles) continue;
        PypiFile file;
        file.filename = textAt(item, "filename");
        const std::optional<std::string> url = resolveUrl(base, textAt(item, "url"));
        if (!url || !isFilename(file.filename)) continue;
        file.url = *url;
        if (item.contains("hashes") && item["hashes"].is_object()) {
            file.sha256 = soundHash(textAt(item["hashes"], "sha256"));
        }
        file.requires_python = textAt(item, "requires-python");
        if (item.contains("yanked") && item["yanked"].is_string()) file.yanked = item["yanked"];
        if (item.contains("yanked") && item["yanked"] == true) file.yanked = "";
        file.metadata_sha256 = jsonMetadata(item);
        if (item.contains("size") && item["size"].is_number_unsigned()) {
            file.size = item["size"].get<std::uint64_t>();
        }
        file.upload_time = textAt(item, "upload-time");
        project.files.push_back(std::move(file));
    }
}

}  // namespace

const PypiFile* PypiProject::find(std::string_view filename) const {
    const auto found = std::find_if(files.begin(), files.end(), [&](const PypiFile& file) {
        return file.filename == filename;
    });
    return found == files.end() ? nullptr : &*found;
}

std::optional<std::string> normalisedProject(std::string_view name) {
    if (name.empty() || name.size() > kMaxPypiName) return std::nullopt;
    std::string out;
    for (const char c : name) {
        const bool separator = c == '-' || c == '_' || c == '.';
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!separator && !plain) return std::nullopt;
        if (!separator) {
            out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        } else if (out.empty() || out.back() != '-') {
            out += '-';
        }
    }
    if (out.front() == '-' || out.back() == '-') return std::nullopt;
    return out;
}

PypiProject parsePypi(const std::string& name, const std::string& base,
                      std::string_view content_type, const std::string& body) {
    PypiProject project;
    project.name = name;
    // The content decides, because not every index sends the right type.
    const bool document = content_type.find("json") != std::string_view::npos ||
                          trim(std::string_view(body).substr(0, 64)).starts_with('{');
    if (document) {
        parseDocument(project, base, body);
    } else {
        parseHtml(project, base, body);
    }
    return project;
}

std::string pypiHtml(const PypiProject& project, const std::string& files) {
    std::string out =
        "<!DOCTYPE html>\n<html><head><meta name=\"pypi:repository-version\" "
        "content=\"1.0\"><title>Links for " +
        escapeHtml(project.name) + "</title></head><body>\n";
    for (const PypiFile& file : project.files) {
        out += "<a href=\"" + files + "/" + project.name + "/" + percentEncode(file.filename);
        if (!file.sha256.empty()) out += "#sha256=" + file.sha256;
        out += '"';
        if (!file.requires_python.empty()) {
            out += " data-requires-python=\"" + escapeHtml(file.requires_python) + '"';
        }
        if (file.yanked) out += " data-yanked=\"" + escapeHtml(*file.yanked) + '"';
        if (file.metadata_sha256) {
            for (const char* name : {"data-dist-info-metadata", "data-core-metadata"}) {
                out.append(" ").append(name).append("=\"sha256=");
                out.append(*file.metadata_sha256).append("\"");
            }
        }
        out += ">" + escapeHtml(file.filename) + "</a><br>\n";
    }
    return out + "</body></html>\n";
}

std::string pypiJson(const PypiProject& project, const std::string& files) {
    Json list = Json::array();
    for (const PypiFile& file : project.files) {
        Json item{{"filename", file.filename},
                  {"url", files + "/" + project.name + "/" + percentEncode(file.filename)},
                  {"hashes", Json::object()}};
        if (!file.sha256.empty()) item["hashes"]["sha256"] = file.sha256;
        if (!file.requires_python.empty()) item["requires-python"] = file.requires_python;
        if (file.yanked) {
            item["yanked"] = file.yanked->empty() ? Json(true) : Json(*file.yanked);
        }
        if (file.metadata_sha256) {
            const Json told{{"sha256", *file.metadata_sha256}};
            item["core-metadata"] = told;
            item["dist-info-metadata"] = told;
        }
        if (file.size) item["size"] = *file.size;
        if (!file.upload_time.empty()) item["upload-time"] = file.upload_time;
        list.push_back(std::move(item));
    }
    return dumpJson(
        {{"meta", {{"api-version", "1.0"}}}, {"name", project.name}, {"files", std::move(list)}});
}

}  // namespace hearth::egress
