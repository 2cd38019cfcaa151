#!/usr/bin/env python3
"""Waiting, black box: a client that waits holds nothing, and no client shuts out others: lines of claims, streams of
news, connections behind one proxy, uploads that are refused early. Standard library only."""

import hashlib
import http.client
import json
import os
import select
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SLOWER, Server, main, pool_yaml, wait_for  # noqa: E402

TENANTS = [f"tenant{i}" for i in range(5)]
MIB = 1 << 20


def token_of(name):
    return f"token-of-{name}-0123456789"


def tokens():
    """Returns settings with a user in each tenant, another one in the first, and an admin elsewhere."""
    def entry(name, tenant, role):
        digest = hashlib.sha256(token_of(name).encode()).hexdigest()
        return f"  - {{name: {name}, tenant: {tenant}, role: {role}, sha256: {digest}}}\n"
    return ("tokens:\n" + "".join(entry(t, t, "user") for t in TENANTS) + entry("second", TENANTS[0], "user")
            + entry("admin", "operations", "admin"))


def bearer(name):
    return {"Authorization": f"Bearer {token_of(name)}"}


def guarded(s):
    """Gives the admin's token to the harness's own calls of the server."""
    plain = s.call
    s.call = lambda method, path, body=None, headers=None, **kw: plain(
        method, path, body, {**bearer("admin"), **(headers or {})}, **kw)
    return s


def exhausted(max_queue=600):
    """Returns the manifests of two pools of one sandbox each."""
    return "---\n".join(pool_yaml(name, warm=1, members=1, max_wait="2m", per_tenant=500)
                        .replace("maxQueue: 64", f"maxQueue: {max_queue}") for name in ("one", "two"))


class Sent:
    """A request on a connection of its own. Its answer is read when the test wants it."""

    def __init__(self, s, method, path, body=None, name="admin", headers=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}"]
        head += [f"{key}: {value}" for key, value in {**bearer(name), "Content-Type": "application/json", **(headers or {})}.items()]
        self.name, self.bytes, self.ended = name, b"", False
        self.socket = socket.create_connection(("127.0.0.1", s.port), timeout=60 * SLOWER)
        self.socket.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + data)

    def until(self, mark):
        while mark not in self.bytes:
            piece = self.socket.recv(65536)
            assert piece, f"closed before {mark}: {self.bytes[-500:]}"
            self.bytes += piece
        return self.bytes

    def status(self):
        return int(self.until(b"\r\n\r\n").split(b" ", 2)[1])

    def answer(self):
        """Returns status and JSON of an answer with a Content-Length."""
        head, _, body = self.until(b"\r\n\r\n").partition(b"\r\n\r\n")
        length = int(next(line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")))
        while len(body) < length:
            piece = self.socket.recv(65536)
            assert piece, "closed early"
            body += piece
        return int(head.split(b" ", 2)[1]), json.loads(body)

    def open(self):
        """Returns whether the server has ended neither its chunks nor the connection so far."""
        while not self.ended and select.select([self.socket], [], [], 0)[0]:
            try:
                piece = self.socket.recv(65536)
            except ConnectionResetError:
                piece = b""
            self.bytes += piece
            self.ended = not piece
        self.ended = self.ended or self.bytes.endswith(b"\r\n0\r\n\r\n")
        return not self.ended

    def close(self):
        self.socket.close()


def waiting(s):
    return {p["metadata"]["name"]: p["status"]["waiting"] for p in s.get("/v1/pools").json["items"]}


def answered(claims):
    """Returns the first bytes of each answer that has come."""
    ready = select.select([c.socket for c in claims], [], [], 0)[0]
    return [(c.name, c.socket.recv(500)) for c in claims if c.socket in ready]


def answered_soon(s, rounds=40):
    """Sends GET /v1/pools repeatedly: most must be answered within 100 ms, on a machine that others use too."""
    times = []
    for _ in range(rounds):
        begin = time.monotonic()
        answer = s.get("/v1/pools", headers=bearer("second"))
        times.append(time.monotonic() - begin)
        assert answer.status == 200, answer
    times.sort()
    assert times[len(times) // 2] < 0.1 * SLOWER, times
    return times


def threads(s):
    with open(f"/proc/{s.process.pid}/status", encoding="ascii") as f:
        return int(next(line.split()[1] for line in f if line.startswith("Threads:")))


MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
          "progressToken": "p"}


def waiting_claims():
    """500 claims of five tenants wait for two exhausted pools without a thread: other calls are answered at once, who hangs up has left, tenants take turns, progress tells the place"""
    with Server(exhausted(), config=tokens()) as s:
        guarded(s)
        taken = {pool: s.open_workspace(pool=pool)["id"] for pool in ("one", "two")}
        answered_soon(s)
        before = threads(s)
        claims = []
        for i in range(500):
            path, body = "/v1/workspaces", {"pool": ("one", "two")[i // 5 % 2]}
            if i % 7 == 0:
                path, body = "/v1/executions", {**body, "command": "echo hi"}
            claims.append(Sent(s, "POST", path, body, TENANTS[i % 5]))
        wait_for("all to wait", lambda: waiting(s) == {"one": 250, "two": 250}, 60,
                 seen=lambda: (waiting(s), answered(claims)))
        times = answered_soon(s)
        assert threads(s) <= before, (before, threads(s))
        assert s.run(taken["one"], "echo works")["stdout"] == "works\n"
        assert not answered(claims), "one was answered"
        print(f"      median {times[len(times) // 2] * 1000:.1f} ms, most {times[-1] * 1000:.1f} ms, {before} threads", flush=True)

        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "workspace_open", "arguments": {"pool": "one"}, "_meta": MODERN}}
        tool = Sent(s, "POST", "/mcp", call, "admin", {
            "Accept": "application/json, text/event-stream", "Mcp-Method": "tools/call", "Mcp-Name": "workspace_open",
            "MCP-Protocol-Version": "2026-07-28"})
        said = tool.until(b"in line")
        assert b"waiting for a sandbox of pool one (place " in said and b" of 251 in line" in said, said
        tool.close()
        wait_for("the hung-up tool call to leave", lambda: waiting(s)["one"] == 250, seen=lambda: waiting(s))

        for claim in claims[100:]:
            claim.close()
        wait_for("those that hung up to leave", lambda: waiting(s) == {"one": 50, "two": 50}, 60, seen=lambda: waiting(s))
        assert s.call("DELETE", f"/v1/workspaces/{taken['one']}").status == 204
        served = []
        for _ in range(5):  # each makes room for the next by ending its workspace
            ready = select.select([c.socket for c in claims[:100]], [], [], 60 * SLOWER)[0]
            claim = next(c for c in claims if c.socket is ready[0])
            status, answer = claim.answer()
            assert status in (200, 201), answer
            served.append(claim.name)
            claims.remove(claim)
            claim.close()
            if status == 201:
                assert s.call("DELETE", f"/v1/workspaces/{answer['id']}", headers=bearer(claim.name)).status == 204
            claims[:] = [c for c in claims if c.socket.fileno() >= 0]
        assert sorted(served) == TENANTS, served
        # The server's end answers the remaining ones.
        left = claims[:20]
        s.drain()
        s.stop()
        for claim in left:
            assert claim.status() in (200, 201, 503), claim.bytes


def shared_line():
    """a full line is shared: a tenant with less of it takes the place of the newest of who has most, which is told to come again"""
    with Server(exhausted(max_queue=4), config=tokens()) as s:
        guarded(s)
        s.open_workspace(pool="one")
        greedy = [Sent(s, "POST", "/v1/workspaces", {"pool": "one"}, TENANTS[0]) for _ in range(1)]
        for count in range(2, 5):
            wait_for("it to wait", lambda c=count: waiting(s)["one"] == c - 1)
            greedy.append(Sent(s, "POST", "/v1/workspaces", {"pool": "one"}, TENANTS[0]))
        wait_for("four to wait", lambda: waiting(s)["one"] == 4)
        more = Sent(s, "POST", "/v1/workspaces", {"pool": "one"}, TENANTS[0])
        assert more.status() == 429, more.bytes
        modest = Sent(s, "POST", "/v1/workspaces", {"pool": "one"}, TENANTS[1])
        status, problem = greedy[3].answer()
        assert (status, problem["errorCode"]) == (429, "POOL_EXHAUSTED") and problem["retryAfterSeconds"] >= 1, problem
        assert waiting(s)["one"] == 4 and modest.open() and greedy[2].open()
        for each in greedy + [more, modest]:
            each.close()
        wait_for("all to leave", lambda: waiting(s)["one"] == 0)


def told_place():
    """a one shot that streams is told its place while its claim waits, then runs; where no sandbox comes it is told why"""
    pools = exhausted().replace("maxWait: 2m", "maxWait: 3s", 1)
    with Server(pools, config=tokens()) as s:
        guarded(s)
        taken = {pool: s.open_workspace(pool=pool)["id"] for pool in ("one", "two")}

        def stream(pool):
            return Sent(s, "POST", "/v1/executions", {"pool": pool, "command": "echo hi"}, headers={"Accept": "text/event-stream"})
        # Two requests sent at once may arrive in either order: the second is sent once the first has its place.
        first, vain = stream("two"), stream("one")
        assert b'"place":1,' in first.until(b"estimateSeconds"), first.bytes
        second = stream("two")
        assert b'"place":2,"of":2' in second.until(b"estimateSeconds"), second.bytes
        assert b"POOL_EXHAUSTED" in vain.until(b"event: problem") + vain.until(b"requestId"), vain.bytes
        first.close()
        wait_for("it to leave", lambda: waiting(s) == {"one": 0, "two": 1})
        assert s.call("DELETE", f"/v1/workspaces/{taken['two']}").status == 204
        said = second.until(b"event: exit")
        assert b"event: started" in said and b'"text":"hi\\n"' in said, said
        second.close()
        vain.close()


def deaf_programs():
    """streamed one shots whose programs do not read their much input hold up nobody's start; one that reads late gets all of it"""
    pools = "---\n".join(pool_yaml(name, warm=0, members=members, on_empty="Create") for name, members in (("one", 8), ("two", 2)))
    much = "x" * MIB
    with Server(pools, config=tokens()) as s:
        guarded(s)

        def stream(pool, command, tenant, **more):
            return Sent(s, "POST", "/v1/executions", {"pool": pool, "command": command, **more}, tenant, {"Accept": "text/event-stream"})
        began = time.monotonic()
        deaf = [stream("one", "sleep 600", TENANTS[0], stdin=much) for _ in range(7)]
        late = stream("one", "sleep 1; wc -c", TENANTS[0], stdin=much)
        assert b'"text":"hi\\n"' in stream("two", "echo hi", TENANTS[1]).until(b"event: exit")
        ids = [each.until(b"event: started").decode() + each.until(b"workspaceId").decode() for each in deaf]
        assert b'"text":"1048576\\n"' in late.until(b"event: exit"), late.bytes
        assert time.monotonic() - began < 25 * SLOWER, "they waited for the input to be read"
        for text in ids:
            execution = text.rsplit('"id":"', 1)[1].split('"', 1)[0]
            assert s.call("DELETE", f"/v1/executions/{execution}", headers=bearer(TENANTS[0])).status in (200, 202, 204)
        for each in deaf:
            each.until(b"event: exit")
            each.close()
        late.close()


def streams_of_news():
    """one token that keeps asking for streams of news holds 64 of them, and everybody else at its address is answered; the streamed answer of its call goes on"""
    with Server(config=tokens()) as s:
        guarded(s)
        me = bearer(TENANTS[0])
        workspace = s.post("/v1/workspaces", {}, headers=me).json["id"]
        call = Sent(s, "POST", f"/v1/workspaces/{workspace}/executions",
                    {"command": "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo done", "timeoutSeconds": 120},
                    TENANTS[0], {"Accept": "text/event-stream"})
        call.until(b"begun")
        events = {"Accept": "text/event-stream"}
        paths = ["/v1/events", "/sse"]
        mine = []
        for i in range(700):
            mine.append(Sent(s, "GET", paths[i % 2], name=TENANTS[0], headers=events))
            assert mine[-1].status() == 200  # one after the other: workers take requests in no order
            if i % 20 == 0:
                assert s.get("/v1/pools").status == 200
                assert s.get("/v1/pools", headers=bearer(TENANTS[1])).status == 200
        wait_for("the older ones to end", lambda: sum(each.open() for each in mine) == 64)
        assert all(each.open() for each in mine[-64:]), "a newer one was ended"
        other = Sent(s, "GET", "/v1/events", name="second", headers=events)
        assert other.status() == 200
        for _ in range(100):
            answer = s.get("/v1/pools")
            assert answer.status == 200, answer
        assert s.call("PUT", f"/v1/workspaces/{workspace}/files/go", raw=b"", headers=me).status in (200, 201)
        assert b"done" in call.until(b"event: exit")
        assert other.open() and mine[-1].open()
        for each in mine + [other, call]:
            each.close()


def early_answers():
    """who sends a large upload first and reads then gets the early answer to it"""
    with Server() as s:
        workspace = s.open_workspace()["id"]
        large = os.urandom(MIB) * 160
        for method, path, status in (("PUT", f"/v1/workspaces/{workspace}/files/large", 507),
                                     ("POST", "/v1/workspaces", 413),
                                     ("PUT", "/v1/workspaces/ws_" + "0" * 32 + "/files/x", 404)):
            connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60 * SLOWER)
            connection.request(method, path, body=large, headers={"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == status, (response.status, path)
            assert json.loads(response.read())["status"] == status
            connection.close()


def proxies():
    """the operator names proxies: they have any number of connections, and X-Forwarded-For of theirs alone counts"""
    settings = tokens() + "limits: {connectionsPerAddress: 8}\naudit: {file: audit.log}\n"
    for trusted in (True, False):
        with Server(config=settings + ("trustedProxies: [127.0.0.0/8]\n" if trusted else "")) as s:
            guarded(s)
            crowd = [http.client.HTTPConnection("127.0.0.1", s.port, timeout=60) for _ in range(30)]

            def ask(connection):
                connection.request("GET", "/v1/workspaces", headers=bearer("admin"))
                return connection.getresponse().read()
            for connection in crowd:
                ask(connection)
            alive = 0
            for connection in crowd:
                connection.auto_open = 0
                try:
                    ask(connection)
                    alive += 1
                except (http.client.HTTPException, OSError):
                    pass
                connection.close()
            assert alive == 30 if trusted else alive <= 8, alive
            s.call("DELETE", "/v1/workspaces/ws_" + "0" * 32, headers={"X-Forwarded-For": "1.2.3.4, 203.0.113.9"})
            path = os.path.join(s.data, "audit.log")
            line = wait_for("its line", lambda: [x for x in map(json.loads, open(path, encoding="utf-8")) if x["operation"] == "deleteWorkspace"])[0]
            assert line["peer"] == ("203.0.113.9" if trusted else "127.0.0.1"), line


for test in (waiting_claims, shared_line, told_place, deaf_programs, streams_of_news, early_answers, proxies):
    test.only = "oci"  # nothing in it depends on the runtime


if __name__ == "__main__":
    main("server", [waiting_claims, shared_line, told_place, deaf_programs, streams_of_news, early_answers, proxies])
