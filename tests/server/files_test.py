#!/usr/bin/env python3
"""Files in bulk, black box: archives both ways, links, artifacts, large files, long listings."""

import hashlib
import io
import os
import sys
import tarfile
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, pids, parent, pool_yaml, wait_for  # noqa: E402


def problem(answer, status, code):
    assert answer.status == status, answer
    assert answer.headers["content-type"].startswith("application/problem+json"), answer.headers
    assert answer.json["errorCode"] == code, answer


def tar_of(members):
    """A tar of (name, content or TarInfo changes)."""
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
        for hostile in ([("ok", b"1"), ("../out", b"x")], [("/abs", b"x")], [("l", {"type": tarfile.SYMTYPE, "linkname": "/etc"})]):
            refused = s.call("PUT", base, raw=tar_of(hostile))
            problem(refused, 400, "INVALID_ARGUMENT")
            assert hostile[-1][0] in refused.json["detail"], refused
        problem(s.call("PUT", base, raw=tar_of([("cut", b"x" * 9000)])[:3000]), 400, "INVALID_ARGUMENT")
        problem(s.call("PUT", base, raw=tar_of([("full", b"\0" * 80_000_000)])), 507, "DISK_FULL")
        problem(s.call("PUT", base, raw=b"x", headers={"Content-Type": "application/gzip"}), 415, "UNSUPPORTED_MEDIA_TYPE")
        problem(s.get(f"{base}?path=absent"), 404, "NOT_FOUND")
        problem(s.get(f"{base}?path=in/here/d/random"), 409, "CONFLICT")
        assert s.run(w, "ls -A")["stdout"] == "in\n", "what was refused left something"


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


if __name__ == "__main__":
    main("server", [archives, links])
