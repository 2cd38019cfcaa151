#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/config/ConfigFile.h"
#include "api/config/Settings.h"
#include "base/Digest.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::cli;
using hearth::test::TempDir;
using hearth::test::writeText;

namespace {

ServeConfig load(const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& variables = {}) {
    const CommandSpec spec{
        .name = "serve", .arguments = "", .summary = "", .details = "", .flags = serveFlags()};
    return loadServeConfig(Options::parse(spec, arguments, [&](const std::string& name) {
        const auto it = variables.find(name);
        return it == variables.end() ? std::nullopt : std::optional<std::string>(it->second);
    }));
}

ServeConfig fromText(const std::string& text) {
    Layers layers;
    auto tokens = readConfigText(text, "h.yaml", "/etc/hearth", layers);
    ServeConfig config(layers);
    config.tokens = std::move(tokens);
    return config;
}

std::string messageOf(const std::string& text) {
    try {
        fromText(text);
    } catch (const UsageError& e) {
        return std::string(e.what()) + " | " + e.hint();
    }
    return "no error";
}

/// Returns the path of a new file with this text.
std::string written(const TempDir& dir, const std::string& name, const std::string& text) {
    writeText(dir.file(name), text);
    return dir.file(name);
}

constexpr const char* kHash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

}  // namespace

TEST_CASE("without settings the server listens on loopback only", "[unit][cli]") {
    const ServeConfig config = load({});
    CHECK(*config.listen == "127.0.0.1:8080");
    CHECK(*config.ops_listen == "127.0.0.1:9464");
    CHECK(*config.data_dir == "/var/lib/hearth");
    CHECK(*config.workers == 128);
    CHECK(*config.runtime == RuntimeChoice::Auto);
    CHECK(config.listen.source == Source::Default);
}

TEST_CASE("flags outrank the environment, the environment the file, and the file defaults",
          "[unit][cli]") {
    const TempDir dir;
    const std::string file = written(
        dir, "h.yaml", "listen: 127.0.0.1:1\nopsListen: 127.0.0.1:2\nworkers: 3\nruntime: oci\n");
    const ServeConfig config = load({"--config", file, "--listen", "127.0.0.1:9"},
                                    {{"HEARTH_LISTEN", "127.0.0.1:8"}, {"HEARTH_WORKERS", "7"}});
    CHECK(*config.listen == "127.0.0.1:9");
    CHECK(config.listen.source == Source::Flag);
    CHECK(config.listen.origin == "--listen");
    CHECK(*config.workers == 7);
    CHECK(config.workers.source == Source::Env);
    CHECK(config.workers.origin == "HEARTH_WORKERS");
    CHECK(*config.ops_listen == "127.0.0.1:2");
    CHECK(config.ops_listen.source == Source::File);
    CHECK(config.ops_listen.origin == file + ":2");
    CHECK(*config.runtime == RuntimeChoice::Oci);
    CHECK(*config.user == "hearth");
}

TEST_CASE("a seed's clients are served on its port unless another is given", "[unit][cli]") {
    CHECK(load({}).compat.value.empty());
    const ServeConfig config = load({"--compat", "s3"});
    CHECK(*config.compat == "s3");
    CHECK(*config.listen == "127.0.0.1:8000");
    CHECK(config.listen.origin == "--compat");
    CHECK(*load({"--compat", "s0"}).listen == "127.0.0.1:9520");
    CHECK(*load({"--compat", "s2"}).listen == "127.0.0.1:8080");
    CHECK(*load({"--compat", "s1", "--listen", "127.0.0.1:9"}).listen == "127.0.0.1:9");
    CHECK_THROWS_AS(load({"--compat", "s4"}), UsageError);
}

TEST_CASE("the environment may name the configuration file", "[unit][cli]") {
    const TempDir dir;
    const std::string file = written(dir, "h.yaml", "logLevel: debug\n");
    CHECK(*load({}, {{"HEARTH_CONFIG", file}}).log_level == metrics::LogLevel::Debug);
    CHECK_THROWS_AS(load({"--config", file + ".missing"}), std::system_error);
}

TEST_CASE("an unknown key names its line and the nearest key", "[unit][cli]") {
    CHECK(messageOf("listen: 127.0.0.1:1\n\nworker: 3\n") ==
          "h.yaml:3: unknown key \"worker\" | did you mean workers?");
    CHECK(messageOf("shutdown:\n  warmth: Keep\n").starts_with("h.yaml:2: unknown key"));
    CHECK(messageOf("tokens:\n- name: a\n  sha: x\n").starts_with("h.yaml:3: unknown key \"sha\""));
}

TEST_CASE("wrong values, doubled keys and broken YAML name their line", "[unit][cli]") {
    CHECK(messageOf("workers: many\n").starts_with("h.yaml:1: workers is not a number"));
    CHECK(messageOf("listen: a:1\nlisten: b:1\n").starts_with("h.yaml:2: the key \"listen\""));
    CHECK(messageOf("runtime: magic\n").starts_with("h.yaml:1: runtime is \"magic\""));
    CHECK(messageOf("pools: one.yaml\n").starts_with("h.yaml:1: pools must be a list"));
    CHECK(messageOf("user: {a: b}\n").starts_with("h.yaml:1: user must be a text"));
    CHECK(messageOf("user: \"a\\0b\"\n").starts_with("h.yaml:1: user must be a text"));
    CHECK(messageOf("listen: [\n").find("h.yaml:") == 0);
    CHECK(messageOf("- a\n").find("h.yaml:1: the file must be a mapping") == 0);
    CHECK(messageOf("") == "no error");
}

TEST_CASE("paths of the file are relative to it", "[unit][cli]") {
    const ServeConfig config = fromText("dataDir: data\npools: [a.yaml, /b.yaml]\n");
    CHECK(*config.data_dir == "/etc/hearth/data");
    CHECK(*config.pools == std::vector<std::string>{"/etc/hearth/a.yaml", "/b.yaml"});
}

TEST_CASE("tokens come from the file, by hash or from a file of their own", "[unit][cli]") {
    const TempDir dir;
    const std::string secret = written(dir, "token", "0123456789abcdef0123\n");
    const ServeConfig config =
        fromText("tokens:\n- {name: ci, role: operator, sha256: " + std::string(kHash) +
                 "}\n- {name: me, tenant: t, tokenFile: " + secret + "}\nshutdown: {warm: Keep}\n");
    REQUIRE(config.tokens.value.size() == 2);
    CHECK((*config.tokens)[0].role == controller::Role::Operator);
    CHECK((*config.tokens)[0].sha256 == kHash);
    CHECK((*config.tokens)[1].tenant == "t");
    CHECK((*config.tokens)[1].sha256 == toHex(sha256("0123456789abcdef0123")));
    CHECK(*config.shutdown_warm == ShutdownWarm::Keep);
    const std::string shown = configDocument(config).dump() + configTable(config);
    CHECK(shown.find(kHash) == std::string::npos);
}

TEST_CASE("a token needs exactly one proof, a name of its own and a known role", "[unit][cli]") {
    const std::string hash = kHash;
    CHECK(messageOf("tokens:\n- {name: a}\n").find("exactly one") != std::string::npos);
    CHECK(messageOf("tokens:\n- {name: a, sha256: abc}\n").find("64 hex") != std::string::npos);
    CHECK(messageOf("tokens:\n- {sha256: " + hash + "}\n").find("no name") != std::string::npos);
    CHECK(messageOf("tokens:\n- {name: a, tenant: a/b, sha256: " + hash + "}\n")
              .find("\"a/b\" is not a tenant's name") != std::string::npos);
    CHECK(messageOf("tokens:\n- {name: a, role: king, sha256: " + hash + "}\n").find("king") !=
          std::string::npos);
    CHECK(
        messageOf("tokens:\n- {name: a, sha256: " + hash + "}\n- {name: a, sha256: " + hash + "}\n")
            .starts_with("h.yaml:3: two tokens"));
}

TEST_CASE("addresses are host and port, in brackets for IPv6", "[unit][cli]") {
    CHECK(parseListenAddress("127.0.0.1:8080")->port == 8080);
    CHECK(parseListenAddress("[::1]:0")->host == "::1");
    for (const char* bad : {"8080", ":8080", "::1:8080", "127.0.0.1:", "127.0.0.1:65536",
                            "127.0.0.1:80x", "[127.0.0.1]:80", "http://a:80", "127.evil:80"}) {
        CAPTURE(bad);
        CHECK_FALSE(parseListenAddress(bad));
    }
    CHECK_THROWS_AS(load({"--listen", "8080"}), UsageError);
    CHECK_THROWS_AS(load({"--log-level", "loud"}), UsageError);
    CHECK_THROWS_AS(load({"--log-format", "xml"}), UsageError);
    CHECK(*load({"--log-format", "json"}).log_format == metrics::LogFormat::Json);
}

TEST_CASE("an address that others can reach is refused without a token", "[unit][cli]") {
    CHECK_NOTHROW(checkExposure(load({}), false));
    CHECK_NOTHROW(checkExposure(load({"--listen", "[::1]:80"}), false));
    for (const char* open : {"0.0.0.0:8080", "[::]:8080", "10.1.2.3:8080", "example.org:8080"}) {
        CAPTURE(open);
        CHECK_THROWS_AS(checkExposure(load({"--listen", open}), false), UsageError);
        CHECK_THROWS_AS(checkExposure(load({"--ops-listen", open}), false), UsageError);
        CHECK_NOTHROW(checkExposure(load({"--listen", open}), true));
    }
}

TEST_CASE("an instance is opened by its flag, variable or key only", "[unit][cli]") {
    CHECK_FALSE(*load({}).open_loopback);
    CHECK(*load({"--open-loopback"}).open_loopback);
    CHECK(*load({}, {{"HEARTH_OPEN_LOOPBACK", "true"}}).open_loopback);
    CHECK_FALSE(*load({}, {{"HEARTH_OPEN_LOOPBACK", "false"}}).open_loopback);
    CHECK(*fromText("openLoopback: true").open_loopback);
    CHECK_FALSE(*fromText("openLoopback: false").open_loopback);
    CHECK(messageOf("openLoopback: yes").find("h.yaml:1") != std::string::npos);
}

TEST_CASE("a setting chooses how the agent gets into Docker's containers", "[unit][cli]") {
    using pool::docker::AgentMode;
    CHECK(*load({}).docker_agent == AgentMode::Auto);
    CHECK(*load({"--docker-agent", "copy"}).docker_agent == AgentMode::Copy);
    CHECK(*load({}, {{"HEARTH_DOCKER_AGENT", "bind"}}).docker_agent == AgentMode::Bind);
    CHECK(*fromText("dockerAgent: copy\n").docker_agent == AgentMode::Copy);
    CHECK_THROWS_AS(load({"--docker-agent", "mount"}), UsageError);
    CHECK_THROWS_AS(fromText("dockerAgent: x\n"), UsageError);
}

TEST_CASE("a GPU library is a name or an absolute path", "[unit][cli]") {
    CHECK(*load({}).gpu_library == "libnvidia-ml.so.1");
    CHECK(*load({}).cuda_library == "libcuda.so.1");
    CHECK(*fromText("gpuLibrary: none\n").gpu_library == "none");
    CHECK(*load({"--cuda-library", "/opt/cuda/libcuda.so"}).cuda_library == "/opt/cuda/libcuda.so");
    CHECK_THROWS_AS(load({"--gpu-library", "lib/libnvidia-ml.so"}), UsageError);
    CHECK_THROWS_AS(fromText("cudaLibrary: ''\n"), UsageError);
}

TEST_CASE("the configuration is shown with the source of each value", "[unit][cli]") {
    const ServeConfig config = load({"--workers=4"}, {{"HEARTH_USER", "nobody"}});
    const Json document = configDocument(config);
    CHECK(document["workers"]["value"] == 4);
    CHECK(document["workers"]["source"] == "flag");
    CHECK(document["user"]["source"] == "env");
    CHECK(document["user"]["origin"] == "HEARTH_USER");
    CHECK(document["listen"]["source"] == "default");
    CHECK(document["images.onDemand.maxSandboxes"]["value"] == 20);
    CHECK(document.size() == 60);
    CHECK(configTable(config).find("HEARTH_USER") != std::string::npos);
}

TEST_CASE("mirrors, egress rules and limits are read from the file, and flags outrank it",
          "[unit][cli]") {
    const std::string text =
        "mirrors:\n"
        "  pypi: https://index.example/simple/\n"
        "  npm: https://registry.example/\n"
        "  hosts: [files.example, 'files.example:8443']\n"
        "  cache: 500Mi\n"
        "egress:\n"
        "  deny: [10.96.0.0/12, '2a00:1::/32']\n"
        "  exempt: [10.0.0.0/8]\n"
        "  secrets: secrets\n"
        "  ca: /etc/ssl/ours.pem\n"
        "trustedProxies: [10.0.0.0/8, 'fd00::/8']\n"
        "limits: {requestsPerSecond: 7, burst: 20, connectionsPerAddress: 99, eventStreams: 8}\n"
        "storage: {overcommit: 2, reserve: 1Gi}\n";
    const ServeConfig config = fromText(text);
    CHECK(*config.disk_overcommit == 2);
    CHECK(*config.state_reserve == "1Gi");
    CHECK(*config.mirror_pypi == "https://index.example/simple/");
    CHECK(config.mirror_pypi.origin == "h.yaml:2");
    CHECK(*config.mirror_npm == "https://registry.example/");
    CHECK(*config.mirror_hosts == std::vector<std::string>{"files.example", "files.example:8443"});
    CHECK(*config.mirror_cache == "500Mi");
    CHECK(*config.egress_deny == std::vector<std::string>{"10.96.0.0/12", "2a00:1::/32"});
    CHECK(*config.egress_exempt == std::vector<std::string>{"10.0.0.0/8"});
    CHECK(*config.egress_secrets == "/etc/hearth/secrets");
    CHECK(*config.egress_ca == "/etc/ssl/ours.pem");
    CHECK(*config.requests_per_second == 7);
    CHECK(*config.request_burst == 20);
    CHECK(*config.trusted_proxies == std::vector<std::string>{"10.0.0.0/8", "fd00::/8"});
    CHECK(*config.connections_per_address == 99);
    CHECK(*config.event_streams == 8);
    CHECK(messageOf("limits: {eventStreams: 0}").find("from 1 to 1024") != std::string::npos);

    const TempDir dir;
    const std::string file = written(dir, "h.yaml", text);
    const ServeConfig flags =
        load({"--config", file, "--egress-deny=192.0.2.0/24", "--connections-per-address=77",
              "--mirror-hosts=a.example", "--mirror-hosts=b.example:1"},
             {{"HEARTH_REQUEST_BURST", "3"}});
    CHECK(*flags.egress_deny == std::vector<std::string>{"192.0.2.0/24"});
    CHECK(*flags.egress_exempt == std::vector<std::string>{"10.0.0.0/8"});
    CHECK(*flags.mirror_hosts == std::vector<std::string>{"a.example", "b.example:1"});
    CHECK(*flags.request_burst == 3);
    CHECK(*flags.connections_per_address == 77);
    CHECK_THROWS_AS(load({"--trusted-proxies=proxy.example"}, {}), UsageError);
    CHECK(*flags.requests_per_second == 7);

    CHECK(messageOf("mirrors: {pypy: x}").find("did you mean pypi?") != std::string::npos);
    CHECK(messageOf("mirrors: {hosts: x}").find("hosts must be a list") != std::string::npos);
    CHECK(messageOf("egress: {deni: []}").find("did you mean deny?") != std::string::npos);
    CHECK(messageOf("egress: [10.0.0.0/8]").find("egress must be a mapping") != std::string::npos);
    CHECK(messageOf("limits: {burst: -1}").find("not a number from 0") != std::string::npos);
    CHECK(messageOf("limits: {perSecond: 1}").find("unknown key") != std::string::npos);
    // Values are checked wherever they come from, and the error names the place.
    for (const char* wrong : {"mirrors: {pypi: index.example}", "mirrors: {npm: 'ftp://x/'}",
                              "mirrors: {hosts: ['http://x']}", "mirrors: {cache: much}",
                              "storage: {reserve: much}", "storage: {overcommit: 0}",
                              "egress: {deny: [10.0.0.0/33]}", "egress: {exempt: [localhost]}"}) {
        CAPTURE(wrong);
        const std::string bad = written(dir, "bad.yaml", wrong);
        try {
            load({"--config", bad});
            FAIL_CHECK("no error");
        } catch (const UsageError& e) {
            CHECK(std::string(e.what()).starts_with(bad + ":1: "));
        }
    }
}

TEST_CASE("images without a pool are allowed by patterns, from a file, flags or environment",
          "[unit][cli]") {
    const ServeConfig config = fromText(
        "images:\n"
        "  insecureRegistries: ['127.0.0.1:5000']\n"
        "  onDemand:\n"
        "    allow: ['python:*', 'registry.example/team/*@sha256:*']\n"
        "    maxSandboxes: 7\n"
        "    keepSeconds: 60\n"
        "    waitSeconds: 9\n");
    CHECK(config.on_demand_allow.value ==
          std::vector<std::string>{"python:*", "registry.example/team/*@sha256:*"});
    CHECK(config.on_demand_allow.origin == "h.yaml:4");
    CHECK(*config.on_demand_max_sandboxes == 7);
    CHECK(*config.on_demand_keep_seconds == 60);
    CHECK(*config.on_demand_wait_seconds == 9);
    CHECK(*config.insecure_registries == std::vector<std::string>{"127.0.0.1:5000"});
    CHECK(messageOf("images: {onDemand: {alow: []}}").find("did you mean allow?") !=
          std::string::npos);
    CHECK(messageOf("images: {onDemand: {keepSeconds: 0}}").find("not a number from 1") !=
          std::string::npos);
    CHECK(messageOf("images: {demand: 1}").find("unknown key") != std::string::npos);

    const ServeConfig flags =
        load({"--on-demand-images=a:*", "--on-demand-images=b:1", "--on-demand-keep-seconds=5"},
             {{"HEARTH_INSECURE_REGISTRIES", "r.example"}});
    CHECK(*flags.on_demand_allow == std::vector<std::string>{"a:*", "b:1"});
    CHECK(*flags.on_demand_keep_seconds == 5);
    CHECK(*flags.insecure_registries == std::vector<std::string>{"r.example"});
    CHECK_THROWS_AS(load({"--on-demand-images=python"}), UsageError);
    CHECK_THROWS_AS(load({"--insecure-registries=nohost"}), UsageError);
    CHECK_THROWS_AS(load({"--on-demand-wait-seconds=601"}), UsageError);
}

TEST_CASE("a list of a higher source replaces the lower one, even if it is empty", "[unit][cli]") {
    const TempDir dir;
    const std::string file =
        written(dir, "h.yaml", "allowedHosts: [a, b, c]\nallowedOrigins: []\n");
    const ServeConfig config =
        load({"--config", file, "--allowed-hosts=x"}, {{"HEARTH_ALLOWED_ORIGINS", "http://o"}});
    CHECK(*config.allowed_hosts == std::vector<std::string>{"x"});
    CHECK(*config.allowed_origins == std::vector<std::string>{"http://o"});
    const ServeConfig from_file = load({"--config", file});
    CHECK(from_file.allowed_hosts.value.size() == 3);
    CHECK(from_file.allowed_origins.value.empty());
    CHECK(from_file.allowed_origins.source == Source::File);
}

TEST_CASE("values are taken as they are: no ${…} is replaced", "[unit][cli]") {
    CHECK(*load({"--user=${listen}"}).user == "${listen}");
    CHECK(load({"--user="}).user.value.empty());
    CHECK(*load({"--audit-log=a,b"}).audit_log == "a,b");
    CHECK(*load({}, {{"HEARTH_ACCESS_LOG", "/var/log/a"}}).access_log == "/var/log/a");
}

TEST_CASE("a wrong value names its flag, its variable or its line and key", "[unit][cli]") {
    const auto said = [](const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& variables = {}) {
        try {
            load(arguments, variables);
        } catch (const UsageError& e) {
            return std::string(e.what()) + " | " + e.hint();
        }
        return std::string("no error");
    };
    CHECK(said({"--listen=8080"})
              .starts_with("--listen is \"8080\", which is not an address | write"));
    CHECK(said({"--workers=1025"}) ==
          "--workers is not a number from 1 to 1024: \"1025\" | give a whole number");
    CHECK(said({}, {{"HEARTH_WORKERS", "x"}}).starts_with("HEARTH_WORKERS is not a number"));
    CHECK(said({"--runtime=magic"}) ==
          "--runtime is \"magic\" | use auto, oci, docker or kubernetes");
    CHECK(messageOf("mirrors:\n  cache: much\n") ==
          "h.yaml:2: cache is \"much\", which is not a size | write 256Mi or 4Gi");
}

TEST_CASE("the committed reference equals the output of the table of settings", "[unit][cli]") {
    std::ifstream page(HEARTH_SOURCE_DIR "/docs/configuration.md");
    const std::string text((std::istreambuf_iterator<char>(page)),
                           std::istreambuf_iterator<char>());
    CHECK(text == configReference());  // by `hearth config reference > docs/configuration.md`
    for (const SettingRow& row : settings()) {
        CAPTURE(row.flag);
        CHECK_FALSE(row.help.empty());
        CHECK(text.find("`" + (row.key.empty() ? "--" + row.flag : row.key) + "`") !=
              std::string::npos);
    }
}
