#include "pool/launcher/protocol/LauncherMessages.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "base/Fields.h"
#include "base/Ids.h"
#include "pool/image/Reference.h"
#include "pool/spec/GpuUuid.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::size_t kMaxLabels = 32;
constexpr std::size_t kMaxLabelKey = 63;
constexpr std::size_t kMaxLabelValue = 256;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxImage = 255;
constexpr std::size_t kMaxWanted = 1000;
constexpr std::size_t kMaxMessage = 2000;
constexpr std::size_t kMaxWhy = 300;
constexpr const char* kMemoryInUse = "memory";
constexpr const char* kProcessesInUse = "pids";
constexpr std::uint64_t kMaxSeq = 1ULL << 53U;
constexpr JsonLimits kRequestLimits{kMaxPacket, 8, 8000, 64};
constexpr JsonLimits kReplyLimits{kMaxPacket, 16, 100'000, 1000};

struct Range {
    std::uint64_t least;
    std::uint64_t most;
};
constexpr Range kFetchSeconds{1, 3600};
constexpr Range kMilliCpu{10, 1'024'000};
constexpr Range kMemory{16ULL << 20U, 16ULL << 40U};
constexpr Range kPids{4, 32'768};
constexpr Range kWorkspace{4ULL << 20U, 16ULL << 40U};
constexpr Range kTmp{64ULL << 10U, 1ULL << 40U};

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorCode::InvalidArgument, what);
}

/// Reads the fields of one object: all expected ones must be there, and no others.
Fields fieldsOf(const Json& json, const char* what) {
    static const Fields::Wrong wrong = [](const FieldError& error) {
        refuse(error.pointer + " " + error.reason);
    };
    return {json, what, wrong};
}

std::uint64_t numberOf(Fields& fields, const char* key, const Range& range) {
    return *fields.number(key, range.least, range.most);
}

std::string textOf(Fields& fields, const char* key, std::size_t longest) {
    std::string text = *fields.text(key, longest);
    if (text.find('\0') != std::string::npos) fields.complain(key, "holds a NUL character");
    return text;
}

SandboxId idOf(Fields& fields, const char* key) {
    SandboxId id = textOf(fields, key, kMaxName);
    if (!isId(id, "sb_")) fields.complain(key, "is no sandbox id");
    return id;
}

/// Returns the name of an image, never a path.
std::string imageName(Fields& fields, const char* key) {
    std::string name = textOf(fields, key, kMaxImage);
    if (!image::isImage(name)) refuse("not a name of an image");
    return name;
}

std::map<std::string, std::string> labelsFrom(const Json& json) {
    if (!json.is_object() || json.size() > kMaxLabels) refuse("labels are no small object");
    std::map<std::string, std::string> labels;
    for (const auto& [key, value] : json.items()) {
        if (key.empty() || key.size() > kMaxLabelKey) refuse("the name of a label is too long");
        if (!value.is_string()) refuse("a label is no string");
        const auto& text = value.get_ref<const std::string&>();
        if (text.size() > kMaxLabelValue) refuse("a label is too long");
        labels.emplace(key, text);
    }
    return labels;
}

std::vector<std::string> gpusFrom(const Json& json) {
    if (!json.is_array() || json.size() > kMostGpus) refuse("spec.gpus is no list, or too long");
    std::vector<std::string> gpus;
    for (const Json& item : json) {
        if (!item.is_string() || !isGpuUuid(item.get_ref<const std::string&>())) {
            refuse("spec.gpus holds what is no uuid of a GPU");
        }
        if (std::find(gpus.begin(), gpus.end(), item) != gpus.end()) {
            refuse("spec.gpus names a device twice");
        }
        gpus.push_back(item.get<std::string>());
    }
    return gpus;
}

Json toJson(const std::map<std::string, std::string>& labels) {
    Json json = Json::object();
    for (const auto& [key, value] : labels) json[key] = value;
    return json;
}

Json toJson(const SandboxSpec& spec) {
    const SandboxLimits& limits = spec.limits;
    return {{"image", spec.image},
            {"imageDigest", spec.image_digest},
            {"milliCpu", limits.milli_cpu},
            {"memory", limits.memory_bytes},
            {"pids", limits.pids},
            {"workspace", limits.workspace_bytes},
            {"tmp", limits.tmp_bytes},
            {"storage", spec.storage == Storage::Disk ? "Disk" : "Memory"},
            {"layer", spec.layer},
            {"gpus", spec.gpus},
            {"labels", toJson(spec.labels)}};
}

SandboxSpec specFrom(const Json& json) {
    Fields fields = fieldsOf(json, "spec");
    SandboxSpec spec;
    spec.image = imageName(fields, "image");
    spec.image_digest = textOf(fields, "imageDigest", 80);
    if (!spec.image_digest.empty() && !image::isDigest(spec.image_digest)) {
        refuse("spec.imageDigest is no sha256 digest");
    }
    spec.limits.milli_cpu = static_cast<std::uint32_t>(numberOf(fields, "milliCpu", kMilliCpu));
    spec.limits.memory_bytes = numberOf(fields, "memory", kMemory);
    spec.limits.pids = static_cast<std::uint32_t>(numberOf(fields, "pids", kPids));
    spec.limits.workspace_bytes = numberOf(fields, "workspace", kWorkspace);
    spec.limits.tmp_bytes = numberOf(fields, "tmp", kTmp);
    const std::string storage = textOf(fields, "storage", kMaxName);
    if (storage != "Disk" && storage != "Memory") refuse("spec.storage is neither Disk nor Memory");
    spec.storage = storage == "Disk" ? Storage::Disk : Storage::Memory;
    spec.layer = textOf(fields, "layer", 80);
    if (!spec.layer.empty() && !image::isDigest(spec.layer)) refuse("spec.layer is no digest");
    spec.gpus = gpusFrom(*fields.get("gpus"));
    spec.labels = labelsFrom(*fields.get("labels"));
    fields.finish();
    return spec;
}

std::string layerDigest(Fields& fields) {
    std::string digest = textOf(fields, "digest", 80);
    if (!image::isDigest(digest)) refuse("digest is none of sha256");
    return digest;
}

RequestBody bodyFrom(const std::string& op, Fields& fields) {
    if (op == "create") return CreateRequest{idOf(fields, "id"), specFrom(*fields.get("spec"))};
    if (op == "destroy") return DestroyRequest{idOf(fields, "id")};
    if (op == "find") return FindRequest{idOf(fields, "id")};
    if (op == "narrow") {
        return NarrowRequest{idOf(fields, "id"),
                             static_cast<std::uint32_t>(numberOf(fields, "milliCpu", kMilliCpu)),
                             numberOf(fields, "memory", kMemory),
                             static_cast<std::uint32_t>(numberOf(fields, "pids", kPids))};
    }
    if (op == "prepareImage") return PrepareImageRequest{imageName(fields, "name")};
    if (op == "describeImage") return DescribeImageRequest{imageName(fields, "name")};
    if (op == "addLayer") return AddLayerRequest{layerDigest(fields)};
    if (op == "removeLayer") return RemoveLayerRequest{layerDigest(fields)};
    if (op == "facts") return FactsRequest{};
    if (op == "fetchImage") {
        FetchImageRequest fetch{textOf(fields, "reference", kMaxImage), *fields.flag("insecure"),
                                numberOf(fields, "limit", kFetchSeconds)};
        if (!image::parseReference(fetch.reference)) refuse("not a reference of an image");
        return fetch;
    }
    if (op == "forgetImages") {
        const Json& wanted = *fields.get("wanted");
        if (!wanted.is_array() || wanted.size() > kMaxWanted) {
            refuse("wanted is no list, or too long");
        }
        ForgetImagesRequest forget;
        for (const Json& item : wanted) {
            if (!item.is_string() || item.get_ref<const std::string&>().size() > kMaxImage) {
                refuse("wanted holds what is no name of an image");
            }
            forget.wanted.push_back(item.get<std::string>());
        }
        return forget;
    }
    if (op == "list") {
        std::string after = textOf(fields, "after", kMaxName);
        if (!after.empty() && !isId(after, "sb_")) refuse("after is no sandbox id");
        return ListRequest{std::move(after), *fields.flag("countFiles")};
    }
    if (op == "sweep") {
        const Json& keep = *fields.get("keep");
        if (!keep.is_array() || keep.size() > kMostKept) refuse("keep is no list, or too long");
        SweepRequest sweep;
        sweep.after = textOf(fields, "after", kMaxName);
        sweep.until = textOf(fields, "until", kMaxName);
        for (const std::string* end : {&sweep.after, &sweep.until}) {
            if (!end->empty() && !isId(*end, "sb_")) refuse("a sweep's end is no sandbox id");
        }
        for (const Json& item : keep) {
            if (!item.is_string() || !isId(item.get_ref<const std::string&>(), "sb_")) {
                refuse("keep holds what is no sandbox id");
            }
            sweep.keep.push_back(item.get<std::string>());
        }
        return sweep;
    }
    refuse("unknown operation");
}

struct BodyToJson {
    Json operator()(const CreateRequest& r) const {
        return {{"op", "create"}, {"id", r.id}, {"spec", toJson(r.spec)}};
    }
    Json operator()(const DestroyRequest& r) const { return {{"op", "destroy"}, {"id", r.id}}; }
    Json operator()(const NarrowRequest& r) const {
        return {{"op", "narrow"},
                {"id", r.id},
                {"milliCpu", r.milli_cpu},
                {"memory", r.memory_bytes},
                {"pids", r.pids}};
    }
    Json operator()(const FindRequest& r) const { return {{"op", "find"}, {"id", r.id}}; }
    Json operator()(const ListRequest& r) const {
        return {{"op", "list"}, {"after", r.after}, {"countFiles", r.count_files}};
    }
    Json operator()(const SweepRequest& r) const {
        return {{"op", "sweep"}, {"keep", r.keep}, {"after", r.after}, {"until", r.until}};
    }
    Json operator()(const PrepareImageRequest& r) const {
        return {{"op", "prepareImage"}, {"name", r.name}};
    }
    Json operator()(const DescribeImageRequest& r) const {
        return {{"op", "describeImage"}, {"name", r.name}};
    }
    Json operator()(const FetchImageRequest& r) const {
        return {{"op", "fetchImage"},
                {"reference", r.reference},
                {"insecure", r.insecure},
                {"limit", r.limit_s}};
    }
    Json operator()(const ForgetImagesRequest& r) const {
        return {{"op", "forgetImages"}, {"wanted", r.wanted}};
    }
    Json operator()(const AddLayerRequest& r) const {
        return {{"op", "addLayer"}, {"digest", r.digest}};
    }
    Json operator()(const RemoveLayerRequest& r) const {
        return {{"op", "removeLayer"}, {"digest", r.digest}};
    }
    Json operator()(const FactsRequest&) const { return {{"op", "facts"}}; }
};

// Codes that cross unchanged; every other error becomes INTERNAL.
constexpr std::array kTold{ErrorCode::InvalidArgument, ErrorCode::NotFound, ErrorCode::Conflict,
                           ErrorCode::InvalidSpec,     ErrorCode::DiskFull, ErrorCode::Unsupported,
                           ErrorCode::QuotaExceeded,   ErrorCode::Deadline, ErrorCode::Unavailable};
constexpr const char* kInternal = "INTERNAL";

}  // namespace

std::string encodeRequest(const Request& request) {
    Json json = std::visit(BodyToJson{}, request.body);
    json["seq"] = request.seq;
    return dumpJson(json);
}

Request decodeRequest(std::string_view packet) {
    std::uint64_t seq = 0;
    try {
        const Json json = parseJson(packet, kRequestLimits);
        Fields fields = fieldsOf(json, "request");
        seq = numberOf(fields, "seq", {1, kMaxSeq});
        const std::string op = textOf(fields, "op", kMaxName);
        Request request{seq, bodyFrom(op, fields)};
        fields.finish();
        return request;
    } catch (const Error& e) {
        throw BadRequest(seq, e.what());
    }
}

std::string encodeReply(const Reply& reply) {
    Json json{{"seq", reply.seq}};
    if (reply.error.empty()) {
        json["result"] = reply.result;
    } else {
        json["error"] = reply.error;
        json["message"] = toUtf8(reply.message.substr(0, kMaxMessage));
        json["hint"] = toUtf8(reply.hint.substr(0, kMaxMessage));
    }
    return dumpJson(json);
}

Reply decodeReply(std::string_view packet) {
    const Json json = parseJson(packet, kReplyLimits);
    Fields fields = fieldsOf(json, "reply");
    Reply reply;
    reply.seq = numberOf(fields, "seq", {0, kMaxSeq});
    if (json.contains("error")) {
        reply.error = textOf(fields, "error", kMaxName);
        if (reply.error.empty()) refuse("reply.error is empty");
        reply.message = textOf(fields, "message", 4 * kMaxMessage);
        reply.hint = textOf(fields, "hint", 4 * kMaxMessage);
    } else {
        reply.result = *fields.get("result");
        if (!reply.result.is_object()) refuse("reply.result is no object");
    }
    fields.finish();
    return reply;
}

Reply failureReply(std::uint64_t seq, const std::exception& failure) {
    Reply reply{seq, Json::object(), kInternal, failure.what(), {}};
    if (const auto* error = dynamic_cast<const Error*>(&failure)) {
        if (std::count(kTold.begin(), kTold.end(), error->code()) > 0) {
            reply.error = errorCodeName(error->code());
            reply.hint = error->hint();
        }
    } else if (const auto* system = dynamic_cast<const std::system_error*>(&failure)) {
        if (system->code() == std::errc::no_space_on_device) {
            reply.error = errorCodeName(ErrorCode::DiskFull);
            reply.message = "the disk of the data directory is full";
        }
    }
    return reply;
}

void throwFailure(const Reply& reply) {
    if (reply.error.empty()) return;
    for (const ErrorCode code : kTold) {
        if (reply.error == errorCodeName(code)) {
            throw Error(code, reply.message).hint(reply.hint);
        }
    }
    throw std::runtime_error("launcher: " + reply.message);
}

Json encodeImage(const image::Image& image) {
    return {{"name", image.name},
            {"digest", image.digest},
            {"unpacked", image.unpacked},
            {"reference", image.reference},
            {"sourceDigest", image.source_digest}};
}

image::Image decodeImage(const Json& json) {
    Fields fields = fieldsOf(json, "image");
    image::Image image;
    image.name = textOf(fields, "name", kMaxName);
    image.digest = textOf(fields, "digest", kMaxName * 2);
    image.unpacked = *fields.flag("unpacked");
    image.reference = textOf(fields, "reference", kMaxImage);
    image.source_digest = textOf(fields, "sourceDigest", kMaxName * 2);
    fields.finish();
    return image;
}

Json encodeFetched(const Fetched& fetched) {
    return {{"image", encodeImage(fetched.image)},
            {"pullMs", fetched.pull_ms},
            {"unpackMs", fetched.unpack_ms}};
}

Fetched decodeFetched(const Json& json) {
    Fields fields = fieldsOf(json, "fetched");
    Fetched fetched;
    fetched.image = decodeImage(*fields.get("image"));
    fetched.pull_ms = numberOf(fields, "pullMs", {0, kMaxSeq});
    fetched.unpack_ms = numberOf(fields, "unpackMs", {0, kMaxSeq});
    fields.finish();
    return fetched;
}

Json encodeInUse(const std::optional<LimitInUse>& in_use) {
    Json result = Json::object();
    if (in_use) {
        result["inUse"] = in_use->of == LimitInUse::Of::Memory ? kMemoryInUse : kProcessesInUse;
        result["used"] = in_use->used;
    }
    return result;
}

std::optional<LimitInUse> decodeInUse(const Json& json) {
    if (json.is_object() && json.empty()) return std::nullopt;
    Fields fields = fieldsOf(json, "narrowed");
    LimitInUse in_use;
    const std::string of = textOf(fields, "inUse", kMaxName);
    if (of != kMemoryInUse && of != kProcessesInUse) refuse("narrowed.inUse is no limit");
    in_use.of = of == kMemoryInUse ? LimitInUse::Of::Memory : LimitInUse::Of::Processes;
    in_use.used = numberOf(fields, "used", {0, kMaxSeq});
    fields.finish();
    return in_use;
}

std::set<SandboxId> goneOf(const SweepRequest& sweep, const std::set<SandboxId>& present,
                           const std::set<SandboxId>& born) {
    const std::set<SandboxId> keep(sweep.keep.begin(), sweep.keep.end());
    std::set<SandboxId> gone;
    for (const SandboxId& id : present) {
        const bool here = id > sweep.after && (sweep.until.empty() || id <= sweep.until);
        if (here && !keep.contains(id) && !born.contains(id)) gone.insert(id);
    }
    return gone;
}

Json encodeLeftovers(const std::vector<Leftover>& leftovers) {
    Json left = Json::array();
    for (const Leftover& one : leftovers) {
        if (left.size() == kMostLeftovers) break;
        left.push_back({{"id", one.id}, {"why", one.why.substr(0, kMaxWhy)}});
    }
    return {{"left", std::move(left)}};
}

std::vector<Leftover> decodeLeftovers(const Json& json) {
    Fields fields = fieldsOf(json, "swept");
    const Json& left = *fields.get("left");
    fields.finish();
    if (!left.is_array() || left.size() > kMostLeftovers) refuse("left is no list, or too long");
    std::vector<Leftover> leftovers;
    for (const Json& item : left) {
        Fields one = fieldsOf(item, "left");
        Leftover leftover{idOf(one, "id"), textOf(one, "why", kMaxWhy)};
        one.finish();
        leftovers.push_back(std::move(leftover));
    }
    return leftovers;
}

Json encodeFound(const Found& found) {
    return {{"id", found.id},
            {"alive", found.alive},
            {"labels", toJson(found.labels)},
            {"createdMs", found.created_unix_ms},
            {"openFiles", found.open_files}};
}

Found decodeFound(const Json& json) {
    Fields fields = fieldsOf(json, "sandbox");
    Found found;
    found.id = idOf(fields, "id");
    found.alive = *fields.flag("alive");
    found.labels = labelsFrom(*fields.get("labels"));
    found.created_unix_ms = static_cast<std::int64_t>(numberOf(fields, "createdMs", {0, kMaxSeq}));
    found.open_files = numberOf(fields, "openFiles", {0, kMaxSeq});
    fields.finish();
    return found;
}

}  // namespace hearth::pool::launcher
