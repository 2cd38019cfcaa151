#!/usr/bin/env python3
# suite: seconds=90
"""docs/limits.md against a real server with the pool of ./run: each row's numbers are read from the page; what they allow
works, and the next larger is refused as the page says. Standard library only."""

import io
import json
import os
import resource
import re
import subprocess
import sys
import tarfile
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import REPO, SLOWER, Shared, main, wait_for  # noqa: E402

POOL = subprocess.run([os.path.join(REPO, "sandbox_images", "default_pool"), "1024", "1"], capture_output=True, text=True, check=True).stdout
shared = Shared(pools=POOL, ready_within=300)
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "hours": 3600, "days": 86400}


def page():
    """Returns the cells of each row of each section, by what they limit."""
    sections, rows = {}, None
    with open(os.path.join(REPO, "docs", "limits.md"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                rows = sections.setdefault(line[3:].strip(), {})
            elif line.startswith("| ") and not line.startswith("| What |"):
                what, limit, beyond = (cell.strip() for cell in line.strip().strip("|").split(" | "))
                assert what not in rows, what
                rows[what] = (limit, beyond)
    return sections


def numbers(text):
    """Returns the numbers of a cell, in bytes and seconds where it has units."""
    found = re.findall(r"(\d[\d,]*)(?: (KiB|MiB|GiB|hours|days))?\b", text)
    return [int(number.replace(",", "")) * UNITS.get(unit, 1) for number, unit in found]


def every_row(section, checks):
    rows = page()[section]
    assert list(rows) == list(checks), (list(rows), list(checks))
    failures = []
    for what, (limit, beyond) in rows.items():
        try:
            checks[what](numbers(limit), limit + " | " + beyond)
        except Exception as failure:
            failures.append(f"{what}: {failure!r}")
    assert not failures, "\n".join(failures)


def constant(path, name):
    """Returns a constant of the source, where what it limits is too large for a test."""
    with open(os.path.join(REPO, path), encoding="utf-8") as file:
        text = re.search(name + r"(?: =|\{) ?([\d'<< UL]+)[;},]", file.read()).group(1)
    return eval(re.sub("[UL']", "", text))  # digits and shifts


def status(answer, *expected):
    assert answer.status in expected, answer
    return answer


def requests():
    """each limit of a request in docs/limits.md holds: its number is taken, and the next one refused"""
    with shared as s:
        w = s.open_workspace()["id"]
        here = f"/v1/workspaces/{w}/executions"

        def run(answer, **fields):
            return status(s.post(here, fields, timeout=100), answer)

        def patch(answer, labels):
            return status(s.call("PATCH", f"/v1/workspaces/{w}", {"labels": labels}), answer)

        def body(limits, _):
            head, tail = b'{"code":"1","language":"python","stdin":"', b'"}'
            room = limits[0] - len(head) - len(tail)
            for more, answer in ((0, 200), (1, 413)):
                status(s.call("POST", here, raw=head + b"x" * (room + more) + tail, headers={"Content-Type": "application/json"}), answer)

        def command(limits, _):
            run(200, command=": " + "x" * (limits[0] - 3))
            run(400, command=": " + "x" * (limits[0] - 2))
            run(200, argv=["true", "x" * (limits[0] - 1)])
            run(400, argv=["true", "x" * limits[0]])

        def argv(limits, _):
            run(200, argv=["true"] * limits[0])
            run(400, argv=["true"] * (limits[0] + 1))

        def together(limits, _):
            rest = len(json.dumps([[], "", "", "", {}, [], [], [], []], separators=(",", ":")))
            run(200, language="python", code="#" * (limits[0] - rest))
            run(413, language="python", code="#" * (limits[0] - rest + 1))

        def variables(limits, _):
            for many, answer in ((limits[0], 201), (limits[0] + 1, 400)):
                for field in ("env", "secrets"):
                    made = status(s.post("/v1/workspaces", {field: {f"V{i}": "x" for i in range(many)}}), answer)
                    assert answer == 400 or s.call("DELETE", f"/v1/workspaces/{made.json['id']}").status == 204

        def variable(limits, _):
            name, value = limits
            run(200, command="true", env={"n" * name: "v" * value})
            run(400, command="true", env={"n" * (name + 1): "v"})
            run(400, command="true", env={"n": "v" * (value + 1)})

        def stdin(_, text):
            made = run(202, command="wc -c", stdinOpen=True, background=True).json["id"]
            for last in (False, True):
                status(s.call("POST", f"/v1/executions/{made}/stdin" + ("?close=true" if last else ""), raw=b"x" * 3_000_000, timeout=100), 200, 202, 204)
            done = wait_for("its end", lambda: (e := s.get(f"/v1/executions/{made}").json)["status"] != "running" and e)
            assert "stdinOpen" in text and done["stdout"] == "6000000\n", done

        def files(limits, _):
            for many, answer in ((limits[0], 201), (limits[0] + 1, 400)):
                made = status(s.post("/v1/workspaces", {"files": [{"path": f"f{i}", "text": ""} for i in range(many)]}), answer)
                assert answer == 400 or s.call("DELETE", f"/v1/workspaces/{made.json['id']}").status == 204

        def labels(limits, _):
            patch(200, {f"l{i}": "x" for i in range(limits[0])})
            patch(400, {f"l{i}": "x" for i in range(limits[0] + 1)})

        def name(limits, _):
            made = status(s.post("/v1/workspaces", {"name": "n" * limits[0]}), 201).json["id"]
            status(s.call("DELETE", f"/v1/workspaces/{made}"), 204)
            status(s.post("/v1/workspaces", {"name": "n" * (limits[0] + 1)}), 400)

        def count(limits, _):
            status(s.post("/v1/workspaces:batch", {"count": limits[0] + 1}), 400)
            assert "too small" in status(s.post("/v1/workspaces:batch", {"count": limits[0]}), 422).json["message"]  # but well formed

        def life(limits, _):
            for field in ("idleTimeoutSeconds", "maxLifetimeSeconds"):
                refused = status(s.call("PATCH", f"/v1/workspaces/{w}", {field: limits[0] + 1}), 400)
                assert refused.json["errors"][0]["pointer"] == f"/{field}" and str(limits[0]) in refused.json["message"], refused
                taken = s.call("PATCH", f"/v1/workspaces/{w}", {field: limits[0]})
                assert taken.status == 200 or "the pool ends its workspaces" in taken.json["message"], taken
        every_row("Requests", {
            "a body of JSON": body, "`command`, and each of `argv`": command, "`argv`": argv,
            "command or code with environment, packages and `collect`, as JSON": together, "`env`, `secrets`": variables,
            "a variable": variable, "`stdin` of a request": stdin, "`files` of a request": files, "`labels`": labels, "`name`": name,
            "`count` of `POST /v1/workspaces:batch`": count, "`idleTimeoutSeconds`, `maxLifetimeSeconds`": life})


def executions():
    """each limit of an execution in docs/limits.md holds, and a traceback of a million frames is described within a second"""
    with shared as s:
        w = s.open_workspace()["id"]
        here = f"/v1/workspaces/{w}/executions"

        def run(answer, **fields):
            return status(s.post(here, fields, timeout=100), answer)

        def timeout(limits, _):
            run(200, command="true", timeoutSeconds=limits[0])
            run(400, command="true", timeoutSeconds=limits[0] + 1)
            described = s.get("/openapi.json").json["components"]["schemas"]["ExecutionRequest"]["properties"]
            assert limits[1] == described["timeoutSeconds"]["default"], described["timeoutSeconds"]

        def output(limits, _):
            run(400, command="true", outputLimitBytes=limits[0] + 1)
            for given, limit in (({"outputLimitBytes": limits[0]}, limits[0]), ({}, limits[1])):
                done = run(200, command=f"head -c {limit + 5} /dev/zero | tr '\\0' x", **given).json
                assert 5 <= done["droppedBytes"] < 1000 and len(done["stdout"]) + done["droppedBytes"] <= limit + 1000, done["droppedBytes"]

        def running(limits, _):
            ids = [run(202, command="sleep 100", background=True).json["id"] for _ in range(limits[0])]
            run(429, command="true")
            for each in ids:
                status(s.call("DELETE", f"/v1/executions/{each}"), 204)
            wait_for("their ends", lambda: all(s.get(f"/v1/executions/{each}").json["status"] != "running" for each in ids))

        def contexts(limits, _):
            ids = [status(s.post(f"/v1/workspaces/{w}/contexts", {"language": "bash"}), 201).json["id"] for _ in range(limits[0])]
            status(s.post(f"/v1/workspaces/{w}/contexts", {"language": "bash"}), 429)
            for each in ids:
                status(s.call("DELETE", f"/v1/contexts/{each}"), 204)

        def results(limits, _):
            frame = "pool/agent/protocol/Frame.h"
            assert limits == [constant(frame, name) for name in ("kMaxResults", "kMaxResult", "kMaxResultBytes")], limits

        def patterns(limits, _):
            run(200, command="true", collect=["x" * limits[1]] * limits[0])
            run(400, command="true", collect=["x" * limits[1]] * (limits[0] + 1))
            run(400, command="true", collect=["x" * (limits[1] + 1)])

        def traceback(limits, _):
            code = "import sys\nsys.setrecursionlimit(10**7)\ndef f(n):\n    if n == 0:\n        raise RecursionError('deep')\n    f(n-1)\nf(10**6)\n"
            plain = s.run(w, f"cat > deep.py <<'E'\n{code}E\npython3 deep.py > /dev/null")
            told = plain["stderr"]
            done = run(200, code=code, language="python").json
            lines = lambda text: [line for line in text.splitlines() if not line.startswith("  File ")]  # noqa: E731
            assert done["status"] == "failed" and lines(done["stderr"]) == lines(told), (done["stderr"], told)
            assert f"[Previous line repeated {limits[0] - 4} more times]" in told and done["error"]["name"] == "RecursionError", done
            # In processor time: the wall's depends on what else runs. Describing each frame took 9 s more.
            assert done["usage"]["cpuMs"] < plain["usage"]["cpuMs"] + 1000 * SLOWER, (done["usage"], plain["usage"])
        every_row("Executions", {
            "`timeoutSeconds`": timeout, "`outputLimitBytes`": output, "running at once in a workspace": running, "contexts of a workspace": contexts,
            "results of one execution": results, "patterns of `collect`": patterns, "a traceback": traceback})


def tar_of(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in entries:
            entry = tarfile.TarInfo(name)
            entry.type = tarfile.DIRTYPE
            tar.addfile(entry)
    return out.getvalue()


def files():
    """each limit of files in docs/limits.md holds: its number is taken, and the next one refused"""
    with shared as s:
        w = s.open_workspace()["id"]
        here = f"/v1/workspaces/{w}"

        def path(limits, _):
            longest, name = limits
            for length, answers in ((name, (200, 201, 204)), (name + 1, (400,))):
                status(s.call("PUT", f"{here}/files/{'n' * length}", raw=b"x"), *answers)
            whole = "/".join(["d" * 63] * 63 + ["e" * 64])[:longest]
            assert len(whole) == longest
            for asked, answers in ((whole, (404,)), (whole + "e", (400,))):
                status(s.get(f"{here}/files?path={urllib.parse.quote(asked)}"), *answers)

        def unpacked(limits, _):
            many, deep = limits
            status(s.call("PUT", f"{here}/archive?path=in", raw=tar_of(["d"] * many), timeout=100), 200)
            status(s.call("PUT", f"{here}/archive?path=in", raw=tar_of(["d"] * (many + 1)), timeout=100), 400)
            status(s.call("PUT", f"{here}/archive?path=in", raw=tar_of(["/".join(["d"] * deep)])), 200)
            status(s.call("PUT", f"{here}/archive?path=in", raw=tar_of(["/".join(["d"] * (deep + 1))])), 400)

        def packed(limits, _):
            many, deep = limits
            assert s.run(w, f"mkdir -p deep/{'/'.join(['d'] * deep)}")["exitCode"] == 0
            status(s.get(f"{here}/archive?path=deep"), 200)
            assert s.run(w, f"mkdir deep/{'/'.join(['d'] * deep)}/d")["exitCode"] == 0
            status(s.get(f"{here}/archive?path=deep"), 409)
            links = (f"import os\nos.mkdir('links')\nfor i in range({many}):\n    if i % 50_000 == 0:\n        last = f'links/{{i}}'\n"
                     "        open(last, 'w')\n    else:\n        os.link(last, f'links/{i}')\n")
            done = s.post(f"{here}/executions", {"code": links, "language": "python"}, timeout=100).json
            assert done["status"] == "ok", done
            status(s.get(f"{here}/archive?path=links", timeout=100), 200)
            assert s.run(w, "touch links/more")["exitCode"] == 0
            status(s.get(f"{here}/archive?path=links", timeout=100), 409)

        def listed(limits, text):
            assert len(s.get(f"{here}/files?path=links&limit={limits[0]}").json["items"]) == limits[0]
            status(s.get(f"{here}/files?path=links&limit={limits[0] + 1}"), 400)
            assert "nextCursor" in text

        def link(limits, _):
            status(s.post(f"{here}/links", {"path": "links/0", "expiresInSeconds": limits[0]}), 201)
            status(s.post(f"{here}/links", {"path": "links/0", "expiresInSeconds": limits[0] + 1}), 400)
        every_row("Files", {"a path": path, "a tar to unpack, and `hearth cp` of a directory into a workspace": unpacked,
                            "a directory as a tar": packed, "a page of a list of files": listed, "a signed link": link})


def networks():
    """each limit of packages and networks in docs/limits.md is that of the server"""
    limits_of = "controller/egress/policy/WorkspaceEgress.h"
    with shared as s:
        here = f"/v1/workspaces/{s.open_workspace()['id']}"

        def names(limits, _):
            many, length = limits
            for target, field in (("packages", "check"), ("packages", "install"), ("executions", "packages")):
                rest = {"command": "true"} if target == "executions" else {}
                assert status(s.post(f"{here}/{target}", {field: ["x"] * (many + 1), **rest}), 400).json["errors"][0]["pointer"] == f"/{field}"
                assert status(s.post(f"{here}/{target}", {field: ["x" * (length + 1)], **rest}), 400).json["errors"][0]["pointer"] == f"/{field}/0"
            status(s.post(f"{here}/packages", {"check": ["x"] * many + []}, timeout=100), 200)

        def rate(limits, _):
            assert limits == [constant(limits_of, "requests_per_second"), constant(limits_of, "burst")], limits

        def connections(limits, _):
            assert limits == [constant(limits_of, "connections")], limits

        def carried(limits, _):
            assert limits == [constant(limits_of, "bytes")], limits

        def file(limits, _):
            assert limits == [constant("controller/egress/mirror/store/IndexFiles.h", "most")], limits
        every_row("Packages and networks", {
            "`packages`, `install`, `check`": names, "requests of a workspace": rate, "connections of a workspace": connections,
            "bytes of a workspace": carried, "a file of a package index": file})


PROBE = r"""
import ctypes, errno, json, os, resource, socket, stat, threading
libc = ctypes.CDLL(None, use_errno=True)
def error_of(call):
    try:
        call()
    except OSError as e:
        return errno.errorcode[e.errno]
def raw(number, *arguments):
    ctypes.set_errno(0)
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(number, *arguments) < 0 else None
def room(path):
    at = os.statvfs(path)
    return at.f_blocks * at.f_frsize
def shared(size):
    libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
    got = libc.shmget(0, size, 0o1600)
    if got >= 0:
        libc.shmctl(got, 0, None)
    return got >= 0
def sparse(length):
    with open("sparse", "wb") as file:
        file.seek(length - 1)
        file.write(b"x")
        file.flush()
        found = os.fstat(file.fileno())
        os.unlink("sparse")
    return [found.st_size, found.st_blocks < 100, resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY]
def fork_all():
    held = []
    try:
        while len(held) < 1000:
            at = os.fork()
            if at == 0:
                os.pause() if hasattr(os, "pause") else __import__("signal").pause()
            held.append(at)
    except OSError as e:
        return len(held), errno.errorcode[e.errno]
    finally:
        for each in held:
            os.kill(each, 9)
            os.waitpid(each, 0)
print(json.dumps({
    "tmp": room("/tmp"), "shm": room("/dev/shm"), "files": resource.getrlimit(resource.RLIMIT_NOFILE),
    "stack": resource.getrlimit(resource.RLIMIT_STACK), "core": resource.getrlimit(resource.RLIMIT_CORE),
    "sparse": sparse(16 << 30), "sysv": [shared(64 << 20), shared((64 << 20) + 4096)], "forks": fork_all(),
    "device": error_of(lambda: os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))),
    "fifo": error_of(lambda: os.mkfifo("fifo")), "socket": error_of(lambda: os.mknod("socket", 0o600 | stat.S_IFSOCK)),
    "uid": os.getresuid(), "setuid": error_of(lambda: os.setuid(0)), "chroot": error_of(lambda: os.chroot("/")),
    "unshare": raw(272, 0x10000000), "mount": raw(165, b"none", b"/tmp", b"tmpfs", 0, None), "ptrace": raw(101, 0, 0, 0, 0),
    "io_uring": raw(425, 1, None), "raw": error_of(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    "tcp": error_of(lambda: socket.create_server(("127.0.0.1", 0))),
    "udp": error_of(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(("127.0.0.1", 0)))}))
"""


def inside():
    """each limit inside a sandbox of the pool of ./run is the one that docs/limits.md says, as the sandbox's programs see it"""
    resources = re.search(r"^ *resources: (\{.*\})", POOL, re.MULTILINE).group(1)
    sizes = dict(re.findall(r"(\w+): \"?(\w+)", resources))
    with shared as s:
        w = s.open_workspace()["id"]
        seen = s.post(f"/v1/workspaces/{w}/executions", {"argv": ["python3", "-c", PROBE], "timeoutSeconds": 100}, timeout=120).json
        assert seen["status"] == "ok", seen
        seen = json.loads(seen["stdout"])

        def declared(name, of=lambda size: int(size.removesuffix("Mi")) << 20):
            def check(limits, text):
                assert limits[0] == of(sizes[name]), (limits, sizes)
                if name == "memory":
                    done = s.post(f"/v1/workspaces/{w}/executions", {"code": "x = b'x' * (600 << 20)", "language": "python"}, timeout=100).json
                    assert done["status"] == "oom" and "`oom`" in text, done
                elif name in ("workspace", "tmp"):
                    place = "/workspace" if name == "workspace" else "/tmp"
                    full = s.run(w, f"head -c {limits[0] + 1} /dev/zero > {place}/full; rm {place}/full")
                    assert "No space left" in full["stderr"] and "ENOSPC" in text, full
            return check

        def processes(limits, text):
            assert limits == [int(sizes["pids"])]
            many, error = seen["forks"]
            assert limits[0] - 20 < many < limits[0] and error in text, seen

        def is_seen(*pairs):
            def check(limits, text):
                for name, expected in pairs:
                    value = expected(limits) if callable(expected) else expected
                    assert seen[name] == value, (name, seen[name], value)
                    assert not isinstance(value, str) or value in text, (value, text)
            return check
        own = resource.getrlimit(resource.RLIMIT_NOFILE)[1]  # the server can give no more than it has
        every_row("Inside a sandbox", {
            "memory": declared("memory"), "processes and threads": processes, "`/workspace`": declared("workspace"), "`/tmp`": declared("tmp"),
            "the length of a file": is_seen(("sparse", lambda limits: [limits[0], True, True])),
            "`/dev/shm`": is_seen(("shm", lambda limits: min(limits[0], seen["tmp"]))),
            "System V shared memory": is_seen(("sysv", [True, False])),
            "open files of a process": is_seen(("files", lambda limits: [limits[0], min(limits[1], own)])), "a stack": is_seen(("stack", list)),
            "core dumps": is_seen(("core", lambda limits: limits * 2)),
            "device nodes": is_seen(("device", "EPERM"), ("fifo", None), ("socket", None)),
            "user": is_seen(("uid", lambda limits: limits * 3), ("setuid", "EPERM")),
            "namespaces, mounts, chroot": is_seen(("unshare", "EPERM"), ("mount", "EPERM"), ("chroot", "EPERM")),
            "`ptrace` (gdb, strace)": is_seen(("ptrace", "EPERM")), "io_uring": is_seen(("io_uring", "ENOSYS")),
            "raw sockets (`ping`)": is_seen(("raw", "EPERM"), ("tcp", None), ("udp", None))})


def mcp():
    """each limit of MCP in docs/limits.md holds, and null means absent"""
    with shared as s:
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}

        def send(message, *answers, **more):
            raw = message if isinstance(message, bytes) else json.dumps(message).encode()
            return status(s.call("POST", "/mcp", raw=raw, headers=dict(headers, **more)), *answers)

        def session(version):
            made = send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": version, "capabilities": None}}, 200)
            return {"Mcp-Session-Id": made.headers["mcp-session-id"], "MCP-Protocol-Version": version}
        new, old = session("2025-11-25"), session("2025-03-26")

        def message(limits, _):
            line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
            send(line + b" " * (limits[0] - len(line)), 200, **new)
            send(line + b" " * (limits[0] - len(line) + 1), 413, **new)
            assert limits[1] == constant("api/mcp/stdio/StdioBridge.h", "kMaxLine"), limits

        def identity(limits, _):
            assert send({"jsonrpc": "2.0", "id": "i" * limits[0], "method": "ping"}, 200, **new).json["id"] == "i" * limits[0]
            assert "longer than" in send({"jsonrpc": "2.0", "id": "i" * (limits[0] + 1), "method": "ping"}, 400, **new).json["error"]["message"]

        def uri(limits, _):
            for length, long in ((limits[0], False), (limits[0] + 1, True)):
                asked = {"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "hearth://" + "x" * (length - 9)}}
                assert ("longer than" in send(asked, 200, **new).body.decode()) == long

        def batch(limits, _):
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert len(send([ping] * limits[0], 200, **old).json) == limits[0]
            send([ping] * (limits[0] + 1), 400, **old)
        every_row("MCP", {"a message": message, "the id of a request, a progress token": identity, "the URI of a subscription": uri,
                          "messages of a batch (2025-03-26)": batch})
        for params in (None, {"cursor": None, "_meta": None}):
            assert len(send({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}, 200, **new).json["result"]["tools"]) == 10
        for arguments in (None, {"cursor": None}, {}):
            called = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "workspace_list", "arguments": arguments, "_meta": None}}
            answer = send(called, 200, **new).json
            assert not answer["result"].get("isError"), answer


def ends():
    """the server of these tests leaves nothing"""
    shared.end()


TESTS = [requests, executions, files, networks, inside, mcp, ends]
for test in TESTS:
    test.only = "oci"

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        shared.clean_up()
