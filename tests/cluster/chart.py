"""The chart helm/hearth on the cluster: rendered for old and new versions, installed as its page says, upgraded under work, and removed without a rest."""

import base64
import contextlib
import gzip
import io
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

from authority import Authority
from harness import BUILD, free_port, npm_ci, pool_yaml, wait_for
from places import HERE, Trouble, run, write
from layers import volume
from sandboxes import SHELL, load_images
from session import NAMESPACE, Lacks, get, kubectl, own_cluster, session

ROOT = os.path.dirname(os.path.dirname(HERE))
CHART = os.path.join(ROOT, "helm/hearth")
IMAGE = "localhost/hearth-server"
ADDRESS = "10.96.77.7"
trusted = []  # the SSL context, once the servers speak TLS
known = []  # the installation's token
KINDS = "pods,services,secrets,configmaps,deployments,replicasets,networkpolicies,leases,poddisruptionbudgets,serviceaccounts,roles,rolebindings"


def helm(*words, cluster=True):
    """Runs Helm. Returns its output. Helm is not root: it gets a copy of the chart that it may read."""
    if not shutil.which("npm"):
        raise Lacks("there is no npm, from which Helm comes")
    env = {**os.environ, "KUBECONFIG": session.cluster.kubeconfig if cluster else ""}
    with tempfile.TemporaryDirectory(prefix="hearth-chart-") as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(CHART, os.path.join(folder, "hearth"))
        return run(os.path.join(HERE, "helm"), *[each.replace("CHART", os.path.join(folder, "hearth")) for each in words], env=env)


def values(folder, **more):
    path = os.path.join(folder, "values.yaml")
    write(path, json.dumps({"image": {"repository": IMAGE, "tag": "test", "pullPolicy": "Never"}, "pools": pool_yaml(image=SHELL, warm=1), "quotas": {"shop": {"workspaces": 3}},
                            # The cluster of the tests has no DNS.
                            "service": {"clusterIP": ADDRESS}, "hosts": [ADDRESS], "url": f"http://{ADDRESS}:8080", "customResources": {"keep": False}, **more}))
    os.chmod(path, 0o644)
    os.chmod(folder, 0o755)
    return path


def refusal(call):
    try:
        call()
    except Trouble as trouble:
        return str(trouble)
    raise AssertionError("Helm took it")


def rendered():
    """the chart is clean, refuses wrong values by their names, and renders what each version of Kubernetes has"""
    session.at("control")
    named = ["--set", "image.repository=registry.example/hearth"]
    said = helm("lint", "--strict", "CHART", *named, cluster=False)
    assert "0 chart(s) failed" in said, said
    assert "image.repository" in refusal(lambda: helm("template", "one", "CHART", cluster=False))
    assert "replicaCount" in refusal(lambda: helm("template", "one", "CHART", *named, "--set", "replicaCount=0", cluster=False))
    assert "replicas" in refusal(lambda: helm("template", "one", "CHART", *named, "--set", "replicas=2", cluster=False))
    old = helm("template", "one", "CHART", *named, "--kube-version", "1.20.2", cluster=False)
    assert "policy/v1beta1" in old and "ServiceMonitor" not in old, old
    new = helm("template", "one", "CHART", *named, "--kube-version", "1.31.0", "--api-versions", "monitoring.coreos.com/v1",
               "--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true", cluster=False)
    assert "policy/v1beta1" not in new and "kind: ServiceMonitor" in new and "kind: PrometheusRule" in new, new
    assert "--custom-resources" in old and "name: sandboxpools.hearth.dev" in old and "name: workspaces.hearth.dev" in old and "helm.sh/resource-policy: keep" in old
    without = helm("template", "one", "CHART", *named, "--set", "customResources.enabled=false", cluster=False)
    assert "sandboxpools" not in without and "custom-resources" not in without, without
    issued = helm("template", "one", "CHART", *named, "--set", "tls.existingSecret=t,oidc.issuers[0].issuer=https://i.example,oidc.issuers[0].audience=hearth",
                  "--set", "networkPolicy.egress[0].ports[0].port=8443,quotas.shop.workspaces=3", cluster=False)
    assert "--quotas=/etc/hearth/pools/quotas.yaml" in issued and "workspaces: 3" in issued, issued
    assert "--tls-key=/etc/hearth/tls/tls.key" in issued and "--oidc=" in issued and "audience: hearth" in issued and "port: 8443" in issued, issued
    assert "tls" not in old.replace("NOTES", ""), "without a certificate nothing speaks of TLS"
    assert "PodDisruptionBudget" not in helm("template", "one", "CHART", *named, "--set", "replicaCount=1", cluster=False)
    for text in (old, new):
        assert re.findall(r"runAsNonRoot: (\w+)", text) == ["true", "true"] and "privileged" not in text
    wait_for("the namespace's own account", lambda: "default" in kubectl("get", "serviceaccounts", "-o", "name"), 30)
    kubectl("apply", "--dry-run=server", "-f", "-", input=old)


def only_servers_reach_agents():
    [policy] = [each for each in get("networkpolicies")["items"] if each["metadata"].get("ownerReferences")]
    [admitted] = policy["spec"]["ingress"]
    assert admitted["from"] == [{"podSelector": get("deployment", "one-hearth")["spec"]["selector"]}], policy


def installed():
    """Helm installs the chart; a claim works over its service, goes on with its execution through an upgrade to TLS and the end of the leader's Pod, and nothing is left at the end"""
    own_cluster("services")
    load_images(session.cluster)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        image = os.path.join(folder, "server.tar")
        run(os.path.join(ROOT, "helm/image/build"), image, "--reference", f"{IMAGE}:test", "--program", os.path.join(BUILD, "hearth"))
        check_image(image)
        session.cluster.load(image)
        kubectl("delete", "configmap", "more", "--ignore-not-found")  # left by a first try
        kubectl("create", "configmap", "more", f"--from-literal=pools.yaml={pool_yaml(name='extra', image=SHELL, warm=0)}")
        file = values(folder, sharedVolume={"existingClaim": stack.enter_context(volume(folder))},
                      extraEnv=[{"name": "HEARTH_POOLS_ONCE", "value": "/etc/more/pools.yaml"}],
                      extraVolumes=[{"name": "more", "configMap": {"name": "more"}}],
                      extraVolumeMounts=[{"name": "more", "mountPath": "/etc/more", "readOnly": True}])
        before = ours()  # objects of servers outside the cluster, from other cases
        try:
            helm("install", "one", "CHART", "-n", NAMESPACE, "-f", file, "--wait", "--timeout", "4m")
            try:
                helm("test", "one", "-n", NAMESPACE, "--timeout", "2m")
            except Trouble:
                print(kubectl("logs", "one-hearth-test"))
                raise
            keys = get("secret", "one-hearth-keys")["data"]
            assert {each["metadata"]["name"] for each in ask("GET", "/v1/pools")["items"]} == {"shell", "extra"}
            assert ask("GET", "/v1/quotas/shop")["quota"]["workspaces"] == 3
            official_clients()
            by_curl()
            workspace = ask("POST", "/v1/workspaces", {"pool": "shell"}, seconds=60)
            run_in(workspace, "echo kept > f")
            kubectl("apply", "-f", "-", input=pool_yaml(name="object", image=SHELL, warm=1))
            kubectl("wait", "--for=condition=Ready", "sandboxpool/object", "--timeout=60s")
            kubectl("apply", "-f", "-", input=json.dumps({
                "apiVersion": "hearth.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": "claimed"}, "spec": {"pool": "object"}}))
            kubectl("wait", "--for=condition=Ready", "workspace/claimed", "--timeout=60s")
            status = get("workspace", "claimed")["status"]
            assert status["url"] == f"http://one-hearth.{NAMESPACE}.svc:8080", status
            only_servers_reach_agents()
            first = begin(workspace, 40)
            encrypt(file)
            assert get("secret", "one-hearth-keys")["data"] == keys
            whole(first, 40)
            assert run_in(workspace, "cat f")["stdout"] == "kept\n"
            second = begin(workspace, 30)
            leader = leader_pod()
            kubectl("delete", "pod", leader, "--wait=false")
            wait_for("another leads", lambda: leader_pod() not in ("", leader), 60)
            whole(second, 30)
            whole(first, 40)  # it ended before this replica was the leader
            assert run_in(workspace, "cat f")["stdout"] == "kept\n"
            wait_for("it is still there", lambda: get("workspace", "claimed")["status"]["phase"] == "Active", 30)
            # The new leader has never seen that pool before.
            assert ask("POST", "/v1/workspaces", {"pool": "object"}, seconds=60)["pool"] == "object"
            helm("rollback", "one", "1", "-n", NAMESPACE, "--wait", "--timeout", "4m")
            trusted.clear()
            assert run_in(workspace, "cat f")["stdout"] == "kept\n"
        finally:
            trusted.clear()
            known.clear()
            with contextlib.suppress(Trouble):
                helm("uninstall", "one", "-n", NAMESPACE)
        wait_for("nothing of it is left", lambda: not ours() - before, 90)
        wait_for("its definitions have gone", lambda: not re.search(r"/(sandboxpools|workspaces)\.hearth\.dev", kubectl("get", "crds", "-o", "name")), 30)
        assert "hearth" not in kubectl("get", "clusterroles,clusterrolebindings", "-l", "app.kubernetes.io/part-of=hearth", "-o", "name")


def encrypt(file):
    """Upgrades the servers to TLS, with the same tokens from another Secret. `helm test` and all later calls know their authority."""
    kubectl("create", "secret", "generic", "one-mine", f"--from-literal=admin={token()}",
            "--from-literal=config.yaml=" + base64.b64decode(get("secret", "one-hearth-tokens")["data"]["config.yaml"]).decode())
    with Authority() as authority:
        certificate, key = authority.certificate("server", f"IP:{ADDRESS},IP:127.0.0.1")
        kubectl("create", "secret", "generic", "one-tls", "--type=kubernetes.io/tls", f"--from-file=tls.crt={certificate}",
                f"--from-file=tls.key={key}", f"--from-file=ca.crt={authority.file}")
        trusted.append(ssl.create_default_context(cafile=authority.file))
    helm("upgrade", "one", "CHART", "-n", NAMESPACE, "-f", file, "--wait", "--timeout", "4m",
         "--set", f"logLevel=debug,tls.existingSecret=one-tls,tokens.existingSecret=one-mine,url=https://{ADDRESS}:8080")
    # Ready servers carry connections to the old leader, which does not know TLS, until it has ended.
    ask("GET", "/v1/pools", seconds=60)
    helm("test", "one", "-n", NAMESPACE, "--timeout", "2m")


def official_clients():
    """Runs the official MCP clients over the service."""
    folder = os.path.join(ROOT, "tests/server/mcp")
    npm_ci(folder)
    with forwarded() as port:
        done = subprocess.run(["node", f"{folder}/once.mjs"], capture_output=True, text=True, check=False, timeout=120, env={
            **os.environ, "HEARTH_URL": f"http://127.0.0.1:{port}", "HEARTH_TOKEN": token(), "HEARTH_POOL": "shell", "HEARTH_TEST_RESULTS": ""})
    assert done.returncode == 0, done.stdout + done.stderr


MOST_OF_IMAGE = 60_000_000
SHELLS = ("sh", "ash", "bash", "dash", "busybox", "zsh")


def check_image(path):
    """Checks the image as a registry stores it: it contains nothing that runs commands."""
    with tarfile.open(path) as archive:
        [layer] = [each for each in archive.getmembers() if each.name.endswith(".tar")]
        content = archive.extractfile(layer).read()
    packed = len(gzip.compress(content, 6))
    assert packed < MOST_OF_IMAGE, f"{packed} bytes compressed"
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        names = [each.name for each in files.getmembers() if not each.isdir()]
    found = [each for each in names if os.path.basename(each) in SHELLS]
    assert "usr/bin/hearth" in names and not found, found


def by_curl():
    """Runs the calls of a newcomer over the service: a claim, a command and the end."""
    with forwarded() as port:
        def curl(method, path, body=None):
            words = ["curl", "-sS", "--fail-with-body", "-X", method, f"http://127.0.0.1:{port}{path}", "-H", f"Authorization: Bearer {token()}"]
            if body:
                words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
            return run(*words)

        workspace = json.loads(curl("POST", "/v1/workspaces", {"pool": "shell"}))
        said = json.loads(curl("POST", f"/v1/workspaces/{workspace['id']}/executions", {"command": "echo hello"}))
        assert said["stdout"] == "hello\n", said
        curl("DELETE", f"/v1/workspaces/{workspace['id']}")


def token():
    if not known:
        known.append(base64.b64decode(get("secret", "one-hearth-tokens")["data"]["admin"]).decode())
    return known[0]


def ours():
    """Returns everything in the namespace that the chart or its servers made."""
    return {each for label in ("app.kubernetes.io/managed-by=hearth", "app.kubernetes.io/instance=one")
            for each in kubectl("get", KINDS, "-l", label, "-o", "name").split()}


def leader_pod():
    address = get("lease", "one-hearth")["metadata"]["annotations"]["hearth.dev/address"].split(":")[0]
    return next((each["metadata"]["name"] for each in get("pods", "-l", "app.kubernetes.io/component=server")["items"]
                 if each["status"].get("podIP") == address), "")


@contextlib.contextmanager
def forwarded():
    """Yields a port of this machine that leads to the service."""
    port = free_port()
    words = session.cluster.kubectl_command("-n", NAMESPACE, "port-forward", "service/one-hearth", f"{port}:8080")
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("the port", lambda: connects(port), 20)
        yield port
    finally:
        process.kill()
        process.wait()


def connects(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def ask(method, path, body=None, seconds=30):
    """Returns the answer of the service, which may have no leader for a while."""
    end = time.monotonic() + seconds
    while True:
        try:
            with forwarded() as port:
                request = urllib.request.Request(f"{'https' if trusted else 'http'}://127.0.0.1:{port}{path}", json.dumps(body).encode() if body is not None else None,
                                                 {"Authorization": f"Bearer {token()}", "Content-Type": "application/json"}, method=method)
                with urllib.request.urlopen(request, timeout=30, context=trusted[0] if trusted else None) as answer:
                    return json.load(answer)
        except (OSError, AssertionError) as trouble:
            said = f"{trouble.code} {trouble.read().decode()}" if isinstance(trouble, urllib.error.HTTPError) else str(trouble)
            # The old leader may still be the one that speaks TLS after an upgrade or rollback.
            passes = not isinstance(trouble, urllib.error.HTTPError) or trouble.code in (429, 503) or "speaks TLS only" in said
            if not passes or time.monotonic() > end:
                raise AssertionError(said) from trouble
            time.sleep(0.5)


def run_in(workspace, command):
    return ask("POST", f"/v1/workspaces/{workspace['id']}/executions", {"command": command}, 60)


def begin(workspace, seconds):
    return ask("POST", f"/v1/workspaces/{workspace['id']}/executions",
               {"argv": ["sh", "-c", f"for i in $(seq {seconds}); do echo line $i; sleep 1; done"], "background": True})["id"]


def whole(execution, seconds):
    wait_for("the execution's end", lambda: ask("GET", f"/v1/executions/{execution}", None, 60)["status"] != "running", seconds + 90)
    done = ask("GET", f"/v1/executions/{execution}")
    assert done["status"] == "ok" and done["stdout"].splitlines() == [f"line {i}" for i in range(1, seconds + 1)], done


CASES = [rendered, installed]
