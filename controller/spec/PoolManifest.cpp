#include <algorithm>
#include <array>
#include <optional>

#include "base/Error.h"
#include "base/Fields.h"
#include "base/Units.h"
#include "controller/packages/PackageSpec.h"
#include "controller/spec/DnsSubdomain.h"
#include "controller/spec/PodTemplate.h"
#include "controller/spec/PoolName.h"
#include "controller/spec/PoolSpec.h"
#include "pool/image/Reference.h"
#include "pool/spec/GpuUuid.h"
#include "pool/spec/LanguageName.h"

namespace hearth::controller {
namespace {

// Caps of one pool (SECURITY T33): a mistyped number must not become a thousand containers.
constexpr std::uint32_t kMostMembers = 1000;
constexpr std::uint64_t kMostBytes = 1ULL << 40U;

/// Sets the fields that a manifest names, and leaves the others unchanged.
class FieldReader : public Fields {
public:
    FieldReader(const Json& object, std::string pointer, const Wrong& wrong)
        : Fields(object, std::move(pointer), wrong, Absent::Fine) {}
    explicit FieldReader(Fields fields) : Fields(std::move(fields)) {}

    FieldReader object(const char* key) { return FieldReader(Fields::object(key)); }
    void text(const char* key, std::string& out) { put(Fields::text(key), out); }
    void flag(const char* key, bool& out) { put(Fields::flag(key), out); }
    void number(const char* key, std::uint32_t& out, std::uint32_t most) {
        put(Fields::number(key, 0, most), out);
    }
    template <typename Enum, std::size_t N>
    void choice(const char* key, Enum& out, const Texts<Enum, N>& texts) {
        put(Fields::choice(key, texts), out);
    }

    void bytes(const char* key, std::uint64_t& out, std::uint64_t least) {
        const Json* value = find(key);
        if (value == nullptr) return;
        std::optional<std::uint64_t> parsed;
        if (value->is_string()) parsed = parseBytes(value->get<std::string>());
        if (value->is_number_unsigned()) parsed = value->get<std::uint64_t>();
        if (!parsed || *parsed < least || *parsed > kMostBytes) {
            return complain(
                key, "must be a size of at least " + formatBytes(least) + ", such as \"512Mi\"");
        }
        out = *parsed;
    }

    void cpu(const char* key, std::uint32_t& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        std::optional<std::uint32_t> parsed;
        if (value->is_string()) parsed = parseMilliCpu(value->get<std::string>());
        if (value->is_number()) parsed = parseMilliCpu(value->dump());
        if (!parsed || *parsed < 10 || *parsed > 1'000'000) {
            return complain(key, R"(must be cores, such as "1", "0.5" or "500m")");
        }
        out = *parsed;
    }

    void share(const char* key, double& out, double least, double most) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_number() || value->get<double>() < least || value->get<double>() > most) {
            return complain(key, "must be a number from " + Json(least).dump() + " to " +
                                     Json(most).dump() + ", such as 0.001");
        }
        out = value->get<double>();
    }

    void duration(const char* key, std::chrono::milliseconds& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        std::optional<std::chrono::milliseconds> parsed;
        if (value->is_string()) parsed = parseDuration(value->get<std::string>());
        if (value->is_number_unsigned() && value->get<std::uint64_t>() == 0) {
            parsed = std::chrono::milliseconds(0);
        }
        if (!parsed) return complain(key, R"(must be a duration, such as "90s" or "10m")");
        out = *parsed;
    }

    void texts(const char* key, std::vector<std::string>& out, std::size_t most,
               bool (*valid)(const std::string&), const char* what) {
        items(key, most, [&](const Json& item, const std::string& at) {
            if (item.is_string() && valid(item.get<std::string>())) {
                out.push_back(item.get<std::string>());
            } else {
                tell({at, std::string("must be ") + what});
            }
        });
    }

private:
    template <typename From, typename To>
    static void put(const std::optional<From>& value, To& out) {
        if (value) out = static_cast<To>(*value);
    }
};

/// A shorter silence is normal for a busy machine.
constexpr auto kLeastSilence = std::chrono::seconds(10);
/// The range of the share of claims that may find no ready sandbox.
constexpr double kLeastMissRate = 0.0001;
constexpr double kMostMissRate = 0.5;
constexpr std::size_t kMostAllowed = 256;
constexpr std::size_t kMostCredentials = 32;
constexpr std::size_t kMostSchedules = 32;
constexpr std::size_t kMostProducts = 16;
constexpr std::uint32_t kMostShares = 48;
constexpr auto kLongestWindow = std::chrono::hours(24 * 366);

/// The operator imported a name in the store, and a digest fixes the bytes; a tag can
/// change its meaning in the registry (SECURITY T34).
void checkImage(FieldReader& spec, const PoolSpec& out) {
    if (out.image.empty() || pool::image::isImageName(out.image) ||
        pool::image::isDigest(out.image)) {
        return;
    }
    const auto reference = pool::image::parseReference(out.image);
    if (!reference) {
        spec.complain("image",
                      "must be a name in the image store, repository@sha256:… or sha256:…");
    } else if (reference->digest.empty() && !out.allow_tags) {
        spec.complain("image",
                      "names a tag, which may later point to another image: use the name that "
                      "`hearth image list` shows, pin it as " +
                          reference->repository + "@sha256:…, or set template.allowTags: true");
    }
}

bool isLanguage(const std::string& name) {
    return pool::isLanguageName(name);
}

/// Checks for a dotted name, as in an import statement.
bool isModule(const std::string& name) {
    bool begins = true;
    for (const char c : name) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (begins ? !letter : !letter && c != '.' && (c < '0' || c > '9')) return false;
        begins = c == '.';
    }
    return !begins && name.size() <= 200;
}

constexpr std::size_t kMostPackages = 100;

bool isPackage(const std::string& spec) {
    return !wrongSpec(spec, PackageManager::Pip);
}

bool isArgument(const std::string& text) {
    return text.size() < 4096 && text.find('\0') == std::string::npos;
}

bool isAllowed(const std::string& entry) {
    return !egress::AllowList::wrong(entry);
}

void readCredentials(FieldReader& network, PoolSpec& out) {
    const egress::NetworkPolicy policy{out.network, {egress::AllowList(out.network_allow)}};
    network.items("credentials", kMostCredentials, [&](const Json& json, const std::string& at) {
        std::vector<FieldError> errors;
        egress::Credential one =
            egress::readCredential(json, egress::CredentialSource::Pool, at, errors);
        if (errors.empty() && !policy.allows(one.destination)) {
            errors.push_back({at + "/host", one.destination.text() + " is not in `allow`"});
        }
        for (const egress::Credential& other : out.network_credentials) {
            if (egress::collide(one, other)) errors.push_back({at, "sets the same as another one"});
        }
        for (FieldError& error : errors) network.tell(std::move(error));
        out.network_credentials.push_back(std::move(one));
    });
}

void readNetwork(FieldReader network, PoolSpec& out) {
    network.choice("mode", out.network, egress::kNetworkModes);
    network.texts("allow", out.network_allow, kMostAllowed, isAllowed,
                  "a host (api.example.com, *.example.com) or a range of addresses "
                  "(203.0.113.0/24), with or without :port");
    const bool egress = out.network == egress::NetworkMode::Egress;
    if (egress && out.network_allow.empty()) {
        network.complain("allow", "must name what Egress may reach");
    }
    if (!egress && !out.network_allow.empty()) {
        network.complain("allow", "needs mode Egress");
    }
    readCredentials(network, out);
    network.finish();
}

void readPrewarm(FieldReader prewarm, PoolSpec& out) {
    prewarm.texts("languages", out.prewarm_languages, 16, isLanguage, "a language's name");
    prewarm.texts("imports", out.prewarm_imports, 64, isModule,
                  "a Python module's name, such as \"numpy\"");
    prewarm.texts("packages", out.prewarm_packages, kMostPackages, isPackage,
                  "a package as pip takes it from an index, such as \"numpy==2.1\"");
    prewarm.texts("command", out.prewarm_command, 64, isArgument, "a word without NUL");
    prewarm.duration("timeout", out.prewarm_timeout);
    const auto python =
        std::find(out.prewarm_languages.begin(), out.prewarm_languages.end(), "python");
    if (!out.prewarm_imports.empty() && out.prewarm_languages.empty()) {
        out.prewarm_languages = {"python"};
    } else if (!out.prewarm_imports.empty() && python == out.prewarm_languages.end()) {
        prewarm.complain("imports", "need python among the languages");
    }
    if (!out.prewarm_command.empty() && out.prewarm_command.front().empty()) {
        prewarm.complain("command/0", "must name a program");
    }
    if (out.prewarm_timeout < std::chrono::seconds(1) ||
        out.prewarm_timeout > std::chrono::minutes(10)) {
        prewarm.complain("timeout", "must be from 1s to 10m");
    }
    prewarm.finish();
}

bool isProduct(const std::string& text) {
    return !text.empty() && text.size() <= 96 &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

void readGpu(FieldReader gpu, GpuSpec& out) {
    gpu.number("count", out.count, pool::kMostGpus);
    gpu.texts("product", out.products, kMostProducts, isProduct,
              "a product's name or words of it, such as \"H100\", or a MIG profile");
    gpu.choice("sharing", out.sharing, kGpuSharings);
    gpu.number("sharedBy", out.shared_by, kMostShares);
    if (out.shared_by < 2) gpu.complain("sharedBy", "must be at least 2");
    if (out.count == 0 && !out.products.empty()) gpu.complain("count", "must be at least 1");
    gpu.finish();
}

void readTemplate(FieldReader spec, PoolSpec& out) {
    spec.text("image", out.image);
    spec.flag("allowTags", out.allow_tags);
    checkImage(spec, out);
    spec.choice("storage", out.storage, kStorages);
    FieldReader resources = spec.object("resources");
    resources.cpu("cpu", out.limits.milli_cpu);
    resources.bytes("memory", out.limits.memory_bytes, 32ULL << 20U);
    resources.number("pids", out.limits.pids, 32'768);
    resources.bytes("workspace", out.limits.workspace_bytes, 4ULL << 20U);
    resources.bytes("tmp", out.limits.tmp_bytes, 1ULL << 20U);
    if (out.limits.pids < 8) resources.complain("pids", "must be at least 8");
    // Memory file systems must leave room for processes (SECURITY T15).
    const std::uint64_t in_memory =
        out.limits.tmp_bytes +
        (out.storage == pool::Storage::Memory ? out.limits.workspace_bytes : 0);
    if (in_memory > out.limits.memory_bytes / 10 * 6) {
        resources.complain("tmp", "file systems in memory may take at most 60% of memory");
    }
    resources.finish();
    readGpu(spec.object("gpu"), out.gpu);
    readNetwork(spec.object("network"), out);
    readPrewarm(spec.object("prewarm"), out);
    spec.text("runtimeClass", out.runtime_class);
    if (!out.runtime_class.empty() && !isDnsSubdomain(out.runtime_class)) {
        spec.complain("runtimeClass",
                      "must be the name of a RuntimeClass of the cluster: lower-case letters, "
                      "digits, inner hyphens and dots");
    }
    readPodTemplate(spec.Fields::object("podTemplate"), out.pod_template);
    spec.finish();
}

/// Reports a bad cron line or zone with its value and what is allowed instead.
Schedule readSchedule(FieldReader fields) {
    Schedule one;
    fields.text("name", one.name);
    if (!isPoolName(one.name)) fields.complain("name", kPoolNameRule);
    std::string text;
    fields.text("cron", text);
    try {
        one.cron = Cron(text);
    } catch (const Error& e) {
        fields.complain("cron", e.what());
    }
    std::string zone = one.zone.name();
    fields.text("timeZone", zone);
    if (const std::optional<TimeZone> found = TimeZone::find(zone)) {
        one.zone = *found;
    } else {
        fields.complain("timeZone", "\"" + zone +
                                        "\" is no time zone: allowed are the names of the IANA "
                                        "database, such as \"UTC\" or \"Asia/Shanghai\"");
    }
    fields.duration("duration", one.duration);
    if (one.duration > kLongestWindow) fields.complain("duration", "at most 366d");
    fields.flag("sweep", one.sweep);
    if (fields.find("warm") != nullptr) {
        one.warm.emplace();
        const auto number = [](FieldReader& warm, const char* key) {
            std::optional<std::uint32_t> out;
            std::uint32_t value = UINT32_MAX;
            warm.number(key, value, kMostMembers);
            if (value != UINT32_MAX) out = value;
            return out;
        };
        FieldReader warm = fields.object("warm");
        one.warm->min = number(warm, "min");
        one.warm->max = number(warm, "max");
        if (one.warm->min && one.warm->max && *one.warm->min > *one.warm->max) {
            warm.complain("min", "must not be above max");
        }
        warm.finish();
    } else {
        if (!one.sweep) fields.complain("", "needs warm, or sweep: true");
        if (one.duration.count() > 0) fields.complain("duration", "needs warm");
    }
    fields.finish();
    return one;
}

void readSchedules(FieldReader& spec, PoolSpec& out) {
    const Fields::Wrong wrong = [&spec](FieldError error) { spec.tell(std::move(error)); };
    spec.items("schedules", kMostSchedules, [&](const Json& json, const std::string& at) {
        if (!json.is_object()) return spec.tell({at, "must be an object"});
        Schedule one = readSchedule(FieldReader(json, at, wrong));
        for (const Schedule& other : out.schedules) {
            if (other.name == one.name) spec.tell({at + "/name", "another schedule has it"});
        }
        out.schedules.push_back(std::move(one));
    });
}

void readSpec(FieldReader spec, PoolSpec& out) {
    readTemplate(spec.object("template"), out);
    FieldReader warm = spec.object("warm");
    warm.number("min", out.warm_min, kMostMembers);
    warm.number("max", out.warm_max, kMostMembers);
    warm.number("parallelCreates", out.parallel_creates, 16);
    warm.duration("maxAge", out.max_age);
    if (out.warm_min > out.warm_max) warm.complain("min", "must not be above max");
    if (out.parallel_creates == 0) warm.complain("parallelCreates", "must be at least 1");
    warm.finish();
    FieldReader sizing = spec.object("sizing");
    sizing.choice("mode", out.sizing, kSizingModes);
    sizing.share("missRate", out.miss_rate, kLeastMissRate, kMostMissRate);
    sizing.finish();
    readSchedules(spec, out);
    FieldReader empty = spec.object("onEmpty");
    empty.choice("action", out.on_empty, kOnEmpty);
    empty.duration("maxWait", out.max_wait);
    empty.number("maxQueue", out.max_queue, 10'000);
    if (out.max_wait > std::chrono::minutes(10)) empty.complain("maxWait", "at most 10m");
    empty.finish();
    FieldReader lifecycle = spec.object("lifecycle");
    lifecycle.duration("idleTimeout", out.idle_timeout);
    lifecycle.duration("maxLifetime", out.max_lifetime);
    lifecycle.duration("silenceTimeout", out.silence_timeout);
    if (out.silence_timeout.count() > 0 && out.silence_timeout < kLeastSilence) {
        lifecycle.complain("silenceTimeout", "must be at least 10s, or 0 for no limit");
    }
    lifecycle.choice("onIdle", out.on_idle, kOnIdle);
    lifecycle.flag("countRunningWork", out.count_running_work);
    if (out.on_idle == OnIdle::Pause && !out.count_running_work) {
        lifecycle.complain("countRunningWork",
                           "must be true with onIdle Pause, which would freeze running work");
    }
    lifecycle.duration("warnBefore", out.warn_before);
    lifecycle.finish();
    FieldReader limits = spec.object("limits");
    limits.number("members", out.max_members, kMostMembers);
    limits.number("perTenant", out.per_tenant, kMostMembers);
    limits.finish();
    spec.finish();
}

std::string textAtPointer(const Json& document, const char* pointer) {
    const Json::json_pointer at(pointer);
    return document.contains(at) && document[at].is_string() ? document[at].get<std::string>() : "";
}

[[noreturn]] void refuseManifest(std::vector<FieldError> errors) {
    Error error(ErrorCode::InvalidSpec, "the pool manifest is not valid: " +
                                            errors.front().pointer + " " + errors.front().reason);
    for (FieldError& each : errors) error.field(std::move(each.pointer), std::move(each.reason));
    throw error;
}

}  // namespace

Pool parsePool(const Json& document) {
    std::vector<FieldError> errors;
    Pool pool;
    const Fields::Wrong wrong = [&](FieldError error) { errors.push_back(std::move(error)); };
    FieldReader top(document, "", wrong);
    if (!document.is_object()) refuseManifest({{"", "a manifest must be an object"}});
    std::string api_version;
    std::string kind;
    top.text("apiVersion", api_version);
    top.text("kind", kind);
    if (api_version != kPoolApiVersion) {
        top.complain("apiVersion", std::string("must be ") + kPoolApiVersion);
    }
    if (kind != kPoolKind) top.complain("kind", std::string("must be ") + kPoolKind);
    FieldReader metadata = top.object("metadata");
    metadata.text("name", pool.name);
    if (!isPoolName(pool.name)) {
        metadata.complain("name", kPoolNameRule);
    }
    // Fields that the server wrote may come back with the rest of the object.
    for (const char* written :
         {"generation", "resourceVersion", "createdAt", "deleting", "onDemand", "object"}) {
        metadata.find(written);
    }
    metadata.finish();
    readSpec(top.object("spec"), pool.spec);
    if (pool.spec.image.empty()) {
        errors.push_back({"/spec/template/image", "is required: a name under the images folder"});
    }
    top.find("status");
    top.finish();
    if (!errors.empty()) refuseManifest(std::move(errors));
    return pool;
}

Pool storedPool(const Json& document) {
    Pool pool;
    try {
        pool = parsePool(document);
    } catch (const Error& e) {
        pool.name = textAtPointer(document, "/metadata/name");
        if (!isPoolName(pool.name)) throw;
        pool.spec.image = textAtPointer(document, "/spec/template/image");
        pool.refused = e.what();
    }
    pool.on_demand = textAtPointer(document, "/metadata/onDemand");
    pool.object = textAtPointer(document, "/metadata/object");
    return pool;
}

}  // namespace hearth::controller
