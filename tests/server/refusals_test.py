#!/usr/bin/env python3
"""A request that is refused as wrong costs nothing: no sandbox moves, and its Idempotency-Key stays unused."""

import itertools
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, new_key, wait_for  # noqa: E402

MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
          "io.modelcontextprotocol/clientInfo": {"name": "refusals", "version": "1"}}

# Faults that both a workspace and a one shot can have ...
PLACES = [
    {"files": [{"path": "../x", "text": "a"}]}, {"files": [{"path": "/etc/x", "text": "a"}]}, {"files": [{"path": ".", "text": "a"}]},
    {"files": [{"path": "a", "text": "a"}, {"path": "a/b", "text": "a"}]}, {"files": [{"path": "x" * 300, "text": "a"}]},
    {"files": [{"path": "a"}]}, {"files": [{"path": "a", "text": "a", "base64": "aGk="}]}, {"files": [{"path": "a", "base64": "!"}]},
    {"language": "klingon"}, {"pool": "nowhere"}, {"image": "nowhere"}, {"image": "UPPER:x"}, {"network": "Egress"}, {"network": "Moon"},
    {"network": "Egress", "allow": ["bad host"]}, {"credentials": [{"host": "a.test", "value": "12345678"}]}, {"gpu": {"count": 1}},
    {"limits": {"cpu": 500}}, {"limits": {"memoryBytes": 1}}, {"limits": {"tmpBytes": 1 << 20}}, {"labels": {"-": "x"}},
    {"labels": {f"k{i}": "v" for i in range(65)}}, {"secrets": {"1A": "x"}}, {"secrets": {"A": "x" * 40_000}}, {"name": "\n"},
    {"idleTimeoutSeconds": 0}, {"maxLifetimeSeconds": 1e12}, {"surprise": 1}]
# ... and faults that an execution can have.
RUNS = [
    {"command": ""}, {"argv": []}, {"argv": [""]}, {}, {"command": "true", "code": "1"}, {"command": "a\0b"}, {"argv": ["a"] * 2000},
    {"argv": ["a"] + ["x" * 100_000] * 4}, {"code": "#" * 300_000}, {"command": "true", "env": {"=": "x"}}, {"command": "true", "packages": ["--evil"]},
    {"command": "true", "autoPackages": True}, {"command": "true", "timeoutSeconds": 0}, {"command": "true", "outputLimitBytes": 1},
    {"command": "true", "pty": {"cols": 0, "rows": 1}}, {"command": "true", "stdin": "x", "stdinOpen": True}, {"command": "true", "collect": [""]},
    {"command": "true", "context": "cx_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b"}, {"code": "1", "language": "klingon"}, {"code": "1", "language": 7}]


def settled(s):
    """Returns the sandboxes and their phases, after all wanted ones are ready."""
    return wait_for("its warm sandboxes", lambda: (
        (now := {x["id"]: x["phase"] for x in s.get("/v1/sandboxes").json["items"]})
        and len(now) == 2 and set(now.values()) == {"Ready"} and now))


def unmoved(s, send, what):
    before = settled(s)
    first, second = send(), send()
    after = {x["id"]: x["phase"] for x in s.get("/v1/sandboxes").json["items"]}
    assert (400 <= first.status < 500 or first.status == 501) and first.status == second.status, (str(what)[:200], first, second)
    assert after == before, (str(what)[:200], first, before, after)


def rest():
    """of 76 wrong requests to REST none moves a sandbox, and each is answered alike the second time"""
    with Server() as s:
        key = (new_key() for _ in itertools.count())
        for path, body in [("/v1/workspaces", place) for place in PLACES] + [
                ("/v1/executions", {"command": "true", **place}) for place in PLACES] + [("/v1/executions", run) for run in RUNS]:
            headers = {"Idempotency-Key": next(key)}
            unmoved(s, lambda: s.post(path, body, headers=headers), (path, body))
        w = s.open_workspace()["id"]  # and none is taken for a language that no sandbox has reported yet
        assert s.run(w, "echo still here")["stdout"] == "still here\n"


def unknown_language():
    """a language that the pool turns out not to have costs no sandbox, also when none was there to ask"""
    with Server() as s:
        settled(s)
        for round in range(3):
            taken = [s.open_workspace()["id"] for _ in range(2)]
            key = {"Idempotency-Key": new_key()}
            wrong = {"code": "1", "language": "klingon"}
            assert [s.post("/v1/executions", wrong, headers=key).status for _ in range(2)] == [422, 422], round
            for w in taken:
                s.call("DELETE", f"/v1/workspaces/{w}")
        assert all(x["phase"] != "Failed" for x in s.get("/v1/sandboxes").json["items"])


def mcp():
    """wrong calls of the tools run and workspace_open move none either"""
    with Server() as s:
        def call(tool, arguments):
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": MODERN}}
            return s.post("/mcp", body, headers={"Mcp-Method": "tools/call", "Mcp-Name": tool, "MCP-Protocol-Version": "2026-07-28"})

        for tool, arguments in [("run", {"command": ""}), ("run", {"code": ""}), ("run", {}), ("run", {"code": "1", "language": "klingon"}),
                                ("run", {"command": "true", "cwd": 7}), ("run", {"code": "#" * 300_000}), ("workspace_open", {"language": "klingon"}),
                                ("workspace_open", {"pool": "nowhere"}), ("workspace_open", {"files": [{"path": "../x", "text": "a"}]})]:
            before = settled(s)
            answer = call(tool, arguments)
            after = {x["id"]: x["phase"] for x in s.get("/v1/sandboxes").json["items"]}
            assert answer.json.get("error") or answer.json["result"].get("isError"), (tool, str(arguments)[:200], answer)
            assert after == before, (tool, str(arguments)[:200], answer)


if __name__ == "__main__":
    main("server", [rest, unknown_language, mcp])
