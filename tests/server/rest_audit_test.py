#!/usr/bin/env python3
"""Black box: the audit log, the access log, rates, pages, conditions and repeated creations. Standard library only."""

import json
import os
import signal
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Reader, Server, main, new_key, wait_for  # noqa: E402


def lines(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def audit():
    """the audit log tells who changed what and who was refused, in a file of the server's own, past a rename and SIGHUP"""
    with Server(config="limits: {requestsPerSecond: 100000}\naudit: {file: audit.log}\n") as s:
        path = os.path.join(s.data, "audit.log")
        os.chown(s.data, os.stat(path).st_uid, -1)  # so that the server can make the next file
        assert os.stat(path).st_mode & 0o777 == 0o600 and os.stat(path).st_uid != 0
        w = s.open_workspace(secrets={"S": "hush"}, env={"E": "hush"})["id"]
        s.run(w, "echo hush")
        s.get("/v1/workspaces?label=hush=1")
        s.get("/v1/pools", headers={"Authorization": "Bearer hush"})
        s.call("DELETE", "/v1/workspaces/ws_" + "0" * 32)
        told = wait_for("four lines", lambda: len(lines(path)) >= 4 and lines(path))
        assert [(x["operation"], x["decision"], x["status"]) for x in told] == [
            ("createWorkspace", "allowed", 201), ("execute", "allowed", 200), ("listPools", "denied", 401), ("deleteWorkspace", "failed", 404)], told
        assert told[0]["resource"] == w and told[1]["resource"].startswith("ex_") and told[2]["tenant"] is None
        assert told[0]["tenant"] == "default" and told[0]["role"] == "admin" and told[0]["peer"] == "127.0.0.1"
        assert all(x["requestId"].startswith("req_") and len(x["traceId"]) == 32 and x["time"].endswith("Z") for x in told)
        with open(path, encoding="utf-8") as f:
            assert "hush" not in f.read()
        assert 'hearth_audit_entries_total{result="written"} 4' in s.ops("/metrics").body.decode()
        os.rename(path, path + ".1")
        s.process.send_signal(signal.SIGHUP)
        wait_for("the new file", lambda: os.path.exists(path))
        s.call("DELETE", f"/v1/workspaces/{w}")
        assert wait_for("a line in it", lambda: lines(path))[0]["operation"] == "deleteWorkspace"
        assert len(lines(path + ".1")) == 4


MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def mcp(s, tool, arguments, **headers):
    """Makes a tool call of the revision without sessions."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": MODERN}}
    return s.post("/mcp", body, headers={"Mcp-Method": "tools/call", "Mcp-Name": tool, "MCP-Protocol-Version": "2026-07-28", **headers})


def tools_audit():
    """tool calls by MCP and without it are in the audit log as REST's are, and who is refused over and over fills one line a second"""
    with Server(config="limits: {requestsPerSecond: 100000}\naudit: {file: audit.log}\n") as s:
        path = os.path.join(s.data, "audit.log")
        opened = mcp(s, "workspace_open", {})
        assert opened.status == 200 and "ratelimit-remaining" in opened.headers, opened
        mcp(s, "pool_list", {})  # it only reads
        made = s.post("/compat/s1/tools/create_sandbox", {"name": "mine"})  # there is no Python here
        assert made.status == 422 and "ratelimit-remaining" in made.headers, made
        for _ in range(50):
            assert mcp(s, "pool_list", {}, Authorization="Bearer hush").status == 401
            assert s.post("/mcp/tools/create_sandbox", {}, headers={"Authorization": "Bearer hush"}).status == 401
            assert s.get("/sse", headers={"Authorization": "Bearer hush", "Accept": "text/event-stream"}).status == 401
        told = wait_for("the refusals", lambda: sum(x["status"] == 401 for x in lines(path)) >= 2 and lines(path))
        assert [(x["surface"], x["operation"], x["decision"]) for x in told[:2]] == [
            ("mcp", "tools/call workspace_open", "allowed"), ("tools", "s1 create_sandbox", "failed")], told
        denied = told[2:]
        assert all(x["status"] == 401 and x["tenant"] is None for x in denied), denied
        assert {x["surface"] for x in denied} == {"mcp", "tools"} and len(denied) < 100, len(denied)


def rates():
    """past its rate a tenant is told 429 and when to come back, and every answer tells what is left"""
    with Server(args=("--requests-per-second", "1", "--request-burst", "5")) as s:
        def patient_drain():
            wait_for("a place", lambda: s.post("/v1/drain").status == 200)
        s.drain = patient_drain
        answers = [s.get("/v1/pools") for _ in range(8)]
        assert answers[0].status == 200 and answers[0].headers["ratelimit-limit"] == "5" and answers[0].headers["ratelimit-remaining"] == "4"
        refused = [a for a in answers if a.status == 429]
        assert refused and refused[0].json["errorCode"] == "RATE_LIMITED" and int(refused[0].headers["retry-after"]) >= 1, answers
        assert refused[0].headers["ratelimit-remaining"] == "0" and refused[0].json["retryable"]
        assert mcp(s, "pool_list", {}).status == 429 and s.post("/mcp/tools/list_sandboxes", {}).status == 429
        assert s.ops("/readyz").status == 200
        assert s.get("/openapi.json").status == 200, "a page needs no rate"


def pages_and_conditions():
    """lists have pages, creations can be repeated, pools and files have conditions"""
    with Server() as s:
        opened = sorted(s.open_workspace()["id"] for _ in range(3))
        seen, cursor = [], ""
        while True:
            page = s.get(f"/v1/sandboxes?limit=2{cursor}").json
            assert len(page["items"]) <= 2
            seen += [x["workspaceId"] for x in page["items"] if x["workspaceId"]]
            if page["nextCursor"] is None:
                break
            cursor = "&cursor=" + page["nextCursor"]
        assert sorted(seen) == opened
        w = opened[0]
        ran = [s.run(w, f"echo {i}")["id"] for i in range(3)]
        first = s.get(f"/v1/workspaces/{w}/executions?limit=2").json
        second = s.get(f"/v1/workspaces/{w}/executions?limit=2&cursor={first['nextCursor']}").json
        assert [x["id"] for x in first["items"] + second["items"]] == ran[::-1] and second["nextCursor"] is None
        assert s.get("/v1/pools?cursor=%25").status == 400

        s.call("PUT", f"/v1/workspaces/{w}/files/a", raw=b"1")
        key = {"Idempotency-Key": new_key()}
        links = [s.post(f"/v1/workspaces/{w}/links", {"path": "a"}, headers=key) for _ in range(2)]
        assert links[0].body == links[1].body and links[1].headers["idempotency-replayed"] == "true", links
        other = s.post(f"/v1/workspaces/{w}/links", {"path": "b"}, headers=key)
        assert other.status == 422 and other.json["errorCode"] == "IDEMPOTENCY_MISMATCH", other

        etag = s.get("/v1/pools/shell").headers["etag"]
        same = s.get("/v1/pools/shell", headers={"If-None-Match": etag})
        assert same.status == 304 and same.body == b"" and same.headers["etag"] == etag, same
        stale = s.call("PATCH", "/v1/pools/shell", {"spec": {"warm": {"min": 1}}}, headers={"If-Match": '"0"'})
        assert stale.status == 412, stale

        target = f"/v1/workspaces/{w}/files/a"
        etag = s.get(target).headers["etag"]
        assert s.call("PUT", target, raw=b"2", headers={"If-None-Match": "*"}).status == 412
        assert s.call("PUT", target, raw=b"2", headers={"If-Match": etag}).status == 200
        assert s.call("PUT", target, raw=b"3", headers={"If-Match": etag}).status == 412
        assert s.call("DELETE", target, headers={"If-Match": etag}).status == 412 and s.get(target).body == b"2"
        assert s.call("PUT", target + "2", raw=b"2", headers={"If-None-Match": "*"}).status == 200


def access():
    """each request is one line of the access log, refused ones too, and none is lost while the file is rotated"""
    with Server(config="limits: {requestsPerSecond: 100000}\naccessLog: access.log\n") as s:
        path = os.path.join(s.data, "access.log")
        os.chown(s.data, os.stat(path).st_uid, -1)  # so that the server can make the next file
        assert os.stat(path).st_mode & 0o777 == 0o640 and os.stat(path).st_uid != 0

        def told(count):
            return wait_for(f"{count} lines", lambda: len(lines(path)) >= count and lines(path))
        w = s.open_workspace(secrets={"S": "hush"})["id"]
        s.get("/v1/workspaces?label=hush=1", headers={"User-Agent": "\u00ff" + "a" * 5000})
        s.get("/v1/nothing/here")
        s.get("/v1/pools", headers={"Authorization": "Bearer hush"})
        with socket.create_connection(("127.0.0.1", s.port)) as bad:
            bad.sendall(b"GET /hush HTTP/1.1\nHost: x\n\n")
            assert bad.recv(100).startswith(b"HTTP/1.1 400")
        assert s.get("/console/main.js").status == 200
        found = told(6)  # two requests that end at one time may be in any order
        claim, listed, nothing, denied, malformed, page = (
            next(x for x in found if (x["path"], x["status"]) == which)
            for which in (("/v1/workspaces", 201), ("/v1/workspaces", 200), ("/v1/nothing/here", 404), ("/v1/pools", 401), (None, 400), ("/console/main.js", 200)))
        assert (claim["method"], claim["route"], claim["path"], claim["status"]) == ("POST", "/v1/workspaces", "/v1/workspaces", 201), claim
        assert claim["tenant"] == "default" and claim["client"] == "127.0.0.1" and claim["whole"] and 0 < claim["durationMs"] < 60_000, claim
        assert claim["bytesIn"] > 0 and claim["bytesOut"] > 0 and claim["requestId"].startswith("req_"), claim
        assert listed["path"] == "/v1/workspaces" and len(listed["userAgent"]) == 256, listed
        assert (nothing["status"], nothing["path"], nothing["route"]) == (404, "/v1/nothing/here", None), nothing
        assert (denied["status"], denied["route"], denied["tenant"]) == (401, "/v1/pools", None), denied
        assert (malformed["status"], malformed["method"], malformed["errorCode"]) == (400, None, "INVALID_ARGUMENT"), malformed
        assert page["route"] is None or "console" in page["route"], page

        before = len(lines(path))
        with Reader(s, "/v1/events", {"Accept": "text/event-stream"}) as stream:
            assert stream.begin() == 200
            s.get("/v1/pools")
            assert [x["route"] for x in told(before + 1)[before:]] == ["/v1/pools"]
            stream.socket.shutdown(socket.SHUT_RDWR)
        news = told(before + 2)[-1]
        assert (news["route"], news["status"], news["whole"]) == ("/v1/events", 200, False) and news["bytesOut"] > 0, news

        asked = [0, 0, 0]

        def ask(which):
            while asked[which] < 400:
                asked[which] += 1
                s.get(f"/v1/workspaces/{w}")
        crowd = [threading.Thread(target=ask, args=(i,)) for i in range(len(asked))]
        for one in crowd:
            one.start()
        for rotation in (1, 2):
            wait_for("requests under way", lambda: sum(asked) > rotation * 300)
            os.rename(path, f"{path}.{rotation}")
            s.process.send_signal(signal.SIGHUP)
            wait_for("the new file", lambda: os.path.exists(path))
        for one in crowd:
            one.join()

        def everywhere():
            return [x for file in (path + ".1", path + ".2", path) for x in lines(file) if x["path"] == f"/v1/workspaces/{w}"]
        found = wait_for("all lines", lambda: len(everywhere()) == sum(asked) and everywhere())
        assert len({x["requestId"] for x in found}) == sum(asked)
        assert os.stat(path).st_mode & 0o777 == 0o640
        for file in (path + ".1", path + ".2", path):
            with open(file, encoding="utf-8") as f:
                assert "hush" not in f.read()
        assert "hearth_log_lines_dropped_total 0" in s.ops("/metrics").body.decode()


TESTS = [audit, tools_audit, access, rates, pages_and_conditions]
for test in TESTS:
    test.only = "oci"  # they test parts in front of any runtime

if __name__ == "__main__":
    main("server", TESTS)
