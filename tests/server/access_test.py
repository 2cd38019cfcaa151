#!/usr/bin/env python3
"""Access, black box: which callers are served and what they see of others; lost tokens, foreign web pages, the view
of operators."""

import contextlib
import hashlib
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, SLOWER, Reader, Server, main, wait_for  # noqa: E402
from rest_test import problem  # noqa: E402


def lost_tokens():
    """tokens: a lost or damaged database opens nothing; doctor tells, and a token made offline serves again"""
    with Server() as s:
        hearth = os.path.join(BUILD, "hearth")
        root = s.post("/v1/tokens", {"name": "root", "role": "admin"}).json
        bearer = {"Authorization": "Bearer " + root["token"]}
        try:
            problem(s.call("DELETE", "/v1/tokens/" + root["id"], headers=bearer), 409, "CONFLICT")
            assert s.get("/v1/tokens", headers=bearer).status == 200
            s.stop()
            database = os.path.join(s.data, "state", "hearth.db")
            for damage in ("overwritten", "lost", "emptied"):
                if damage == "overwritten":
                    with open(database, "r+b") as f:
                        f.write(b"x" * 4096)
                elif damage == "lost":
                    os.unlink(database)
                else:
                    os.truncate(database, 0)
                s.start()
                for headers in ({}, {"Authorization": "Bearer " + root["token"]}, {"X-Forwarded-For": "192.0.2.1"}):
                    refused = s.get("/v1/tokens", headers=headers)
                    problem(refused, 401, "UNAUTHENTICATED")
                    assert "hearth token create --role admin --offline" in refused.json["hint"], refused
                assert s.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status == 401
                found = "start" if damage == "overwritten" else "missing"
                metrics = s.ops("/metrics").body.decode()
                assert f'hearth_database_damage_total{{found="{found}"}} 1' in metrics, metrics
                s.stop()
            told = s.log()
            assert all(f"level=error event={event} " in told for event in ("database.damaged", "database.missing", "auth.closed")), told
            kept = [n for n in os.listdir(os.path.dirname(database)) if ".damaged-" in n]
            assert len(kept) == 1, kept
            doctor = subprocess.run([hearth, "doctor", "--data-dir", s.data, "--runtime", s.runtime], capture_output=True, text=True, env=s.env)
            assert kept[0] in doctor.stdout and "had tokens and has none now" in doctor.stdout, doctor.stdout
            refused = subprocess.run([hearth, "token", "create", "--offline", "--data-dir", s.data], capture_output=True, text=True)
            assert refused.returncode != 0 and "admin" in refused.stderr, refused
            os.unlink(database)  # a token can be made before the next start, too: the server can write a file that root made
            token = subprocess.run([hearth, "token", "create", "--role", "admin", "--offline", "--data-dir", s.data],
                                   capture_output=True, text=True, check=True).stdout.strip()
            s.start()
            bearer = {"Authorization": "Bearer " + token}
            assert s.get("/v1/tokens", headers=bearer).status == 200
            assert s.get("/v1/tokens").status == 401
            assert s.post("/v1/tokens", {"name": "a", "role": "user"}, headers=bearer).status == 201
        finally:
            s.post("/v1/drain", headers=bearer)
            s.stop()


def lost_state():
    """tokens: an instance whose whole state was lost opens nothing, for a file beside it tells that it was used"""
    for runs in (1, 2):
        lose_state_after(runs)


def lose_state_after(runs):
    with Server() as s:
        for _ in range(runs - 1):
            s.stop()
            s.start()
        bearer = {"Authorization": "Bearer " + s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]}
        s.post("/v1/drain", headers=bearer)
        s.stop()
        state = os.path.join(s.data, "state")
        for entry in os.scandir(state):
            shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
        s.start()
        try:
            problem(s.get("/v1/tokens"), 401, "UNAUTHENTICATED")
            assert 'hearth_database_damage_total{found="missing"} 1' in s.ops("/metrics").body.decode()
        finally:
            s.stop()
            made = subprocess.run([os.path.join(BUILD, "hearth"), "token", "create", "--role", "admin", "--offline", "--data-dir", s.data],
                                  capture_output=True, text=True, check=True)
            s.start()
            assert s.post("/v1/drain", headers={"Authorization": "Bearer " + made.stdout.strip()}).status < 300
            s.stop()


def revoked_for_good():
    """tokens: a revoked one stays so although what SQLite had written last is damaged or lost"""
    with Server() as s:
        root = {"Authorization": "Bearer " + s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]}
        try:
            for damage in ("overwritten", "lost"):
                other = s.post("/v1/tokens", {"name": damage, "role": "admin"}, headers=root).json
                bearer = {"Authorization": "Bearer " + other["token"]}
                s.stop()
                s.start()
                assert s.get("/v1/tokens", headers=bearer).status == 200
                assert s.call("DELETE", f"/v1/tokens/{other['id']}", headers=root).status == 204
                s.kill9()
                wal = os.path.join(s.data, "state", "hearth.db-wal")
                if damage == "overwritten":
                    with open(wal, "r+b") as f:
                        f.write(b"x" * 4096)
                else:
                    os.unlink(wal)
                s.start()
                assert s.get("/v1/tokens", headers=bearer).status == 401, damage
                assert s.get("/v1/tokens", headers=root).status == 200
        finally:
            s.post("/v1/drain", headers=root)
            s.stop()


class Listener:
    """Reads a stream until it ends. `heard`: all bytes that came; `ended`: the time of its end."""

    def __init__(self, server, path, token=None, headers=None):
        headers = {"Accept": "text/event-stream"} | (headers or {}) | ({"Authorization": f"Bearer {token}"} if token else {})
        self.reader = Reader(server, path, headers)
        assert self.reader.begin() == 200, self.reader.answer.read()
        self.heard, self.ended = b"", None
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            while line := self.reader.answer.readline():
                self.heard += line
        self.ended = time.monotonic()

    def ends(self, what, seconds=1):
        began = time.monotonic()
        self.thread.join(20 * SLOWER)
        assert self.ended, f"{what} goes on"
        assert self.ended - began < seconds * SLOWER, (what, self.ended - began)


def lapsed_streams():
    """tokens: streams and waits end with the right to them: revoked, expired, or anonymous once there is a token"""
    with Server() as s:
        anonymous = Listener(s, "/v1/events")
        made = s.post("/v1/tokens", {"name": "root", "role": "admin"})
        assert made.status == 201, made
        anonymous.ends("a stream of before the first token")
        root = {"Authorization": "Bearer " + made.json["token"]}
        try:
            def token(**fields):
                return s.post("/v1/tokens", {"name": "t"} | fields, headers=root).json
            good, bad = token(role="user", tenant="red"), token(role="admin", tenant="blue")
            red = {"Authorization": "Bearer " + good["token"]}
            w = s.post("/v1/workspaces", {}, headers=red).json["id"]
            e = s.post(f"/v1/workspaces/{w}/executions", {"command": "while sleep 0.1; do echo secret; done", "background": True}, headers=red).json["id"]
            events, output = Listener(s, "/v1/events", bad["token"]), Listener(s, f"/v1/executions/{e}/events", bad["token"])
            own = Listener(s, f"/v1/executions/{e}/events", good["token"])
            waiting = Listener(s, "/v1/events", good["token"])
            answers = []
            theirs = {"Authorization": "Bearer " + bad["token"]}
            blue = s.post("/v1/workspaces", {}, headers=theirs).json["id"]
            asked = threading.Thread(target=lambda: answers.append(
                s.post(f"/v1/workspaces/{blue}/executions", {"command": "sleep 60"}, headers=theirs)))
            asked.start()
            wait_for("output", lambda: b"secret" in output.heard)
            wait_for("the call", lambda: s.get(f"/v1/workspaces/{blue}/executions", headers=root).json["items"])
            time.sleep(1)  # by then the request waits without a worker
            assert s.call("DELETE", f"/v1/tokens/{bad['id']}", headers=root).status == 204
            events.ends("a revoked token's events")
            output.ends("a revoked token's output")
            asked.join(20 * SLOWER)
            assert [a.status for a in answers] == [401], answers
            # Work that the token began belongs to its tenant, and goes on.
            assert [x["status"] for x in s.get(f"/v1/workspaces/{blue}/executions", headers=root).json["items"]] == ["running"]
            brief = token(role="user", tenant="red", expiresInSeconds=3)
            begun = time.monotonic()
            expiring = Listener(s, "/v1/events", brief["token"])
            expiring.ends("an expired token's events", 5)
            assert expiring.ended - begun > 1.5, "it ended before its time"
            heard = len(own.heard)
            wait_for("the other token's stream", lambda: len(own.heard) > heard)
            assert own.ended is None and waiting.ended is None
        finally:
            s.post("/v1/drain", headers=root)
            s.stop()


class MountedFile:
    """A file of settings with tokens. It changes like a Secret that Kubernetes mounts: a link to a folder is replaced."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0
        self.path = os.path.join(folder, "config.yaml")
        os.symlink("..data/config.yaml", self.path)

    def put(self, text):
        self.number += 1
        version = os.path.join(self.folder, f"..{self.number}")
        os.mkdir(version)
        with open(os.path.join(version, "config.yaml"), "w", encoding="utf-8") as f:
            f.write(text)
        os.symlink(f"..{self.number}", os.path.join(self.folder, "..next"))
        os.rename(os.path.join(self.folder, "..next"), os.path.join(self.folder, "..data"))

    def tokens(self, **roles):
        """Writes these tokens. Each is named after its tenant, and its secret is secret(NAME)."""
        lines = [f"- {{name: {name}, tenant: {name}, role: {role}, sha256: {hashlib.sha256(secret(name).encode()).hexdigest()}}}\n"
                 for name, role in roles.items()]
        self.put("tokens:\n" + "".join(lines))


def secret(name):
    return f"the secret of {name}".replace(" ", "-")


def followed_file():
    """tokens: one that leaves the file of settings is refused within seconds, and its streams and MCP sessions end; a wrong file changes nothing"""
    folder = tempfile.mkdtemp(prefix="hearth-tokens-")
    os.chmod(folder, 0o755)
    file = MountedFile(folder)
    file.tokens(root="admin", red="user", blue="user")
    with Server(args=["--config", file.path]) as s:
        root, red, blue = ({"Authorization": f"Bearer {secret(name)}"} for name in ("root", "red", "blue"))
        s.token = secret("root")
        try:
            def status(who):
                return s.get("/v1/workspaces", headers=who).status

            def session_of(who):
                hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
                made = s.post("/mcp", hello, headers=who | {"Accept": "application/json, text/event-stream"})
                assert made.status == 200, made
                return {"Mcp-Session-Id": made.headers["mcp-session-id"]}
            assert status(red) == status(blue) == 200
            w = s.post("/v1/workspaces", {}, headers=red).json["id"]
            session = session_of(red)
            events, theirs = Listener(s, "/v1/events", secret("red")), Listener(s, "/v1/events", secret("blue"))
            news = Listener(s, "/mcp", secret("red"), session)
            for wrong in ("tokens: [\n", "", "tokens:\n- {name: x, role: king}\n"):
                file.put(wrong)
                told = s.log().count("event=tokens.not_reloaded")
                wait_for("the log names the file", lambda: s.log().count("event=tokens.not_reloaded") > told, 20)
                assert f"level=warn event=tokens.not_reloaded file={file.path} " in s.log()
                assert status(red) == 200 and events.ended is None
            began = time.monotonic()
            file.tokens(root="admin", blue="user", green="user")
            wait_for("the token is refused", lambda: status(red) == 401, 20)
            assert time.monotonic() - began < 5 * SLOWER, time.monotonic() - began
            events.ends("a stream of a token that was taken out", 2)
            news.ends("an MCP session's stream of a token that was taken out", 2)
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            assert s.post("/mcp", ping, headers=red | session | {"Accept": "application/json, text/event-stream"}).status == 401
            assert status({"Authorization": f"Bearer {secret('green')}"}) == 200
            assert status(blue) == 200 and theirs.ended is None
            assert s.get(f"/v1/workspaces/{w}", headers=root).status == 200  # the work of the token's tenant goes on
            file.put("tokens:\n- {name: root, role: admin, sha256: " + hashlib.sha256(secret("root").encode()).hexdigest() + "}\n")
            s.process.send_signal(signal.SIGHUP)
            wait_for("the signal has it read", lambda: status(blue) == 401, 20)
            assert s.get("/v1/tokens", headers=root).status == 200
        finally:
            s.post("/v1/drain", headers=root)
            s.stop()
    shutil.rmtree(folder)


def opened_by_flag():
    """tokens: --open-loopback serves an instance that lost them; one that never had any survives the loss of its database"""
    with Server(args=["--open-loopback"]) as s:
        root = s.post("/v1/tokens", {"name": "root", "role": "admin"}).json
        assert s.get("/v1/pools").status == 401, "the flag opens nothing while there is a token"
        s.kill9()
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(s.data, "state", "hearth.db" + suffix))
        s.start()
        assert s.get("/v1/pools").status == 200
        assert s.get("/v1/pools", headers={"Authorization": "Bearer " + root["token"]}).status == 401
        problem(s.get("/v1/pools", headers={"X-Forwarded-For": "192.0.2.1"}), 401, "UNAUTHENTICATED")
        assert "level=warn event=auth.opened" in s.log()
    with Server() as s:
        s.stop()
        with open(os.path.join(s.data, "state", "hearth.db"), "r+b") as f:
            f.write(b"x" * 4096)
        s.start()
        assert s.get("/v1/tokens").status == 200


def foreign_pages():
    """without tokens: a web page of another loopback port commands nothing, whatever it posts"""
    with Server() as s:
        w = s.open_workspace()["id"]
        before = len(s.get("/v1/workspaces").json["items"])
        for origin in ("http://127.0.0.1:3000", f"http://localhost:{s.port}", "http://127.0.0.1", "null"):
            for path in ("/v1/workspaces", f"/v1/workspaces/{w}/touch", "/v1/drain", "/mcp"):
                for kind in ("text/plain", "application/x-www-form-urlencoded", None):
                    headers = {"Origin": origin} | ({"Content-Type": kind} if kind else {})
                    answer = s.call("POST", path, raw=b"", headers=headers)
                    assert answer.status == 403 and answer.json["errorCode"] == "FORBIDDEN", (origin, path, answer)
            assert s.call("DELETE", f"/v1/workspaces/{w}", headers={"Origin": origin}).status == 403
        assert len(s.get("/v1/workspaces").json["items"]) == before
        own = {"Origin": f"http://127.0.0.1:{s.port}"}
        assert s.call("POST", f"/v1/workspaces/{w}/touch", headers=own).status == 200


def operators():
    """roles: an operator sees id, pool, age and reason of another tenant's workspace, and may end it; an admin sees all"""
    with Server() as s:
        root = {"Authorization": "Bearer " + s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]}
        try:
            def token(tenant, role):
                made = s.post("/v1/tokens", {"name": tenant, "tenant": tenant, "role": role}, headers=root)
                return {"Authorization": "Bearer " + made.json["token"]}
            red, operator = token("red", "user"), token("ops", "operator")
            w = s.post("/v1/workspaces", {"name": "merger", "labels": {"customer": "acme"}}, headers=red).json["id"]
            e = s.post(f"/v1/workspaces/{w}/executions", {"command": "echo confidential"}, headers=red).json["id"]
            secrets = ("merger", "customer", "acme", "confidential")

            def hearth(*words):
                return subprocess.run([os.path.join(BUILD, "hearth"), *words, "--url", s.url], capture_output=True, text=True,
                                      env=dict(os.environ, HEARTH_TOKEN=operator["Authorization"].split()[1]), check=True)
            cli = hearth("get", "workspaces", "-o", "json")
            ps = hearth("ps", "--all")
            assert "ex_" not in ps.stdout and "workspaces of other tenants, not shown: 1 (needs the role admin)" in ps.stderr, ps
            shown = [cli.stdout] + [s.get(path, headers=operator).body.decode() for path in (
                "/v1/workspaces", f"/v1/workspaces/{w}", "/v1/events", "/v1/sandboxes", "/v1/pools")]
            for text in shown:
                assert not [word for word in secrets if word in text], text
            assert w in shown[0] and w in shown[1] and w in shown[3], shown
            one = s.get(f"/v1/workspaces/{w}", headers=operator).json
            assert one["pool"] == "shell" and one["tenant"] == "red" and one["createdAt"] and one["labels"] == {} and one["name"] is None, one
            assert s.get("/v1/workspaces?label=customer=acme", headers=operator).json["items"] == []
            for path in (f"/v1/executions/{e}", f"/v1/executions/{e}/events", f"/v1/workspaces/{w}/executions"):
                assert s.get(path, headers=operator).status == 404, path
                assert "confidential" in s.get(path, headers=root).body.decode() or path.endswith("executions"), path
            for path in (f"/v1/workspaces/{w}/usage", f"/v1/workspaces/{w}/egress"):  # on call, these name what fills the machine
                assert s.get(path, headers=operator).status == 404 and s.get(path, headers=root).status == 200, path
            assert s.get(f"/v1/workspaces/{w}", headers=root).json["labels"] == {"customer": "acme"}
            assert s.call("DELETE", f"/v1/workspaces/{w}", headers=operator).status == 204
            for who in (operator, red):
                gone = s.get(f"/v1/workspaces/{w}", headers=who)
                assert gone.status == 410 and gone.json["reason"] == "operator", gone
        finally:
            s.post("/v1/drain", headers=root)
            s.stop()


for test in [lost_tokens, lost_state, revoked_for_good, lapsed_streams, followed_file, opened_by_flag, foreign_pages, operators]:
    test.only = "oci"  # nothing in them depends on the runtime

if __name__ == "__main__":
    main("server", [lost_tokens, lost_state, revoked_for_good, lapsed_streams, followed_file, opened_by_flag, foreign_pages, operators])
