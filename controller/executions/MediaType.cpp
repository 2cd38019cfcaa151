#include "controller/executions/MediaType.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hearth::controller {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 8> kMagic{{{"\x89PNG\r\n\x1a\n", "image/png"},
                                      {"\xFF\xD8\xFF", "image/jpeg"},
                                      {"GIF87a", "image/gif"},
                                      {"GIF89a", "image/gif"},
                                      {"%PDF-", "application/pdf"},
                                      {"PK\x03\x04", "application/zip"},
                                      {"\x1F\x8B", "application/gzip"},
                                      {"PAR1", "application/vnd.apache.parquet"}}};

constexpr std::array<Pair, 38> kNames{{{"png", "image/png"},
                                       {"jpg", "image/jpeg"},
                                       {"jpeg", "image/jpeg"},
                                       {"gif", "image/gif"},
                                       {"webp", "image/webp"},
                                       {"pdf", "application/pdf"},
                                       {"zip", "application/zip"},
                                       {"gz", "application/gzip"},
                                       {"txt", "text/plain"},
                                       {"log", "text/plain"},
                                       {"md", "text/markdown"},
                                       {"csv", "text/csv"},
                                       {"tsv", "text/tab-separated-values"},
                                       {"html", "text/html"},
                                       {"htm", "text/html"},
                                       {"css", "text/css"},
                                       {"js", "text/javascript"},
                                       {"mjs", "text/javascript"},
                                       {"ts", "text/plain"},
                                       {"py", "text/x-python"},
                                       {"sh", "application/x-sh"},
                                       {"json", "application/json"},
                                       {"jsonl", "application/jsonl"},
                                       {"xml", "application/xml"},
                                       {"yaml", "application/yaml"},
                                       {"yml", "application/yaml"},
                                       {"svg", "image/svg+xml"},
                                       {"bmp", "image/bmp"},
                                       {"ico", "image/x-icon"},
                                       {"tar", "application/x-tar"},
                                       {"mp3", "audio/mpeg"},
                                       {"wav", "audio/wav"},
                                       {"mp4", "video/mp4"},
                                       {"webm", "video/webm"},
                                       {"wasm", "application/wasm"},
                                       {"ipynb", "application/x-ipynb+json"},
                                       {"sqlite", "application/vnd.sqlite3"},
                                       {"db", "application/octet-stream"}}};

/// The types of zip files by their names' endings.
constexpr std::array<Pair, 3> kOffice{
    {{"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
     {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
     {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"}}};

template <std::size_t N>
std::string_view lookUp(const std::array<Pair, N>& table, std::string_view key) {
    for (const auto& [name, type] : table) {
        if (name == key) return type;
    }
    return {};
}

}  // namespace

std::string mediaType(std::string_view path, std::string_view head) {
    const std::size_t dot = path.substr(path.rfind('/') + 1).rfind('.');
    std::string ending;
    if (dot != std::string_view::npos) ending = path.substr(path.rfind('.') + 1);
    std::transform(ending.begin(), ending.end(), ending.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (head.size() > 12 && head.starts_with("RIFF") && head.substr(8, 4) == "WEBP") {
        return "image/webp";
    }
    for (const auto& [magic, type] : kMagic) {
        if (!head.starts_with(magic)) continue;
        const std::string_view office = type == "application/zip" ? lookUp(kOffice, ending) : "";
        return std::string(office.empty() ? type : office);
    }
    const std::string_view by_name = lookUp(kNames, ending);
    if (!by_name.empty()) return std::string(by_name);
    const bool text = !head.empty() && std::all_of(head.begin(), head.end(), [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t' || c == '\r';
    });
    return text ? "text/plain" : "application/octet-stream";
}

}  // namespace hearth::controller
