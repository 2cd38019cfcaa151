#include <map>

#include "pool/runtime/kubernetes/client/ClusterConfig.h"
#include "tests/support/Support.h"

using namespace hearth;
using namespace hearth::pool::kubernetes;
using test::TempDir;
using test::writeText;

namespace {

Variables variablesOf(std::map<std::string, std::string> values) {
    return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
        const auto found = values.find(name);
        return found == values.end() ? std::nullopt : std::optional(found->second);
    };
}

/// A kubeconfig with these lines in its cluster and its user.
std::string written(const std::string& cluster, const std::string& user) {
    return "apiVersion: v1\nkind: Config\ncurrent-context: here\n"
           "contexts:\n"
           "- {name: there, context: {cluster: other, user: u}}\n"
           "- {name: here, context: {cluster: c, user: u, namespace: work}}\n"
           "clusters:\n"
           "- {name: other, cluster: {server: 'https://other:6443'}}\n"
           "- name: c\n  cluster:\n    server: https://10.0.0.1:6443\n" +
           cluster + "users:\n- name: u\n  user:\n    note: mine\n" + user;
}

ClusterConfig read(const std::string& text, const std::string& context = {}) {
    const TempDir dir;
    writeText(dir.file("config"), text);
    return kubeconfig(dir.file("config"), context);
}

}  // namespace

TEST_CASE("in a Pod the server and the files of the ServiceAccount are found",
          "[unit][kubernetes]") {
    const TempDir dir;
    writeText(dir.file("namespace"), "hearth\n");
    const auto config = inClusterConfig(
        variablesOf({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"KUBERNETES_SERVICE_PORT", "443"}}),
        dir.path());
    REQUIRE(config);
    CHECK(config->url == "https://10.96.0.1:443");
    CHECK(config->authority.file == dir.file("ca.crt"));
    CHECK(config->token.file == dir.file("token"));
    CHECK(config->ns == "hearth");
    CHECK(config->proxy.empty());
}

TEST_CASE("an IPv6 address of the server is put into brackets", "[unit][kubernetes]") {
    const auto config = inClusterConfig(
        variablesOf({{"KUBERNETES_SERVICE_HOST", "fd00::1"}, {"KUBERNETES_SERVICE_PORT", "443"}}),
        "nowhere");
    REQUIRE(config);
    CHECK(config->url == "https://[fd00::1]:443");
    CHECK(config->ns == "default");
}

TEST_CASE("outside a Pod there is no configuration of one", "[unit][kubernetes]") {
    CHECK_FALSE(inClusterConfig(variablesOf({})));
    CHECK_FALSE(inClusterConfig(variablesOf({{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}})));
    CHECK_FALSE(inClusterConfig(
        variablesOf({{"KUBERNETES_SERVICE_HOST", ""}, {"KUBERNETES_SERVICE_PORT", "443"}})));
}

TEST_CASE("the current context of a kubeconfig is used, or the one that is asked for",
          "[unit][kubernetes]") {
    const std::string text = written("", "    token: secret\n");
    CHECK(read(text).url == "https://10.0.0.1:6443");
    CHECK(read(text).ns == "work");
    CHECK(read(text).token.text == "secret");
    CHECK(read(text, "there").url == "https://other:6443");
    CHECK(read(text, "there").ns == "default");
}

TEST_CASE("files in a kubeconfig are relative to it, and data comes first", "[unit][kubernetes]") {
    const TempDir dir;
    writeText(dir.file("config"),
              written("    certificate-authority: pki/ca.crt\n",
                      "    client-certificate: /etc/own.crt\n    client-key: own.key\n"
                      "    token: old\n    tokenFile: token\n"));
    const ClusterConfig files = kubeconfig(dir.file("config"));
    CHECK(files.authority.file == dir.file("pki/ca.crt"));
    CHECK(files.certificate.file == "/etc/own.crt");
    CHECK(files.key.file == dir.file("own.key"));
    CHECK(files.token.file == dir.file("token"));
    CHECK(files.token.text.empty());
    const ClusterConfig data =
        read(written("    certificate-authority: ca.crt\n    certificate-authority-data: Q0E=\n",
                     "    client-certificate-data: Q0VSVA==\n    client-key-data: S0VZ\n"));
    CHECK(data.authority.text == "CA");
    CHECK(data.authority.file.empty());
    CHECK(data.certificate.text == "CERT");
    CHECK(data.key.text == "KEY");
}

TEST_CASE("a kubeconfig's proxy is used, and only that", "[unit][kubernetes]") {
    CHECK(read(written("    proxy-url: http://proxy:3128\n", "")).proxy == "http://proxy:3128");
    CHECK(read(written("", "")).proxy.empty());
}

TEST_CASE("a kubeconfig with unsupported fields is refused with an alternative",
          "[unit][kubernetes]") {
    struct Row {
        std::string cluster;
        std::string user;
        std::string said;
    };
    for (const Row& row :
         std::vector<Row>{{"", "    exec: {command: aws}\n", "exec"},
                          {"", "    auth-provider: {name: gcp}\n", "auth-provider"},
                          {"", "    username: me\n    password: x\n", "username"},
                          {"", "    as: admin\n", "as"},
                          {"    insecure-skip-tls-verify: true\n", "", "insecure-skip-tls-verify"},
                          {"    tls-server-name: x\n", "", "tls-server-name"}}) {
        const Error error = test::errorOf([&] { (void)read(written(row.cluster, row.user)); });
        INFO(error.what());
        CHECK(error.code() == ErrorCode::InvalidArgument);
        CHECK(std::string(error.what()).find(row.said) != std::string::npos);
        CHECK_FALSE(error.hint().empty());
    }
    CHECK_NOTHROW(read(written("    insecure-skip-tls-verify: false\n", "")));
}

TEST_CASE("an incomplete kubeconfig is refused with the missing part", "[unit][kubernetes]") {
    const auto said = [](const std::string& text, const std::string& context = {}) {
        return std::string(test::errorOf([&] { (void)read(text, context); }).what());
    };
    const auto has = [](const std::string& text, const std::string& part) {
        INFO(text);
        CHECK(text.find(part) != std::string::npos);
    };
    has(said(""), "one document");
    has(said("- 1"), "is not a kubeconfig");
    has(said("a: [1"), "line ");
    has(said("kind: Config\n"), "current-context");
    has(said(written("", ""), "elsewhere"), "\"elsewhere\" in contexts");
    has(said("current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n"),
        "\"b\" in clusters");
    has(said("current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n"
             "clusters: [{name: b, cluster: {}}]\n"),
        "no server");
    has(said(written("", "    client-certificate: a.crt\n")), "only one of");
    has(said(written("    certificate-authority-data: '***'\n", "")), "not base64");
    CHECK(test::codeOf([] { (void)kubeconfig("/nowhere/config"); }) == ErrorCode::InvalidArgument);
}
