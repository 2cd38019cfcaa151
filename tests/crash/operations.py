"""An answer is durable: one case for each operation of /openapi.json that changes something. A case makes the call
and yields; the server is then killed and started again, and the rest of the case checks. MCP's tools use the same
services."""

import io
import tarfile
import urllib.parse

from harness import new_key, pool_yaml, wait_for

# Operations without a case, each with its reason.
WITHOUT = {
    "scrubGpu": "needs a GPU; its ledger is written before the answer (tests/gpu)",
    "managePackages": "needs an index; it is an execution in its workspace, as execute",
}


def workspace(s, **fields):
    return s.open_workspace(**fields)["id"]


def background(s, w, command, **fields):
    answer = s.post(f"/v1/workspaces/{w}/executions", dict(fields, command=command, background=True))
    assert answer.status == 202, answer
    return answer.json["id"]


def printed(s, e, text):
    wait_for(f"the output {text}", lambda: text in s.get(f"/v1/executions/{e}").json["stdout"])


def ended(s, e, status, **fields):
    done = wait_for("the end", lambda: (x := s.get(f"/v1/executions/{e}").json)["status"] != "running" and x, 20)
    assert done["status"] == status and {name: done[name] for name in fields} == fields, done
    return done


def close(s, *all_of_them):
    for w in all_of_them:
        assert s.call("DELETE", f"/v1/workspaces/{w}").status == 204


def gone(s, w, reason):
    answer = s.get(f"/v1/workspaces/{w}")
    assert answer.status == 410 and answer.json["reason"] == reason, answer
    assert all(x["id"] != w for x in s.get("/v1/workspaces").json["items"])


def name_of_pool():
    return "p" + new_key().replace("-", "").lower()[:12]


def manifest(name, warm=0):
    return {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": name},
            "spec": {"template": {"image": "shell"}, "warm": {"min": warm, "max": 3}}}


def createWorkspace(s):
    key = {"Idempotency-Key": new_key()}
    made = s.post("/v1/workspaces", {"name": "mine", "labels": {"a": "b"}, "env": {"X": "1"}}, headers=key)
    assert made.status == 201, made
    yield
    w = made.json["id"]
    view = s.get(f"/v1/workspaces/{w}").json
    assert view["name"] == "mine" and view["labels"] == {"a": "b"} and view["sandboxId"] == made.json["sandboxId"], view
    assert s.post("/v1/workspaces", {"name": "mine", "labels": {"a": "b"}, "env": {"X": "1"}}, headers=key).json["id"] == w
    assert s.run(w, "echo $X")["stdout"] == "1\n"
    close(s, w)


def createWorkspaces(s):
    made = s.post("/v1/workspaces:batch", {"count": 2})
    assert made.status == 201, made
    yield
    for one in made.json["items"]:
        assert s.get(f"/v1/workspaces/{one['id']}").json["sandboxId"] == one["sandboxId"]
        close(s, one["id"])


def patchWorkspace(s):
    w = workspace(s)
    changed = s.call("PATCH", f"/v1/workspaces/{w}", {"labels": {"later": "yes"}, "maxLifetimeSeconds": 900, "idleTimeoutSeconds": 77})
    assert changed.status == 200, changed
    yield
    view = s.get(f"/v1/workspaces/{w}").json
    assert view["labels"] == {"later": "yes"} and view["expiresAt"] == changed.json["expiresAt"], (view, changed.json)
    close(s, w)


def touchWorkspace(s):
    w = workspace(s)
    touched = s.post(f"/v1/workspaces/{w}/touch").json
    yield
    assert s.get(f"/v1/workspaces/{w}").json["lastActiveAt"] >= touched["lastActiveAt"][:19]
    close(s, w)


def deleteWorkspace(s):
    w = workspace(s)
    e = background(s, w, "sleep 1000")
    close(s, w)
    yield
    gone(s, w, "deleted")
    execution = wait_for("its end", lambda: (x := s.get(f"/v1/executions/{e}").json)["status"] != "running" and x)
    assert execution["status"] in ("killed", "lost"), execution
    assert s.call("DELETE", f"/v1/workspaces/{w}").status == 204


def execute(s):
    w = workspace(s)
    done = s.run(w, "echo kept | tee file; exit 3")
    yield
    ended(s, done["id"], "failed", exitCode=3, stdout="kept\n")
    assert s.run(w, "cat file")["stdout"] == "kept\n"
    close(s, w)


def executeInBackground(s):
    w = workspace(s)
    e = background(s, w, "sleep 0.5; echo done")
    yield
    ended(s, e, "ok", stdout="done\n")
    close(s, w)


def executeOnce(s):
    key = {"Idempotency-Key": new_key()}
    done = s.post("/v1/executions", {"command": "echo $$ once"}, headers=key)
    assert done.status == 200, done
    yield
    ended(s, done.json["id"], "ok", stdout=done.json["stdout"])
    assert s.post("/v1/executions", {"command": "echo $$ once"}, headers=key).json["id"] == done.json["id"]


def writeStdin(s):
    w = workspace(s)
    e = background(s, w, "read x; read y; echo got $x $y", stdinOpen=True)
    assert s.post(f"/v1/executions/{e}/stdin?close=true", raw=b"one\ntwo\n").status < 300
    yield
    ended(s, e, "ok", stdout="got one two\n")
    close(s, w)


def signalExecution(s):
    w = workspace(s)
    e = background(s, w, "trap 'echo told; exit 7' USR1; echo ready; while :; do sleep 0.05; done")
    printed(s, e, "ready")
    assert s.post(f"/v1/executions/{e}/signal", {"signal": "USR1"}).status == 204
    yield
    ended(s, e, "failed", exitCode=7, stdout="ready\ntold\n")
    close(s, w)


def resizeExecution(s):
    w = workspace(s)
    e = background(s, w, "echo ready; while :; do stty size; sleep 0.2; done", pty={"cols": 80, "rows": 24})
    printed(s, e, "ready")
    assert s.post(f"/v1/executions/{e}/resize", {"cols": 99, "rows": 33}).status == 204
    yield
    printed(s, e, "33 99")
    close(s, w)


def killExecution(s):
    w = workspace(s)
    e = background(s, w, "sleep 1000")
    assert s.call("DELETE", f"/v1/executions/{e}").status == 204
    yield
    ended(s, e, "killed")
    close(s, w)


def a_context(s, **fields):
    w = workspace(s, pool="python")
    made = s.post(f"/v1/workspaces/{w}/contexts", dict(fields, language="python"))
    assert made.status == 201, made
    return w, made.json["id"]


def code(s, w, text, context):
    answer = s.post(f"/v1/workspaces/{w}/executions", {"code": text, "context": context})
    assert answer.status == 200, answer
    return answer.json["stdout"]


def createContext(s):
    w, c = a_context(s, name="main", cwd="/tmp")
    yield
    view = s.get(f"/v1/contexts/{c}").json
    assert view["name"] == "main" and view["cwd"] == "/tmp", view
    assert code(s, w, "print(6 * 7)", c) == "42\n"
    close(s, w)


def interruptContext(s):
    w, c = a_context(s)
    e = s.post(f"/v1/workspaces/{w}/executions", {"code": "print('ready', flush=True)\nimport time\ntime.sleep(1000)", "context": c,
                                                  "background": True}).json["id"]
    printed(s, e, "ready")
    assert s.post(f"/v1/contexts/{c}/interrupt").status == 204
    yield
    ended(s, e, "failed")
    assert code(s, w, "print(1)", c) == "1\n"
    close(s, w)


def restartContext(s):
    w, c = a_context(s)
    code(s, w, "x = 1", c)
    assert s.post(f"/v1/contexts/{c}/restart").status == 200
    yield
    assert code(s, w, "print('x' in globals())", c) == "False\n"
    close(s, w)


def deleteContext(s):
    w, c = a_context(s)
    assert s.call("DELETE", f"/v1/contexts/{c}").status == 204
    yield
    answer = s.get(f"/v1/contexts/{c}")
    assert answer.status == 410 and answer.json["reason"] == "deleted", answer
    assert s.get(f"/v1/workspaces/{w}/contexts").json["items"] == []
    close(s, w)


def writeFile(s):
    w = workspace(s)
    body = bytes(range(256)) * 4096
    assert s.call("PUT", f"/v1/workspaces/{w}/files/big", raw=body).status < 300
    yield
    assert s.get(f"/v1/workspaces/{w}/files/big").body == body
    close(s, w)


def removeFile(s):
    w = workspace(s)
    s.run(w, "echo 1 > a")
    assert s.call("DELETE", f"/v1/workspaces/{w}/files/a").status == 204
    yield
    assert s.get(f"/v1/workspaces/{w}/files/a").status == 404
    close(s, w)


def moveFile(s):
    w = workspace(s)
    s.run(w, "echo 1 > a")
    assert s.post(f"/v1/workspaces/{w}/files:move", {"from": "a", "to": "d/b"}).status < 300
    yield
    assert s.get(f"/v1/workspaces/{w}/files/a").status == 404
    assert s.get(f"/v1/workspaces/{w}/files/d/b").body == b"1\n"
    close(s, w)


def makeDirectory(s):
    w = workspace(s)
    assert s.post(f"/v1/workspaces/{w}/files:mkdir", {"path": "d/e"}).status < 300
    yield
    assert s.run(w, "test -d d/e && echo yes")["stdout"] == "yes\n"
    close(s, w)


def writeArchive(s):
    w = workspace(s)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for i in range(20):
            entry = tarfile.TarInfo(f"t/{i}")
            entry.size = 3
            tar.addfile(entry, io.BytesIO(b"abc"))
    assert s.call("PUT", f"/v1/workspaces/{w}/archive", raw=packed.getvalue(), headers={"Content-Type": "application/x-tar"}).status < 300
    yield
    assert s.run(w, "cat t/* | wc -c")["stdout"].strip() == "60"
    close(s, w)


def createLink(s):
    w = workspace(s)
    s.run(w, "echo linked > f")
    made = s.post(f"/v1/workspaces/{w}/links", {"path": "f"})
    assert made.status == 201, made
    yield
    assert s.get(urllib.parse.urlsplit(made.json["url"]).path).body == b"linked\n"
    close(s, w)


def destroySandbox(s):
    warm = next(x["id"] for x in s.get("/v1/pools/shell/sandboxes").json["items"] if x["phase"] == "Ready")
    assert s.call("DELETE", f"/v1/sandboxes/{warm}").status < 300
    yield
    found = s.get(f"/v1/sandboxes/{warm}")
    assert found.status == 404 or found.json["phase"] == "Draining", found


def destroySandboxOfWorkspace(s):
    made = s.open_workspace()
    done = s.run(made["id"], "echo kept")
    assert s.call("DELETE", f"/v1/sandboxes/{made['sandboxId']}").status < 300
    yield
    gone(s, made["id"], "operator")
    ended(s, done["id"], "ok", stdout="kept\n")


def drainPool(s):
    w = workspace(s)
    before = {x["id"] for x in s.get("/v1/pools/shell/sandboxes").json["items"]}
    assert s.post("/v1/pools/shell/drain").status == 200
    yield
    gone(s, w, "drain")
    assert not before & {x["id"] for x in s.get("/v1/pools/shell/sandboxes").json["items"]}


def drainAll(s):
    w = workspace(s)
    assert s.post("/v1/drain").status == 200
    yield  # pools stay empty until the next start, as documented
    gone(s, w, "drain")
    close(s, workspace(s))


def undrainAll(s):
    assert s.post("/v1/drain").status == 200
    assert s.post("/v1/undrain").status < 300
    yield
    close(s, workspace(s))


def createPool(s):
    name = name_of_pool()
    assert s.post("/v1/pools", manifest(name)).status == 201
    yield
    assert s.get(f"/v1/pools/{name}").json["spec"]["warm"]["max"] == 3
    assert s.call("DELETE", f"/v1/pools/{name}").status < 300


def putPool(s):
    name = name_of_pool()
    assert s.call("PUT", f"/v1/pools/{name}", manifest(name)).status < 300
    yield
    assert s.get(f"/v1/pools/{name}").status == 200
    assert s.call("DELETE", f"/v1/pools/{name}").status < 300


def patchPool(s):
    name = name_of_pool()
    assert s.post("/v1/pools", manifest(name)).status == 201
    assert s.call("PATCH", f"/v1/pools/{name}", {"spec": {"warm": {"max": 2}}}).status == 200
    yield
    assert s.get(f"/v1/pools/{name}").json["spec"]["warm"]["max"] == 2
    assert s.call("DELETE", f"/v1/pools/{name}").status < 300


def deletePool(s):
    name = name_of_pool()
    assert s.post("/v1/pools", manifest(name, warm=1)).status == 201
    assert s.call("DELETE", f"/v1/pools/{name}").status < 300
    yield
    wait_for("the pool's end", lambda: s.get(f"/v1/pools/{name}").status == 404)


def putQuota(s):
    assert s.call("PUT", "/v1/quotas/team", {"workspaces": 7}).status < 300
    yield
    assert s.get("/v1/quotas/team").json["quota"]["workspaces"] == 7, s.get("/v1/quotas/team")
    assert s.call("DELETE", "/v1/quotas/team").status == 204


def deleteQuota(s):
    assert s.call("PUT", "/v1/quotas/team", {"workspaces": 7}).status < 300
    assert s.call("DELETE", "/v1/quotas/team").status == 204
    yield
    assert s.call("DELETE", "/v1/quotas/team").status == 404


def createToken(s):
    made = s.post("/v1/tokens", {"name": "t", "role": "user", "tenant": "team"})
    assert made.status == 201, made
    yield
    assert s.get("/v1/workspaces", headers={"Authorization": f"Bearer {made.json['token']}"}).status == 200
    assert s.call("DELETE", f"/v1/tokens/{made.json['id']}").status == 204


def deleteToken(s):
    made = s.post("/v1/tokens", {"name": "t", "role": "user", "tenant": "team"}).json
    assert s.call("DELETE", f"/v1/tokens/{made['id']}").status == 204
    yield
    assert s.get("/v1/workspaces", headers={"Authorization": f"Bearer {made['token']}"}).status == 401


def mcp(s, method, session=None, **params):
    headers = {"Accept": "application/json, text/event-stream"}
    if session:
        headers["Mcp-Session-Id"] = session
    return s.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers=headers)


def endMcpSession(s):
    """Not an operation of REST: the end of a session of MCP's earlier versions."""
    ended, other = (mcp(s, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "c", "version": "1"})
                    .headers["mcp-session-id"] for _ in range(2))
    assert mcp(s, "ping", ended).status == 200
    assert s.call("DELETE", "/mcp", headers={"Mcp-Session-Id": ended}).status == 204
    yield
    assert mcp(s, "ping", ended).status == 404
    assert mcp(s, "ping", other).status == 200


def putLogLevel(s):
    before = s.get("/v1/log-level").json["level"]
    assert s.call("PUT", "/v1/log-level", {"level": "warn"}).status == 200
    yield  # until the next start, as documented
    assert s.get("/v1/log-level").json["level"] == before


CASES = [createWorkspace, createWorkspaces, patchWorkspace, touchWorkspace, deleteWorkspace, execute, executeInBackground, executeOnce,
         writeStdin, signalExecution, resizeExecution, killExecution, createContext, interruptContext, restartContext, deleteContext,
         writeFile, removeFile, moveFile, makeDirectory, writeArchive, createLink, destroySandbox, destroySandboxOfWorkspace, drainPool,
         drainAll, undrainAll, createPool, putPool, patchPool, deletePool, putQuota, deleteQuota, createToken, deleteToken, endMcpSession,
         putLogLevel]
POOLS = "---\n".join([pool_yaml(), pool_yaml("python", image="python", warm=1, memory="512Mi")])


def require_all(document):
    """Fails if an operation that changes something has neither a case nor a reason."""
    changing = {operation["operationId"] for path in document["paths"].values() for method, operation in path.items()
                if method in ("post", "put", "patch", "delete")}
    missing = changing - {case.__name__ for case in CASES} - set(WITHOUT)
    assert not missing, f"without a case in tests/crash/operations.py: {sorted(missing)}"
    assert set(WITHOUT) <= changing, set(WITHOUT) - changing
