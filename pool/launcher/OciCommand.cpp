#include "pool/launcher/OciCommand.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/Error.h"
#include "base/Json.h"
#include "pool/sys/Files.h"
#include "pool/sys/Process.h"

namespace hearth::pool::launcher {
namespace {

constexpr std::size_t kMaxLog = 16'384;
constexpr int kCannotStart = 127;

/// Returns the last message of a log of JSON lines.
std::string lastMessage(const std::string& log) {
    std::string message;
    std::size_t at = 0;
    while (at < log.size()) {
        const std::size_t end = std::min(log.find('\n', at), log.size());
        const Json line = Json::parse(log.substr(at, end - at), nullptr, false);
        if (line.is_object() && line.contains("msg") && line["msg"].is_string()) {
            message = line["msg"].get<std::string>();
        }
        at = end + 1;
    }
    return message;
}

std::string after(const std::string& text, const std::string& key) {
    const std::size_t at = text.find(key);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + key.size();
    return text.substr(begin, text.find('\n', begin) - begin);
}

/// Returns a line that changes with the program's file: its identity, size and time. "" if it is
/// nowhere on the PATH.
std::string fileStamp(const std::string& program) {
    std::string_view rest = program.find('/') == std::string::npos ? sys::kProgramPath : "";
    while (true) {
        const std::size_t end = std::min(rest.find(':'), rest.size());
        const std::string file =
            end == 0 ? program : std::string(rest.substr(0, end)) + "/" + program;
        struct stat status {};
        if (::access(file.c_str(), X_OK) == 0 && ::stat(file.c_str(), &status) == 0) {
            std::string stamp = file;
            for (const auto number : {static_cast<std::int64_t>(status.st_dev),
                                      static_cast<std::int64_t>(status.st_ino),
                                      static_cast<std::int64_t>(status.st_size),
                                      static_cast<std::int64_t>(status.st_mtim.tv_sec),
                                      static_cast<std::int64_t>(status.st_mtim.tv_nsec)}) {
                stamp += " " + std::to_string(number);
            }
            return stamp + "\n";
        }
        if (end == rest.size()) return {};
        rest.remove_prefix(end + 1);
    }
}

}  // namespace

void OciCommand::call(const SandboxId& id, const std::vector<std::string>& words,
                      int listen) const {
    const std::string log = names_.bundle(id) + "/log";
    std::vector<std::string> argv{program_,       "--root", names_.runtimeRoot(), "--log", log,
                                  "--log-format", "json"};
    argv.insert(argv.end(), words.begin(), words.end());
    const int status = sys::run({argv, listen, ""});
    if (status == 0) return;
    if (status == kCannotStart) {
        throw Error(ErrorCode::Unsupported, "there is no OCI runtime on this machine")
            .hint("apt-get install runc");
    }
    const std::string said = lastMessage(sys::readFile(log, kMaxLog).value_or(""));
    throw std::runtime_error(program_ + " " + words.front() + " failed, status " +
                             std::to_string(status) + (said.empty() ? "" : ": " + said));
}

pid_t OciCommand::create(const SandboxId& id, int listen) const {
    const std::string bundle = names_.bundle(id);
    call(id,
         {"create", "--bundle", bundle, "--pid-file", bundle + "/pid", "--preserve-fds", "1",
          names_.container(id)},
         listen);
    const pid_t pid = static_cast<pid_t>(
        std::strtol(sys::readFile(bundle + "/pid", 32).value_or("").c_str(), nullptr, 10));
    if (pid <= 0) throw std::runtime_error(program_ + " create left no process id");
    return pid;
}

void OciCommand::start(const SandboxId& id) const {
    call(id, {"start", names_.container(id)}, -1);
}

void OciCommand::forget(const SandboxId& id) const {
    call(id, {"delete", "--force", names_.container(id)}, -1);
}

std::optional<OciCommand::State> OciCommand::state(const SandboxId& id) const {
    const std::string directory = names_.runtimeState(id);
    const auto text = sys::readFile(directory + "/state.json");
    if (!text) return std::nullopt;
    const Json json = Json::parse(*text, nullptr, false);
    if (!json.is_object() || !json.contains("init_process_pid") ||
        !json["init_process_pid"].is_number_unsigned() || !json.contains("init_process_start") ||
        !json["init_process_start"].is_number_unsigned()) {
        return std::nullopt;  // written halfway
    }
    State state;
    state.pid = json["init_process_pid"].get<pid_t>();
    state.start_time = json["init_process_start"].get<std::uint64_t>();
    // The first process waits at this pipe until it is started.
    state.started = ::access((directory + "/exec.fifo").c_str(), F_OK) != 0;
    return state;
}

bool OciCommand::alive(const SandboxId& id) const {
    const std::optional<State> known = state(id);
    return known && known->started && known->pid > 0 &&
           sys::processStartTime(known->pid) == known->start_time;
}

OciCommand::Version OciCommand::version() const {
    const std::string stamp = fileStamp(program_);
    std::string text = sys::readFile(names_.runtimeVersion(), kMaxLog).value_or("");
    if (stamp.empty() || !text.starts_with(stamp)) {
        // A file for this process alone: several may ask at once.
        const std::string fresh = names_.runtimeVersion() + "." + std::to_string(::getpid());
        const int status = sys::run({{program_, "--version"}, -1, fresh});
        text = stamp + sys::readFile(fresh, kMaxLog).value_or("");
        if (status == 0 && !stamp.empty()) {
            sys::writeFile(fresh, text, 0600);
            std::filesystem::rename(fresh, names_.runtimeVersion());
        } else {
            sys::removeFile(fresh);
        }
        if (status != 0) return {};
    }
    text.erase(0, stamp.size());
    return {text.substr(0, text.find('\n')), after(text, "commit: "), after(text, "libseccomp: ")};
}

}  // namespace hearth::pool::launcher
