#!/usr/bin/env python3
"""Files in bulk, black box: archives both ways, links, artifacts, large files, slow clients, long listings."""

import contextlib
import hashlib
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Server, growth_allowed, main, pids, pool_yaml, resident, wait_for  # noqa: E402

LOOP_MAJOR = 7


def problem(answer, status, code):
    assert answer.status == status, answer
    assert answer.headers["content-type"].startswith("application/problem+json"), answer.headers
    assert answer.json["errorCode"] == code, answer


def tar_of(members):
    """Returns a tar of (name, content or TarInfo changes)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, dict):
                for key, value in content.items():
                    setattr(info, key, value)
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def archives():
    """archives: a tar unpacked and read back is the same tree; a refused one leaves nothing and says why"""
    with Server() as s:
        w = s.open_workspace()["id"]
        base = f"/v1/workspaces/{w}/archive"
        long_name = "d/" + "n" * 180 + "/你好.txt"
        random = os.urandom(3_000_000)
        tree = [("d", {"type": tarfile.DIRTYPE, "mode": 0o755}), ("d/random", random), (long_name, b"1"),
                ("d/empty", b""), ("d/link", {"type": tarfile.SYMTYPE, "linkname": "random"})]
        put = s.call("PUT", f"{base}?path=in/here", raw=tar_of(tree))
        assert put.status == 200 and put.json == {"files": 3, "directories": 1, "links": 1, "bytes": 3_000_001}, put
        got = s.get(f"{base}?path=in")
        assert got.status == 200 and got.headers["content-type"] == "application/x-tar", got
        with tarfile.open(fileobj=io.BytesIO(got.body)) as tar:
            names = set(tar.getnames())
            assert {"here", "here/d", "here/d/random", "here/" + long_name, "here/d/link"} <= names, names
            assert tar.extractfile("here/d/random").read() == random
            assert tar.getmember("here/d/link").linkname == "random"
        assert s.run(w, "ls -ln in/here/d | grep -c '1000 *1000'")["stdout"] != "0\n"
        for hostile in ([("ok", b"1"), ("../out", b"x")], [("/abs", b"x")], [("l", {"type": tarfile.SYMTYPE, "linkname": "/etc"}), ("l/x", b"1")]):
            refused = s.call("PUT", base, raw=tar_of(hostile))
            problem(refused, 400, "INVALID_ARGUMENT")
            assert hostile[-1][0] in refused.json["detail"], refused
        problem(s.call("PUT", base, raw=tar_of([("cut", b"x" * 9000)])[:3000]), 400, "INVALID_ARGUMENT")
        problem(s.call("PUT", base, raw=tar_of([("full", b"\0" * 80_000_000)])), 507, "DISK_FULL")
        problem(s.call("PUT", base, raw=b"x", headers={"Content-Type": "application/gzip"}), 415, "UNSUPPORTED_MEDIA_TYPE")
        form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n'
        to = f"/v1/workspaces/{w}/files/form"
        refused = s.call("PUT", to, raw=form, headers={"Content-Type": "multipart/form-data; boundary=b"})
        problem(refused, 415, "UNSUPPORTED_MEDIA_TYPE")
        assert "curl -T" in refused.json["hint"] and s.get(to).status == 404, refused
        problem(s.get(f"{base}?path=absent"), 404, "NOT_FOUND")
        problem(s.get(f"{base}?path=in/here/d/random"), 409, "CONFLICT")
        assert s.run(w, "ls -A")["stdout"] == "in\n", "what was refused left something"
        s.run(w, "mkdir -p deep/1; head -c 3000000 /dev/urandom > deep/0; cd deep/1; for i in $(seq 70); do mkdir d; cd d; done")
        too_deep = s.get(f"{base}?path=deep")
        problem(too_deep, 409, "CONFLICT")
        assert "64 levels" in too_deep.json["detail"], too_deep


def links():
    """links: a signed URL works without a token, for its file and time only, and runs nothing on our origin"""
    with Server() as s:
        made = s.post("/v1/tokens", {"name": "root", "tenant": "ops", "role": "admin"})
        root = {"Authorization": "Bearer " + made.json["token"]}
        s.drain = lambda: s.post("/v1/drain", headers=root)
        made = s.post("/v1/tokens", {"name": "red", "tenant": "red", "role": "user"}, headers=root)
        mine = {"Authorization": "Bearer " + made.json["token"]}
        w = s.call("POST", "/v1/workspaces", {}, headers=mine).json["id"]
        page = b"<script>alert(1)</script>"
        assert s.call("PUT", f"/v1/workspaces/{w}/files/a/page.html", raw=page, headers=mine).status == 200
        made = s.call("POST", f"/v1/workspaces/{w}/links", {"path": "a/page.html", "expiresInSeconds": 2}, headers=mine)
        assert made.status == 201 and made.json["url"].startswith(f"http://127.0.0.1:{s.port}/"), made
        path = urllib.parse.urlsplit(made.json["url"]).path
        got = s.get(path)
        assert got.status == 200 and got.body == page, got
        assert got.headers["content-disposition"].startswith("attachment") and "sandbox" in got.headers["content-security-policy"]
        assert got.headers["x-content-type-options"] == "nosniff" and "html" not in got.headers["content-type"]
        head = s.call("HEAD", path)
        assert head.status == 200 and head.headers["content-length"] == str(len(page))
        assert s.get(path, headers={"Range": "bytes=1-6"}).body == b"script"
        problem(s.get(path.replace("/page.html", "x/page.html")), 403, "FORBIDDEN")
        problem(s.get(f"/v1/workspaces/{w}/files/a/page.html"), 401, "UNAUTHENTICATED")
        assert s.call("POST", path).status == 405
        wait_for("the link's end", lambda: s.get(path).status == 410, 5)
        again = s.call("POST", f"/v1/workspaces/{w}/links", {"path": "a/page.html"}, headers=mine).json["url"]
        s.call("DELETE", f"/v1/workspaces/{w}", headers=mine)
        assert s.get(urllib.parse.urlsplit(again).path).status in (404, 410)


PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
                    "0000000d49444154789c6360f8cf000000030101003ea9a4c60000000049454e44ae426082")


def path_of(url):
    return urllib.parse.urlsplit(url).path


def artifacts():
    """artifacts: what a run made or changed is listed and kept, past its workspace and a restart; nothing else is"""
    with Server() as s:
        w = s.open_workspace()["id"]
        for name in ("old", "changed", "d/old"):
            s.call("PUT", f"/v1/workspaces/{w}/files/{name}", raw=b"before")
        s.call("PUT", f"/v1/workspaces/{w}/files/p.png", raw=PNG)
        made = ("echo after > changed; mkdir -p out/deep .hidden __pycache__; cp p.png out/deep/plot.png; echo 1,2 > out/t.csv; "
                "echo x > .hidden/x; echo y > __pycache__/y; ln -s /etc/passwd link; ln -s /etc out/etc; mkfifo pipe; touch -d 1999-01-01 out/dated")
        ran = s.run(w, made, collect=["**"])
        assert ran["status"] == "ok", ran
        found = {a["path"]: a for a in ran["artifacts"]}
        assert set(found) == {"changed", "out/deep/plot.png", "out/t.csv", "out/dated"}, found
        plot = found["out/deep/plot.png"]
        assert plot["mime"] == "image/png" and plot["size"] == len(PNG) and plot["sha256"] == hashlib.sha256(PNG).hexdigest(), plot
        assert plot["url"].startswith(f"http://127.0.0.1:{s.port}/v1/links/") and plot["urlExpiresAt"], plot
        assert found["out/t.csv"]["mime"] == "text/csv"
        assert s.get(path_of(plot["url"])).body == PNG
        assert s.get(path_of(plot["url"]), headers={"Range": "bytes=1-3"}).body == b"PNG"
        assert s.run(w, "echo 1 > unasked")["artifacts"] == []
        texts = s.run(w, "echo 1 > a.txt; mkdir q; echo 2 > q/b.txt; echo 3 > c.md", collect=["*.txt"])["artifacts"]
        assert sorted(a["path"] for a in texts) == ["a.txt", "q/b.txt"], texts
        assert s.run(w, "true", collect=["**"])["artifacts"] == [], "files of the run before were taken for this one's"
        again = s.get(f"/v1/executions/{ran['id']}").json
        assert {a["path"] for a in again["artifacts"]} == set(found)
        shot = s.post("/v1/executions", {"command": "cat in > out", "files": [{"path": "in", "text": "hi"}], "collect": ["**"]}).json
        assert [a["path"] for a in shot["artifacts"]] == ["out"], shot
        events = s.post(f"/v1/workspaces/{w}/executions", {"command": "echo 1 > streamed", "collect": ["**"]},
                        headers={"Accept": "text/event-stream"}).body.decode()
        assert '"path":"streamed"' in events.split("event: exit")[1], events
        s.call("DELETE", f"/v1/workspaces/{w}")
        assert s.get(path_of(plot["url"])).body == PNG
        s.stop()
        s.start()
        assert s.get(path_of(plot["url"])).body == PNG and s.get(path_of(shot["artifacts"][0]["url"])).body == b"hi"
        assert s.get(f"/v1/executions/{shot['id']}").json["artifacts"][0]["path"] == "out"


def names_that_are_not_utf8():
    """names that are not UTF-8 stand in lists as %D6%D0, and by that they are read, moved, linked and deleted, by every door"""
    with Server() as s:
        w = s.open_workspace()["id"]
        files = f"/v1/workspaces/{w}/files"
        made = s.run(w, "d=$(printf '\\326\\320'); printf gbk > \"$d\"; mkdir -p dir/\"$d\"; printf in > dir/\"$d\"/x; printf text > %D6%D0; printf p > 100%",
                     collect=["**"])
        assert made["exitCode"] == 0, made
        names = {"%D6%D0": b"gbk", "dir/%D6%D0/x": b"in", "%25D6%25D0": b"text", "100%": b"p"}
        assert {a["path"] for a in made["artifacts"]} == set(names), made["artifacts"]
        for artifact in made["artifacts"]:
            assert s.get(path_of(artifact["url"])).body == names[artifact["path"]], artifact
        listed, cursor = [], ""
        while cursor is not None:
            page = s.get(f"{files}?recursive=true&limit=1{cursor}").json
            listed += [x["path"] for x in page["items"]]
            cursor = page.get("nextCursor") and "&cursor=" + urllib.parse.quote(page["nextCursor"])
        assert sorted(listed) == sorted([*names, "dir", "dir/%D6%D0"]), listed
        for name, content in names.items():
            assert s.get(f"{files}/{urllib.parse.quote(name)}").body == content, name
        assert s.get(f"{files}/%D6%D0").body == b"gbk" and s.call("HEAD", f"{files}/dir/%d6%d0/x").status == 200
        assert [x["path"] for x in s.get(f"{files}?path=dir/%D6%D0").json["items"]] == ["dir/%D6%D0/x"]
        link = s.post(f"/v1/workspaces/{w}/links", {"path": "%D6%D0"}).json["url"]
        assert s.get(path_of(link)).body == b"gbk"
        for query, member in (("dir/%D6%D0", "x"), ("dir/%25D6%25D0", "x"), ("dir", "\udcd6\udcd0/x")):
            with tarfile.open(fileobj=io.BytesIO(s.get(f"/v1/workspaces/{w}/archive?path={query}").body)) as tar:
                assert member in tar.getnames(), tar.getnames()
        tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "file_get", "arguments": {"workspace_id": w, "path": "%D6%D0"},
            "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}
        got = s.post("/mcp", tool, headers={"Mcp-Method": "tools/call", "Mcp-Name": "file_get", "MCP-Protocol-Version": "2026-07-28"})
        assert "gbk" in json.dumps(got.json["result"]["content"]), got
        for uri in (f"workspace://{w}/files/%D6%D0", f"workspace://{w}/files/%25D6%25D0"):
            read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": dict(tool["params"], uri=uri, name="", arguments={})}
            got = s.post("/mcp", read, headers={"Mcp-Method": "resources/read", "Mcp-Name": uri, "MCP-Protocol-Version": "2026-07-28"})
            assert got.json["result"]["contents"][0]["text"] == "gbk", got
        with tempfile.TemporaryDirectory() as folder:
            def hearth(*words):
                return subprocess.run([os.path.join(BUILD, "hearth"), *words], cwd=folder, capture_output=True, check=True,
                                      env=dict(os.environ, HEARTH_URL=s.url)).stdout
            assert b"%D6%D0" in hearth("ls", w + ":"), hearth("ls", w + ":")
            hearth("cp", w + ":%D6%D0", "one")
            hearth("cp", os.fsencode(w) + b":\xd6\xd0", "two")
            hearth("cp", w + ":dir", "tree")
            assert [open(os.path.join(os.fsencode(folder), name), "rb").read() for name in (b"one", b"two", b"tree/\xd6\xd0/x")] == [b"gbk", b"gbk", b"in"]
            hearth("cp", "one", os.fsencode(w) + b":in/\xd6")
        assert s.get(f"{files}/in/%D6").body == b"gbk"
        assert s.post(f"{files}:move", {"from": "%D6%D0", "to": "dir/%D6%D0/%D6"}).status == 204
        assert s.run(w, "cat dir/*/$(printf '\\326')")["stdout"] == "gbk"
        assert s.get(f"{files}/%D6%D0").status == 404 and s.get(f"{files}/%2525D6%2525D0").body == b"text"
        assert s.call("DELETE", f"{files}/dir/%D6%D0?recursive=true").status == 204
        assert [x["path"] for x in s.get(f"{files}?path=dir").json["items"]] == []


def artifact_quota():
    """artifacts beyond 64 MiB a workspace are listed without a link"""
    with Server(pools=pool_yaml().replace("workspace: 64Mi", "workspace: 200Mi").replace("memory: 128Mi", "memory: 512Mi")) as s:
        w = s.open_workspace()["id"]
        ran = s.run(w, "for i in 1 2 3; do head -c 30000000 /dev/zero > f$i; done", collect=["f*"])
        kept = [a for a in ran["artifacts"] if a["url"]]
        left = [a for a in ran["artifacts"] if not a["url"]]
        assert len(kept) == 2 and len(left) == 1 and left[0]["reason"] == "quota", ran["artifacts"]
        assert left[0]["sha256"] == hashlib.sha256(b"\0" * 30_000_000).hexdigest()


def agents(instance):
    """Returns the agents of this server, as the host sees them."""
    found = []
    for pid in pids():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f, open(f"/proc/{pid}/cgroup", encoding="ascii") as g:
                if b".hearth/agent" in f.read() and instance in g.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def large_file():
    """1 GiB goes up and down with the memory of server and agent as before"""
    size, piece = 1 << 30, os.urandom(1 << 20)
    with Server(pools=pool_yaml(warm=1).replace("workspace: 64Mi", "workspace: 1300Mi")) as s:
        w = s.open_workspace()["id"]
        s.call("PUT", f"/v1/workspaces/{w}/files/small", raw=piece)
        s.get(f"/v1/workspaces/{w}/files/small")
        watched = [s.process.pid] + agents(s.instance)
        assert len(watched) >= 2, "no agent was found"
        before, most, done = {p: resident(p, "RssAnon") for p in watched}, {}, threading.Event()

        def watch():
            while not done.wait(0.05):
                for p in watched:
                    most[p] = max(most.get(p, 0), resident(p, "RssAnon"))
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=120)
            begin = time.monotonic()
            connection.request("PUT", f"/v1/workspaces/{w}/files/big", body=(piece for _ in range(size >> 20)),
                               headers={"Content-Length": str(size)})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            up = time.monotonic() - begin
            begin = time.monotonic()
            connection.request("GET", f"/v1/workspaces/{w}/files/big")
            answer = connection.getresponse()
            left = size
            while left:
                got = answer.read(1 << 20)
                assert got == piece, "the file differs"
                left -= len(got)
            down = time.monotonic() - begin
            connection.request("GET", f"/v1/workspaces/{w}/archive")
            answer, total = connection.getresponse(), 0
            while got := answer.read(1 << 20):
                total += len(got)
            assert total > size
            connection.close()
        finally:
            done.set()
            watcher.join()
        grown = {p: most[p] - before[p] for p in watched}
        print(f"      up {up:.1f} s, down {down:.1f} s; grown by {max(grown.values()) >> 10} KiB", flush=True)
        assert all(g < growth_allowed(16 << 20) for g in grown.values()), grown


large_file.only = "oci"


def slow_clients():
    """an end cuts transfers under way: a client that reads nothing and one that sends nothing keep no disk"""
    def passed(pid):
        """Returns the device numbers of the disks whose files the server has open."""
        found = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{fd}")
                if os.major(status.st_dev) == LOOP_MAJOR:
                    found.add(os.minor(status.st_dev))
        return found

    def backing(number):
        with contextlib.suppress(OSError), open(f"/sys/block/loop{number}/loop/backing_file", encoding="utf-8") as f:
            return f.read()
        return None

    with Server(pools=pool_yaml(warm=2)) as s:
        for method in ("GET", "PUT"):
            w = s.open_workspace()["id"]
            s.run(w, "head -c 40000000 /dev/urandom > big")
            client = socket.create_connection(("127.0.0.1", s.port))
            try:
                client.settimeout(60)
                head = f"{method} /v1/workspaces/{w}/files/big HTTP/1.1\r\nHost: localhost\r\n"
                if method == "PUT":
                    client.sendall(f"{head}Content-Length: 40000000\r\n\r\n".encode() + b"x" * 1_000_000)
                else:
                    client.sendall((head + "\r\n").encode())
                    assert client.recv(1000).startswith(b"HTTP/1.1 200"), "no answer"
                disks = wait_for("a file that was passed", lambda: passed(s.process.pid))
                before = {number: backing(number) for number in disks}
                assert all(before.values()), before
                assert s.call("DELETE", f"/v1/workspaces/{w}").status == 204
                wait_for("the end of its disk", lambda: all(backing(n) != before[n] for n in disks), 10)
                assert not passed(s.process.pid) & disks
                if method == "GET":
                    got = 1000
                    with contextlib.suppress(ConnectionResetError):
                        while piece := client.recv(1 << 20):
                            got += len(piece)
                    assert got < 40_000_000, "it was never cut"
            finally:
                client.close()


def long_listing():
    """a directory of 50,000 files is listed by pages, each once, in order, without the server or agent growing"""
    with Server(pools=pool_yaml(warm=1).replace("workspace: 64Mi", "workspace: 1Gi")) as s:
        w = s.open_workspace()["id"]
        made = s.run(w, "mkdir d; cd d; seq -w 50000 | xargs touch", timeoutSeconds=60)
        assert made["status"] == "ok", made["stderr"][-300:]
        def pages(most):
            cursor = ""
            while cursor is not None and most > 0:
                after = "&cursor=" + urllib.parse.quote(cursor) if cursor else ""
                page = s.get(f"/v1/workspaces/{w}/files?path=d&limit=1000{after}").json
                yield [i["path"] for i in page["items"]]
                cursor, most = page["nextCursor"], most - 1

        names = [name for page in pages(100) for name in page]
        assert len(names) == 50_000 and len(set(names)) == 50_000 and names == sorted(names)
        before = resident(s.process.pid, "RssAnon")  # with the heaps of its threads as large as a page makes them
        grown = max(resident(s.process.pid, "RssAnon") - before for _ in pages(20))
        assert grown < growth_allowed(8 << 20), f"grown by {grown >> 10} KiB"


long_listing.only = "oci"  # docker's workspace is memory and has fewer inodes


slow_clients.only = "oci"  # only its disks are file systems of their own

if __name__ == "__main__":
    main("server", [archives, links, artifacts, names_that_are_not_utf8, artifact_quota, large_file, slow_clients, long_listing])
