#include "controller/PoolSpec.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/Error.h"
#include "base/Units.h"
#include "controller/Packages.h"
#include "pool/image/Reference.h"
#include "pool/spec/LanguageName.h"

namespace hearth::controller {
namespace {

constexpr const char* kApiVersion = "hearth.dev/v1alpha1";
constexpr const char* kKind = "SandboxPool";
constexpr std::size_t kMaxNameLength = 63;
// Caps of one pool (SECURITY T33): a mistyped number must not become a thousand containers.
constexpr std::uint32_t kMostMembers = 1000;
constexpr std::uint64_t kMostBytes = 1ULL << 40U;

/// Reads one JSON object field by field and collects what is wrong with it.
class FieldReader {
public:
    FieldReader(const Json& object, std::string pointer, std::vector<FieldError>& errors)
        : pointer_(std::move(pointer)), errors_(errors) {
        if (object.is_object()) {
            object_ = &object;
        } else if (!object.is_null()) {
            complain("", "must be an object");
        }
    }

    /// Call last: complains about every field that nobody asked for.
    void finish() {
        if (object_ == nullptr) return;
        for (const auto& [key, value] : object_->items()) {
            if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
            std::string allowed;
            for (const std::string& name : known_) allowed += (allowed.empty() ? "" : ", ") + name;
            complain("/" + key, "unknown field; known here: " + allowed);
        }
    }

    const Json& child(const std::string& key) {
        static const Json null;
        known_.push_back(key);
        if (object_ == nullptr) return null;
        const auto found = object_->find(key);
        return found == object_->end() ? null : *found;
    }

    FieldReader object(const std::string& key) {
        return {child(key), pointer_ + "/" + key, errors_};
    }

    void text(const std::string& key, std::string& out) {
        const Json& value = child(key);
        if (value.is_null()) return;
        if (!value.is_string()) return complain("/" + key, "must be a string");
        out = value.get<std::string>();
    }

    void flag(const std::string& key, bool& out) {
        const Json& value = child(key);
        if (value.is_null()) return;
        if (!value.is_boolean()) return complain("/" + key, "must be true or false");
        out = value.get<bool>();
    }

    void number(const std::string& key, std::uint32_t& out, std::uint32_t most) {
        const Json& value = child(key);
        if (value.is_null()) return;
        if (!value.is_number_integer() || value.get<double>() < 0 || value.get<double>() > most) {
            return complain("/" + key, "must be a whole number from 0 to " + std::to_string(most));
        }
        out = value.get<std::uint32_t>();
    }

    void bytes(const std::string& key, std::uint64_t& out, std::uint64_t least) {
        const Json& value = child(key);
        if (value.is_null()) return;
        std::optional<std::uint64_t> parsed;
        if (value.is_string()) parsed = parseBytes(value.get<std::string>());
        if (value.is_number_unsigned()) parsed = value.get<std::uint64_t>();
        if (!parsed || *parsed < least || *parsed > kMostBytes) {
            return complain("/" + key, "must be a size of at least " + formatBytes(least) +
                                           ", such as \"512Mi\"");
        }
        out = *parsed;
    }

    void cpu(const std::string& key, std::uint32_t& out) {
        const Json& value = child(key);
        if (value.is_null()) return;
        std::optional<std::uint32_t> parsed;
        if (value.is_string()) parsed = parseMilliCpu(value.get<std::string>());
        if (value.is_number()) parsed = parseMilliCpu(value.dump());
        if (!parsed || *parsed < 10 || *parsed > 1'000'000) {
            return complain("/" + key, R"(must be cores, such as "1", "0.5" or "500m")");
        }
        out = *parsed;
    }

    void duration(const std::string& key, std::chrono::milliseconds& out) {
        const Json& value = child(key);
        if (value.is_null()) return;
        std::optional<std::chrono::milliseconds> parsed;
        if (value.is_string()) parsed = parseDuration(value.get<std::string>());
        if (value.is_number_unsigned() && value.get<std::uint64_t>() == 0) {
            parsed = std::chrono::milliseconds(0);
        }
        if (!parsed) return complain("/" + key, R"(must be a duration, such as "90s" or "10m")");
        out = *parsed;
    }

    void texts(const std::string& key, std::vector<std::string>& out, std::size_t most,
               bool (*valid)(const std::string&), const char* what) {
        const Json& value = child(key);
        if (value.is_null()) return;
        if (!value.is_array() || value.size() > most) {
            return complain("/" + key, "must be a list of at most " + std::to_string(most));
        }
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (value[i].is_string() && valid(value[i].get<std::string>())) {
                out.push_back(value[i].get<std::string>());
            } else {
                complain("/" + key + "/" + std::to_string(i), std::string("must be ") + what);
            }
        }
    }

    /// Calls `read` with each item of a list, where it stands, and the list of what is wrong.
    template <typename Read>
    void items(const std::string& key, std::size_t most, const Read& read) {
        const Json& value = child(key);
        if (value.is_null()) return;
        if (!value.is_array() || value.size() > most) {
            return complain("/" + key, "must be a list of at most " + std::to_string(most));
        }
        for (std::size_t i = 0; i < value.size(); ++i) {
            read(value[i], pointer_ + "/" + key + "/" + std::to_string(i), errors_);
        }
    }

    template <typename Enum, std::size_t N>
    void choice(const std::string& key, Enum& out,
                const std::array<std::pair<const char*, Enum>, N>& names) {
        const Json& value = child(key);
        if (value.is_null()) return;
        std::string all;
        for (const auto& [name, meaning] : names) {
            if (value.is_string() && value.get<std::string>() == name) {
                out = meaning;
                return;
            }
            all += (all.empty() ? "" : ", ") + std::string(name);
        }
        complain("/" + key, "must be one of " + all);
    }

    /// A field of a later version: only its default is taken.
    void onlyDefault(const std::string& key, const Json& fallback, const char* why) {
        const Json& value = child(key);
        if (value.is_null() || value == fallback) return;
        complain("/" + key, std::string("not supported yet: ") + why);
    }

    void complain(const std::string& below, std::string reason) {
        errors_.push_back({pointer_ + below, std::move(reason)});
    }

private:
    const Json* object_ = nullptr;
    std::string pointer_;
    std::vector<FieldError>& errors_;
    std::vector<std::string> known_;
};

constexpr std::array<std::pair<const char*, OnEmpty>, 3> kOnEmpty{
    {{"Queue", OnEmpty::Queue}, {"Create", OnEmpty::Create}, {"Fail", OnEmpty::Fail}}};
constexpr std::array<std::pair<const char*, pool::Storage>, 2> kStorage{
    {{"Disk", pool::Storage::Disk}, {"Memory", pool::Storage::Memory}}};
constexpr std::array<std::pair<const char*, broker::NetworkMode>, 3> kNetworks{
    {{"None", broker::NetworkMode::None},
     {"Mirror", broker::NetworkMode::Mirror},
     {"Egress", broker::NetworkMode::Egress}}};
constexpr std::size_t kMostAllowed = 256;
constexpr std::size_t kMostCredentials = 32;

/// A name in the store is what the operator imported, and a digest says which bytes; a tag is what
/// its registry makes of it (SECURITY T34).
void checkImage(FieldReader& spec, const PoolSpec& out) {
    if (out.image.empty() || pool::image::isImageName(out.image) ||
        pool::image::isDigest(out.image)) {
        return;
    }
    const auto reference = pool::image::parseReference(out.image);
    if (!reference) {
        spec.complain("/image",
                      "must be a name in the image store, repository@sha256:… or sha256:…");
    } else if (reference->digest.empty() && !out.allow_tags) {
        spec.complain("/image",
                      "names a tag, which may come to mean another image: use the name that "
                      "`hearth image list` shows, pin it as " +
                          reference->repository + "@sha256:…, or set template.allowTags: true");
    }
}

bool isLanguage(const std::string& name) {
    return pool::isLanguageName(name);
}

/// A dotted name, as an import statement has it.
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
    return !wrongSpec(spec, "pip");
}

bool isArgument(const std::string& text) {
    return text.size() < 4096 && text.find('\0') == std::string::npos;
}

bool isAllowed(const std::string& entry) {
    return !broker::AllowList::wrong(entry);
}

void readCredentials(FieldReader& network, PoolSpec& out) {
    const broker::NetworkPolicy policy{out.network, {broker::AllowList(out.network_allow)}};
    network.items(
        "credentials", kMostCredentials,
        [&](const Json& json, const std::string& at, std::vector<FieldError>& errors) {
            const std::size_t before = errors.size();
            broker::Credential one =
                broker::readCredential(json, broker::CredentialSource::Pool, at, errors);
            if (errors.size() > before) return;
            if (!policy.allows(one.destination)) {
                errors.push_back({at + "/host", one.destination.text() + " is not in `allow`"});
            }
            for (const broker::Credential& other : out.network_credentials) {
                if (broker::collide(one, other))
                    errors.push_back({at, "sets what another one sets"});
            }
            out.network_credentials.push_back(std::move(one));
        });
}

void readNetwork(FieldReader network, PoolSpec& out) {
    network.choice("mode", out.network, kNetworks);
    network.texts("allow", out.network_allow, kMostAllowed, isAllowed,
                  "a host (api.example.com, *.example.com) or a range of addresses "
                  "(203.0.113.0/24), with or without :port");
    const bool egress = out.network == broker::NetworkMode::Egress;
    if (egress && out.network_allow.empty()) {
        network.complain("/allow", "must name what Egress may reach");
    }
    if (!egress && !out.network_allow.empty()) {
        network.complain("/allow", "needs mode Egress");
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
        prewarm.complain("/imports", "are Python's, which is not among the languages");
    }
    if (!out.prewarm_command.empty() && out.prewarm_command.front().empty()) {
        prewarm.complain("/command/0", "must name a program");
    }
    if (out.prewarm_timeout < std::chrono::seconds(1) ||
        out.prewarm_timeout > std::chrono::minutes(10)) {
        prewarm.complain("/timeout", "must be from 1s to 10m");
    }
    prewarm.finish();
}

void readTemplate(FieldReader spec, PoolSpec& out) {
    spec.text("image", out.image);
    spec.flag("allowTags", out.allow_tags);
    checkImage(spec, out);
    spec.choice("storage", out.storage, kStorage);
    FieldReader resources = spec.object("resources");
    resources.cpu("cpu", out.limits.milli_cpu);
    resources.bytes("memory", out.limits.memory_bytes, 32ULL << 20U);
    resources.number("pids", out.limits.pids, 32'768);
    resources.bytes("workspace", out.limits.workspace_bytes, 4ULL << 20U);
    resources.bytes("tmp", out.limits.tmp_bytes, 1ULL << 20U);
    if (out.limits.pids < 8) resources.complain("/pids", "must be at least 8");
    // Memory file systems must leave room for processes (SECURITY T15).
    const std::uint64_t in_memory =
        out.limits.tmp_bytes +
        (out.storage == pool::Storage::Memory ? out.limits.workspace_bytes : 0);
    if (in_memory > out.limits.memory_bytes / 10 * 6) {
        resources.complain("/tmp", "file systems in memory may take at most 60% of memory");
    }
    resources.finish();
    FieldReader gpu = spec.object("gpu");
    gpu.onlyDefault("count", 0, "GPU pools");
    gpu.onlyDefault("product", Json::array(), "GPU pools");
    gpu.onlyDefault("sharing", "Exclusive", "GPU pools");
    gpu.finish();
    readNetwork(spec.object("network"), out);
    readPrewarm(spec.object("prewarm"), out);
    spec.onlyDefault("runtimeClass", "", "runtime classes");
    spec.onlyDefault("podTemplate", Json::object(), "the kubernetes runtime");
    spec.finish();
}

void readSpec(FieldReader spec, PoolSpec& out) {
    readTemplate(spec.object("template"), out);
    FieldReader warm = spec.object("warm");
    warm.number("min", out.warm_min, kMostMembers);
    warm.number("max", out.warm_max, kMostMembers);
    warm.number("parallelCreates", out.parallel_creates, 16);
    warm.duration("maxAge", out.max_age);
    if (out.warm_min > out.warm_max) warm.complain("/min", "must not be above max");
    if (out.parallel_creates == 0) warm.complain("/parallelCreates", "must be at least 1");
    warm.finish();
    FieldReader sizing = spec.object("sizing");
    sizing.onlyDefault("mode", "Static", "predictive sizing");
    sizing.child("missRate");
    sizing.finish();
    spec.onlyDefault("schedules", Json::array(), "schedules");
    FieldReader empty = spec.object("onEmpty");
    empty.choice("action", out.on_empty, kOnEmpty);
    empty.duration("maxWait", out.max_wait);
    empty.number("maxQueue", out.max_queue, 10'000);
    if (out.max_wait > std::chrono::minutes(10)) empty.complain("/maxWait", "at most 10m");
    empty.finish();
    FieldReader lifecycle = spec.object("lifecycle");
    lifecycle.duration("idleTimeout", out.idle_timeout);
    lifecycle.duration("maxLifetime", out.max_lifetime);
    lifecycle.onlyDefault("onIdle", "Reclaim", "pausing");
    lifecycle.onlyDefault("countRunningWork", true, "ignoring running work");
    lifecycle.finish();
    FieldReader limits = spec.object("limits");
    limits.number("members", out.max_members, kMostMembers);
    limits.number("perTenant", out.per_tenant, kMostMembers);
    limits.finish();
    spec.finish();
}

std::string textAt(const Json& document, const char* pointer) {
    const Json::json_pointer at(pointer);
    return document.contains(at) && document[at].is_string() ? document[at].get<std::string>() : "";
}

bool validName(const std::string& name) {
    if (name.empty() || name.size() > kMaxNameLength || name.front() == '-' || name.back() == '-') {
        return false;
    }
    return std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
}

[[noreturn]] void refuse(std::vector<FieldError> errors) {
    const bool unsupported = std::all_of(errors.begin(), errors.end(), [](const FieldError& error) {
        return error.reason.starts_with("not supported yet");
    });
    Error error(
        unsupported ? ErrorCode::Unsupported : ErrorCode::InvalidSpec,
        "the pool manifest is not valid: " + errors.front().pointer + " " + errors.front().reason);
    for (FieldError& each : errors) error.field(std::move(each.pointer), std::move(each.reason));
    throw error;
}

}  // namespace

Pool parsePool(const Json& document) {
    std::vector<FieldError> errors;
    Pool pool;
    FieldReader top(document, "", errors);
    if (!document.is_object()) refuse({{"", "a manifest must be an object"}});
    std::string api_version;
    std::string kind;
    top.text("apiVersion", api_version);
    top.text("kind", kind);
    if (api_version != kApiVersion) {
        top.complain("/apiVersion", std::string("must be ") + kApiVersion);
    }
    if (kind != kKind) top.complain("/kind", std::string("must be ") + kKind);
    FieldReader metadata = top.object("metadata");
    metadata.text("name", pool.name);
    if (!validName(pool.name)) {
        metadata.complain("/name", "must be 1 to 63 lower-case letters, digits or '-'");
    }
    // What the server wrote may come back with the rest of the object.
    for (const char* written :
         {"generation", "resourceVersion", "createdAt", "deleting", "onDemand"}) {
        metadata.child(written);
    }
    metadata.finish();
    readSpec(top.object("spec"), pool.spec);
    if (pool.spec.image.empty()) {
        errors.push_back({"/spec/template/image", "is required: a name under the images folder"});
    }
    top.child("status");
    top.finish();
    if (!errors.empty()) refuse(std::move(errors));
    return pool;
}

Pool storedPool(const Json& document) {
    Pool pool;
    try {
        pool = parsePool(document);
    } catch (const Error& e) {
        std::string why = e.what();
        Json tagged = document;
        try {
            // What older versions let pass: a tag without the word that it may change.
            tagged.at("spec").at("template")["allowTags"] = true;
            pool = parsePool(tagged);
            pool.spec.allow_tags = false;
        } catch (const std::exception&) {
            pool = Pool{};
            pool.name = textAt(document, "/metadata/name");
            if (!validName(pool.name)) throw Error(e);
            pool.spec.image = textAt(document, "/spec/template/image");
        }
        pool.refused = std::move(why);
    }
    pool.on_demand = textAt(document, "/metadata/onDemand");
    return pool;
}

Json storedDocument(const Pool& pool) {
    Json document = poolDocument(pool.name, pool.spec);
    if (!pool.on_demand.empty()) document["metadata"]["onDemand"] = pool.on_demand;
    return document;
}

Json poolDocument(const std::string& name, const PoolSpec& spec) {
    const auto name_of = [](const auto& names, auto value) -> const char* {
        for (const auto& [text, meaning] : names) {
            if (meaning == value) return text;
        }
        return "";
    };
    Json credentials = Json::array();
    for (const broker::Credential& credential : spec.network_credentials) {
        credentials.push_back(broker::credentialJson(credential));
    }
    return {{"apiVersion", kApiVersion},
            {"kind", kKind},
            {"metadata", {{"name", name}}},
            {"spec",
             {{"template",
               {{"image", spec.image},
                {"allowTags", spec.allow_tags},
                {"resources",
                 {{"cpu", formatMilliCpu(spec.limits.milli_cpu)},
                  {"memory", formatBytes(spec.limits.memory_bytes)},
                  {"pids", spec.limits.pids},
                  {"workspace", formatBytes(spec.limits.workspace_bytes)},
                  {"tmp", formatBytes(spec.limits.tmp_bytes)}}},
                {"storage", name_of(kStorage, spec.storage)},
                {"network",
                 {{"mode", name_of(kNetworks, spec.network)},
                  {"allow", spec.network_allow},
                  {"credentials", std::move(credentials)}}},
                {"prewarm",
                 {{"languages", spec.prewarm_languages},
                  {"imports", spec.prewarm_imports},
                  {"packages", spec.prewarm_packages},
                  {"command", spec.prewarm_command},
                  {"timeout", formatDuration(spec.prewarm_timeout)}}}}},
              {"warm",
               {{"min", spec.warm_min},
                {"max", spec.warm_max},
                {"parallelCreates", spec.parallel_creates},
                {"maxAge", formatDuration(spec.max_age)}}},
              {"sizing", {{"mode", "Static"}}},
              {"onEmpty",
               {{"action", name_of(kOnEmpty, spec.on_empty)},
                {"maxWait", formatDuration(spec.max_wait)},
                {"maxQueue", spec.max_queue}}},
              {"lifecycle",
               {{"idleTimeout", formatDuration(spec.idle_timeout)},
                {"maxLifetime", formatDuration(spec.max_lifetime)},
                {"onIdle", "Reclaim"},
                {"countRunningWork", true}}},
              {"limits", {{"members", spec.max_members}, {"perTenant", spec.per_tenant}}}}}};
}

}  // namespace hearth::controller
