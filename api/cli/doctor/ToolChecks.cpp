#include "api/cli/doctor/ToolChecks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/serve/process/Capture.h"
#include "base/Clock.h"
#include "base/Error.h"
#include "base/Fd.h"
#include "base/http/client/HttpClient.h"
#include "pool/isolation/RuntimeAdvisories.h"
#include "pool/runtime/docker/engine/EngineClient.h"

namespace hearth::cli {
namespace {

constexpr auto kLookWithin = std::chrono::seconds(20);
constexpr const char* kLeakedDescriptors = "CVE-2024-21626";
constexpr auto kEngineWithin = std::chrono::seconds(3);

bool present(const std::filesystem::path& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
}

std::string firstLine(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

Finding checkProgram(const std::string& program, const std::string& version_flag,
                     const std::string& why, const std::string& package) {
    const auto found = capture({program, version_flag});
    if (!found) {
        return {Level::Fail, program, "is missing: " + why, "apt-get install -y " + package};
    }
    return allRight(program, found->text.empty() ? "present" : firstLine(found->text));
}

Finding checkRuntime(const ServeConfig& config) {
    const std::string& program = *config.oci_runtime;
    const auto found = capture({program, "--version"});
    if (!found) {
        return {Level::Fail, program, "is missing: it makes the containers",
                "apt-get install -y runc; or name another with --oci-runtime"};
    }
    if (found->text.starts_with("runc ")) return judgeRunc(found->text);
    return allRight(program, firstLine(found->text));
}

Finding checkAgent() {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    const auto agent = self.parent_path() / "hearth-agent";
    if (!error && present(agent)) return allRight("agent", agent.string());
    return {Level::Fail, "agent", "hearth-agent is missing beside " + self.string(),
            "cmake --build BUILD-DIRECTORY --target hearth-agent"};
}

Finding checkUser(const ServeConfig& config) {
    if (::getpwnam(config.user.value.c_str()) != nullptr) return allRight("user", *config.user);
    return {Level::Fail, "user", "there is no user \"" + *config.user + "\" for the server",
            "useradd --system --no-create-home --shell /usr/sbin/nologin " + *config.user};
}

Finding checkImage(const ServeConfig& config) {
    const auto image = std::filesystem::path(*config.data_dir) / "images" / "python";
    if (present(image / "index.json")) return allRight("image python", image.string());
    return {Level::Fail, "image python", "no OCI layout at " + image.string(),
            "./run prepares it, or sandbox_images/build"};
}

/// True if a server could listen there now.
bool addressFree(const ListenAddress& address) {
    const bool six = address.host.find(':') != std::string::npos;
    const Fd fd(::socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) throwErrno("socket");
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (six) {
        sockaddr_in6 where{};
        where.sin6_family = AF_INET6;
        where.sin6_port = htons(address.port);
        ::inet_pton(AF_INET6, address.host.c_str(), &where.sin6_addr);
        return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) == 0;
    }
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(address.port);
    const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
    ::inet_pton(AF_INET, host.c_str(), &where.sin_addr);
    return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) == 0;
}

http::ClientOptions patientOptions() {
    http::ClientOptions options;
    options.connect_timeout = std::chrono::milliseconds(1000);
    options.timeout = std::chrono::milliseconds(3000);
    return options;
}

/// The status of a GET, 0 if nobody answers in time.
int statusAt(const std::string& address, const std::string& target) {
    try {
        return http::HttpClient("http://" + address, patientOptions()).get(target).status;
    } catch (const Error&) {
        return 0;  // the caller checks for 0
    }
}

}  // namespace

Finding judgeRunc(const std::string& text) {
    constexpr std::string_view kCommit = "commit: ";
    const std::string version = firstLine(text);
    if (version.find_first_of("0123456789") == std::string::npos) {
        return {Level::Warn, "runc", "its version cannot be read from \"" + version + "\"", ""};
    }
    const std::size_t at = text.find(kCommit);
    const std::string commit =
        at == std::string::npos ? "" : firstLine(text.substr(at + kCommit.size()));
    std::string open;
    for (const std::string& hole : pool::launcher::knownHoles(version, commit)) {
        if (hole == kLeakedDescriptors) {
            return {
                Level::Fail, "runc",
                std::string(version).append(" leaks host descriptors (").append(hole).append(")"),
                "apt-get update && apt-get install -y runc"};
        }
        open += (open.empty() ? "" : ", ") + hole;
    }
    if (open.empty()) return allRight("runc", version);
    return {Level::Warn, "runc",
            version + " has known holes: " + open +
                " (user namespaces, which Hearth always uses, keep them from the host's root)",
            "install a later runc and name it with --oci-runtime; use only images you trust until "
            "then"};
}

Findings checkTools(const ServeConfig& config, bool needs_root) {
    Findings findings;
    if (!needs_root) {
        findings.push_back(allRight("root", ::geteuid() == 0 ? "yes" : "no: docker needs none"));
        findings.push_back(checkAgent());
        if (::geteuid() == 0) findings.push_back(checkUser(config));
        return findings;
    }
    if (::geteuid() == 0) {
        findings.push_back(allRight("root", "yes"));
    } else {
        findings.push_back({Level::Fail, "root", "the launcher makes containers as root",
                            "run it with sudo; the server itself runs as " + *config.user});
    }
    findings.push_back(checkRuntime(config));
    findings.push_back(
        checkProgram("mkfs.ext4", "-V", "it makes the file systems of workspaces", "e2fsprogs"));
    findings.push_back(checkProgram("umoci", "--version", "it unpacks images", "umoci"));
    findings.push_back(
        checkProgram("skopeo", "--version", "`hearth image import` copies images", "skopeo"));
    if (findings.back().level == Level::Fail) findings.back().level = Level::Warn;
    findings.push_back(checkAgent());
    findings.push_back(checkUser(config));
    findings.push_back(checkImage(config));
    return findings;
}

Findings checkServer(const ServeConfig& config) {
    Findings findings;
    bool serving = false;
    for (const auto& [name, setting, target] :
         {std::make_tuple("listen", &config.listen, "/openapi.json"),
          std::make_tuple("ops-listen", &config.ops_listen, "/healthz")}) {
        const auto address = parseListenAddress(setting->value);
        if (address && addressFree(*address)) {
            findings.push_back(allRight(name, setting->value + " is free"));
        } else if (const int status = statusAt(setting->value, target); status != 0) {
            serving = true;
            findings.push_back(allRight(name, setting->value + " is served"));
        } else {
            findings.push_back(
                {Level::Fail, name,
                 setting->value +
                     " is used by another program, or is not an address of this machine",
                 "`ss -ltnp` shows which program; or choose another address with --" +
                     std::string(name)});
        }
    }
    const int ready = serving ? statusAt(*config.ops_listen, "/readyz") : 0;
    if (!serving) {
        findings.push_back({Level::Warn, "server", "no server runs on " + *config.listen,
                            "hearth serve, or ./run"});
    } else if (ready == 200) {
        findings.push_back(allRight("server", "ready"));
    } else {
        findings.push_back({Level::Warn, "server", "it runs, but is not ready",
                            "curl http://" + *config.ops_listen + "/readyz says why"});
    }
    return findings;
}

Finding checkClientUrl(const std::string& url, const std::string& authority) {
    Finding finding{Level::Warn, "HEARTH_URL", "",
                    "start that server, name another one, or unset HEARTH_URL"};
    try {
        http::ClientOptions options = patientOptions();
        if (!authority.empty()) {
            options.tls = std::make_shared<const http::TlsContext>(
                http::TlsContext::Files{.authority = authority});
        }
        const int status = http::HttpClient(url, options).get("/openapi.json").status;
        if (status == 200) return allRight(finding.name, url + " is served");
        finding.message = url + " answers with status " + std::to_string(status) +
                          ", which no Hearth server sends";
    } catch (const Error& e) {
        finding.message = e.what();
    }
    return finding;
}

Finding checkDocker(bool needed) {
    try {
        pool::docker::EngineClient engine(pool::docker::engineAddress());
        const Json version = engine.get("/version", SystemClock().now() + kEngineWithin);
        return allRight("docker", version.value("Version", "?") + " (API " +
                                      version.value("ApiVersion", "?") + ") at " +
                                      engine.address().text());
    } catch (const Error& e) {
        return {needed ? Level::Fail : Level::Warn, "docker",
                e.what() + std::string(needed ? ""
                                              : "; only --runtime docker and `bench --against "
                                                "docker` need one"),
                "apt-get install -y docker.io, or set DOCKER_HOST"};
    } catch (const std::exception& e) {
        return {needed ? Level::Fail : Level::Warn, "docker", e.what(), "set DOCKER_HOST"};
    }
}

Finding checkDockerAgent(const ServeConfig& config) {
    namespace docker = pool::docker;
    const bool usable = ::access(config.data_dir.value.c_str(), W_OK | X_OK) == 0;
    const std::string folder =
        usable ? *config.data_dir : std::filesystem::temp_directory_path().string();
    try {
        docker::EngineClient engine(docker::engineAddress());
        const docker::AgentChoice choice = docker::chooseAgentMode(
            engine, *config.docker_agent, {folder}, SystemClock().now() + kLookWithin);
        return allRight("docker-agent",
                        std::string(agentModeName(choice.mode)) + ": " + choice.reason);
    } catch (const std::exception& e) {
        return {Level::Warn, "docker-agent",
                std::string("cannot find out how the agent gets into containers: ") + e.what(),
                "see what dockerd logs, or say it with --docker-agent"};
    }
}

}  // namespace hearth::cli
