#include <algorithm>

#include "api/mcp/tools/Toolbox.h"
#include "base/Digest.h"
#include "base/Ids.h"
#include "base/Units.h"
#include "base/http/Url.h"

namespace hearth::mcp {
namespace {

using agent::FileStat;
using controller::Services;

constexpr std::uint64_t kBlobCap = 64U << 10U;
constexpr std::uint64_t kBase64Page = 12U << 10U;
constexpr std::uint64_t kTextPage = kTextCap - 500;

std::string bytesText(std::uint64_t size) {
    return std::to_string(size) + " bytes";
}

std::string readAll(const Services& services, const CallContext& call, const std::string& id,
                    const std::string& path, std::uint64_t offset, std::uint64_t length) {
    std::string bytes;
    services.workspaces.readFile(
        call.who, id, path, offset, length, [](const FileStat&) {},
        [&](std::string_view chunk) {
            bytes += chunk.substr(0, static_cast<std::size_t>(length) - bytes.size());
            return bytes.size() < length;
        });
    return bytes;
}

ToolOutcome filePut(const Services& services, const CallContext& call, const Arguments& arguments) {
    const std::optional<std::string> bytes = inlineBytes(arguments.values());
    if (!bytes) {
        throw Error(ErrorCode::InvalidArgument, "text or base64 is required")
            .hint("For an empty file give text \"\".");
    }
    std::optional<unsigned> mode;
    if (const auto text = arguments.text("mode")) {
        mode = parseFileMode(*text);
        if (!mode) throw Error(ErrorCode::InvalidArgument, "mode must be octal, like \"755\"");
    }
    std::size_t taken = 0;
    const FileStat stat = services.workspaces.writeFile(
        call.who, arguments.textOr("workspace_id", ""), arguments.textOr("path", ""), mode,
        [&](char* out, std::size_t size) {
            const std::size_t n = bytes->copy(out, size, taken);
            taken += n;
            return n;
        });
    return textResult("Wrote " + stat.path + ", " + bytesText(stat.size) + ", sha256 " +
                      toHex(sha256(*bytes)) + ".");
}

ToolOutcome listDirectory(const Services& services, const CallContext& call,
                          const Arguments& arguments, const std::string& path) {
    const std::uint64_t most = arguments.number("max_entries").value_or(200);
    const agent::FileList list = services.workspaces.listFiles(
        call.who, arguments.textOr("workspace_id", ""), path, arguments.flag("recursive"),
        static_cast<std::size_t>(most), arguments.textOr("after", ""));
    std::string text = path + " is a directory:";
    std::string last;
    bool cut = !list.next.empty();
    for (const FileStat& one : list.items) {
        std::string line = "\n" + one.path;
        if (one.type == agent::FileType::Directory) line += "/";
        if (one.type == agent::FileType::File) line += "  " + bytesText(one.size);
        if (one.type == agent::FileType::Symlink) line += " -> " + one.target;
        if (text.size() + line.size() > kTextPage) {
            cut = true;
            break;
        }
        text += line;
        last = one.path;
    }
    if (list.items.empty()) text += "\n(empty)";
    // Uses the agent's own mark if the whole page was shown, else the last shown entry.
    if (cut) {
        const bool whole = !list.items.empty() && last == list.items.back().path;
        text += "\nMore: after=\"" + (whole && !list.next.empty() ? list.next : last) + "\".";
    }
    return textResult(text);
}

ToolResult textPage(std::string_view bytes, std::uint64_t offset, const FileStat& stat) {
    const std::string_view page = prefixOf(bytes, kTextPage);
    const std::uint64_t end = offset + page.size();
    ToolResult result;
    if (offset > 0 || end < stat.size) {
        std::string head = "bytes " + std::to_string(offset) + " to " + std::to_string(end) +
                           " of " + std::to_string(stat.size);
        if (end < stat.size) head += "; more: offset=" + std::to_string(end);
        result.text(head);
    }
    result.text(page);
    return result;
}

ToolOutcome fileGet(const Services& services, const CallContext& call, const Arguments& arguments) {
    const std::string id = arguments.textOr("workspace_id", "");
    const std::string path = arguments.textOr("path", ".");
    const FileStat stat = services.workspaces.stat(call.who, id, path);
    if (stat.type == agent::FileType::Directory)
        return listDirectory(services, call, arguments, path);

    const std::string encoding = arguments.textOr("encoding", "auto");
    const std::uint64_t offset = arguments.number("offset").value_or(0);
    const bool ranged = offset > 0 || arguments.has("length");
    if (offset > stat.size) {
        throw Error(ErrorCode::InvalidArgument,
                    "offset is past the end of the file, " + bytesText(stat.size));
    }
    if (encoding == "base64") {
        const std::string bytes =
            readAll(services, call, id, path, offset,
                    std::min(arguments.number("length").value_or(kBase64Page), kBase64Page));
        const std::uint64_t end = offset + bytes.size();
        return textResult("base64 of bytes " + std::to_string(offset) + " to " +
                          std::to_string(end) + " of " + std::to_string(stat.size) +
                          (end < stat.size ? "; more: offset=" + std::to_string(end) : "") + "\n" +
                          base64Encode(bytes));
    }
    const std::uint64_t want = std::min(arguments.number("length").value_or(kTextPage), kTextPage);
    std::string bytes = readAll(services, call, id, path, offset, want);
    if (encoding == "text") return textPage(bytes, offset, stat);

    const std::optional<std::string> image = ranged ? std::nullopt : imageType(bytes);
    if (image && stat.size <= kImageCap) {
        bytes = readAll(services, call, id, path, 0, kImageCap);
        ToolResult result;
        return result.image(bytes, *image).text(path + ", " + *image + ", " + bytesText(stat.size));
    }
    const bool partial = offset + bytes.size() < stat.size;
    const std::string_view whole_characters =
        partial ? prefixOf(bytes, bytes.size() > 3 ? bytes.size() - 3 : bytes.size()) : bytes;
    if (!image && bytes.find('\0') == std::string::npos && isUtf8(whole_characters)) {
        return textPage(whole_characters, offset, stat);
    }
    if (!image && !ranged && stat.size <= kBlobCap) {
        bytes = readAll(services, call, id, path, 0, kBlobCap);
        ToolResult result;
        return result.text(path + ", binary, " + bytesText(stat.size))
            .blob("workspace://" + id + "/files/" + percentEncode(path, true), bytes,
                  "application/octet-stream");
    }
    return textResult(path + " is " + (image ? *image : "binary") + " of " + bytesText(stat.size) +
                      ", too large to show here. " +
                      (image ? "Scale it below 500 kB with run, then get that file; or fetch"
                             : "Look at it with run; or fetch") +
                      " pages with encoding=base64 and offset, or all of it with save_to if this "
                      "tool has it here, else over REST: GET /v1/workspaces/" +
                      id + "/files/" + percentEncode(path, true));
}

}  // namespace

std::vector<Tool> fileTools(const Services& services) {
    std::vector<Tool> tools;
    tools.push_back(
        {"file_put", "Write a file",
         "Writes a file into a workspace, whole or not at all; makes its directories and replaces "
         "what was there. Up to about 3 MB here, larger over REST.",
         objectSchema({{"workspace_id", workspaceParam()},
                       {"path", stringParam("Where, relative to the workspace's files.")},
                       {"text", stringParam("The content as text.", 0)},
                       {"base64", stringParam("Or the content as base64.", 0)},
                       {"mode", stringParam("Permissions in octal, e.g. \"755\".")}},
                      {"workspace_id", "path"}),
         toolHints(false, true, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return filePut(services, call, arguments);
         }});
    tools.push_back(
        {"file_get", "Read a file or directory",
         "Reads a file of a workspace: text in pages of 23 kB, PNG, JPEG, GIF and WebP as "
         "pictures, other files as binary. Lists a directory.",
         objectSchema(
             {{"workspace_id", workspaceParam()},
              {"path", stringParam("Relative to the workspace's files; \".\" lists them.")},
              {"offset", integerParam("Start at this byte.", 0, 1LL << 50)},
              {"length", integerParam("At most this many bytes.", 1, 1LL << 30)},
              {"encoding", Json{{"type", "string"},
                                {"description", "Default auto."},
                                {"enum", {"auto", "text", "base64"}}}},
              {"recursive", boolParam("List directories below, too.")},
              {"max_entries", integerParam("Of a directory; default 200.", 1, 1'000)},
              {"after", stringParam("List the entries after this one.")}},
             {"workspace_id", "path"}),
         toolHints(true, false, true),
         [&services](const CallContext& call, const Arguments& arguments) {
             return fileGet(services, call, arguments);
         }});
    return tools;
}

}  // namespace hearth::mcp
