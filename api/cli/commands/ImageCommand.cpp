#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "api/cli/commands/Commands.h"
#include "api/cli/remote/Remote.h"
#include "api/cli/remote/Tables.h"
#include "api/command/OutputFormat.h"
#include "api/config/ServeConfig.h"
#include "api/serve/FreshFacts.h"
#include "api/serve/OfflineState.h"
#include "base/Error.h"
#include "base/Units.h"
#include "base/host/Instance.h"
#include "base/http/Url.h"
#include "controller/spec/PoolSpec.h"
#include "pool/image/ImageImport.h"
#include "pool/image/ImageStore.h"
#include "pool/launcher/TreesInUse.h"

namespace hearth::cli {
namespace {

using pool::image::Image;
using pool::image::ImageStore;

volatile std::sig_atomic_t interrupted = 0;

std::string dataDir(const Invocation& call) {
    return call.options.get("data-dir", kDataDirectory);
}

void requireRoot(const std::string& what) {
    if (::geteuid() == 0) return;
    throw Error(ErrorCode::InvalidArgument, what + " an image needs root")
        .hint("it makes files that belong to root; try sudo");
}

/// While it lives, SIGINT and SIGTERM make progress() throw, so that everything is cleaned up.
class Interruptible {
public:
    Interruptible() {
        interrupted = 0;
        struct sigaction action {};
        action.sa_handler = [](int) { interrupted = 1; };
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            ::sigaction(kSignals[i], &action, &before_[i]);
        }
    }
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;
    ~Interruptible() {
        for (std::size_t i = 0; i < kSignals.size(); ++i) {
            ::sigaction(kSignals[i], &before_[i], nullptr);
        }
    }

private:
    static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, kSignals.size()> before_{};
};

/// Prints one line per step; on a terminal it counts.
class Progress {
public:
    explicit Progress(const Console& console)
        : console_(console), terminal_(::isatty(STDERR_FILENO) == 1) {}
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    ~Progress() { endLine(); }

    void operator()(const std::string& step, std::uint64_t bytes) {
        if (interrupted != 0) throw Error(ErrorCode::Conflict, "interrupted: nothing was changed");
        if (step != step_) {
            endLine();
            step_ = step;
            console_.err << "==> " << printable(step);
            if (!terminal_) console_.err << '\n';
            open_ = terminal_;
        } else if (terminal_) {
            console_.err << "\r==> " << printable(step) << "  " << bytes / 1'000'000 << " MB";
        }
        console_.err << std::flush;
    }
    void endLine() {
        if (open_) console_.err << '\n' << std::flush;
        open_ = false;
    }

private:
    const Console& console_;
    bool terminal_;
    bool open_ = false;
    std::string step_;
};

Json viewOf(const ImageStore& store, const Image& image) {
    const pool::image::ImageFacts facts = store.facts(image.digest);
    Json languages = Json::array();
    for (const auto& [name, how] : facts.languages.items()) languages.push_back(name);
    const pool::image::Layout layout =
        pool::image::readLayout(store.layoutPath(image.name), image.name);
    Json view{{"name", image.name},
              {"digest", image.digest},
              {"reference", nullptr},
              {"source", nullptr},
              {"sourceDigest", nullptr},
              {"importedAt", nullptr},
              {"storedBytes", layout.stored_bytes},
              {"unpacked", image.unpacked},
              {"languages", std::move(languages)}};
    const auto text = [&](const char* key, const std::string& value) {
        if (!value.empty()) view[key] = value;
    };
    text("reference", image.reference);
    text("source", image.source);
    text("sourceDigest", image.source_digest);
    text("importedAt", image.imported);
    return view;
}

/// Names of the pools that are declared for this image.
std::vector<std::string> poolsOf(const Invocation& call, const Image& image) {
    std::vector<std::string> names;
    for (const controller::Pool& pool : program::declaredPools(dataDir(call))) {
        if (image.is(pool.spec.image)) names.push_back(pool.name);
    }
    return names;
}

/// True if the server lists the image, or if its runtime's daemon keeps the images (not `oci`).
bool serverHas(Remote& remote, const Image& image) {
    const Json facts = remote.get("/v1/capabilities");
    if (facts.value("runtime", "") != "oci") return true;  // a daemon keeps its own
    const Json images = facts.value("images", Json::array());
    return std::any_of(images.begin(), images.end(), [&](const Json& one) {
        return one.is_object() && one.value("name", "") == image.name &&
               one.value("digest", "") == image.digest;
    });
}

/// The server cannot use an image in a store other than its own.
void requireServersStore(Remote& remote, const Image& image, const std::string& directory) {
    if (serverHas(remote, image)) return;
    // The list may be slightly older than the import (FreshFacts).
    std::this_thread::sleep_for(2 * program::FreshFacts::kFresh);
    if (serverHas(remote, image)) return;
    throw Error(ErrorCode::InvalidArgument, "the server does not have image " + image.name +
                                                ": it was imported into " + directory +
                                                ", and the server keeps its images elsewhere")
        .hint("repeat it with the server's --data-dir (or HEARTH_DATA_DIR)");
}

/// Sets the image of the pool; declares the pool with every default if there is none.
void declarePool(const Invocation& call, Remote& remote, const std::string& pool,
                 const std::string& image) {
    const std::string target = "/v1/pools/" + percentEncode(pool);
    try {
        remote.get(target);
        remote.send("PATCH", target, {{"spec", {{"template", {{"image", image}}}}}},
                    {{"Content-Type", "application/merge-patch+json"}});
        call.console.out << "pool " << pool << " configured\n";
    } catch (const RemoteError& e) {
        if (e.status() != 404) throw;
        controller::PoolSpec spec;
        spec.image = image;
        remote.send("PUT", target, controller::poolDocument(pool, spec));
        call.console.out << "pool " << pool << " created\n";
    }
}

int import(const Invocation& call) {
    const std::vector<std::string>& words = call.options.positional();
    if (words.size() != 2) throw UsageError("import what?", "hearth image import SOURCE");
    const bool json = wantsJson(call.options);
    pool::image::ImportRequest request;
    request.source = words[1];
    request.name = call.options.get("name", "");
    request.which = call.options.get("image", "");
    pool::image::parseSource(request.source);  // report a wrong argument before missing rights
    requireRoot("to import");
    request.docker_host = call.environment("DOCKER_HOST").value_or("");
    for (const char* name :
         {"HOME", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy",
          "REGISTRY_AUTH_FILE", "SSL_CERT_FILE", "XDG_RUNTIME_DIR", "TMPDIR"}) {
        if (const auto value = call.environment(name)) {
            request.environment.push_back(std::string(name) + "=" + *value);
        }
    }
    const std::string directory = openInstance(dataDir(call)).data_dir;
    pool::image::ImportResult result;
    {
        const Interruptible interruptible;
        Progress progress(call.console);
        result = pool::image::importImage(
            directory, request,
            [&](const std::string& step, std::uint64_t bytes) { progress(step, bytes); });
    }
    const ImageStore store(directory);
    const Json view = viewOf(store, result.image);
    if (json) {
        call.console.out << jsonText(view) << '\n';
    } else {
        const char* verb = result.before.empty()                  ? "imported"
                           : result.before == result.image.digest ? "unchanged"
                                                                  : "replaced";
        call.console.out << "image " << result.image.name << ' ' << verb << ", "
                         << result.image.digest << '\n'
                         << std::flush;
        if (view["languages"].empty()) {
            call.console.note("it has no language: run its programs with --command or argv");
        }
    }
    if (const auto pool = call.options.get("pool")) {
        Remote remote(call.options);
        requireServersStore(remote, result.image, directory);
        declarePool(call, remote, *pool, result.image.name);
    }
    return kOk;
}

int listImages(const Invocation& call) {
    if (call.options.positional().size() != 1) throw UsageError("list takes no name");
    const ImageStore store(dataDir(call));
    const bool json = wantsJson(call.options);
    Json items = Json::array();
    for (const Image& image : store.images()) items.push_back(viewOf(store, image));
    if (json) {
        call.console.out << jsonText(Json{{"items", items}}) << '\n';
    } else if (items.empty()) {
        call.console.note("no images in " + dataDir(call));
    } else {
        Table table({"NAME", "DIGEST", "STORED", "LANGUAGES", "REFERENCE", "AGE"});
        for (const Json& item : items) {
            std::string languages;
            for (const Json& name : item["languages"]) {
                languages += (languages.empty() ? "" : ",") + name.get<std::string>();
            }
            const auto text = [&](const char* key) {
                return item[key].is_string() ? item[key].get<std::string>() : std::string();
            };
            constexpr std::size_t kShort = 19;
            table.add({text("name"), text("digest").substr(0, kShort),
                       std::to_string(item["storedBytes"].get<std::uint64_t>() / 1'000'000) + " MB",
                       languages, text("reference"),
                       age(text("importedAt"), SystemClock().wall())});
        }
        call.console.out << table.text();
    }
    return kOk;
}

const std::string& givenName(const Invocation& call, const char* verb) {
    if (call.options.positional().size() != 2) {
        throw UsageError(std::string(verb) + " which image?", "hearth image list shows them");
    }
    return call.options.positional()[1];
}

int inspect(const Invocation& call) {
    const ImageStore store(dataDir(call));
    const Image image = store.find(givenName(call, "inspect"));
    Json view = viewOf(store, image);
    const pool::image::ImageConfig config = store.config(image);
    const pool::image::ImageFacts facts = store.facts(image.digest);
    view["config"] = {{"env", facts.env},
                      {"workdir", config.workdir},
                      {"user", config.user},
                      {"entrypoint", config.entrypoint},
                      {"architecture", config.architecture},
                      {"createdAt", config.created}};
    if (::geteuid() == 0) view["pools"] = poolsOf(call, image);
    call.console.out << (wantsJson(call.options) ? jsonText(view) + "\n" : fieldList(view));
    return kOk;
}

void requireUnused(const Invocation& call, const ImageStore& store, const Instance& instance,
                   const Image& image) {
    const std::vector<std::string> pools = poolsOf(call, image);
    if (!pools.empty()) {
        std::string names;
        for (const std::string& name : pools) names += (names.empty() ? "" : ", ") + name;
        throw Error(ErrorCode::Conflict, "image " + image.name + " is used by pool " + names)
            .hint("delete the pool or give it another image first: hearth delete pool " +
                  pools.front());
    }
    for (const Image& other : store.images()) {
        if (other.name != image.name && other.digest == image.digest) return;
    }
    const std::optional<std::string> tree = store.rootfs(image.digest);
    if (!tree) return;
    const auto used = pool::launcher::treesInUse(instance);
    if (!used) {
        throw Error(ErrorCode::Conflict, "a sandbox has just begun, and its image is not known yet")
            .hint("try again in a moment");
    }
    if (used->contains(*tree)) {
        throw Error(ErrorCode::Conflict, "image " + image.name + " is used by a live sandbox")
            .hint("end its workspaces first: hearth get sandboxes");
    }
}

int removeImage(const Invocation& call) {
    const std::string& name = givenName(call, "remove");
    const bool json = wantsJson(call.options);
    requireRoot("to remove");
    const Instance instance = openInstance(dataDir(call));
    const ImageStore store(instance.data_dir);
    const Image image = store.find(name);
    requireUnused(call, store, instance, image);
    pool::image::removeImage(instance.data_dir, image.name);
    // Its tree is removed now, too, if nothing else uses it; else the launcher does it later.
    store.collect([&] { return pool::launcher::treesInUse(instance); });
    if (json) {
        call.console.out << jsonText(Json{{"name", image.name}, {"digest", image.digest}}) << '\n';
    } else {
        call.console.out << "image " << image.name << " removed\n";
    }
    return kOk;
}

int image(const Invocation& call) {
    const std::string& verb = call.options.positional()[0];
    if (verb == "import") return import(call);
    if (verb == "list") return listImages(call);
    if (verb == "inspect") return inspect(call);
    if (verb == "remove") return removeImage(call);
    throw unknownWord("image \"" + verb + "\" is unknown", verb,
                      {"import", "list", "inspect", "remove"});
}

}  // namespace

Command makeImage() {
    return {
        {.name = "image",
         .arguments = "import SOURCE | list | inspect NAME | remove NAME",
         .summary = "Bring images into the store, or show and remove them.",
         .details = "  docker save python:3.9-slim -o x.tar\n"
                    "  hearth image import x.tar --name x --pool x    a warm pool of it\n"
                    "  hearth image import docker-daemon:alpine:latest\n"
                    "  hearth image import docker://docker.io/library/python:3.9-slim\n"
                    "  hearth image import some/oci/layout\n"
                    "\n"
                    "Works on the data directory, whether a server runs or not. An image is\n"
                    "unpacked and checked before it takes its name; its entrypoint is never run.\n"
                    "Without --name it is named after its reference: python:3.9-slim becomes\n"
                    "python-3.9-slim.",
         .flags = withClientFlags(withOutputFlags(
             {Flag{.name = "name", .value = "NAME", .help = "Its name here", .environment = false},
              Flag{.name = "image",
                   .value = "REF",
                   .help = "Which image of an archive that has several",
                   .environment = false},
              Flag{.name = "pool",
                   .value = "POOL",
                   .help = "Also make it the image of this pool of the running server; a new pool "
                           "is declared",
                   .environment = false},
              Flag{.name = "data-dir",
                   .value = "DIR",
                   .help = "Where images are kept",
                   .fallback = kDataDirectory}})),
         .least = 1,
         .most = 2,
         .operands = {"import|list|inspect|remove", "@file"}},
        image};
}

}  // namespace hearth::cli
