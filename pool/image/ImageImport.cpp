#include "pool/image/ImageImport.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/Clock.h"
#include "base/Digest.h"
#include "base/Error.h"
#include "pool/image/Archive.h"
#include "pool/image/Layout.h"
#include "pool/image/ProgramOutput.h"
#include "pool/image/PullFailure.h"
#include "pool/image/Reference.h"
#include "pool/sys/Files.h"
#include "pool/sys/Supervise.h"

namespace hearth::pool::image {
namespace {

/// No login has this uid; each process uses its own, counted from here.
constexpr uid_t kImportUid = 3'100'000'000;
constexpr auto kCopyLimit = std::chrono::seconds(3600);
constexpr auto kInspectLimit = std::chrono::seconds(60);
constexpr const char* kOnDemandName = "ondemand-";
constexpr std::size_t kDigits = 12;
constexpr std::size_t kLongestImportReason = 300;
constexpr const char* kPolicy = "/etc/containers/policy.json";

using Kind = ImageSource::Kind;

Error invalid(const std::string& why) {
    return Error(ErrorCode::InvalidArgument, why);
}

/// The text of skopeo's error: after `msg="` of its last line, without the quote.
std::string reasonOf(const std::string& said) {
    std::string line;
    std::size_t at = 0;
    while (at < said.size()) {
        const std::size_t end = std::min(said.find('\n', at), said.size());
        if (end > at) line = said.substr(at, end - at);
        at = end + 1;
    }
    constexpr std::string_view kMark = "msg=\"";
    if (const std::size_t mark = line.find(kMark); mark != std::string::npos) {
        line.erase(0, mark + kMark.size());
        if (line.ends_with('"')) line.pop_back();
    }
    std::erase_if(line, [](char c) { return c < ' ' || c == 0x7f || c == '\\'; });
    return line.substr(0, kLongestImportReason);
}

[[noreturn]] void explain(const ImageSource& source, const sys::Outcome& outcome) {
    if (outcome.status == 127) {
        throw Error(ErrorCode::Unsupported, "images cannot be imported: skopeo is missing")
            .hint("apt-get install skopeo");
    }
    if (outcome.late) throw Error(ErrorCode::Deadline, "copying the image took too long");
    const std::string& said = outcome.said;
    if (holdsOneOf(said, {"no space left on device"})) {
        throw Error(ErrorCode::DiskFull, "the disk of the data directory is full")
            .hint(
                "free disk space, or remove images with `hearth image remove`; nothing unfinished "
                "is left");
    }
    const std::string reason = reasonOf(said);
    if (source.kind == Kind::Daemon && holdsOneOf(said, {"Cannot connect to the Docker daemon"})) {
        throw Error(ErrorCode::Unsupported, "no Docker daemon answers")
            .hint("start it, or set DOCKER_HOST; or use an archive made by `docker save`");
    }
    if (source.kind == Kind::Registry) {
        Error error = pullFailure(source.place, said, reason);
        if (holdsOneOf(said, {"unauthorized"})) {
            error.hint("log in with `skopeo login`, and check the name");
        }
        throw error;
    }
    Error error(holdsOneOf(said, {"manifest unknown", "No such image", "does not exist",
                                  "StatusCode: 404", "not found in"})
                    ? ErrorCode::NotFound
                    : ErrorCode::InvalidArgument,
                "\"" + source.place + "\" cannot be copied: " + reason);
    if (source.kind == Kind::Daemon) error.hint("`docker image ls` shows what the daemon has");
    throw error;
}

/// The unprivileged uid of one skopeo process, derived from its parent's pid.
uid_t strangerOf(pid_t parent) {
    return kImportUid + static_cast<uid_t>(parent);
}
uid_t strangerUid() {
    return strangerOf(::getppid());
}

sys::Outcome skopeo(const ImportRequest& request, std::vector<std::string> words,
                    std::chrono::seconds limit, const std::function<void()>& watch = {}) {
    sys::Supervised program;
    program.argv = {"skopeo"};
    if (::access(kPolicy, F_OK) != 0) program.argv.emplace_back("--insecure-policy");
    program.argv.insert(program.argv.end(), words.begin(), words.end());
    program.environment = request.environment;
    program.limit = limit;
    program.watch = watch;
    if (request.on_demand) {
        program.environment.insert(program.environment.end(), {"HOME=/nonexistent"});
        program.enter = [] {
            const uid_t uid = strangerUid();
            if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
                ::setresuid(uid, uid, uid) != 0) {
                throwErrno("become nobody");
            }
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the change of user resets it
        };
    }
    return sys::supervise(program);
}

/// The source of the copy as skopeo spells it, and its name.
struct Copy {
    std::string from;
    std::string reference;
    std::string digest;  ///< at the source
};

/// Reads the digest first and copies exactly that, because a tag may move in between.
Copy fromRegistry(const ImageSource& source, const ImportRequest& request) {
    const Reference asked = *parseReference(source.place);
    Copy copy{"docker://" + source.place, asked.text(), asked.digest};
    if (asked.digest.empty()) {
        // Without the option, the registries' own configuration decides.
        std::vector<std::string> words{"inspect", "--raw"};
        if (request.insecure) words.emplace_back("--tls-verify=false");
        words.push_back(copy.from);
        const sys::Outcome outcome = skopeo(request, words, kInspectLimit);
        if (outcome.status != 0) explain(source, outcome);
        copy.digest = "sha256:" + toHex(sha256(outcome.out));
    }
    // skopeo takes a tag or a digest, not both.
    std::string repository = source.place.substr(0, source.place.find('@'));
    const std::size_t slash = repository.rfind('/');
    const std::size_t colon = repository.rfind(':');
    if (colon != std::string::npos && (slash == std::string::npos || colon > slash)) {
        repository.resize(colon);
    }
    copy.from = "docker://" + repository + "@" + copy.digest;
    return copy;
}

Copy fromArchive(const ImageSource& source, const std::string& file, const ImportRequest& request) {
    std::string transport = source.transport;
    const Archive archive = inspectArchive(file);
    if (transport.empty()) {
        if (archive.kind == Archive::Kind::Docker) transport = "docker-archive";
        if (archive.kind == Archive::Kind::Oci) transport = "oci-archive";
        if (transport.empty()) {
            throw invalid("\"" + source.place + "\" is neither an OCI layout nor an image archive")
                .hint("`docker save IMAGE -o FILE` makes one");
        }
    }
    Copy copy{transport + ":" + file, "", ""};
    if (!request.which.empty()) {
        copy.from += ":" + request.which;
        copy.reference = request.which;
    } else if (archive.images > 1) {
        std::string names;
        for (const std::string& tag : archive.tags) names += (names.empty() ? "" : ", ") + tag;
        throw invalid("the archive holds " + std::to_string(archive.images) + " images")
            .hint("choose one with --image: " + names);
    } else if (!archive.tags.empty()) {
        copy.reference = archive.tags.front();
        copy.from += ":" + copy.reference;
    }
    const auto reference = parseReference(copy.reference);
    copy.reference = reference ? reference->text() : "";
    return copy;
}

/// `file`: the archive in a form that skopeo can read.
Copy whatToCopy(const ImageSource& source, const std::string& file, const ImportRequest& request) {
    switch (source.kind) {
        case Kind::Registry:
            return fromRegistry(source, request);
        case Kind::Daemon: {
            const Reference asked = *parseReference(source.place);
            return {"docker-daemon:" + asked.text(), asked.text(), ""};
        }
        case Kind::Layout:
            return {"oci:" + source.place + (request.which.empty() ? "" : ":" + request.which), "",
                    ""};
        case Kind::Archive:
            break;
    }
    return fromArchive(source, file, request);
}

/// Unpacks a compressed archive into a file without a name.
Fd decompressed(const ImageSource& source, const std::string& program, const std::string& images,
                const ImportRequest& request, const ImportProgress& progress) {
    const std::string path = images + "/.archive-" + std::to_string(::getpid());
    Fd out(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!out) throwErrno("open", path);
    sys::removeFile(path);
    const std::string step = "decompressing " + source.place;
    progress(step, 0);
    sys::Supervised run;
    run.argv = {program, "-dc"};
    run.limit = kCopyLimit;
    run.enter = [&] {
        const int in = ::open(source.place.c_str(), O_RDONLY | O_CLOEXEC);
        if (in < 0) throwErrno("open", source.place);
        const rlimit most{request.limits.bytes, request.limits.bytes};
        if (::dup2(in, 0) < 0 || ::dup2(out.get(), 1) < 0 ||
            ::setrlimit(RLIMIT_FSIZE, &most) != 0) {
            throwErrno("prepare", program);
        }
    };
    run.watch = [&] {
        requireFree(images, request.limits.disk_reserve);
        struct stat status {};
        if (::fstat(out.get(), &status) != 0) throwErrno("stat", path);
        progress(step, static_cast<std::uint64_t>(status.st_size));
    };
    const sys::Outcome outcome = sys::supervise(run);
    if (outcome.status == 127) {
        throw Error(ErrorCode::Unsupported,
                    "the archive is compressed and " + program + " is missing")
            .hint("decompress it first");
    }
    if (outcome.status != 0 || outcome.late) {
        throw invalid("\"" + source.place + "\" cannot be decompressed: " + reasonOf(outcome.said));
    }
    return out;
}

std::string chooseName(const ImportRequest& request, const ImageSource& source, const Copy& copy) {
    std::string name = request.name;
    if (request.on_demand) name = kOnDemandName + copy.digest.substr(kHexAt, kDigits);
    if (name.empty() && !copy.reference.empty()) {
        name = storeName(*parseReference(copy.reference));
    }
    if (name.empty()) {
        std::string file = std::filesystem::path(source.place).filename().string();
        if (file.empty()) file = std::filesystem::path(source.place).parent_path().filename();
        for (const char* ending : {".gz", ".tgz", ".tar"}) {
            if (file.ends_with(ending)) file.resize(file.size() - std::string(ending).size());
        }
        std::transform(file.begin(), file.end(), file.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        name = file;
    }
    if (!isImageName(name)) {
        throw invalid("\"" + name + "\" is not a name for an image")
            .hint(
                "--name has up to 64 lower-case letters, digits, '.', '_' and '-', the first a "
                "letter or digit");
    }
    return name;
}

std::uint64_t storedBytes(const std::string& path) {
    std::uint64_t bytes = 0;
    std::error_code gone;
    for (auto it = std::filesystem::recursive_directory_iterator(path, gone);
         !gone && it != std::filesystem::recursive_directory_iterator(); it.increment(gone)) {
        struct stat status {};
        if (::lstat(it->path().c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
            bytes += static_cast<std::uint64_t>(status.st_size);
        }
    }
    return bytes;
}

/// A directory that its destructor removes, unless it was moved to its final place.
class Beside {
public:
    explicit Beside(std::string path) : path_(std::move(path)) {
        sys::removeTree(path_);
        sys::makeDirectory(path_, 0755);
    }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;
    ~Beside() {
        try {
            sys::removeTree(path_);
        } catch (const std::exception&) {
            std::fputs("hearth: the next import removes what this one left\n", stderr);
        }
    }
    const std::string& path() const { return path_; }

    /// Afterwards an earlier image is at path(), and is removed with it.
    void swap(const std::string& place) const {
        if (::syscall(SYS_renameat2, AT_FDCWD, path_.c_str(), AT_FDCWD, place.c_str(),
                      RENAME_EXCHANGE) == 0) {
            return;
        }
        if (errno != ENOENT) throwErrno("rename", place);
        if (::rename(path_.c_str(), place.c_str()) != 0) throwErrno("rename", place);
    }

private:
    std::string path_;
};

/// Excludes concurrent builds and imports of one name; sandbox_images/build takes the same lock.
Fd lockName(const std::string& images, const std::string& name, const ImportProgress& progress) {
    const std::string path = images + "/." + name + ".lock";
    Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd) throwErrno("open", path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    progress("waiting for another import or build of " + name, 0);
    while (::flock(fd.get(), LOCK_EX) != 0) {
        if (errno != EINTR) throwErrno("flock", path);
    }
    return fd;
}

/// Gives files that skopeo made to root: only root may change them, and everybody may read. skopeo
/// has ended, and no other process has its uid.
void settle(const std::string& path) {
    if (::lchown(path.c_str(), 0, 0) != 0) throwErrno("chown", path);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
        const mode_t mode = entry.is_directory() ? 0755 : 0644;
        if (entry.is_symlink() || ::lchown(entry.path().c_str(), 0, 0) != 0 ||
            ::chmod(entry.path().c_str(), mode) != 0) {
            throwErrno("chmod", entry.path().string());
        }
    }
}

/// Has skopeo copy the image from `from` into a layout; calls `watch` meanwhile.
void copyTo(const std::string& layout, const ImageSource& source, const std::string& from,
            const ImportRequest& request, const std::function<void()>& watch) {
    if (request.on_demand &&
        ::lchown(layout.c_str(), strangerOf(::getpid()), strangerOf(::getpid())) != 0) {
        throwErrno("chown", layout);
    }
    // umoci supports no other compression.
    std::vector<std::string> words{"copy", "--quiet", "--dest-compress-format", "gzip"};
    if (request.insecure) words.emplace_back("--src-tls-verify=false");
    if (source.kind == Kind::Daemon && !request.docker_host.empty()) {
        words.insert(words.end(), {"--src-daemon-host", request.docker_host});
    }
    words.insert(words.end(), {from, "oci:" + layout + ":latest"});
    const sys::Outcome outcome = skopeo(request, words, request.limit, watch);
    if (outcome.status != 0 || outcome.late) explain(source, outcome);
    settle(layout);
}

}  // namespace

ImageSource parseSource(const std::string& text) {
    const auto remote = [&](std::string_view prefix, Kind kind) -> std::optional<ImageSource> {
        if (!text.starts_with(prefix)) return std::nullopt;
        const std::string place = text.substr(prefix.size());
        if (!parseReference(place)) {
            throw invalid("\"" + place + "\" is not a reference of an image")
                .hint("write it as repository:tag or repository@sha256:…");
        }
        return ImageSource{kind, place, ""};
    };
    if (auto source = remote("docker://", Kind::Registry)) return *source;
    if (auto source = remote("docker-daemon:", Kind::Daemon)) return *source;
    ImageSource source;
    source.place = text;
    for (const std::string transport : {"oci-archive", "docker-archive", "oci"}) {
        if (!text.starts_with(transport + ":")) continue;
        source.transport = transport;
        source.place = text.substr(transport.size() + 1);
        break;
    }
    std::error_code unreadable;
    const auto status = std::filesystem::status(source.place, unreadable);
    if (!std::filesystem::exists(status)) {
        Error error(ErrorCode::NotFound, "there is no archive or layout \"" + source.place + "\"");
        if (source.transport.empty() && parseReference(text)) {
            error.hint("if you mean an image of a registry or of Docker, write docker://" + text +
                       " or docker-daemon:" + text);
        }
        throw error;
    }
    // skopeo expects a reference after a colon.
    if (source.place.find(':') != std::string::npos) {
        throw invalid("the path of an archive or layout may not contain ':'")
            .hint("rename it, or go to its folder and name it from there");
    }
    source.place = std::filesystem::absolute(source.place).lexically_normal().string();
    if (source.place.find(':') != std::string::npos) {
        throw invalid("a folder above \"" + text + "\" has ':' in its name").hint("move it");
    }
    const bool layout = std::filesystem::is_directory(status);
    source.kind = layout ? Kind::Layout : Kind::Archive;
    if (layout && !std::filesystem::exists(source.place + "/index.json")) {
        throw invalid("the directory \"" + text + "\" is not an OCI layout: it has no index.json");
    }
    return source;
}

ImportResult importImage(const std::string& data_dir, const ImportRequest& request,
                         const ImportProgress& progress) {
    const std::string images = data_dir + "/images";
    sys::ensureDirectory(images, 0755, 0, 0);
    sys::ensureDirectory(data_dir + "/rootfs", 0711, 0, 0);
    const ImageSource source = parseSource(request.source);
    if (source.kind == Kind::Registry) progress("asking for " + source.place, 0);
    Fd plain;
    std::string file = source.place;
    if (source.kind == Kind::Archive) {
        const std::string program = inspectArchive(file).program;
        if (!program.empty()) {
            plain = decompressed(source, program, images, request, progress);
            // skopeo opens it through this process.
            file = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(plain.get());
        }
    }
    const Copy copy = whatToCopy(source, file, request);
    ImportResult result;
    result.image.name = chooseName(request, source, copy);
    const std::string& name = result.image.name;

    const Fd name_lock = lockName(images, name, progress);
    const ImageStore store(data_dir);
    try {
        result.before = store.find(name).digest;
    } catch (const Error&) {
        result.before.clear();  // new, or too damaged to be read
    }
    if (request.on_demand && !result.before.empty() &&
        store.find(name).source_digest == copy.digest) {
        result.image = store.prepare(name);
        return result;
    }
    const auto begin = std::chrono::steady_clock::now();
    const Beside beside(images + "/." + name + ".import");
    requireFree(images, request.limits.disk_reserve);
    const std::string step = "copying " + name;
    progress(step, 0);
    copyTo(beside.path(), source, copy.from, request, [&] {
        requireFree(images, request.limits.disk_reserve);
        const std::uint64_t bytes = storedBytes(beside.path());
        if (bytes > request.limits.bytes) throw invalid("the image is too large");
        progress(step, bytes);
    });
    const Layout layout = readLayout(beside.path(), name);
    const auto copied = std::chrono::steady_clock::now();
    result.copied = copied - begin;

    const Fd store_lock = store.lock(true);
    progress("unpacking and checking " + name, 0);
    store.prepareLayout(beside.path(), layout, request.limits, [&](std::uint64_t bytes) {
        progress("unpacking and checking " + name, bytes);
    });
    const Json about{{"name", name},
                     {"source", request.source},
                     {"reference", copy.reference},
                     {"sourceDigest", copy.digest},
                     {"onDemand", request.on_demand},
                     {"imported", formatRfc3339(SystemClock().wall())}};
    sys::writeFile(beside.path() + "/hearth.json", dumpJson(about) + "\n", 0644);
    const Fd disk(::open(beside.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!disk || ::syncfs(disk.get()) != 0) throwErrno("sync", beside.path());
    beside.swap(store.layoutPath(name));
    result.unpacked = std::chrono::steady_clock::now() - copied;
    result.image = store.find(name);
    return result;
}

void removeImage(const std::string& data_dir, const std::string& name) {
    const ImageStore store(data_dir);
    const Image image = store.find(name);
    const Fd name_lock = lockName(data_dir + "/images", image.name, [](auto&, auto) {});
    const std::string aside = data_dir + "/images/." + image.name + ".import";
    sys::removeTree(aside);
    const std::string place = store.layoutPath(image.name);
    if (::rename(place.c_str(), aside.c_str()) != 0) throwErrno("rename", place);
    sys::removeTree(aside);
}

}  // namespace hearth::pool::image
