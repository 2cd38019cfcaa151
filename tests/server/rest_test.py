#!/usr/bin/env python3
# suite: seconds=100 needs=hearth-fake
"""REST, black box, on real sandboxes: what docs/rest.md promises, and rude input."""

import base64
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Reader, Server, clean_up, main, new_key, on_docker, pool_yaml, sse_events, wait_for  # noqa: E402


def problem(answer, status, code):
    assert answer.status == status, answer
    assert answer.headers["content-type"].startswith("application/problem+json"), answer.headers
    body = answer.json
    assert body["errorCode"] == code and body["status"] == status, body
    assert body["requestId"], body
    return body


def workspace_life():
    """a workspace is opened, used, read, patched, touched and closed; afterwards it is 410 with its reason"""
    with Server() as s:
        w = s.open_workspace(name="one", labels={"a": "b"}, env={"X": "1"}, secrets={"S": "hush"},
                             files=[{"path": "d/a.txt", "text": "héllo"},
                                    {"path": "b.bin", "base64": base64.b64encode(bytes(range(256))).decode()}])
        assert w["claim"]["source"] == "warm" and re.fullmatch("ws_[0-9a-f]{32}", w["id"]), w
        out = s.run(w["id"], "cat d/a.txt; echo; wc -c < b.bin; echo $X$S; pwd; id -u")
        assert out["stdout"] == "héllo\n256\n1hush\n/workspace\n1000\n", out
        one = s.get(f"/v1/workspaces/{w['id']}").json
        assert "hush" not in json.dumps(one) and one["name"] == "one"
        patched = s.call("PATCH", f"/v1/workspaces/{w['id']}", {"labels": {"c": "d"}, "idleTimeoutSeconds": 30})
        assert patched.status == 200 and patched.json["labels"]["c"] == "d", patched
        assert s.post(f"/v1/workspaces/{w['id']}/touch").status == 200
        usage = s.get(f"/v1/workspaces/{w['id']}/usage")
        assert usage.status == 200 and usage.json, usage
        assert s.call("DELETE", f"/v1/workspaces/{w['id']}").status == 204
        assert s.call("DELETE", f"/v1/workspaces/{w['id']}").status == 204
        gone = problem(s.get(f"/v1/workspaces/{w['id']}"), 410, "GONE")
        assert gone["reason"] == "deleted" and gone["endedAt"], gone
        problem(s.get("/v1/workspaces/ws_" + "0" * 32), 404, "NOT_FOUND")
        assert "hush" not in s.log()


def cut_output(s, w):
    """Head and tail of cut output end between two lines or characters, and a line between them says how much is missing."""
    def parts(text):
        head, size, tail = re.split(r"\[… (\d+) bytes were not kept …\]\n", text)
        return head, int(size), tail

    out = s.run(w, "seq 1 400000")
    head, size, tail = parts(out["stdout"])
    numbers = "".join(f"{n}\n" for n in range(1, 400_001))
    assert head.endswith("\n") and numbers.startswith(head) and numbers.endswith("\n" + tail), (head[-20:], tail[:20])
    assert out["droppedBytes"] == size == len(numbers) - len(head) - len(tail), (out["droppedBytes"], size)
    stored = s.get(f"/v1/executions/{out['id']}").json
    assert (stored["stdout"], stored["droppedBytes"]) == (out["stdout"], size), stored["droppedBytes"]
    seen, last, lines = b"", 0, set()
    for event in sse_events(s.get(f"/v1/executions/{out['id']}/events").body.decode().split("\n")):
        data = json.loads(event["data"])
        if event["event"] == "stdout":
            seen += data["text"].encode()
            last += len(data["text"]) + data.get("droppedBytes", 0)
            assert int(event["id"]) == last, event["id"]
    assert seen.decode() == head + tail and last == len(numbers)
    lines = set(seen.decode().split())
    assert lines <= set(numbers.split()) and "892" in lines, "an invented line"
    out = s.run(w, "awk 'BEGIN { for (i = 0; i < 70001; ++i) printf \"標\" }'", outputLimitBytes=65536)
    head, size, tail = parts(out["stdout"])
    assert set(head.rstrip("\n") + tail) == {"標"}, "a character is cut"
    assert size == 3 * (70_001 - len(head.rstrip("\n") + tail)) == out["droppedBytes"], (size, out["droppedBytes"])
    out = s.run(w, "seq 1 100000; echo oops >&2", outputLimitBytes=65536)
    assert out["stderr"] == "oops\n", out["stderr"]  # complete, and not marked


def executions():
    """executions: exit codes, stderr, stdin, timeout with its output, signals, background, limits of output, idempotency"""
    with Server() as s:
        w = s.open_workspace()["id"]
        bad = s.run(w, "echo out; echo err >&2; exit 3")
        assert (bad["status"], bad["exitCode"], bad["stdout"], bad["stderr"]) == ("failed", 3, "out\n", "err\n"), bad
        assert s.run(w, "cat", stdin="abc")["stdout"] == "abc"
        slow = s.run(w, "echo before; (setsid sleep 60 &) ; sleep 60", timeoutSeconds=1)
        assert slow["status"] == "timeout" and slow["stdout"] == "before\n", slow
        assert "sleep" not in s.run(w, "ps")["stdout"]
        flood = s.run(w, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo END", outputLimitBytes=65536)
        assert flood["truncated"] and flood["droppedBytes"] > 2_900_000 and flood["stdout"].endswith("END\n"), flood["droppedBytes"]
        cut_output(s, w)
        e = s.post(f"/v1/workspaces/{w}/executions", {"command": "cat; echo end", "background": True, "stdinOpen": True})
        assert e.status == 202 and e.headers["location"], e
        e = e.json["id"]
        assert s.post(f"/v1/executions/{e}/stdin", raw=b"one\n").status < 300
        wait_for("the echo", lambda: s.get(f"/v1/executions/{e}").json["stdout"] == "one\n")
        assert s.post(f"/v1/executions/{e}/stdin?close=true", raw=b"two\n").status < 300
        done = wait_for("the end", lambda: (x := s.get(f"/v1/executions/{e}").json)["status"] == "ok" and x)
        assert done["stdout"] == "one\ntwo\nend\n", done
        problem(s.post(f"/v1/executions/{e}/signal", {"signal": "TERM"}), 409, "CONFLICT")
        e = s.post(f"/v1/workspaces/{w}/executions", {"command": "sleep 60", "background": True}).json["id"]
        assert s.post(f"/v1/executions/{e}/signal", {"signal": "TERM"}).status < 300
        ended = wait_for("the signal", lambda: (x := s.get(f"/v1/executions/{e}").json)["status"] != "running" and x)
        assert ended["signal"] == "TERM", ended
        waited = s.post(f"/v1/workspaces/{w}/executions", {"command": "sleep 2; echo late"}, headers={"Prefer": "wait=1"})
        assert waited.status == 202 and waited.json["status"] == "running", waited
        late = s.get(f"/v1/executions/{waited.json['id']}", headers={"Prefer": "wait=60"})
        assert (late.status, late.json["status"], late.json["stdout"]) == (200, "ok", "late\n"), late
        assert late.headers["preference-applied"] == "wait=60", late.headers
        e = s.post(f"/v1/workspaces/{w}/executions", {"command": "sleep 600", "background": True}).json["id"]
        still = s.get(f"/v1/executions/{e}", headers={"Prefer": "wait=1"})
        assert (still.status, still.json["status"]) == (200, "running"), still
        s.call("DELETE", f"/v1/executions/{e}")
        body = {"command": "cat /proc/sys/kernel/random/uuid"}
        for target, accept in ((f"/v1/workspaces/{w}/executions", "*/*"), ("/v1/executions", "*/*"), ("/v1/executions", "text/event-stream")):
            key = {"Idempotency-Key": new_key(), "Accept": accept}
            first, again = (s.post(target, body, headers=key) for _ in range(2))
            uuids = [re.search(rb"[0-9a-f]{8}-[0-9a-f-]{27}", x.body).group() for x in (first, again)]
            assert uuids[0] == uuids[1], (target, uuids)
            assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true", (target, again.headers)
        key = {"Idempotency-Key": new_key()}
        first = s.post(f"/v1/workspaces/{w}/executions", body, headers=key)
        problem(s.post(f"/v1/workspaces/{w}/executions", {"command": "true"}, headers=key), 422, "IDEMPOTENCY_MISMATCH")
        listed = s.get(f"/v1/workspaces/{w}/executions").json["items"]
        assert len(listed) >= 7, len(listed)
        assert not any({"stdout", "stderr", "results"} & set(x) for x in listed), listed[0]
        one = next(x for x in listed if x["id"] == bad["id"])
        assert (one["outputBytes"], one["exitCode"]) == (8, 3), one
        whole = s.get(f"/v1/workspaces/{w}/executions?output=true").json["items"]
        assert next(x for x in whole if x["id"] == bad["id"])["stdout"] == "out\n"
        pty = s.run(w, "tty; stty size", pty={"cols": 100, "rows": 30})
        assert "/dev/pts/" in pty["stdout"] and "30 100" in pty["stdout"], pty


def not_logged():
    """what tenants run, and what it says, is in no line of the log, at its most talkative, whether it runs or not"""
    hush = "hush-" + new_key()
    with Server(args=("--log-level", "debug")) as s:
        w = s.open_workspace(secrets={"S": hush}, env={"E": hush})["id"]
        here = f"/v1/workspaces/{w}/executions"
        ran = [({"command": f"echo {hush}"}, "ok"), ({"argv": ["echo", hush]}, "ok"), ({"command": "cat", "stdin": hush}, "ok"),
               ({"code": f"echo {hush}", "language": "sh"}, "ok"), ({"command": f"echo {hush} >&2; exit 3"}, "failed"),
               ({"command": f"echo {hush}; kill -9 $$"}, "killed"), ({"command": f"echo {hush}; sleep 60", "timeoutSeconds": 1}, "timeout"),
               ({"command": f"echo {hush}", "pty": {"cols": 100, "rows": 30}}, "ok"), ({"argv": ["/" + hush]}, "failed")]
        for fields, status in ran:
            done = s.post(here, fields).json
            assert done["status"] == status and (hush in json.dumps(done)), (fields, done)
        begun = s.post(here, {"command": f"cat; echo {hush}", "background": True, "stdinOpen": True}).json["id"]
        assert s.post(f"/v1/executions/{begun}/stdin?close=true", raw=hush.encode()).status < 300
        wait_for("its end", lambda: s.get(f"/v1/executions/{begun}").json["status"] == "ok")
        assert hush in s.post("/v1/executions", {"command": f"echo {hush}"}).json["stdout"]
        for refused in ({"command": f"echo {hush}", "argv": [hush]}, {"command": hush, "unknown": hush}, {"code": hush, "language": "none"},
                        {"command": hush, "cwd": "/../" + hush}):
            assert s.post(here, refused).status in (200, 400, 422), refused
        s.post(here, raw=b'{"command": "' + hush.encode(), headers={"Content-Type": "application/json"})
        assert s.call("PUT", f"/v1/workspaces/{w}/files/f", raw=hush.encode()).status < 300
        s.kill9()
        s.start()
        assert s.run(w, "cat f")["stdout"] == hush
        assert f"workspace.bound workspace={w}" in s.log(), "the log tells nothing at all"
        assert hush not in s.log(), next(line for line in s.log().splitlines() if hush in line)


def oom_is_told():
    """a process killed for memory is reported as oom; the workspace and its files stay"""
    with Server(pools=pool_yaml(memory="64Mi")) as s:
        w = s.open_workspace()["id"]
        s.run(w, "echo kept > f")
        # Busybox' tail keeps what it reads: 200 MB do not fit.
        out = s.run(w, "head -c 200000000 /dev/zero | tail -c 190000000 | wc -c", timeoutSeconds=30)
        again = s.run(w, "exec tail -c 190000000 /dev/zero", timeoutSeconds=30)
        assert again["status"] == "oom", (out, again)
        assert s.run(w, "cat f")["stdout"] == "kept\n"


def streaming():
    """an execution streams as SSE in order with increasing ids, and resumes by Last-Event-ID"""
    with Server() as s:
        w = s.open_workspace()["id"]
        answer = s.call("POST", f"/v1/workspaces/{w}/executions",
                        {"command": "echo a; sleep 0.2; echo b >&2; sleep 0.2; printf '\\377\\n'"},
                        headers={"Accept": "text/event-stream"})
        assert answer.headers["content-type"].startswith("text/event-stream"), answer.headers
        events = list(sse_events(answer.body.decode().split("\n")))
        names = [e["event"] for e in events]
        assert names[0] == "started" and names[-1] == "exit" and "stdout" in names and "stderr" in names, names
        ids = [int(e["id"]) for e in events if "id" in e]
        assert ids == sorted(ids), ids
        final = json.loads(events[-1]["data"])
        assert final["status"] == "ok" and final["stderr"] == "b\n", final
        assert any("base64" in e["data"] for e in events if e["event"] == "stdout"), events
        e = final["id"]
        rest = s.get(f"/v1/executions/{e}/events", headers={"Last-Event-ID": "2"}).body.decode()
        assert '"text":"a' not in rest and "event: stderr" in rest and "event: exit" in rest, rest


def files():
    """files: whole and part, atomic, listed, moved, removed; links and odd names stay inside"""
    with Server() as s:
        w = s.open_workspace()["id"]
        base = f"/v1/workspaces/{w}/files"
        big = os.urandom(5_000_000)
        put = s.call("PUT", f"{base}/a/b/c.bin", raw=big)
        assert put.status in (200, 201), put
        got = s.get(f"{base}/a/b/c.bin")
        assert got.status == 200 and got.body == big and got.headers["etag"]
        part = s.get(f"{base}/a/b/c.bin", headers={"Range": "bytes=100-199"})
        assert part.status == 206 and part.body == big[100:200] and part.headers["content-range"] == "bytes 100-199/5000000"
        assert s.get(f"{base}/a/b/c.bin", headers={"Range": "bytes=6000000-"}).status == 416
        assert s.get(f"{base}/a/b/c.bin", headers={"If-None-Match": got.headers["etag"]}).status == 304
        head = s.call("HEAD", f"{base}/a/b/c.bin")
        assert head.status == 200 and head.headers["content-length"] == "5000000" and not head.body
        listed = s.get(f"{base}?path=.&recursive=true").json["items"]
        assert {"a", "a/b", "a/b/c.bin"} <= {i["path"] for i in listed}, listed
        assert s.post(f"/v1/workspaces/{w}/files:move", {"from": "a/b/c.bin", "to": "moved"}).status < 300
        assert s.post(f"/v1/workspaces/{w}/files:mkdir", {"path": "x/y"}).status < 300
        s.run(w, "ln -s /etc/passwd out; ln -s / root; mkfifo pipe; ln -s ../../etc/passwd up")
        for path in ("out", "root/etc/passwd", "up", "..%2f..%2fetc%2fpasswd", "../../etc/passwd", "pipe", "%00", "a%00b"):
            answer = s.get(f"{base}/{path}", timeout=5)
            assert answer.status in (400, 403, 404, 409), (path, answer)
            assert b"root:" not in answer.body, path
        assert s.call("PUT", f"{base}/out", raw=b"x").status in (200, 201, 400, 403, 409)
        assert s.run(w, "cat /etc/passwd | head -c 4")["stdout"] == "root"
        name = "ünïcode näme 你好.txt"
        from urllib.parse import quote
        assert s.call("PUT", f"{base}/{quote(name)}", raw=b"1").status in (200, 201)
        assert name in [i["path"] for i in s.get(f"{base}?path=.").json["items"]]
        full = s.call("PUT", f"{base}/huge", raw=b"\0" * 80_000_000)
        problem(full, 507, "DISK_FULL")
        assert "huge" not in [i["path"] for i in s.get(f"{base}?path=.").json["items"]]
        assert s.call("DELETE", f"{base}/moved").status == 204
        assert s.get(f"{base}/moved").status == 404


def pools_and_queue():
    """pools: created, changed with If-Match, refused with reasons; an empty pool answers 429 with Retry-After, a queued claim waits its turn"""
    with Server(pools=pool_yaml(warm=1, on_empty="Queue", max_wait="20s")) as s:
        spec = {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "two"},
                "spec": {"template": {"image": "shell"}, "warm": {"min": 0}, "onEmpty": {"action": "Fail"}}}
        made = s.post("/v1/pools", spec)
        assert made.status == 201, made
        problem(s.post("/v1/pools", spec), 409, "CONFLICT")
        refused = problem(s.post("/v1/workspaces", {"pool": "two"}), 429, "POOL_EXHAUSTED")
        assert refused["retryAfterSeconds"] >= 1 and refused["hint"], refused
        wrong = dict(spec, spec=dict(spec["spec"], warm={"min": 5, "max": 2, "wat": 1}))
        body = problem(s.call("PUT", "/v1/pools/two", wrong), 422, "INVALID_SPEC")
        assert {e["pointer"] for e in body["errors"]} == {"/spec/warm/min", "/spec/warm/wat"}, body
        million = dict(spec, spec=dict(spec["spec"], warm={"min": 1000000}))
        problem(s.call("PUT", "/v1/pools/two", million), 422, "INVALID_SPEC")
        stale = s.call("PUT", "/v1/pools/two", spec, headers={"If-Match": '"99"'})
        problem(stale, 412, "PRECONDITION_FAILED")
        problem(s.post("/v1/workspaces", {"pool": "nope"}), 404, "NOT_FOUND")
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(s.post("/v1/workspaces", {"pool": "shell"}).status))
                   for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert answers == [201] * 6, answers
        assert s.call("DELETE", "/v1/pools/two").status in (202, 204)
        wait_for("the pool has gone", lambda: s.get("/v1/pools/two").status == 404)


def host_directories():
    """nothing of the host is mounted: a manifest that asks for it is refused by field, and a sandbox has only mounts of its own"""
    with Server(pools=pool_yaml(warm=1)) as s:
        for field, value in (("volumes", [{"hostPath": "/etc"}]), ("mounts", [{"source": "/etc", "target": "/host"}]), ("hostPath", "/etc")):
            wanted = {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "two"},
                      "spec": {"template": {"image": "shell", field: value}, "warm": {"min": 0}}}
            body = problem(s.post("/v1/pools", wanted), 422, "INVALID_SPEC")
            assert [e["pointer"] for e in body["errors"]] == [f"/spec/template/{field}"], body
            body = problem(s.post("/v1/workspaces", {field: value}), 400, "INVALID_ARGUMENT")
            assert [e["pointer"] for e in body["errors"]] == [f"/{field}"], body
        mounts = s.run(s.open_workspace()["id"], "cat /proc/self/mounts")["stdout"].splitlines()
        own = r"(root|hearth|proc|dev|devpts|shm|tmpfs|/dev/loop\d+) |\S+ /sys/fs/cgroup\S* cgroup2? ro,"
        foreign = [line for line in mounts if not re.match(own, line)]
        assert len(mounts) > 5 and not foreign, foreign


host_directories.only = "oci"  # a Docker daemon mounts files of its own


def degraded_pool():
    """a pool whose image is missing becomes Degraded and answers 503; it recovers when declared right"""
    with Server(pools=pool_yaml(name="broken", image="no-such-image", warm=1) + "---\n" + pool_yaml()) as s:
        def degraded():
            conditions = s.get("/v1/pools/broken").json["status"]["conditions"]
            return any(c["type"] == "Degraded" and c["status"] == "True" for c in conditions)
        wait_for("Degraded", degraded, 30)
        answer = s.post("/v1/workspaces", {"pool": "broken"})
        assert answer.status == 503 and answer.json["errorCode"] == "POOL_DEGRADED", answer
        assert s.open_workspace(pool="shell")


def reclaim():
    """idle and lifetime reclaim a workspace; work, files that are fetched and touch keep it; running work is not reaped"""
    with Server(pools=pool_yaml(idle="10m")) as s:
        idle = s.open_workspace(idleTimeoutSeconds=1)["id"]
        busy = s.open_workspace(idleTimeoutSeconds=1)["id"]
        short = s.open_workspace(maxLifetimeSeconds=2)["id"]
        out = []
        t = threading.Thread(target=lambda: out.append(s.run(busy, "sleep 2.5; echo done")))
        t.start()
        wait_for("idle end", lambda: s.get(f"/v1/workspaces/{idle}").status == 410, 5)
        assert s.get(f"/v1/workspaces/{idle}").json["reason"] == "idle"
        wait_for("lifetime end", lambda: s.get(f"/v1/workspaces/{short}").status == 410, 6)
        assert s.get(f"/v1/workspaces/{short}").json["reason"] == "lifetime"
        t.join()
        assert out[0]["stdout"] == "done\n", out
        wait_for("idle end after work", lambda: s.get(f"/v1/workspaces/{busy}").status == 410, 6)
        # After the time at which its agent would end it by itself: two seconds after three idle ones.
        long = s.open_workspace(maxLifetimeSeconds=6)["id"]
        read = s.open_workspace(idleTimeoutSeconds=3)["id"]
        assert s.call("PUT", f"/v1/workspaces/{read}/files/f", raw=b"x").status == 200
        reads = set()
        wait_for("the longer lifetime", lambda: reads.add(s.get(f"/v1/workspaces/{read}/files/f").status)
                 or s.get(f"/v1/workspaces/{long}").status == 410, 10)
        assert reads == {200}, reads
        metrics = s.ops("/metrics").body.decode()
        assert re.search(r'hearth_reclaims_total\{[^}]*reason="idle"[^}]*\} 2', metrics), metrics


def mcp_session(s):
    """Returns the headers of a new session of MCP that wants warnings."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}

    def send(method, **more):
        answer = s.post("/mcp", {"jsonrpc": "2.0", "method": method, **more}, headers=headers)
        assert answer.status in (200, 202), answer
        return answer

    hello = send("initialize", id=1, params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
    headers["Mcp-Session-Id"] = hello.headers["mcp-session-id"]
    send("notifications/initialized")
    send("logging/setLevel", id=2, params={"level": "warning"})
    return headers


def warned():
    """before a workspace ends by itself, a stream of events and a session of MCP are told so, and of the end only then"""
    with Server(pools=pool_yaml()) as s:
        headers = mcp_session(s) | {"Accept": "text/event-stream"}
        with Reader(s, "/v1/events?type=workspace.expiring", {"Accept": "text/event-stream"}) as rest, Reader(s, "/mcp", headers) as mcp:
            told, heard = rest.events(), mcp.events()
            workspace = s.open_workspace(idleTimeoutSeconds=6)["id"]
            event = json.loads(next(e for e in told if "data" in e)["data"])
            assert (event["type"], event["resource"], event["reason"]) == ("workspace.expiring", workspace, "idle"), event
            assert s.get(f"/v1/workspaces/{workspace}").status == 200, "it had ended before the warning"
            message = next(m for m in (json.loads(e["data"]) for e in heard if e.get("data")) if m["method"] == "notifications/message")
            assert message["params"]["level"] == "warning" and workspace in json.dumps(message["params"]["data"]), message
        wait_for("its end", lambda: s.get(f"/v1/workspaces/{workspace}").status == 410, 15)
        kinds = [e["type"] for e in s.get(f"/v1/events?resource={workspace}").json["items"]]
        assert kinds.index("workspace.expiring") < kinds.index("workspace.reclaimed"), kinds


def tenants_and_tokens():
    """tokens: without one 401, roles hold, another tenant's ids are 404 everywhere"""
    with Server() as s:
        admin = s.post("/v1/tokens", {"name": "root", "tenant": "ops", "role": "admin"})
        assert admin.status == 201, admin
        root = {"Authorization": "Bearer " + admin.json["token"]}
        try:
            problem(s.get("/v1/pools"), 401, "UNAUTHENTICATED")
            assert "bearer" in s.get("/v1/pools").headers["www-authenticate"].lower()
            heads = {}
            for tenant in ("red", "blue"):
                made = s.post("/v1/tokens", {"name": tenant, "tenant": tenant, "role": "user"}, headers=root)
                heads[tenant] = {"Authorization": "Bearer " + made.json["token"]}
            red, blue = heads["red"], heads["blue"]
            assert s.get("/v1/sandboxes", headers=red).status == 403
            assert s.get("/v1/tokens", headers=red).status == 403
            assert s.post("/v1/pools/shell/drain", headers=red).status == 403
            w = s.post("/v1/workspaces", {}, headers=red).json["id"]
            e = s.post(f"/v1/workspaces/{w}/executions", {"command": "echo 1"}, headers=red).json["id"]
            s.call("PUT", f"/v1/workspaces/{w}/files/f", raw=b"1", headers=red)
            for method, path, body in [
                    ("GET", f"/v1/workspaces/{w}", None), ("DELETE", f"/v1/workspaces/{w}", None),
                    ("PATCH", f"/v1/workspaces/{w}", {"labels": {}}), ("POST", f"/v1/workspaces/{w}/touch", {}),
                    ("GET", f"/v1/workspaces/{w}/usage", None), ("GET", f"/v1/workspaces/{w}/files/f", None),
                    ("GET", f"/v1/workspaces/{w}/files?path=.", None), ("DELETE", f"/v1/workspaces/{w}/files/f", None),
                    ("POST", f"/v1/workspaces/{w}/executions", {"command": "echo"}),
                    ("GET", f"/v1/workspaces/{w}/executions", None), ("GET", f"/v1/executions/{e}", None),
                    ("GET", f"/v1/executions/{e}/events", None), ("DELETE", f"/v1/executions/{e}", None),
                    ("POST", f"/v1/executions/{e}/signal", {"signal": "KILL"})]:
                answer = s.call(method, path, body, headers=blue)
                assert answer.status == 404, (method, path, answer)
            assert s.get("/v1/workspaces", headers=blue).json["items"] == []
            assert s.get("/v1/events", headers=blue).json["items"] == []
            assert len(s.get("/v1/workspaces", headers=red).json["items"]) == 1
            assert admin.json["token"] not in s.log()
        finally:
            s.post("/v1/drain", headers=root)
            s.stop()


def quota():
    """limits.perTenant holds at its edge, also for claims that race"""
    with Server(pools=pool_yaml(per_tenant=3, warm=4)) as s:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(s.post("/v1/workspaces", {}))) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sorted(a.status for a in answers) == [201] * 3 + [429] * 5, answers
        assert all(a.json["errorCode"] == "QUOTA_EXCEEDED" for a in answers if a.status == 429), answers
        assert all("retry-after" in a.headers for a in answers if a.status == 429)


def one_shots_and_events():
    """one shots leave no workspace; events follow as a list and as a stream; capabilities do not pretend"""
    with Server() as s:
        one = s.post("/v1/executions", {"command": "echo $A", "env": {"A": "x"}, "files": [{"path": "f", "text": "1"}]})
        assert one.status == 200 and one.json["stdout"] == "x\n" and one.json["claim"]["source"] == "warm", one
        wait_for("no workspace", lambda: s.get("/v1/workspaces").json["items"] == [])
        assert s.get(f"/v1/executions/{one.json['id']}").json["stdout"] == "x\n"
        types = {e["type"] for e in s.get("/v1/events").json["items"]}
        assert {"workspace.created", "execution.finished", "workspace.reclaimed"} <= types, types
        facts = s.get("/v1/capabilities").json
        assert facts["runtime"] == ("docker" if on_docker() else "oci") and facts["isolation"]["seccomp"], facts
        assert facts["isolation"]["userNamespaces"] != on_docker(), facts  # the tests' dockerd has none
        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=10)
        connection.request("GET", "/v1/events", headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        assert response.status == 200
        s.post("/v1/executions", {"command": "true"})
        seen = b""
        while b"execution.finished" not in seen:
            seen += response.read1(65536)
        connection.close()


def claim_storm(s, clients, total):
    """Claims and closes `total` workspaces from `clients` threads; no sandbox may be handed out twice."""
    seen, lock, errors = [], threading.Lock(), []

    def client(count):
        for _ in range(count):
            answer = s.post("/v1/workspaces", {}, timeout=90)
            if answer.status != 201:
                errors.append(answer)
                continue
            with lock:
                seen.append(answer.json["sandboxId"])
            s.call("DELETE", f"/v1/workspaces/{answer.json['id']}")

    share, rest = divmod(total, clients)
    threads = [threading.Thread(target=client, args=(share + (i < rest),)) for i in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors[:3]
    assert len(seen) == total == len(set(seen)), (len(seen), len(set(seen)))


def no_double_hand_out():
    """200 claims by 16 clients on real sandboxes: no sandbox twice"""
    with Server(pools=pool_yaml(warm=8, max_wait="60s")) as s:
        claim_storm(s, 16, 200)


def fake_runtime_storm():
    """1,000 claims by 32 clients on the fake runtime: no sandbox twice"""
    s = Server(pools=pool_yaml(image="any", warm=20, max_wait="60s", per_tenant=1000), runtime="fake")
    try:
        s.start()
        claim_storm(s, 32, 1000)
        assert s.stop() == 0
    finally:
        clean_up(s)


fake_runtime_storm.only = "oci"  # once is enough


def rude_input():
    """bad input of every kind gets its documented error and hurts nobody"""
    with Server() as s:
        w = s.open_workspace()["id"]
        path = f"/v1/workspaces/{w}/executions"
        for body in ("{", "[]", "null", "1", '{"command":1}', '{"command":"x","command":"y"}', '{"nope":1}',
                     '{"argv":[]}', '{"command":"x","argv":["y"]}', '{"command":"x","timeoutSeconds":-1}',
                     '{"command":"x","timeoutSeconds":1e999}', '{"a":' * 5000, '"' + "x" * 100, '{"command":"\\ud800"}',
                     '{"command":"x","env":{"A=B":"1"}}', '{"code":"1","language":"cobol"}', '{"command":"a\\u0000b"}'):
            answer = s.call("POST", path, raw=body.encode(), headers={"Content-Type": "application/json"})
            assert 400 <= answer.status < 500, (body[:60], answer)
            assert answer.json["errorCode"] and answer.json["requestId"], answer
        problem(s.call("POST", path, raw=b"x" * 5_000_000, headers={"Content-Type": "application/json"}), 413, "PAYLOAD_TOO_LARGE")
        problem(s.call("POST", path, raw=b"{}", headers={"Content-Type": "text/plain"}), 400, "INVALID_ARGUMENT")
        assert s.get("/v1/nothing").status == 404
        assert s.call("PUT", "/v1/workspaces").status == 405
        assert s.get("/v1/pools", headers={"Host": "evil.example"}).status == 403
        assert s.get("/v1/pools", headers={"Origin": "http://evil.example"}).status == 403
        for junk in (b"\0\xff\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                     b"POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
                     b"POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", s.port), timeout=10) as c:
                c.sendall(junk)
                c.shutdown(socket.SHUT_WR)
                reply = b""
                while chunk := c.recv(65536):
                    reply += chunk
                assert reply == b"" or b" 400 " in reply.split(b"\r\n", 1)[0], (junk, reply[:200])
        assert s.run(w, "echo fine")["stdout"] == "fine\n"


def slow_clients():
    """1,000 half-sent requests and 1,000 idle connections disturb nobody"""
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with Server() as s:
        w = s.open_workspace()["id"]
        crowd = []
        try:
            for i in range(2000):
                c = socket.socket()
                c.bind((f"127.0.0.{2 + i % 8}", 0))
                c.connect(("127.0.0.1", s.port))
                c.sendall(b"GET /v1/pools HTTP/1.1\r\nHost: localhost\r\n" + (b"\r\n" if i % 2 else b"X-Slow: "))
                crowd.append(c)
            begin = time.monotonic()
            for _ in range(50):
                assert s.run(w, "echo hi")["stdout"] == "hi\n"
            took = time.monotonic() - begin
            assert s.ops("/healthz").status == 200
            print(f"      50 executions beside 2,000 slow clients: {took:.2f} s", flush=True)
        finally:
            for c in crowd:
                c.close()


def stop_under_work(s):
    """Stops a server while an execution runs. Returns the execution's id."""
    workspace = s.open_workspace()["id"]
    started = s.post(f"/v1/workspaces/{workspace}/executions", {"command": "sleep 60", "background": True})
    assert started.status == 202, started
    assert s.stop() == 0, s.log()[-3000:]
    return started.json["id"]


def stopped_under_work():
    """a server that is stopped while work runs ends well, and finds it again"""
    with Server() as s:
        execution = stop_under_work(s)
        s.start()
        assert s.get(f"/v1/executions/{execution}").json["status"] == "running"


def fake_runtime_stopped_under_work():
    """the fake runtime, whose sandboxes end with the server, does not disturb a stop"""
    for _ in range(5):
        s = Server(pools=pool_yaml(image="any", warm=5), runtime="fake")
        try:
            stop_under_work(s.start())
        finally:
            clean_up(s)


def sources():
    """a claim says whether a sandbox was ready, it stood in line for one, or one was made for it"""
    with Server(pools=pool_yaml(warm=2)) as s:
        found = {}
        for _ in range(5):
            workspaces = [None] * 6

            def claim(i):
                workspaces[i] = s.open_workspace()
            threads = [threading.Thread(target=claim, args=(i,)) for i in range(len(workspaces))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for workspace in workspaces:
                ledger = workspace["claim"]
                found[ledger["source"]] = found.get(ledger["source"], 0) + 1
                assert ("createMs" in ledger) == (ledger["source"] == "cold"), ledger
                assert ledger["source"] != "warm" or ledger["queueMs"] == 0, ledger
                assert ledger["source"] != "queued" or ledger["queueMs"] > 1, ledger
                s.call("DELETE", f"/v1/workspaces/{workspace['id']}")
        assert "warm" in found and len(found) > 1 and not set(found) - {"warm", "queued", "cold"}, found
        text = s.ops("/metrics").body.decode()
        for source in ("warm", "queued", "cold"):
            assert f'result="ok",source="{source}"}} {found.get(source, 0)}\n' in text, (source, found)


def what_runs():
    """what runs now is listed to its tenant and to admins, page by page, until it has ended"""
    with Server() as s:
        def token(tenant, role, headers=None):
            made = s.post("/v1/tokens", {"name": tenant, "tenant": tenant, "role": role}, headers=headers).json
            return {"Authorization": "Bearer " + made["token"]}
        admin = token("ops", "admin")
        red, blue, operator = token("red", "user", admin), token("blue", "user", admin), token("watch", "operator", admin)

        def running(who, query=""):
            return s.get("/v1/executions" + query, headers=who).json
        workspace = s.post("/v1/workspaces", {}, headers=red).json["id"]
        begun = [s.post(f"/v1/workspaces/{workspace}/executions", {"command": "sleep 1000", "background": True}, headers=red).json["id"]
                 for _ in range(2)]
        listed = running(red)["items"]
        assert [x["id"] for x in listed] == sorted(begun) and {x["workspaceId"] for x in listed} == {workspace}, listed
        assert all(x["tenant"] == "red" and x["background"] and "stdout" not in x for x in listed), listed
        # Ids only: a status may move from starting to running between two lists.
        ids = [x["id"] for x in listed]
        seen = {who: [x["id"] for x in running(header)["items"]]
                for who, header in (("admin", admin), ("blue", blue), ("operator", operator))}
        assert seen == {"admin": ids, "blue": [], "operator": []}, (ids, seen)
        first = running(red, "?limit=1")
        rest = running(red, f"?limit=1&cursor={first['nextCursor']}")
        assert [x["id"] for x in first["items"] + rest["items"]] == ids and rest["nextCursor"] is None, (first, rest)
        for one in begun:
            s.call("DELETE", f"/v1/executions/{one}", headers=red)
        wait_for("nothing that runs", lambda: running(red)["items"] == [])
        s.post("/v1/drain", headers=admin)
        s.stop()


def operations():
    """/metrics is Prometheus text with the promised series, /healthz and /readyz answer on their own listener"""
    with Server() as s:
        s.post("/v1/executions", {"command": "true"})
        text = wait_for("the counter", lambda: (t := s.ops("/metrics").body.decode()) and 'execution_duration_seconds_count{' in t and t)
        for series in ("hearth_pool_sandboxes", "hearth_pool_desired_sandboxes", "hearth_claims_total", "hearth_claim_duration_seconds_bucket",
                       "hearth_claim_stage_seconds_count", "hearth_claim_queue_depth", "hearth_pool_exhausted_total", "hearth_sandbox_start_seconds_sum",
                       "hearth_reclaims_total", "hearth_executions_total", "hearth_execution_duration_seconds", "hearth_execution_overhead_seconds",
                       "hearth_reconcile_total", "hearth_workqueue_depth", "hearth_http_request_duration_seconds", "hearth_build_info", "process_resident_memory_bytes"):
            assert series in text, series
        for lane in ("records", "pools", "creates", "destroys", "images", "looks", "forgets", "asks"):
            assert f'hearth_workqueue_depth{{lane="{lane}"}}' in text, lane
        for operation in () if on_docker() else ("create", "destroy", "narrow", "prepareImage"):
            assert f'hearth_launcher_operations_stuck{{operation="{operation}"}} 0' in text, operation
        assert re.search(r'hearth_claims_total\{[^}]*reason="POOL_EXHAUSTED",result="refused"\} 0', text)
        assert 'hearth_http_workers{listener="api"} 128' in text and 'hearth_http_workers_busy{listener="api"} ' in text
        gauges = ["disk_free_bytes", "disk_reserved_bytes", "pool_degraded"]
        gauges += [] if on_docker() else ["images ", "image_bytes", "launcher_up 1", "launcher_operations_in_flight", "uid_leases"]
        text = wait_for("the gauges", lambda: (t := s.ops("/metrics").body.decode()) and all("\nhearth_" + g in t for g in gauges) and t)
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
            assert checked.returncode == 0, checked
        assert "sb_" not in text and "ws_" not in text and "ex_" not in text
        assert s.ops("/healthz").status == 200 and s.ops("/readyz").status == 200
        assert s.get("/metrics").status == 404
        document = s.get("/openapi.json").json
        assert document["openapi"].startswith("3.1") and "/v1/workspaces" in str(document["paths"].keys())
        docs = s.get("/docs")
        assert docs.status == 200 and b"<html" in docs.body


def traced():
    """the trace id of a request is in the events that it caused, and in its one line of the log, which may be JSON"""
    made, ended, told = (f"{n:032x}" for n in (1, 2, 3))
    with Server(args=("--log-format", "json")) as s:
        def caused(trace):
            return {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}

        w = s.post("/v1/workspaces", {}, headers=caused(made)).json["id"]
        assert s.call("DELETE", f"/v1/workspaces/{w}", headers=caused(ended)).status == 204
        assert s.post("/v1/workspaces", {"pool": "absent"}, headers=caused(told)).status == 404
        events = s.get(f"/v1/events?resource={w}").json["items"]
        assert [(e["type"], e["traceId"]) for e in events] == [("workspace.created", made), ("workspace.reclaimed", ended)], events
        streamed = Reader(s, "/v1/events", {"Accept": "text/event-stream"}).events()
        assert next(json.loads(e["data"])["traceId"] for e in streamed if w in e["data"]) == made
        lines = [json.loads(line) for line in s.log().splitlines() if line.startswith("{")]
        for trace, event in ((made, "workspace.bound"), (ended, "workspace.ended"), (told, "claim.refused")):
            (line,) = [line for line in lines if line.get("trace") == trace]
            assert line["event"] == event and line["level"] == "info" and line["tenant"] == "default" and line["seconds"] >= 0, line
        assert {line["level"] for line in lines} <= {"info", "warn", "audit"}


for test in [workspace_life, executions, streaming, files, stopped_under_work]:
    test.remote = True

if __name__ == "__main__":
    main("server", [workspace_life, executions, not_logged, oom_is_told, streaming, files, pools_and_queue, host_directories, degraded_pool, reclaim, warned,
                    tenants_and_tokens, quota, one_shots_and_events, no_double_hand_out, fake_runtime_storm,
                    stopped_under_work, fake_runtime_stopped_under_work, rude_input, slow_clients, sources, what_runs, operations, traced])
