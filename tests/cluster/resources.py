"""SandboxPool objects on the cluster: kubectl declares, scales and removes pools, and reads what became of them."""

import base64
import contextlib
import json
import os
import subprocess
import tempfile
import threading

from harness import BUILD, Server, pool_yaml, wait_for
from places import Trouble
from sandboxes import AGENT, SHELL, examine, load_images, pods, use_account, write_kubeconfig
from session import NAMESPACE, apply, get, kubectl, refused, session

PHASES = ["Pending", "Active", "Ending", "Gone"]
CRDS = ["sandboxpools.hearth.dev", "workspaces.hearth.dev"]


def install_definition():
    session.crds.update(CRDS)
    said = subprocess.run([os.path.join(BUILD, "hearth"), "crds"], check=True, capture_output=True, text=True).stdout
    kubectl("apply", "-f", "-", input=said)
    kubectl("wait", "--for=condition=Established", "crd", *CRDS, "--timeout=30s")


@contextlib.contextmanager
def definition(level):
    """Runs at this level of the cluster, with the definition and without objects. Removes both afterwards."""
    session.at(level)
    install_definition()
    try:
        yield
    finally:
        kubectl("delete", "crd", *CRDS, "--ignore-not-found", "--timeout=60s")


@contextlib.contextmanager
def following(runtime="fake", args=(), pools=None, account=None):
    """Yields a server that follows the objects of the tests' namespace, with the rights of the cluster's administrator or of a
    ServiceAccount."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "kubeconfig")
        write_kubeconfig(session.cluster, config)
        if account:
            use_account(session.cluster, config, account)
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        server = Server(pools=pools, runtime=runtime, args=["--kubeconfig", config, "--custom-resources", *args])
        if pools is None:
            server.pools_file = None
        with server:
            try:
                yield server
            except BaseException:
                print(server.log()[-4000:], flush=True)
                raise


def pool(name):
    return get("sandboxpool", name)


def condition(name, kind):
    found = [each for each in pool(name).get("status", {}).get("conditions", []) if each["type"] == kind]
    return found[0] if found else {"status": "Unknown", "reason": "", "message": ""}


def apply_text(text):
    return kubectl("apply", "-f", "-", input=text)


def spec_of(server, name):
    return server.get(f"/v1/pools/{name}").json["spec"]


def declared_by_object():
    """a manifest that one machine takes declares a pool with kubectl: status, columns, scale and wrong specs are told by the object"""
    with definition("api"), following() as server:
        apply_text(pool_yaml(name="web", warm=2))
        kubectl("wait", "--for=condition=Ready", "sandboxpool/web", "--timeout=30s")
        wait_for("its status is whole", lambda: pool("web")["status"]["ready"] == 2, 20)
        status = pool("web")["status"]
        assert status["observedGeneration"] == pool("web")["metadata"]["generation"] == 1, status
        assert {each["type"] for each in status["conditions"]} >= {"Ready", "Progressing", "Degraded", "Stalled"}, status
        assert all(each["observedGeneration"] == 1 and each["lastTransitionTime"] for each in status["conditions"]), status
        columns = kubectl("get", "sp").splitlines()
        assert columns[0].split() == ["NAME", "READY", "WARM", "DESIRED", "CLAIMED", "WAITING", "AGE"], columns
        assert columns[1].split()[:5] == ["web", "True", "2", "2", "0"], columns

        kubectl("scale", "sandboxpool/web", "--replicas=3")
        wait_for("it has three", lambda: pool("web")["status"]["replicas"] == 3, 20)
        assert spec_of(server, "web")["warm"]["min"] == 3
        scale = json.loads(kubectl("get", "--raw", f"/apis/hearth.dev/v1alpha1/namespaces/{NAMESPACE}/sandboxpools/web/scale"))
        assert scale["status"] == {"replicas": 3, "selector": "hearth.dev/pool=web"}, scale

        workspace = server.open_workspace()
        wait_for("the claim is counted", lambda: pool("web")["status"]["claimed"] == 1, 20)
        server.call("DELETE", f"/v1/workspaces/{workspace['id']}")

        # Out of range: the condition and an event name it, and the earlier spec stays in force.
        kubectl("scale", "sandboxpool/web", "--replicas=25")
        wait_for("it is refused", lambda: condition("web", "Stalled")["status"] == "True", 20)
        told = condition("web", "Ready")
        assert (told["status"], told["reason"]) == ("False", "InvalidSpec") and "/spec/warm/min" in told["message"], told
        assert spec_of(server, "web")["warm"]["min"] == 3
        events = get("events", "--field-selector=involvedObject.name=web")["items"]
        assert any(each["type"] == "Warning" and each["reason"] == "InvalidSpec" and "/spec/warm/min" in each["message"]
                   for each in events), events
        kubectl("scale", "sandboxpool/web", "--replicas=1")
        kubectl("wait", "--for=condition=Ready", "sandboxpool/web", "--timeout=30s")
        assert condition("web", "Stalled")["status"] == "False"

        # Faults that the schema knows are refused at once. The condition reports those that only the server knows.
        assert "action" in refused(lambda: apply_text(pool_yaml(name="other", on_empty="Perhaps")))
        apply_text(pool_yaml(name="ondemand-x"))
        wait_for("a name of the server's is refused", lambda: "ondemand-" in condition("ondemand-x", "Ready")["message"], 20)

        # REST reads the pool, but only its object may change it.
        answer = server.call("DELETE", "/v1/pools/web")
        assert answer.status == 409 and "kubectl edit sandboxpool web" in answer.body.decode(), answer.body
        assert server.get("/v1/pools/web").status == 200

        kubectl("delete", "sandboxpool", "--all", "--timeout=30s")
        wait_for("the pool has gone", lambda: server.get("/v1/pools/web").status == 404, 20)


def numbers_in_objects():
    """a manifest with numbers where texts are usual is taken as on one machine, and so are a cluster's own fields"""
    with definition("api"), following() as server:
        text = pool_yaml(name="web", warm=0).replace('cpu: "1"', "cpu: 0.5").replace("memory: 128Mi", "memory: 134217728")
        text = text.replace("template:\n", "template:\n    podTemplate: {spec: {nodeSelector: {disk: fast}, tolerations: [{operator: Exists}]}}\n")
        text = text.replace("metadata: {name: web}", "metadata: {name: web, labels: {team: a}, annotations: {note: b}}")
        apply_text(text.replace("maxLifetime: 1h", "maxLifetime: 1h, warnBefore: 0"))
        wait_for("it is declared", lambda: server.get("/v1/pools/web").status == 200, 20)
        spec = spec_of(server, "web")
        assert spec["template"]["resources"]["cpu"] == "500m" and spec["template"]["resources"]["memory"] == "128Mi", spec
        assert spec["template"]["podTemplate"]["spec"] == {"nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}]}, spec


def autoscaled():
    """an autoscaler of Kubernetes reads and raises the number of warm sandboxes"""
    with definition("control"), following() as server:
        apply_text(pool_yaml(name="web", warm=1))
        kubectl("wait", "--for=condition=Ready", "sandboxpool/web", "--timeout=30s")
        kubectl("apply", "-f", "-", input=json.dumps({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
            "spec": {"minReplicas": 4, "maxReplicas": 6,
                     "scaleTargetRef": {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "name": "web"}}}))
        try:
            wait_for("it has four", lambda: pool("web")["status"]["ready"] == 4, 60)
            assert spec_of(server, "web")["warm"]["min"] == 4
        finally:
            kubectl("delete", "hpa", "web")


def gone_while_away():
    """after kill -9 a server takes the objects as they are now: changed ones, new ones, and those that have gone; so without a definition"""
    with definition("api"), following() as server:
        for name in ("kept", "gone"):
            apply_text(pool_yaml(name=name, warm=1))
            kubectl("wait", "--for=condition=Ready", f"sandboxpool/{name}", "--timeout=30s")
        server.kill9()
        kubectl("delete", "sandboxpool", "gone", "--timeout=10s")
        apply_text(pool_yaml(name="new", warm=1))
        kubectl("scale", "sandboxpool/kept", "--replicas=2")
        server.start()
        assert {each["metadata"]["name"] for each in server.get("/v1/pools").json["items"]
                if not each["metadata"]["deleting"]} == {"kept", "new"}
        wait_for("the change counts", lambda: pool("kept")["status"]["ready"] == 2, 20)

        # The definition goes, and the objects with it. Then it comes back.
        kubectl("delete", "crd", *CRDS, "--timeout=60s")
        wait_for("no pool is left", lambda: not server.get("/v1/pools").json["items"], 30)
        install_definition()
        apply_text(pool_yaml(name="again", warm=1))
        kubectl("wait", "--for=condition=Ready", "sandboxpool/again", "--timeout=90s")


def no_longer_followed():
    """a server that is told to follow objects no more keeps their pools, and from then on clients change and remove them"""
    with definition("api"), following() as server:
        apply_text(pool_yaml(name="web", warm=1))
        kubectl("wait", "--for=condition=Ready", "sandboxpool/web", "--timeout=30s")
        assert server.call("DELETE", "/v1/pools/web").status == 409
        assert server.stop() == 0
        server.extra.remove("--custom-resources")
        server.start()
        assert spec_of(server, "web")["warm"]["min"] == 1
        assert server.call("DELETE", "/v1/pools/web").status in (202, 204)
        wait_for("it is gone", lambda: server.get("/v1/pools/web").status == 404, 20)


def without_definition():
    """a server that follows objects starts where there is no definition, and says how it is installed"""
    session.at("api")
    with following(pools=pool_yaml(warm=1)) as server:
        assert server.open_workspace()["id"]
        assert "hearth crds" in server.log(), server.log()


def pool_of_pods():
    """on real Pods: an object is a pool, its workspaces outlive it, and Pods of a deleted object go"""
    cluster = session.at("full")
    load_images(cluster)
    with definition("full"), following(runtime="kubernetes", args=["--agent-image", AGENT]) as server:
        apply_text(pool_yaml(image=SHELL, warm=2))
        kubectl("wait", "--for=condition=Ready", "sandboxpool/shell", "--timeout=60s")
        workspace = server.open_workspace()
        assert server.run(workspace["id"], "echo hello")["stdout"] == "hello\n"
        assert len(get("pods", "-l", "hearth.dev/pool=shell")["items"]) >= 2
        kubectl("delete", "sandboxpool", "shell", "--timeout=10s")
        wait_for("only the claimed Pod is left", lambda: len(pods(server.instance)) == 1, 30)
        assert server.run(workspace["id"], "echo again")["stdout"] == "again\n"
        server.call("DELETE", f"/v1/workspaces/{workspace['id']}")
        wait_for("no Pod is left", lambda: not pods(server.instance), 30)


def workspace(name, **spec):
    return {"apiVersion": "hearth.dev/v1alpha1", "kind": "Workspace", "metadata": {"name": name}, "spec": spec}


def claimed(name):
    """Returns the address, the workspace and the token in its Secret."""
    kubectl("wait", "--for=condition=Ready", f"workspace/{name}", "--timeout=60s")
    secret = get("secret", get("workspace", name)["status"]["secret"])["data"]
    return [base64.b64decode(secret[key]).decode() for key in ("url", "workspace", "token")]


def phase(name):
    return get("workspace", name).get("status", {}).get("phase")


def workspace_by_object():
    """on real Pods: kubectl claims a workspace and gets an address and a token for it alone; it ends with its object, also after kill -9"""
    cluster = session.at("full")
    load_images(cluster)
    with definition("full"), following(runtime="kubernetes", args=["--agent-image", AGENT]) as server:
        apply_text(pool_yaml(image=SHELL, warm=2))
        apply(workspace("one", pool="shell", tenant="ci", env={"COLOR": "red"}, idleTimeoutSeconds=600))
        url, one, token = claimed("one")
        secret = get("workspace", "one")["status"]["secret"]
        assert url == server.url, url
        bearer = {"Authorization": f"Bearer {token}"}
        said = server.post(f"/v1/workspaces/{one}/executions", {"command": "echo $COLOR"}, headers=bearer)
        assert said.status == 200 and said.json["stdout"] == "red\n", said
        execution = said.json["id"]
        assert server.get(f"/v1/executions/{execution}", headers=bearer).status == 200

        # The token opens nothing else, of the same tenant or of another.
        other = server.open_workspace(pool="shell")["id"]
        for method, path in (("GET", f"/v1/workspaces/{other}"), ("GET", "/v1/workspaces"), ("POST", "/v1/workspaces"), ("POST", "/mcp"),
                             ("GET", "/v1/pools"), ("GET", "/v1/events"), ("POST", "/v1/executions")):
            answer = server.call(method, path, {} if method == "POST" else None, headers=bearer)
            assert answer.status == 403, (method, path, answer)
        assert server.get(f"/v1/workspaces/{one}", headers={"Authorization": f"Bearer {token[:-2]}AA"}).status == 401
        columns = kubectl("get", "ws").splitlines()
        assert columns[0].split() == ["NAME", "PHASE", "POOL", "WORKSPACE", "SECRET", "AGE"] and columns[1].split()[:4] == \
            ["one", "Active", "shell", one], columns

        server.kill9()
        server.start()
        assert server.post(f"/v1/workspaces/{one}/executions", {"command": "echo on"}, headers=bearer).json["stdout"] == "on\n"
        assert phase("one") == "Active"

        kubectl("delete", "workspace", "one", "--timeout=20s")
        wait_for("its workspace has ended", lambda: server.get(f"/v1/workspaces/{one}").status in (404, 410), 20)
        wait_for("its Secret has gone", lambda: secret not in kubectl("get", "secrets", "-o", "name"), 60)
        assert server.get(f"/v1/workspaces/{other}").status == 200


@contextlib.contextmanager
def watched(name):
    """Yields a function for the phases that `kubectl get ws NAME -w` has shown so far, each once."""
    seen = []
    words = session.cluster.kubectl_command("-n", NAMESPACE, "get", "ws", "-w", "--no-headers")

    def read(stream):
        for line in stream:
            columns = line.split()
            if columns[0] == name and columns[1] in PHASES and columns[1] not in seen[-1:]:
                seen.append(columns[1])
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        threading.Thread(target=read, args=(process.stdout,), daemon=True).start()
        try:
            yield lambda: seen
        finally:
            process.kill()


def secrets_refused():
    """Returns whether kubectl refuses secrets. It does once the API server has published the fields, seconds after the
    definition. Until then it drops them."""
    try:
        apply(workspace("leak", secrets={"A": "b"}))
    except Trouble as trouble:
        return "secrets" in str(trouble)
    kubectl("delete", "workspace", "leak")
    return False


def workspaces_that_wait():
    """objects whose claim cannot be met wait with the reason, and those that went while no server looked leave no workspace"""
    with definition("control"), following() as server, contextlib.ExitStack() as stack:
        apply(workspace("early", pool="shell"), workspace("wrong", pool="Not a pool"))
        wait_for("it waits", lambda: phase("early") == "Pending", 20)
        watching = stack.enter_context(watched("early"))
        assert "NoPool" in json.dumps(get("workspace", "early")["status"]["conditions"])
        wait_for("it is refused", lambda: "pool" in json.dumps(get("workspace", "wrong")["status"]["conditions"]), 20)
        wait_for("secrets are refused", secrets_refused, 60)
        # Unreadable parts spoil only their own object.
        deep = current = {}
        for _ in range(300):
            current["a"] = current = {}
        apply(workspace("deep", pool="shell", limits={"cpu": deep}), workspace("odd", pool="shell", env={"A\0": "b", "C": "d"}))
        apply_text(pool_yaml(warm=2))
        _, early, _ = claimed("early")
        secret = get("workspace", "early")["status"]["secret"]

        # It ends by itself: its object says so, and claims no other.
        server.call("DELETE", f"/v1/workspaces/{early}")
        wait_for("its object says so", lambda: phase("early") == "Gone", 20)
        wait_for("who watches has seen it", lambda: [each for each in watching() if each != "Ending"] == ["Pending", "Active", "Gone"], 20)
        # One event each, however often the claim was tried.
        told = [f"{each['type']} {each['reason']}" for each in sorted(
            get("events", "--field-selector=involvedObject.kind=Workspace,involvedObject.name=early")["items"], key=lambda each: each["metadata"]["creationTimestamp"])]
        assert sorted(told) == ["Normal Claimed", "Normal Ended", "Warning NoPool"], told
        apply(workspace("left", pool="shell"))
        _, left, _ = claimed("left")
        server.kill9()
        kubectl("delete", "workspace", "left", "early", "--timeout=20s")
        server.start()
        wait_for("its workspace has ended", lambda: server.get(f"/v1/workspaces/{left}").status in (404, 410), 30)
        wait_for("its Secret has gone", lambda: secret not in kubectl("get", "secrets", "-o", "name"), 60)


def older_definition():
    """definitions of an older version are named by a condition, an event and the log, and doctor names the fields that they drop, until the right ones are there"""
    with definition("api"), tempfile.TemporaryDirectory() as folder:
        kubectl("create", "serviceaccount", "server")  # with the rights of the chart: it may not read definitions
        kubectl("create", "role", "objects", "--verb=list,watch", "--resource=sandboxpools.hearth.dev,workspaces.hearth.dev")
        kubectl("create", "role", "words", "--verb=patch,create", "--resource=sandboxpools.hearth.dev/status,workspaces.hearth.dev/status,events,secrets")
        for role in ("objects", "words"):
            kubectl("create", "rolebinding", role, f"--role={role}", f"--serviceaccount={NAMESPACE}:server")
        config = os.path.join(folder, "kubeconfig")
        write_kubeconfig(session.cluster, config)

        def doctor():
            return {each["name"]: each for each in examine(config, "--custom-resources")["checks"]}["definitions"]

        def outdated(status):
            return condition("web", "DefinitionOutdated")["status"] == status
        with following(account="server") as server:
            apply_text(pool_yaml(name="web", warm=1))
            wait_for("it is told that all is right", lambda: outdated("False"), 30)
            assert doctor()["level"] == "ok", doctor()

            older = json.loads(kubectl("get", "crd", CRDS[0], "-o", "json"))
            older = {"apiVersion": older["apiVersion"], "kind": older["kind"], "metadata": {"name": CRDS[0]}, "spec": older["spec"]}
            del older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["onEmpty"]
            older["spec"]["names"]["categories"] = ["hearth"]
            kubectl("apply", "-f", "-", input=json.dumps(older))
            wait_for("the condition", lambda: outdated("True"), 60)
            told = condition("web", "DefinitionOutdated")
            assert told["reason"] == "OlderDefinition" and "sandboxpools.hearth.dev is older than Hearth" in told["message"], told
            assert "hearth crds | kubectl apply -f -" in told["message"] and "workspaces" not in told["message"], told
            assert condition("web", "Ready")["status"] == "True" and "event=kubernetes.definitions_outdated" in server.log()
            found = doctor()
            assert found["level"] == "fail" and "lacks spec.onEmpty" in found["message"] and "hearth crds" in found["fix"], found

            install_definition()
            wait_for("it is right again", lambda: outdated("False"), 60)
            assert doctor()["level"] == "ok", doctor()

            def events():
                return {each["type"] for each in get("events", "--field-selector=involvedObject.name=web")["items"]
                        if each["reason"] in ("OlderDefinition", "Current")}
            wait_for("events of both", lambda: events() == {"Warning", "Normal"}, 30)


CASES = [declared_by_object, older_definition, numbers_in_objects, autoscaled, gone_while_away, no_longer_followed, without_definition, pool_of_pods,
         workspace_by_object, workspaces_that_wait]
