#include "pool/agent/program/egress/AptFiles.h"

#include <unistd.h>

#include <string_view>

#include "pool/agent/program/egress/SharedFile.h"

namespace hearth::agent {
namespace {

constexpr const char* kApt = "/usr/bin/apt-get";

/// apt itself makes the folders whose names end in a slash, below one that exists. Locks are
/// useless here: only root could take those of dpkg's state, so every install would fail, and
/// nobody else works in this sandbox. The image's own settings are meant for root: clean-up hooks,
/// a proxy of the build machine. The mirror reads gz too.
constexpr std::string_view kSettings = R"(
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists ".cache/apt/lists/";
Dir::State::extended_states ".cache/apt/extended_states";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache::archives ".cache/apt/archives/";
Dir::Cache::pkgcache ".cache/apt/pkgcache.bin";
Dir::Cache::srcpkgcache "";
Dir::Log "/dev/null";
Dir::Log::Terminal "";
Dir::Log::History "";
Dir::Log::Planner "";
Acquire::CompressionTypes::Order { "gz"; "xz"; };
Acquire::GzipIndexes "true";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::http::Proxy::127.0.0.1 "DIRECT";
Debug::NoLocking "true";
)";

std::string sourcesOf(const JsonValue& archives) {
    std::string out;
    for (const JsonValue& archive : archives.items()) {
        const std::string keyring(archive["keyring"].text());
        const bool optional = archive["keyringOptional"].boolean();
        const bool trusted = keyring.empty() || (optional && access(keyring.c_str(), R_OK) != 0);
        out += trusted ? "deb [trusted=yes] " : "deb [signed-by=" + keyring + "] ";
        out += archive["source"].text();
        out += '\n';
    }
    return out;
}

}  // namespace

void makeAptKnown(const Settings& settings, const JsonValue& archives,
                  std::map<std::string, std::string>& env) {
    if (archives.items().empty() || access(kApt, X_OK) != 0) return;
    const std::string& home = settings.root;
    const std::string list = settings.run + "/apt.list";
    const std::string conf = settings.run + "/apt.conf";
    const std::string own = "Dir::State \"" + home + "/\";\nDir::Cache \"" + home +
                            "/\";\nDir::Etc::sourcelist \"" + list + "\";";
    if (!writeShared(list, {sourcesOf(archives)}) || !writeShared(conf, {own, kSettings})) return;
    env.emplace("APT_CONFIG", conf);
}

}  // namespace hearth::agent
