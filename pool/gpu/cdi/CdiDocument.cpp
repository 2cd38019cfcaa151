#include "pool/gpu/cdi/CdiDocument.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/Error.h"
#include "base/Fields.h"
#include "base/Json.h"
#include "base/yaml/Yaml.h"

namespace hearth::pool::cdi {
namespace {

constexpr std::size_t kMaxCdiBytes = 1U << 20U;
constexpr std::size_t kMaxCdiDepth = 16;
constexpr std::size_t kMaxCdiValues = 50'000;
constexpr std::size_t kMostDevices = 1024;
constexpr std::size_t kMostNodes = 256;
constexpr std::size_t kMostMounts = 512;
constexpr std::size_t kMostVariables = 256;
constexpr std::size_t kMostHooks = 64;
constexpr std::size_t kMostGids = 64;
constexpr std::size_t kMostArguments = 1024;
constexpr std::size_t kLongestPath = 1024;
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kLongestName = 255;
constexpr std::uint64_t kLargestMinor = (1U << 20U) - 1;
constexpr std::uint64_t kLargestMajor = (1U << 12U) - 1;
constexpr std::uint64_t kAllPermissions = 0777;
constexpr std::uint64_t kLongestHook = 3600;

constexpr std::array<std::string_view, 8> kVersions{"0.3.0", "0.4.0", "0.5.0", "0.6.0",
                                                    "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
constexpr std::string_view kMountType = "0.4.0";
constexpr std::string_view kHostPath = "0.5.0";
constexpr std::string_view kDigitFirst = "0.5.0";
constexpr std::string_view kAnnotations = "0.6.0";
constexpr std::string_view kDotInClass = "0.6.0";
constexpr std::string_view kGids = "0.7.0";

bool isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool isDigit(char c) {
    return c >= '0' && c <= '9';
}

bool madeOf(std::string_view text, std::string_view more) {
    return std::all_of(text.begin(), text.end(), [&](char c) {
        return isLetter(c) || isDigit(c) || more.find(c) != std::string_view::npos;
    });
}

bool isLabel(std::string_view text, std::string_view more) {
    return !text.empty() && text.size() <= kLongestName && isLetter(text.front()) &&
           madeOf(text, more) && (isLetter(text.back()) || isDigit(text.back()));
}

bool isPrintable(std::string_view text) {
    return std::all_of(text.begin(), text.end(),
                       [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f'; });
}

/// Checks that it is like "/a/b": absolute, without empty parts, "." and "..".
bool isPlainPath(std::string_view path) {
    if (path.size() < 2 || path.front() != '/' || !isPrintable(path)) return false;
    for (std::size_t at = 0; at < path.size();) {
        const std::size_t end = std::min(path.find('/', at + 1), path.size());
        const std::string_view part = path.substr(at + 1, end - at - 1);
        if (part.empty() || part == "." || part == "..") return false;
        at = end;
    }
    return true;
}

bool isVariable(const std::string& text) {
    const std::size_t equals = text.find('=');
    return equals != std::string::npos && equals > 0 && !isDigit(text.front()) &&
           madeOf(std::string_view(text).substr(0, equals), "_") &&
           text.find('\0') == std::string::npos;
}

/// Reads one document; the first fault ends it.
class CdiReader {
public:
    CdiDocument read(const Json& json) {
        Fields fields(json, "", wrong_);
        version_ = fields.text("cdiVersion").value_or("");
        if (std::find(kVersions.begin(), kVersions.end(), version_) == kVersions.end()) {
            std::string all;
            for (const std::string_view each : kVersions) {
                all += (all.empty() ? "" : ", ") + std::string(each);
            }
            fields.complain("cdiVersion", "is \"" + version_ + "\"; known here: " + all);
        }
        CdiDocument document;
        document.kind = kind(fields);
        annotations(fields);
        document.edits = editsAt(fields);
        fields.items("devices", kMostDevices, [&](const Json& item, const std::string& at) {
            Fields device(item, at, wrong_);
            const std::string name = device.text("name", kLongestName).value_or("");
            checkName(device, name);
            annotations(device);
            device.get("containerEdits");
            CdiEdits edits = editsAt(device);
            if (edits.empty()) device.complain("containerEdits", "must say something");
            device.finish();
            if (!document.devices.emplace(name, std::move(edits)).second) {
                device.complain("name", "\"" + name + "\" is given twice in this file");
            }
        });
        if (document.devices.empty()) fields.complain("devices", "must not be empty");
        fields.finish();
        return document;
    }

private:
    [[noreturn]] static void refuse(const FieldError& error) {
        throw Error(ErrorCode::InvalidArgument,
                    (error.pointer.empty() ? "the document" : error.pointer) + " " + error.reason);
    }

    void needs(Fields& fields, const char* key, std::string_view version, const char* what) {
        const auto place = [](std::string_view each) {
            return std::find(kVersions.begin(), kVersions.end(), each);
        };
        if (place(version_) >= place(version)) return;
        fields.complain(key, std::string(what) + " needs cdiVersion " + std::string(version) +
                                 " or later; the file says " + version_);
    }

    std::string kind(Fields& fields) {
        std::string kind = fields.text("kind", 2 * kLongestName).value_or("");
        const std::size_t slash = kind.find('/');
        const std::string_view vendor = std::string_view(kind).substr(0, slash);
        const std::string_view type =
            slash == std::string::npos ? "" : std::string_view(kind).substr(slash + 1);
        if (!isLabel(vendor, "_-.") || !isLabel(type, "_-.")) {
            fields.complain("kind", "is \"" + kind +
                                        "\"; must be vendor/class, each a letter, then letters, "
                                        "digits, \"_\", \"-\" and \".\", not one of these three "
                                        "at its end");
        }
        if (type.find('.') != std::string_view::npos) {
            needs(fields, "kind", kDotInClass, "a \".\" in the class");
        }
        return kind;
    }

    void checkName(Fields& fields, const std::string& name) {
        const bool good = !name.empty() && madeOf(name, "_-.:") &&
                          (isLetter(name.front()) || isDigit(name.front())) &&
                          (isLetter(name.back()) || isDigit(name.back()));
        if (!good) {
            fields.complain("name", "is \"" + name +
                                        "\"; must be letters, digits, \"_\", \"-\", \".\" and "
                                        "\":\", with a letter or digit at both ends");
        }
        if (!isLetter(name.front())) {
            needs(fields, "name", kDigitFirst, "a name that begins with a digit");
        }
    }

    void annotations(Fields& fields) {
        const Json* found = fields.find("annotations");
        if (found == nullptr) return;
        if (!found->is_object()) fields.complain("annotations", "must be an object");
        if (!found->empty()) needs(fields, "annotations", kAnnotations, "this field");
        for (const auto& [key, value] : found->items()) {
            if (!value.is_string()) fields.complain("annotations/" + key, "must be a string");
        }
    }

    CdiEdits editsAt(Fields& owner) {
        if (owner.find("containerEdits") == nullptr) return {};
        Fields fields = owner.object("containerEdits");
        CdiEdits edits;
        texts(fields, "env", kMostVariables, [&](const std::string& text, const std::string& at) {
            if (!isVariable(text)) refuse({at, "must be NAME=value"});
            edits.env.push_back(text);
        });
        list(fields, "deviceNodes", kMostNodes, [&](const Json& item, const std::string& at) {
            edits.nodes.push_back(node(item, at));
        });
        list(fields, "mounts", kMostMounts, [&](const Json& item, const std::string& at) {
            edits.mounts.push_back(mount(item, at));
        });
        list(fields, "hooks", kMostHooks, [&](const Json& item, const std::string& at) {
            edits.hooks.push_back(hook(item, at));
        });
        list(fields, "additionalGids", kMostGids, [&](const Json& item, const std::string& at) {
            needs(fields, "additionalGids", kGids, "this field");
            if (!item.is_number_unsigned() || item.get<std::uint64_t>() > UINT32_MAX) {
                refuse({at, "must be a group's number"});
            }
            // The specification says that the group 0 is never added.
            if (item != 0) edits.gids.insert(item.get<std::uint32_t>());
        });
        for (const char* key : {"netDevices", "intelRdt"}) {
            if (fields.find(key) != nullptr) fields.complain(key, "is not supported by Hearth");
        }
        fields.finish();
        // A repeated entry counts once, and a contradiction is an error even inside one list.
        CdiEdits merged;
        try {
            merged.merge(edits);
        } catch (const Error& e) {
            owner.complain("containerEdits", std::string("contradicts itself: ") + e.what());
        }
        return merged;
    }

    template <typename Read>
    void list(Fields& fields, const char* key, std::size_t most, const Read& read) {
        if (fields.find(key) != nullptr) fields.items(key, most, read);
    }

    template <typename Read>
    void texts(Fields& fields, const char* key, std::size_t most, const Read& read) {
        list(fields, key, most, [&](const Json& item, const std::string& at) {
            if (!item.is_string()) refuse({at, "must be a string"});
            const auto& text = item.get_ref<const std::string&>();
            if (text.size() > kLongestText || text.find('\0') != std::string::npos) {
                refuse({at, "must be at most " + std::to_string(kLongestText) +
                                " bytes, without a NUL"});
            }
            read(text, at);
        });
    }

    std::string path(Fields& fields, const char* key) {
        std::string path = fields.text(key, kLongestPath).value_or("");
        if (!isPlainPath(path)) {
            fields.complain(key, "is \"" + path +
                                     "\"; must be an absolute path without \".\", \"..\" and "
                                     "empty parts");
        }
        return path;
    }

    std::optional<std::uint32_t> numberAt(Fields& fields, const char* key, std::uint64_t most) {
        if (fields.find(key) == nullptr) return std::nullopt;
        const std::optional<std::uint64_t> number = fields.number(key, 0, most);
        return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
    }

    CdiNode node(const Json& json, const std::string& at) {
        Fields fields(json, at, wrong_);
        CdiNode node;
        node.path = path(fields, "path");
        node.host_path = node.path;
        if (fields.find("hostPath") != nullptr) {
            needs(fields, "hostPath", kHostPath, "this field");
            node.host_path = path(fields, "hostPath");
        }
        if (fields.find("type") != nullptr) {
            node.type = fields.text("type").value_or("");
            if (node.type == "u") node.type = "c";  // another word for the same type
            if (node.type != "c") {
                fields.complain(
                    "type", "is \"" + node.type + R"("; Hearth makes character devices only, "c")");
            }
        }
        node.major = numberAt(fields, "major", kLargestMajor);
        node.minor = numberAt(fields, "minor", kLargestMinor);
        // A file written in Go's way leaves out a minor number of 0.
        if (node.major && !node.minor) node.minor = 0;
        if (node.minor && !node.major) fields.complain("minor", "needs major");
        node.mode = numberAt(fields, "fileMode", kAllPermissions);
        // The owner given here does not matter: a node belongs to the tenant of its sandbox.
        numberAt(fields, "uid", UINT32_MAX);
        numberAt(fields, "gid", UINT32_MAX);
        if (fields.find("permissions") != nullptr) {
            node.permissions = fields.text("permissions").value_or("");
            const bool good = !node.permissions.empty() && node.permissions.size() <= 3 &&
                              node.permissions.find_first_not_of("rwm") == std::string::npos;
            if (!good || node.permissions == "m") {
                fields.complain("permissions", "is \"" + node.permissions +
                                                   "\"; must be made of r, w and m, with r or w");
            }
        }
        fields.finish();
        return node;
    }

    CdiMount mount(const Json& json, const std::string& at) {
        Fields fields(json, at, wrong_);
        CdiMount mount;
        mount.host_path = path(fields, "hostPath");
        mount.container_path = path(fields, "containerPath");
        if (fields.find("type") != nullptr) {
            needs(fields, "type", kMountType, "this field");
            const std::string type = fields.text("type").value_or("");
            if (!type.empty() && type != "bind" && type != "none") {
                fields.complain("type",
                                "is \"" + type + R"("; Hearth mounts what is there, "bind")");
            }
        }
        texts(fields, "options", 32, [&](const std::string& option, const std::string& where) {
            constexpr std::array<std::string_view, 12> kNoMatter{
                "bind",    "nosuid", "nodev",    "exec",       "private", "rprivate",
                "noatime", "slave",  "relatime", "nodiratime", "rslave",  "defaults"};
            if (option == "rw") {
                mount.writable = true;
            } else if (option == "ro") {
                mount.writable = false;
            } else if (option == "noexec") {
                mount.executable = false;
            } else if (option == "rbind") {
                mount.recursive = true;
            } else if (std::find(kNoMatter.begin(), kNoMatter.end(), option) == kNoMatter.end()) {
                refuse({where, "is \"" + option +
                                   "\"; allowed: ro, rw, noexec, exec, bind, rbind, nosuid, nodev, "
                                   "private, slave, noatime, relatime"});
            }
        });
        fields.finish();
        return mount;
    }

    CdiHook hook(const Json& json, const std::string& at) {
        Fields fields(json, at, wrong_);
        CdiHook hook;
        hook.point = fields.choice("hookName", kHookPoints).value_or(HookPoint::Prestart);
        hook.path = path(fields, "path");
        texts(fields, "args", kMostArguments,
              [&](const std::string& text, const std::string&) { hook.args.push_back(text); });
        texts(fields, "env", kMostVariables,
              [&](const std::string& text, const std::string& where) {
                  if (!isVariable(text)) refuse({where, "must be NAME=value"});
                  hook.env.push_back(text);
              });
        if (fields.find("timeout") != nullptr) {
            const auto seconds = fields.number("timeout", 1, kLongestHook);
            if (seconds) hook.timeout_s = static_cast<std::uint32_t>(*seconds);
        }
        fields.finish();
        return hook;
    }

    const Fields::Wrong wrong_ = [](const FieldError& error) { refuse(error); };
    std::string version_;
};

}  // namespace

CdiDocument parseCdi(const std::string& text, CdiFormat format) {
    if (!isUtf8(text)) throw Error(ErrorCode::InvalidArgument, "the document is not UTF-8");
    const Json json = format == CdiFormat::Json
                          ? parseJson(text, {.bytes = kMaxCdiBytes,
                                             .depth = kMaxCdiDepth,
                                             .values = kMaxCdiValues,
                                             .members = kMostDevices})
                          : parseYaml(text, {kMaxCdiBytes, kMaxCdiDepth, kMaxCdiValues});
    return CdiReader().read(json);
}

}  // namespace hearth::pool::cdi
