"""Two minutes of a busy day for a server: tenants with habits of their own, bursts, and faults that come and go."""

import concurrent.futures
import contextlib
import glob
import itertools
import http.server
import json
import math
import os
import signal
import socket
import threading
import time

import yaml
from gpu_machine import gpu_pool
from harness import pool_yaml
from index import wheel

GPUS = 4
LIBRARIES = [f"library{i}" for i in range(24)]
OUTSIDE = "127.0.0.2"  # exempt from what no sandbox reaches, so that a pool may allow it
TENANTS = {"research": {"workspaces": 12, "cpu": "12"}, "support": {"workspaces": 6, "memory": "4Gi"}, "agents": {"workspaces": 10, "executions": 8}}
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


def network(text, mode, allow=()):
    return text.replace("    resources:", f"    network: {{mode: {mode}, allow: {json.dumps(list(allow))}}}\n    resources:")


def pools(site):
    """Of the test images; `python` pauses its idle workspaces, and `shell` has fewer members than a burst asks for."""
    return "---\n".join([
        pool_yaml("shell", warm=4, members=9, max_wait="5s"),
        pool_yaml("python", image="python", warm=2, memory="512Mi", idle="4s", members=8).replace("maxLifetime: 1h", "maxLifetime: 1h, onIdle: Pause"),
        network(pool_yaml("packages", warm=1), "Mirror"),
        network(pool_yaml("web", warm=1), "Egress", [f"{OUTSIDE}:{site.port}"]),
        pool_yaml("cold", warm=0, on_empty="Create"),
        gpu_pool(warm=2)])


class Answers(http.server.ThreadingHTTPServer):
    """Says yes to every POST and GET, with some bytes: a collector of traces, and a site that sandboxes visit."""

    def __init__(self):
        super().__init__(("", 0), Always)
        self.port = self.server_port
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Always(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.answer(b"")  # an empty message: everything was accepted

    def do_GET(self):
        self.answer(b"x" * 60_000)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Tenant:
    """A user of the server, by a token."""

    def __init__(self, server, name):
        self.server = server
        self.headers = {"Authorization": "Bearer " + server.post("/v1/tokens", {"name": name, "tenant": name, "role": "user"}).json["token"]}

    def call(self, method, path, body=None, **headers):
        with contextlib.suppress(OSError):
            return self.server.call(method, path, body, headers={**self.headers, **headers})
        return None

    def open(self, pool, **fields):
        answer = self.call("POST", "/v1/workspaces", {"pool": pool, **fields})
        return answer.json["id"] if answer and answer.status == 201 else None

    def run(self, workspace, **fields):
        return self.call("POST", f"/v1/workspaces/{workspace}/executions", fields)

    def end(self, workspace):
        self.call("DELETE", f"/v1/workspaces/{workspace}")

    @contextlib.contextmanager
    def workspace(self, pool, **fields):
        name = self.open(pool, **fields)
        try:
            yield name
        finally:
            if name:
                self.end(name)


class Load:
    """Each habit is a thread that repeats until `over`; `run` comes back after so many seconds."""

    def __init__(self, server, machine, site):
        server.token = server.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]
        self.server, self.machine, self.site = server, machine, site
        for name, quota in TENANTS.items():
            assert server.call("PUT", f"/v1/quotas/{name}", quota).status == 201, name
        self.research, self.support, self.agents, self.guest = (Tenant(server, name) for name in (*TENANTS, "guest"))
        self.over, self.began = threading.Event(), time.monotonic()
        self.libraries = itertools.cycle(LIBRARIES)

    def run(self, seconds):
        habits = [self.commands, self.notebooks, self.installs, self.visits, self.trainings, self.tools, self.short_lives, self.strangers, self.bursts, self.faults]
        with concurrent.futures.ThreadPoolExecutor(len(habits)) as threads:
            running = [threads.submit(self.repeated, habit) for habit in habits]
            self.over.wait(seconds)
            self.over.set()
            for each in running:
                each.result()

    def repeated(self, habit):
        while not self.over.is_set():
            habit()

    def pause(self, seconds):
        """Longer and shorter by turns, as the day has hours."""
        self.over.wait(seconds * (1.3 + math.sin((time.monotonic() - self.began) / 9)))

    def commands(self):
        with self.research.workspace("shell") as w:
            for command in ("echo hi", "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done", "exit 1"):
                self.research.run(w, command=command)
                self.pause(0.15)
        self.pause(0.4)

    def notebooks(self):
        """It comes back after the pool has paused it."""
        with self.support.workspace("python") as w:
            for code in ("sum(i * i for i in range(300_000))", "x = bytearray(60_000_000); len(x)", "1 / 0"):
                self.support.run(w, code=code, language="python")
                self.pause(0.5)
            self.support.run(w, command="sleep 9", timeoutSeconds=1)
            self.over.wait(7)
            self.support.run(w, code="print('back')", language="python")
            self.over.wait(2)

    def fetch(self, tenant, pool, url, host):
        request = f"GET {url} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n"
        with tenant.workspace(pool) as w:
            tenant.run(w, command=f"for i in 1 2 3; do printf '{request}' | nc 127.0.0.1 3128 >/dev/null; sleep 0.2; done")

    def installs(self):
        """The first fetch of a file comes from the index, the others from what the mirror keeps."""
        library = next(self.libraries)
        for path in (f"simple/{library}/", f"files/{library}/{wheel(library)[0]}", "simple/unknown/"):
            self.fetch(self.agents, "packages", f"/pypi/{path}", "127.0.0.1:3128")
            self.pause(0.5)

    def visits(self):
        there = f"{OUTSIDE}:{self.site.port}"
        self.fetch(self.agents, "web", f"http://{there}/", there)
        self.pause(0.8)
        self.fetch(self.guest, "web", "http://example.invalid/", "example.invalid")

    def trainings(self):
        with self.research.workspace("gpu") as w:
            self.research.run(w, command="sleep 3")
            with self.guest.workspace("gpu") as other:
                self.guest.run(other, command="sleep 2")
        self.pause(1)

    def tools(self):
        hello = self.agents.call("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}, **MCP)
        session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]} if hello and "mcp-session-id" in hello.headers else {}
        for name, arguments in (("run", {"command": "true", "pool": "shell"}), ("run", {"command": "true", "pool": "none"}), ("workspace_list", {})):
            self.agents.call("POST", "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}, **MCP, **session)
            self.pause(0.6)

    def short_lives(self):
        """Ended by the server, some of them late; and claims of a pool that keeps nothing warm."""
        self.guest.open("shell", maxLifetimeSeconds=2)
        with self.guest.workspace("cold") as w:
            self.guest.run(w, command="true")
        self.pause(3)

    def strangers(self):
        """What is refused before it is routed: no TLS, no HTTP, another's name, another's page."""
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03"):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.server.port), 5) as plain:
                plain.sendall(words)
                plain.recv(10)
        for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            self.guest.call("GET", "/v1/pools", **headers)
        with contextlib.suppress(OSError), self.secure() as broken:
            broken.sendall(b"GET\r\n\r\n")
            broken.recv(10)
        self.pause(1.5)

    def secure(self):
        raw = socket.create_connection(("127.0.0.1", self.server.port), 5)
        return self.server.trusting.wrap_socket(raw, server_hostname="localhost")

    def bursts(self):
        """More claims at once than the pool has members, and than the tenant may hold."""
        self.over.wait(22)  # with the burst no multiple of the 15 s in which use is counted

        def one(_):
            with self.research.workspace("shell"):
                self.over.wait(9)
        with concurrent.futures.ThreadPoolExecutor(16) as many:
            list(many.map(one, range(16)))

    def faults(self):
        """A pool without an image, sandboxes that die, a device with errors. Each ends by itself."""
        self.over.wait(25)
        broken = yaml.safe_load(pool_yaml("nightly", image="no-such-image", warm=1))
        self.server.post("/v1/pools", broken)
        self.machine.write(GPUS - 1, "ecc", "3")
        for _ in range(3):
            self.kill()
            self.over.wait(8)
        os.remove(self.machine.place(GPUS - 1, "ecc"))
        broken["spec"]["template"]["image"] = "shell"
        self.server.call("PUT", "/v1/pools/nightly", broken)
        self.over.wait(600)

    def kill(self):
        """The first process of some sandbox."""
        files = [*glob.glob(f"/sys/fs/cgroup/*/hearth-{self.server.instance}/*/cgroup.procs"), *glob.glob(f"/sys/fs/cgroup/hearth-{self.server.instance}/*/cgroup.procs")]
        for path in files[:2]:
            with contextlib.suppress(OSError, IndexError), open(path, encoding="ascii") as f:
                os.kill(int(f.read().split()[0]), signal.SIGKILL)
