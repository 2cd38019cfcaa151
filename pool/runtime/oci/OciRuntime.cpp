#include "pool/runtime/oci/OciRuntime.h"

#include <nlohmann/json.hpp>

#include "base/Error.h"
#include "base/Fields.h"
#include "base/Ids.h"
#include "pool/image/LayerStore.h"
#include "pool/image/Reference.h"
#include "pool/runtime/AgentSocket.h"
#include "pool/runtime/RequireId.h"
#include "pool/sys/CpuWeight.h"
#include "pool/sys/Files.h"
#include "pool/sys/Freezer.h"

namespace hearth::pool {
namespace {

/// Calls to the sandbox wait for the result.
constexpr auto kFreeze = std::chrono::milliseconds(100);

const Fields::Wrong kRefuseFacts = [](const FieldError& error) {
    throw std::runtime_error("the launcher's facts: " + error.pointer + " " + error.reason);
};

std::vector<std::string> textList(Fields& fields, const char* key) {
    std::vector<std::string> texts;
    fields.items(key, SIZE_MAX, [&](const Json& item, const std::string& pointer) {
        if (!item.is_string()) kRefuseFacts({pointer, "must be a string"});
        texts.push_back(item.get<std::string>());
    });
    return texts;
}

KnownImage known(const image::Image& image) {
    KnownImage known{image.digest, image.digest, {image.name, image.name + "@" + image.digest}};
    const auto reference = image::parseReference(image.reference);
    if (!reference) return known;
    known.names.push_back(image.reference);
    for (const std::string& digest : {image.digest, image.source_digest}) {
        if (!digest.empty()) known.names.push_back(reference->repository + "@" + digest);
    }
    return known;
}

}  // namespace

OciRuntime::OciRuntime(const Instance& instance, LauncherClient& launcher)
    : names_(instance), launcher_(launcher), cgroups_(sys::Cgroups::detect()) {}

ContainerRuntime::Started OciRuntime::create(const SandboxId& id, const SandboxSpec& spec) {
    requireId(id);
    const std::string path = names_.socket(id);
    const Fd listening = listenAt(path, 0600);
    try {
        launcher_.create(id, spec, listening.get());
    } catch (...) {
        sys::removeFile(path);
        throw;
    }
    return Started::Listening;
}

std::string OciRuntime::trouble() const {
    const std::string operation = launcher_.stuckOperation();
    return operation.empty() ? operation
                             : "the launcher has not answered in time (operation " + operation +
                                   "): it is stopped, or a disk hangs";
}

void OciRuntime::destroy(const SandboxId& id) {
    requireId(id);
    launcher_.destroy(id);
    const MutexLock lock(mutex_);
    peaks_.erase(id);
}

SandboxInfo OciRuntime::infoOf(LauncherClient::Found found) const {
    const bool frozen = sys::Freezer(cgroups_, names_.cgroup(found.id)).frozen();
    return {.id = std::move(found.id),
            .alive = found.alive,
            .frozen = frozen,
            .labels = std::move(found.labels),
            .created_unix_ms = found.created_unix_ms};
}

std::vector<SandboxInfo> OciRuntime::list() {
    std::vector<SandboxInfo> sandboxes;
    for (LauncherClient::Found& found : launcher_.list()) {
        sandboxes.push_back(infoOf(std::move(found)));
    }
    return sandboxes;
}

std::optional<SandboxInfo> OciRuntime::find(const SandboxId& id) {
    requireId(id);
    std::optional<LauncherClient::Found> found = launcher_.find(id);
    if (!found) return std::nullopt;
    return infoOf(*std::move(found));
}

Fd OciRuntime::connect(const SandboxId& id) {
    requireId(id);
    return connectTo(names_.socket(id));
}

std::optional<SandboxUsage> OciRuntime::usage(const SandboxId& id) {
    requireId(id);
    const std::optional<sys::CgroupUsage> read = sys::readUsage(cgroups_, names_.cgroup(id));
    if (!read) return std::nullopt;
    return SandboxUsage{read->cpu_ns, read->memory_bytes, read->memory_peak_bytes, read->processes,
                        read->oom_kills};
}

std::optional<std::uint64_t> OciRuntime::takeMemoryPeak(const SandboxId& id) {
    requireId(id);
    std::shared_ptr<sys::MemoryPeak> peak;
    {
        const MutexLock lock(mutex_);
        std::shared_ptr<sys::MemoryPeak>& known = peaks_[id];
        if (!known) known = std::make_shared<sys::MemoryPeak>(cgroups_, names_.cgroup(id));
        peak = known;
    }
    return peak->take();
}

std::optional<FileTable> OciRuntime::fileTable() {
    return hearth::fileTable();
}

std::map<SandboxId, std::uint64_t> OciRuntime::openFiles() {
    std::map<SandboxId, std::uint64_t> files;
    for (const LauncherClient::Found& found : launcher_.list(true)) {
        files[found.id] = found.open_files;
    }
    return files;
}

std::optional<LimitInUse> OciRuntime::narrow(const SandboxId& id, const SandboxLimits& limits) {
    requireId(id);
    return launcher_.narrow(id, limits);
}

bool OciRuntime::goFirst(const SandboxId& id, bool first) {
    requireId(id);
    return sys::CpuWeightFile(cgroups_, names_.cgroup(id))
        .set(first ? sys::CpuWeight::First : sys::CpuWeight::Ordinary);
}

bool OciRuntime::freezes() {
    return sys::Freezer::exists(cgroups_);
}

bool OciRuntime::freeze(const SandboxId& id) {
    requireId(id);
    return sys::Freezer(cgroups_, names_.cgroup(id)).freeze(kFreeze);
}

bool OciRuntime::thaw(const SandboxId& id) {
    requireId(id);
    return sys::Freezer(cgroups_, names_.cgroup(id)).thaw();
}

/// Remembers the image under this name; returns its digest if it is unpacked.
std::optional<std::string> OciRuntime::keep(const std::string& name, image::Image image) {
    if (!image.unpacked) return std::nullopt;
    std::string digest = image.digest;
    const MutexLock lock(mutex_);
    resolved_.insert_or_assign(name, std::move(image));
    return digest;
}

std::optional<std::string> OciRuntime::readyImage(const std::string& name) {
    return keep(name, launcher_.describeImage(name));
}

std::string OciRuntime::resolveImage(const std::string& name) {
    // Images are unpacked one at a time, and a caller of a ready image must not wait for that.
    if (std::optional<std::string> ready = readyImage(name)) return *std::move(ready);
    return keep(name, launcher_.prepareImage(name)).value();
}

bool OciRuntime::sameImage(const std::string& image, const std::string& wanted) {
    if (image == wanted) return true;
    {
        const MutexLock lock(mutex_);
        const auto known = resolved_.find(image);
        if (known != resolved_.end()) return known->second.is(wanted);
    }
    try {
        image::Image found = launcher_.describeImage(image);
        const bool same = found.is(wanted);
        const MutexLock lock(mutex_);
        resolved_.emplace(image, std::move(found));
        return same;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::Unavailable) throw;
        return false;  // the pool's image is missing
    }
}

std::optional<KnownImage> OciRuntime::knownImage(const std::string& wanted) {
    try {
        return known(launcher_.describeImage(wanted));
    } catch (const Error& e) {
        if (e.code() == ErrorCode::NotFound) return std::nullopt;
        throw;
    }
}

KnownImage OciRuntime::fetchImage(const ImageFetch& fetch, ImageStages& stages) {
    const launcher::Fetched fetched = launcher_.fetchImage(
        {fetch.reference, fetch.insecure, static_cast<std::uint64_t>(fetch.limit.count())},
        fetch.gateway);
    stages.pull = std::chrono::milliseconds(fetched.pull_ms);
    stages.unpack = std::chrono::milliseconds(fetched.unpack_ms);
    return known(fetched.image);
}

void OciRuntime::collectImages(const std::vector<std::string>& wanted) {
    launcher_.forgetImages(wanted);
}

std::vector<std::string> OciRuntime::layers() {
    return image::LayerStore(names_.layers()).all();
}

void OciRuntime::addLayer(const std::string& digest, int tar) {
    launcher_.addLayer(digest, tar);
}

void OciRuntime::removeLayer(const std::string& digest) {
    launcher_.removeLayer(digest);
}

std::vector<Leftover> OciRuntime::sweep(const std::vector<SandboxId>& keep) {
    return launcher_.sweep(keep);
}

RuntimeFacts OciRuntime::facts() {
    const Json told = launcher_.facts();
    Fields fields(told, "", kRefuseFacts);
    RuntimeFacts facts;
    facts.name = "oci";
    facts.version = *fields.text("version");
    facts.user_namespaces = *fields.flag("userNamespaces");
    facts.seccomp = *fields.flag("seccomp");
    facts.cgroup = *fields.text("cgroup");
    facts.holes = textList(fields, "holes");
    fields.items("images", SIZE_MAX, [&](const Json& item, const std::string& pointer) {
        Fields image(item, pointer, kRefuseFacts);
        if (!*image.flag("unpacked")) return;
        const std::string name = *image.text("name");
        facts.images.push_back(name);
        facts.image_notes[name] = {*image.text("digest"), *image.text("reference"),
                                   textList(image, "languages")};
    });
    return facts;
}

}  // namespace hearth::pool
