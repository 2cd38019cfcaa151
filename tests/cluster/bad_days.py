"""Bad days of a cluster: a full quota, a right that is taken away, an API server that hangs, a node that vanishes, evictions and drains. A condition
and an event name each of them, retries are bounded while warm sandboxes serve claims, and each ends without help."""

import contextlib
import json
import os
import time

import control_plane
import fault
from harness import pool_yaml, wait_for
from resources import apply_text, condition, definition, following, pool
from sandboxes import AGENT, SHELL, claimed_and_warm, load_images, pod_writes, pods, ready, serving
from session import NAMESPACE, apply, get, kubectl, own_cluster, session
from stand_ins import standing_in

WARM = 2
OUTAGE = int(os.environ.get("HEARTH_OUTAGE_SECONDS", "30"))  # of an API server that hangs


@contextlib.contextmanager
def pool_of_an_object(account=None):
    """A server with warm Pods of a pool that an object declares."""
    own_cluster("full")
    load_images(session.cluster)
    with definition("full"), following(runtime="kubernetes", args=["--agent-image", AGENT], account=account) as server:
        apply_text(pool_yaml(image=SHELL, warm=WARM))
        wait_for("warm Pods", filled, 90)
        yield server
        kubectl("delete", "sandboxpool", "shell", "--timeout=20s")
        server.drain()
        wait_for("no Pod is left", lambda: not pods(server.instance), 30)


def filled():
    return pool("shell").get("status", {}).get("ready") == WARM


def told(words):
    """Returns whether the condition and an Event contain these words."""
    now = condition("shell", "Degraded")
    events = get("events", "--field-selector=involvedObject.name=shell")["items"]
    return now["status"] == "True" and words in now["message"] and any(each["type"] == "Warning" and words in each["message"] for each in events)


def serves_from_warm(server):
    """Checks that a claim gets a warm sandbox, while the pool cannot be filled again."""
    workspace = server.open_workspace()
    assert workspace["claim"]["source"] == "warm", workspace
    assert server.run(workspace["id"], "echo on")["stdout"] == "on\n"
    return workspace["id"]


def bounded(seconds=10, most=6):
    """Checks that at most `most` Pods are requested in this time. Only this pool may make Pods meanwhile."""
    before = pod_writes()["POST"]
    time.sleep(seconds)
    asked = pod_writes()["POST"] - before
    assert asked <= most, f"{asked} Pods were asked for in {seconds} s"


def recovers(server, workspace):
    wait_for("it is filled again", filled, 90)
    assert condition("shell", "Degraded")["status"] == "False"
    assert server.run(workspace, "echo still")["stdout"] == "still\n"
    server.call("DELETE", f"/v1/workspaces/{workspace}")


def full_quota():
    """a quota of the namespace that is full is named by the pool's condition and an Event; few Pods are tried, claims go on from what is warm, and more quota is enough"""
    with pool_of_an_object() as server:
        apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight"}, "spec": {"hard": {"pods": "0"}}})
        try:
            wait_for("the quota is in force", lambda: "used" in get("resourcequota", "tight").get("status", {}), 30)
            workspace = serves_from_warm(server)
            wait_for("the condition and an event", lambda: told("exceeded quota: tight"), 60)
            bounded()
            server.call("DELETE", f"/v1/workspaces/{serves_from_warm(server)}")
            kubectl("patch", "resourcequota", "tight", "--type=merge", "-p", json.dumps({"spec": {"hard": {"pods": "1000"}}}))
            recovers(server, workspace)
        finally:
            kubectl("delete", "resourcequota", "tight")


def role(verbs):
    """Returns the rights of a server in its namespace as docs/kubernetes.md has them, with these verbs for Pods."""
    rules = [("", "pods", verbs), ("networking.k8s.io", "networkpolicies", ["create", "patch"]), ("hearth.dev", "sandboxpools,workspaces", ["list", "watch"]),
             ("hearth.dev", "sandboxpools/status,workspaces/status", ["patch"]), ("", "events,secrets", ["create"])]
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "narrow"},
            "rules": [{"apiGroups": [group], "resources": resources.split(","), "verbs": may} for group, resources, may in rules]}


def missing_right():
    """a right that the server loses is named by the pool's condition and an Event; claims go on from what is warm, and the right is enough to recover"""
    session.at("full")
    whole = ["create", "get", "list", "watch", "patch", "delete"]
    wait_for("the namespace's own account", lambda: "default" in kubectl("get", "serviceaccounts", "-o", "name"), 30)
    kubectl("create", "serviceaccount", "narrow")
    kubectl("create", "rolebinding", "narrow", "--role=narrow", f"--serviceaccount={NAMESPACE}:narrow")
    try:
        apply(role(whole))
        with pool_of_an_object("narrow") as server:
            apply(role(whole[1:]))
            try:
                workspace = serves_from_warm(server)
                wait_for("the condition and an event", lambda: told('cannot create resource "pods"'), 60)
                bounded()
                server.call("DELETE", f"/v1/workspaces/{serves_from_warm(server)}")
            finally:
                apply(role(whole))
            recovers(server, workspace)
    finally:
        kubectl("delete", "role/narrow", "rolebinding/narrow", "serviceaccount/narrow")


def degraded(server):
    [one] = [each for each in server.get("/v1/pools/shell").json["status"]["conditions"] if each["type"] == "Degraded"]
    return one["status"] == "True" and "the API server did not create the Pod" in one["message"]


def hung_api_server():
    """while the API server answers nothing, claims go on from what is warm and a claimed workspace runs; condition and event name it, and once it answers the pool is filled"""
    api = own_cluster("full")
    with serving(pool_yaml(image=SHELL, warm=WARM)) as s:
        wait_for("warm Pods", lambda: ready(s) == WARM, 90)
        fault.freeze(api)
        try:
            began = time.monotonic()
            first, second = serves_from_warm(s), serves_from_warm(s)
            wait_for("the condition", lambda: degraded(s), 90)
            events = s.get("/v1/events").json["items"]
            assert any(each["type"] == "pool.degraded" and "the API server did not create the Pod" in each["message"] for each in events), events
            wait_for("the end of the outage", lambda: time.monotonic() > began + OUTAGE, OUTAGE + 10)
            assert s.run(first, "echo on")["stdout"] == "on\n"
        finally:
            fault.thaw(api)
        wait_for("warm Pods again", lambda: ready(s) == WARM, 120 + OUTAGE / 2)
        assert s.run(second, "echo still")["stdout"] == "still\n"
        wait_for("it is healthy", lambda: not degraded(s), 30)


def vanished_node():
    """a node that vanishes is named by the events of its warm sandboxes, which are replaced on another; a claimed one serves until the cluster ends its Pod"""
    cluster = own_cluster("full")
    names = ["stand-in-0", "stand-in-1"]
    chosen = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}]}}}
    text = pool_yaml(image="stand-in:1", warm=4).replace("template:\n", f"template:\n    podTemplate: {json.dumps({'spec': {'affinity': chosen}})}\n")
    try:
        with standing_in(cluster, nodes=2, pods=50), serving(text) as s:
            wait_for("warm Pods", lambda: ready(s) == 4, 60)
            workspace = s.open_workspace()
            wait_for("warm Pods again", lambda: ready(s) == 4, 30)
            claimed = workspace["sandboxId"].replace("_", "-")
            gone = get("pod", claimed)["spec"]["nodeName"]
            lost = {each["metadata"]["name"].replace("-", "_", 1) for each in pods(s.instance)
                    if each["spec"]["nodeName"] == gone and each["metadata"]["name"] != claimed}
            assert lost, "no warm Pod is on that node"
            kubectl("delete", "node", gone)
            named = {}

            def events():
                named.update({each["resource"]: each["message"] for each in s.get("/v1/events?limit=500").json["items"] if each["type"] == "sandbox.retired"})
                return lost <= set(named)
            wait_for("the events", events, 30)
            assert all(f"its node {gone} has gone" in named[each] for each in lost), named
            wait_for("warm Pods on the other", lambda: ready(s) == 4, 60)
            assert {each["spec"]["nodeName"] for each in pods(s.instance) if each["metadata"]["name"] != claimed} == set(names) - {gone}
            assert s.run(workspace["id"], "echo on")["stdout"] == "on\n"
            # The cluster's garbage collector does the same a minute later.
            kubectl("delete", "pod", claimed, "--grace-period=0", "--force", "--wait=false")
            wait_for("the workspace's end", lambda: s.get(f"/v1/workspaces/{workspace['id']}").status == 410, 30)
    finally:
        kubectl("delete", "node", *names, "--ignore-not-found")


def evict(pod):
    control_plane.request(session.cluster.own, "POST", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction",
                          {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}})


def ended(server, workspace):
    answer = server.get(f"/v1/workspaces/{workspace}")
    return answer.status == 410 and "lost" in answer.body.decode()


def evicted_and_drained():
    """an evicted Pod ends its workspace as lost, and a warm one is replaced; so `kubectl drain` ends, and after it the pool fills again"""
    own_cluster("full")
    [mine, *_] = [each["metadata"]["name"] for each in get("nodes")["items"]]
    with serving(pool_yaml(image=SHELL, warm=1)) as s:
        workspace = claimed_and_warm(s)
        evict(workspace["sandboxId"].replace("_", "-"))
        wait_for("the workspace's end", lambda: ended(s, workspace["id"]), 30)
        [warm] = [each["id"] for each in s.get("/v1/sandboxes").json["items"] if each["phase"] == "Ready"]
        evict(warm.replace("_", "-"))
        wait_for("it has gone", lambda: s.get(f"/v1/sandboxes/{warm}").status == 404, 30)
        wait_for("another warm Pod", lambda: ready(s) == 1, 90)

        workspace = s.open_workspace()
        wait_for("a warm Pod again", lambda: ready(s) == 1, 90)
        try:
            kubectl("drain", mine, f"--pod-selector=hearth.dev/instance={s.instance}", "--force", "--delete-emptydir-data", "--timeout=60s")
            assert ended(s, workspace["id"]), s.get(f"/v1/workspaces/{workspace['id']}")
            wait_for("why there is none", lambda: "unschedulable" in json.dumps(get("pods", "-l", f"hearth.dev/instance={s.instance}")["items"]), 60)
            assert ready(s) == 0
        finally:
            kubectl("uncordon", mine)
        wait_for("a warm Pod again", lambda: ready(s) == 1, 120)
        assert s.run(s.open_workspace()["id"], "echo on")["stdout"] == "on\n"


CASES = [full_quota, missing_right, hung_api_server, vanished_node, evicted_and_drained]
