#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "api/cli/copy/Copy.h"
#include "api/cli/copy/TarSource.h"
#include "base/Error.h"
#include "base/Fd.h"

namespace hearth::cli {
namespace fs = std::filesystem;
namespace {

std::size_t readSome(int fd, char* out, std::size_t size, const std::string& name) {
    while (true) {
        const ssize_t got = ::read(fd, out, size);
        if (got >= 0) return static_cast<std::size_t>(got);
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "read " + name);
    }
}

http::ClientRequest putRequest(const std::string& target, const char* type) {
    http::ClientRequest request;
    request.method = "PUT";
    request.target = target;
    request.headers = {{"Content-Type", type}};
    return request;
}

bool isRemoteDirectory(Remote& remote, const RemotePath& path) {
    try {
        remote.get(path.listTarget());
        return true;
    } catch (const RemoteError& e) {
        if (e.code() != "NOT_FOUND" && e.code() != "CONFLICT") throw;
        // A missing workspace gives the same error; then the next request reports it again.
        return false;
    }
}

void putFile(Remote& remote, const std::string& local, RemotePath to) {
    const bool standard = local == "-";
    const Fd file(standard ? ::dup(STDIN_FILENO) : ::open(local.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw std::system_error(errno, std::generic_category(), "open " + local);
    struct stat told {};
    if (::fstat(file.get(), &told) != 0) throwErrno("fstat");
    const std::string name = standard ? "" : fs::path(local).filename().string();
    if (to.as_dir || (!standard && isRemoteDirectory(remote, to))) {
        if (standard) throw UsageError("- has no name of its own", "name the file: ws_…:dir/NAME");
        to = to.child(name);
    }
    http::ClientRequest request = putRequest(to.fileTarget(), "application/octet-stream");
    if (!standard) {
        std::array<char, 8> mode{};
        std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(told.st_mode & 0777));
        request.headers.emplace_back("X-File-Mode", mode.data());
    }
    std::uint64_t left = static_cast<std::uint64_t>(told.st_size);
    const bool counted = S_ISREG(told.st_mode) && ::lseek(file.get(), 0, SEEK_CUR) == 0;
    if (counted) request.source_length = left;
    request.source = [&](char* out, std::size_t size) {
        if (!counted) return readSome(file.get(), out, size, local);
        // The body must have the length in the head.
        const std::size_t want =
            static_cast<std::size_t>(std::min<std::uint64_t>(left, std::uint64_t{size}));
        if (want == 0) return std::size_t{0};
        const std::size_t got = readSome(file.get(), out, want, local);
        if (got == 0) throw Error(ErrorCode::Conflict, local + " shrank while it was read");
        left -= got;
        return got;
    };
    remote.upload(std::move(request));
}

std::uint64_t putDirectory(Remote& remote, const std::string& local, RemotePath to,
                           const CopyOptions& options) {
    fs::path path(local);
    const std::string last = path.filename().string();
    const bool content = last == "." || last == "..";
    if (last.empty()) path = path.parent_path();
    if (!content && isRemoteDirectory(remote, to)) to = to.child(path.filename().string());
    std::uint64_t left_out = 0;
    TarSource source(path, options.follow, [&](const std::string& name, const std::string& why) {
        ++left_out;
        options.left_out(name, why);
    });
    http::ClientRequest request = putRequest(to.archiveTarget(), "application/x-tar");
    request.source = [&source](char* out, std::size_t size) { return source.read(out, size); };
    remote.upload(std::move(request));
    return left_out;
}

void putTar(Remote& remote, const RemotePath& to) {
    http::ClientRequest request = putRequest(to.archiveTarget(), "application/x-tar");
    request.source = [](char* out, std::size_t size) {
        return readSome(STDIN_FILENO, out, size, "standard input");
    };
    remote.upload(std::move(request));
}

}  // namespace

std::uint64_t copyIn(Remote& remote, const std::string& local, const RemotePath& to,
                     const CopyOptions& options) {
    if (local == "-" && options.tar) {
        putTar(remote, to);
        return 0;
    }
    struct stat told {};
    if (local != "-" && ::stat(local.c_str(), &told) != 0) {
        throw UsageError("there is no " + local, "the first path is the source");
    }
    if (local != "-" && S_ISDIR(told.st_mode)) return putDirectory(remote, local, to, options);
    putFile(remote, local, to);
    return 0;
}

}  // namespace hearth::cli
