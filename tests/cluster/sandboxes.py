"""Hearth on the cluster: its sandboxes are Pods, from a manifest to what a tenant sees, through kill -9 and images that are not there."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import tarfile
import tempfile

import control_plane
import images
from harness import BUILD, IMAGES, Server, pool_yaml, wait_for
from places import Trouble
from session import NAMESPACE, Lacks, apply, get, kubectl, own_cluster, session

AGENT = "localhost/hearth-agent:test"
SHELL = "localhost/hearth-shell:test"
PYTHON = "localhost/hearth-python:test"
loaded = {}  # by cluster: the project's images that it has


def folder_layer(folder, name):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(folder, arcname=name)
    return packed.getvalue()


def load_images(cluster, *others):
    """Loads the agent's image, as its users make it from `hearth agent-folder`, the project's shell image, and others of
    the project."""
    has = loaded.setdefault(cluster, set())
    if not cluster.can_load():
        raise Lacks("images cannot be brought to its nodes: HEARTH_CLUSTER_LOAD names no command")
    with tempfile.TemporaryDirectory() as folder:
        if AGENT not in has:
            agent = os.path.join(folder, "agent.tar")
            subprocess.run([os.path.join(BUILD, "hearth"), "agent-folder", os.path.join(folder, "hearth")], check=True, capture_output=True)
            images.archive(agent, AGENT, folder_layer(os.path.join(folder, "hearth"), "hearth"), {"Entrypoint": ["/hearth/agent"]})
            cluster.load(agent)
            has.add(AGENT)
        for reference in {SHELL, *others} - has:
            name = reference.removeprefix("localhost/hearth-").removesuffix(":test")
            layout, packed = os.path.join(IMAGES, name), os.path.join(folder, f"{name}.tar")
            if not os.path.exists(layout):
                raise Lacks(f"there is no image {name}; `./test server/start` makes it")
            subprocess.run(["skopeo", "copy", "-q", f"oci:{layout}", f"docker-archive:{packed}:{reference}"], check=True, capture_output=True)
            cluster.load(packed)
            has.add(reference)


def write_kubeconfig(cluster, path):
    """Writes a kubeconfig of the cluster, with the tests' namespace in its context."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(cluster.kubectl("config", "view", "--raw", "--flatten", "--minify"))
    subprocess.run([*cluster.kubectl_command()[:1], f"--kubeconfig={path}", "config", "set-context", "--current",
                    f"--namespace={NAMESPACE}"], check=True, capture_output=True)


@contextlib.contextmanager
def serving(pools, args=()):
    """Yields a server whose Pods are in the tests' namespace. They are gone after its end."""
    cluster = session.at("full")
    load_images(cluster)
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        write_kubeconfig(cluster, config)
        with Server(pools=pools, runtime="kubernetes", args=["--kubeconfig", config, "--agent-image", AGENT, *args]) as server:
            wait_for("the server", lambda: server.get("/readyz", port=server.ops_port).status == 200, 60)
            yield server
            instance = server.instance
        wait_for("its Pods have gone", lambda: not pods(instance), 30)


def pods(instance):
    return get("pods", "-l", f"hearth.dev/instance={instance}")["items"]


def ready(server, pool="shell"):
    return server.get(f"/v1/pools/{pool}").json["status"]["ready"]


def claimed_pod():
    """a claim gets a hardened Pod that was warm; code runs in it, files come and go, and its end removes it"""
    with serving(pool_yaml(image=SHELL, warm=2)) as s:
        wait_for("two warm Pods", lambda: ready(s) == 2, 90)
        workspace = s.open_workspace()
        assert workspace["claim"]["source"] == "warm", workspace
        said = s.run(workspace["id"], "id -u; hostname; ls /var/run/secrets 2>&1; cat /proc/1/status | grep CapEff")["stdout"]
        assert said.startswith("1000\nsandbox\n") and "No such file" in said and "CapEff:\t0000000000000000" in said, said
        assert s.call("PUT", f"/v1/workspaces/{workspace['id']}/files/deep/f.bin", raw=bytes(range(256)) * 4000).status in (200, 201)
        assert s.call("GET", f"/v1/workspaces/{workspace['id']}/files/deep/f.bin").body == bytes(range(256)) * 4000
        assert s.run(workspace["id"], "touch /etc/x 2>&1; touch /.hearth/x 2>&1")["stdout"].count("Read-only") == 2
        name = workspace["sandboxId"].replace("_", "-")
        assert get("pod", name)["spec"]["automountServiceAccountToken"] is False
        policy = get("networkpolicy", f"hearth-{s.instance}")["spec"]
        assert policy["policyTypes"] == ["Ingress", "Egress"] and not policy.get("egress"), policy
        assert s.call("DELETE", f"/v1/workspaces/{workspace['id']}").status == 204
        wait_for("its Pod has gone", lambda: name not in kubectl("get", "pods", "-o", "name"), 30)
        wait_for("two warm Pods again", lambda: ready(s) == 2, 90)


def killed_server():
    """a claimed Pod, its files and its running execution outlive the kill -9 of the server, and nothing is claimed twice"""
    with serving(pool_yaml(image=SHELL, warm=1)) as s:
        wait_for("a warm Pod", lambda: ready(s) == 1, 90)
        workspace = s.open_workspace()
        s.run(workspace["id"], "echo kept > f")
        begun = s.post(f"/v1/workspaces/{workspace['id']}/executions",
                       {"argv": ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done"], "background": True})
        assert begun.status == 202, begun
        s.kill9()
        s.start()
        assert s.run(workspace["id"], "cat f")["stdout"] == "kept\n"
        execution = f"/v1/executions/{begun.json['id']}"
        wait_for("the execution's end", lambda: s.get(execution).json["status"] != "running", 60)
        done = s.get(execution).json
        assert done["status"] == "ok" and done["stdout"].splitlines() == [f"line {i}" for i in range(1, 9)], done
        other = s.open_workspace()
        assert other["sandboxId"] != workspace["sandboxId"], other


def lost_pod():
    """a Pod that somebody deletes ends its workspace with the reason, and the pool makes another"""
    with serving(pool_yaml(image=SHELL, warm=1)) as s:
        wait_for("a warm Pod", lambda: ready(s) == 1, 90)
        workspace = s.open_workspace()
        kubectl("delete", "pod", workspace["sandboxId"].replace("_", "-"), "--grace-period=0", "--force", "--wait=false")
        wait_for("the workspace's end", lambda: s.get(f"/v1/workspaces/{workspace['id']}").json.get("phase") != "Active", 60)
        told = s.get(f"/v1/workspaces/{workspace['id']}")
        assert told.status == 410 and "sandbox" in str(told.json).lower(), told
        wait_for("a warm Pod again", lambda: ready(s) == 1, 90)


def cut_connections():
    """when the network cuts the connections to Pods, a workspace goes on with its execution, and warm Pods stay"""
    own_cluster("full")
    with serving(pool_yaml(image=SHELL, warm=1)) as s:
        workspace = claimed_and_warm(s)
        begun = s.post(f"/v1/workspaces/{workspace['id']}/executions",
                       {"argv": ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done"], "background": True})
        assert begun.status == 202, begun
        before = {pod["metadata"]["name"] for pod in pods(s.instance)}
        rule = ["-p", "tcp", "--dport", "7017", "-j", "REJECT", "--reject-with", "tcp-reset"]
        subprocess.run(["iptables", "-w", "-I", "OUTPUT", *rule], check=True)
        try:
            subprocess.run(["ss", "-K", "dport", "=", ":7017"], check=True, capture_output=True)
            wait_for("the cut is noticed", lambda: "sandbox.silent" in s.log() and "sandbox.disconnected" in s.log(), 30)
        finally:
            subprocess.run(["iptables", "-w", "-D", "OUTPUT", *rule], check=True)
        execution = f"/v1/executions/{begun.json['id']}"
        wait_for("the execution's end", lambda: s.get(execution).json["status"] != "running", 60)
        done = s.get(execution).json
        assert done["status"] == "ok" and done["stdout"].splitlines() == [f"line {i}" for i in range(1, 9)], done
        assert s.run(workspace["id"], "echo on")["stdout"] == "on\n"
        wait_for("the warm Pod's connection", lambda: "sandbox.reconnected" in s.log(), 40)
        assert before == {pod["metadata"]["name"] for pod in pods(s.instance)}
        assert s.open_workspace()["claim"]["source"] == "warm"


def claimed_and_warm(server):
    """Returns a workspace on a Pod, with a warm Pod beside it."""
    wait_for("a warm Pod", lambda: ready(server) == 1, 90)
    workspace = server.open_workspace()
    wait_for("a warm Pod again", lambda: ready(server) == 1, 90)
    return workspace


def cordoned_node():
    """a warm Pod leaves a node that is cordoned while another takes work; a claimed one stays"""
    own_cluster("full")
    [mine, *_] = [each["metadata"]["name"] for each in get("nodes")["items"]]
    with serving(pool_yaml(image=SHELL, warm=1)) as s:
        workspace = claimed_and_warm(s)
        [warm] = [each for each in s.get("/v1/sandboxes").json["items"] if each["phase"] == "Ready"]
        kubectl("cordon", mine)
        try:
            assert ready(s) == 1  # it is the only node
            make_fit_node("other")
            wait_for("the warm Pod's end", lambda: s.get(f"/v1/sandboxes/{warm['id']}").status == 404, 30)
            assert s.run(workspace["id"], "echo on")["stdout"] == "on\n"
        finally:
            kubectl("uncordon", mine)
            kubectl("delete", "node", "other", "--ignore-not-found")
        wait_for("a warm Pod again", lambda: ready(s) == 1, 120)


def make_fit_node(name):
    """Makes a node without a kubelet, which says that it is ready. Nothing is placed on it."""
    apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
           "spec": {"taints": [{"key": "test.hearth.dev/empty", "effect": "NoSchedule"}]}})
    condition = {"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastHeartbeatTime": None, "lastTransitionTime": None}
    patch_status(f"/api/v1/nodes/{name}/status", [{"op": "add", "path": "/status/conditions", "value": [
        {key: value for key, value in condition.items() if value is not None}]}])


def patch_status(url, patch):
    """kubectl 1.20 cannot patch a subresource, so this goes to the API server itself."""
    return json.loads(control_plane.request(session.cluster.own, "PATCH", url, patch, "application/json-patch+json"))


def pool_template():
    """Pods get the pool's template: where to run, labels, volumes and devices; a sandbox sees its volume and its device is counted"""
    own_cluster("full")
    [mine, *_] = [each["metadata"]["name"] for each in get("nodes")["items"]]
    kubectl("delete", "pod", "gpu-1", "gpu-2", "gpu-3", "--ignore-not-found", "--wait=true")  # of another case, which hold devices
    for each in ("capacity", "allocatable"):
        patch_status(f"/api/v1/nodes/{mine}/status", [{"op": "add", "path": f"/status/{each}/nvidia.com~1gpu", "value": "1"}])
    apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "models"}, "data": {"one": "first"}})
    kubectl("label", "node", mine, "test.hearth.dev/zone=a", "--overwrite")
    pool = pool_yaml(image=SHELL, warm=1) + "---\n" + pool_yaml("gpu", image=SHELL, warm=1)
    template = {"metadata": {"labels": {"team": "blue"}},
                "spec": {"nodeSelector": {"test.hearth.dev/zone": "a"}, "volumes": [{"name": "models", "configMap": {"name": "models"}}],
                         "containers": [{"name": "sandbox", "env": [{"name": "MODELS", "value": "/models"}],
                                         "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}]}]}}
    with serving(pool) as s:
        changed = s.call("PATCH", "/v1/pools/gpu", {"spec": {"template": {"gpu": {"count": 1}, "podTemplate": template}}},
                         headers={"Content-Type": "application/merge-patch+json"})
        assert changed.status == 200, changed
        bad = s.call("PATCH", "/v1/pools/gpu", {"spec": {"template": {"podTemplate": {"spec": {"hostNetwork": True}}}}},
                     headers={"Content-Type": "application/merge-patch+json"})
        assert bad.status == 422 and bad.json["errors"][0]["pointer"] == "/spec/template/podTemplate/spec/hostNetwork", bad.json
        workspace = wait_for("a Pod with a device", lambda: opened_with_gpu(s), 120)
        assert workspace["gpus"] == ["nvidia.com/gpu"], workspace
        pod = get("pod", workspace["sandboxId"].replace("_", "-"))
        assert pod["metadata"]["labels"]["team"] == "blue" and pod["spec"]["nodeSelector"] == {"test.hearth.dev/zone": "a"}
        assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
        assert s.run(workspace["id"], "cat $MODELS/one; echo x > /models/one 2>/dev/null || echo kept")["stdout"] == "firstkept\n"
        told = wait_for("what the next one lacks", lambda: "Insufficient nvidia.com/gpu" in json.dumps(
            get("pods", "-l", "team=blue")["items"]), 60)
        assert told


def opened_with_gpu(server):
    """Returns a workspace of the pool gpu, after a Pod of its present template is ready."""
    answer = server.post("/v1/workspaces", {"pool": "gpu"})
    if answer.status != 201:
        return None
    if answer.json.get("gpus"):
        return answer.json
    server.call("DELETE", f"/v1/workspaces/{answer.json['id']}")
    return None


def api_server_away():
    """while the API server is away, claims are served from what is warm; what ended meanwhile goes when it is back, and the pool refills"""
    api = own_cluster("full")
    with serving(pool_yaml(image=SHELL, warm=2)) as s:
        wait_for("two warm Pods", lambda: ready(s) == 2, 90)
        api.stop("apiserver", signal.SIGKILL)
        try:
            workspace = s.open_workspace()
            assert s.run(workspace["id"], "echo on")["stdout"] == "on\n"
            assert s.call("DELETE", f"/v1/workspaces/{workspace['id']}").status == 204
        finally:
            api.restart("apiserver")
        name = workspace["sandboxId"].replace("_", "-")

        def gone():
            try:
                return name not in kubectl("get", "pods", "-o", "name")
            except Trouble:  # it has only just begun to answer
                return False
        wait_for("its Pod has gone", gone, 120)
        wait_for("two warm Pods again", lambda: ready(s) == 2, 120)


def doctor():
    """hearth doctor says that a cluster has what it needs, and names each right that a server lacks, with its fix"""
    cluster = session.at("control")
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        write_kubeconfig(cluster, config)
        wait_for("the namespace's own account", lambda: "default" in kubectl("get", "serviceaccounts", "-o", "name"), 30)
        said = examine(config)
        wrong = [each for each in said["checks"] if each["level"] == "fail" and each["name"] not in ("port", "listen", "data directory")]
        assert not wrong, wrong
        kubectl("create", "serviceaccount", "weak")
        kubectl("create", "role", "weak", "--verb=get,list", "--resource=pods")
        kubectl("create", "rolebinding", "weak", "--role=weak", f"--serviceaccount={NAMESPACE}:weak")
        use_account(cluster, config, "weak")
        checks = {each["name"]: each for each in examine(config)["checks"]}
        rights = checks["permissions"]
        assert rights["level"] == "fail" and "may not create,watch,patch,delete pods" in rights["message"], rights
        assert "--verb=create,watch,patch,delete --resource=pods" in rights["fix"], rights
        assert checks["nodes"]["level"] == "warn" and checks["pods"]["level"] == "fail", checks
        checks = {each["name"]: each for each in examine(config, "--custom-resources")["checks"]}
        assert "--verb=patch --resource=sandboxpools.hearth.dev/status" in checks["permissions"]["fix"], checks
        assert checks["definitions"] == {**checks["definitions"], "level": "fail", "fix": "hearth crds | kubectl apply -f -"}, checks


def examine(config, *more):
    done = subprocess.run([os.path.join(BUILD, "hearth"), "doctor", "--runtime", "kubernetes", "--kubeconfig", config, "--agent-image", AGENT,
                           "-o", "json", *more], capture_output=True, text=True, check=False, timeout=60)
    return json.loads(done.stdout)


def use_account(cluster, config, account):
    """Gives this kubeconfig the rights of a ServiceAccount of the tests' namespace."""
    command = [*cluster.kubectl_command()[:1], f"--kubeconfig={config}", "config"]
    subprocess.run([*command, "set-credentials", account, f"--token={token_of(account)}"], check=True, capture_output=True)
    subprocess.run([*command, "set-context", "--current", f"--user={account}"], check=True, capture_output=True)


def token_of(account):
    answer = control_plane.request(session.cluster.own, "POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token",
                                   {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    return json.loads(answer)["status"]["token"]


WRITES = ("POST", "PATCH", "PUT", "DELETE")


def writes():
    """Returns how often all clients have written to the API server, by resource (with its subresource) and verb."""
    counts = {}
    for line in kubectl("get", "--raw", "/metrics").splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if labels["verb"] in WRITES:
            key = "/".join(filter(None, (labels["resource"], labels["subresource"]))), labels["verb"]
            counts[key] = counts.get(key, 0) + int(float(line.rsplit(" ", 1)[1]))
    return counts


def pod_writes():
    """Returns how many Pods all clients have created, changed and deleted. Their status, which only the kubelet writes, is
    counted apart."""
    counts = writes()
    return {verb: counts.get(("pods", verb), 0) for verb in WRITES}


def counted_writes():
    """a claim is three writes to the API server, after its answer, as that counts them: a label, the Pod's end and the next Pod"""
    own_cluster("full")
    claims = 8
    with serving(pool_yaml(image=SHELL, warm=2)) as s:
        def settled():
            return ready(s) == 2 and len(pods(s.instance)) == 2
        wait_for("warm Pods", settled, 60)
        before, everything = pod_writes(), writes()
        for _ in range(claims):
            one = s.open_workspace()["id"]
            assert s.run(one, "echo on")["stdout"] == "on\n"
            wait_for("the label", lambda: labelled(s.instance) == 1, 10)
            s.call("DELETE", f"/v1/workspaces/{one}")
            wait_for("it is refilled", settled, 60)
        after = pod_writes()
        made = {verb: after[verb] - before[verb] for verb in after}
        print(f"      {claims} claims: {made}")
        others = {" ".join(key): count - everything.get(key, 0) for key, count in sorted(writes().items())}
        print("      all writes, by everybody:", {key: count for key, count in others.items() if count and re.match("pods|events", key)})
        assert made == {"POST": claims, "PATCH": claims, "PUT": 0, "DELETE": claims}, made


def labelled(instance):
    return len(get("pods", "-l", f"hearth.dev/instance={instance},hearth.dev/claimed=true")["items"])


def missing_image():
    """an image that is not there is named by the pool's condition, and does not stop other pools"""
    with serving(pool_yaml(image=SHELL, warm=1) + "---\n" + pool_yaml("lost", image="localhost/nowhere:1", warm=1)) as s:
        wait_for("a warm Pod", lambda: ready(s) == 1, 90)

        def told():
            return "localhost/nowhere" in json.dumps(s.get("/v1/pools/lost").json["status"]["conditions"])
        wait_for("the condition", told, 120)
        assert s.run(s.open_workspace(pool="shell")["id"], "echo on")["stdout"] == "on\n"


CASES = [doctor, claimed_pod, killed_server, lost_pod, cut_connections, cordoned_node, pool_template, api_server_away, counted_writes,
         missing_image]
