#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "api/cli/copy/Copy.h"
#include "api/cli/copy/TarExtract.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/Ids.h"

namespace hearth::cli {
namespace fs = std::filesystem;
namespace {

void writeAll(int fd, std::string_view bytes, const std::string& name) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throwErrno("write", name);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// Decides if a link at the destination is followed. A link that the user named is followed, as by
/// cp; a link whose name came with the file may be left from an earlier copy and is replaced.
enum class Links { Follow, Replace };

/// A file that gets its name when it is complete; the old file stays until then.
class NewFile {
public:
    NewFile(const fs::path& path, Links links) : path_(path) {
        const bool follow = links == Links::Follow;
        std::error_code unknown;
        const fs::file_status there =
            follow ? fs::status(path, unknown) : fs::symlink_status(path, unknown);
        const bool link = fs::is_symlink(path);
        if (fs::exists(there) && !fs::is_regular_file(there) && (follow || !link)) {
            // For example /dev/null or a FIFO.
            fd_ = Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW)));
        } else {
            if (follow && link) path_ = fs::canonical(path);
            temporary_ = path_.parent_path() / (".hearth-" + newId("").substr(0, 16));
            fd_ = Fd(::open(temporary_.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
        }
        if (!fd_) throwErrno("create", path.string());
    }
    ~NewFile() {
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
    }
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;

    void write(std::string_view bytes) { writeAll(fd_.get(), bytes, path_.string()); }
    void keep(std::optional<unsigned> mode) {
        if (temporary_.empty()) return;
        if (mode) {
            const mode_t mask = ::umask(0);
            ::umask(mask);
            if (::fchmod(fd_.get(), *mode & 0777U & ~mask) != 0)
                throwErrno("chmod", path_.string());
        }
        if (::rename(temporary_.c_str(), path_.c_str()) != 0) throwErrno("replace", path_.string());
        temporary_.clear();
    }

private:
    fs::path path_;
    fs::path temporary_;
    Fd fd_;
};

std::optional<unsigned> modeOf(const http::ClientResponse& head) {
    const std::string text = head.header("X-File-Mode").value_or("");
    unsigned mode = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return mode;
}

/// False if it is a directory.
bool getFile(Remote& remote, const RemotePath& from, const std::string& local) {
    std::optional<NewFile> file;
    std::optional<unsigned> mode;
    fs::path path = local;
    const bool into = local != "-" && (fs::is_directory(path) || local.ends_with('/'));
    if (into) path /= from.name();
    try {
        remote.download(
            from.fileTarget(),
            [&](const http::ClientResponse& head) {
                mode = modeOf(head);
                if (local != "-") file.emplace(path, into ? Links::Replace : Links::Follow);
            },
            [&](std::string_view bytes) {
                if (file) {
                    file->write(bytes);
                } else {
                    writeAll(STDOUT_FILENO, bytes, "standard output");
                }
            });
    } catch (const RemoteError& e) {
        if (e.code() == "CONFLICT" && !file) return false;
        throw;
    }
    if (file) file->keep(mode);
    return true;
}

std::uint64_t getDirectory(Remote& remote, const RemotePath& from, const std::string& local,
                           const CopyOptions& options) {
    fs::path path = local;
    if (fs::is_directory(path) && !from.name().empty() && from.name() != ".") path /= from.name();
    std::optional<TarExtract> extract;
    Fd directory;
    remote.download(
        from.archiveTarget(),
        [&](const http::ClientResponse&) {
            std::error_code there;
            fs::create_directory(path, there);
            directory = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            if (!directory) throwErrno("open", path.string());
            extract.emplace(directory.get(), options.left_out);
        },
        [&](std::string_view bytes) { extract->feed(bytes); });
    extract->finish();
    return extract->leftOut();
}

void getTar(Remote& remote, const RemotePath& from) {
    remote.download(
        from.archiveTarget(), [](const http::ClientResponse&) {},
        [](std::string_view bytes) { writeAll(STDOUT_FILENO, bytes, "standard output"); });
}

}  // namespace

std::uint64_t copyOut(Remote& remote, const RemotePath& from, const std::string& local,
                      const CopyOptions& options) {
    if (local == "-" && options.tar) {
        getTar(remote, from);
        return 0;
    }
    if (!from.as_dir && getFile(remote, from, local)) return 0;
    if (local == "-") {
        throw UsageError("a directory cannot be written to - as it is", "add --tar");
    }
    return getDirectory(remote, from, local, options);
}

}  // namespace hearth::cli
