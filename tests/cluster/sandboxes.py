"""Hearth on the cluster: its sandboxes are Pods, from a manifest to what a tenant sees, through kill -9 and images that are not there."""

import contextlib
import io
import json
import os
import signal
import subprocess
import tarfile
import tempfile

import images
from harness import BUILD, IMAGES, Server, pool_yaml, wait_for
from places import Trouble
from session import NAMESPACE, Lacks, get, kubectl, own_cluster, session

AGENT = "localhost/hearth-agent:test"
SHELL = "localhost/hearth-shell:test"
loaded = set()  # clusters that have both images


def folder_layer(folder, name):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(folder, arcname=name)
    return packed.getvalue()


def load_images(cluster):
    """The agent's image, as its users make it from `hearth agent-folder`, and the project's shell image."""
    if cluster in loaded:
        return
    layout = os.path.join(IMAGES, "shell")
    if not cluster.can_load():
        raise Lacks("images cannot be brought to its nodes: HEARTH_CLUSTER_LOAD names no command")
    if not os.path.exists(layout):
        raise Lacks("there is no image shell; `./test server/start` makes it")
    with tempfile.TemporaryDirectory() as folder:
        agent, shell = os.path.join(folder, "agent.tar"), os.path.join(folder, "shell.tar")
        subprocess.run([os.path.join(BUILD, "hearth"), "agent-folder", os.path.join(folder, "hearth")], check=True, capture_output=True)
        images.archive(agent, AGENT, folder_layer(os.path.join(folder, "hearth"), "hearth"), {"Entrypoint": ["/hearth/agent"]})
        subprocess.run(["skopeo", "copy", "-q", f"oci:{layout}", f"docker-archive:{shell}:{SHELL}"], check=True, capture_output=True)
        cluster.load(agent)
        cluster.load(shell)
    loaded.add(cluster)


@contextlib.contextmanager
def serving(pools):
    """A server whose Pods are in the tests' namespace; with its end they are gone."""
    cluster = session.at("full")
    load_images(cluster)
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        with open(config, "w", encoding="utf-8") as file:
            file.write(cluster.kubectl("config", "view", "--raw", "--flatten", "--minify"))
        subprocess.run([*cluster.kubectl_command()[:1], f"--kubeconfig={config}", "config", "set-context", "--current",
                        f"--namespace={NAMESPACE}"], check=True, capture_output=True)
        with Server(pools=pools, runtime="kubernetes", args=["--kubeconfig", config, "--agent-image", AGENT]) as server:
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


def missing_image():
    """an image that is not there is named by the pool's condition, and does not stop other pools"""
    with serving(pool_yaml(image=SHELL, warm=1) + "---\n" + pool_yaml("lost", image="localhost/nowhere:1", warm=1)) as s:
        wait_for("a warm Pod", lambda: ready(s) == 1, 90)

        def told():
            return "localhost/nowhere" in json.dumps(s.get("/v1/pools/lost").json["status"]["conditions"])
        wait_for("the condition", told, 120)
        assert s.run(s.open_workspace(pool="shell")["id"], "echo on")["stdout"] == "on\n"


CASES = [claimed_pod, killed_server, lost_pod, api_server_away, missing_image]
