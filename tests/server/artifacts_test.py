#!/usr/bin/env python3
"""Artifacts, black box: whatever a run leaves, the list is right and bounded; links open only the file that they name;
a full disk costs copies but no answers; restarts cost nothing."""

import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, pool_yaml, wait_for  # noqa: E402

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
                    "0000000d49444154789c6360f8cf000000030101003ea9a4c60000000049454e44ae426082")


def problem(answer, status, code):
    assert answer.status == status, answer
    assert answer.headers["content-type"].startswith("application/problem+json"), answer.headers
    assert answer.json["errorCode"] == code, answer


def path_of(url):
    return urllib.parse.urlsplit(url).path


def by_path(execution):
    return {a["path"]: a for a in execution["artifacts"]}


def copies(server):
    """Returns the kept files, relative to their folder."""
    root = os.path.join(server.data, "state", "artifacts")
    return sorted(os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names)


def kinds_and_digests():
    """size, sha256 and media type are those of the file: by its first bytes, else its name, else its text"""
    contents = {"plot.png": (PNG, "image/png"), "t.csv": (b"a,b\n1,2\n", "text/csv"), "p.html": (b"<p>hi</p>", "text/html"),
                "j.json": (b'{"a":1}', "application/json"), "d.parquet": (b"PAR1" + b"\0" * 40 + b"PAR1", "application/vnd.apache.parquet"),
                "words": (b"plain words\n", "text/plain"), "bytes": (bytes(range(256)), "application/octet-stream"),
                "empty": (b"", "application/octet-stream"), "empty.csv": (b"", "text/csv"),
                "really.txt": (PNG, "image/png"), "big.bin": (os.urandom(3_000_001), "application/octet-stream")}
    with Server() as s:
        w = s.open_workspace()["id"]
        for name, (content, _) in contents.items():
            s.call("PUT", f"/v1/workspaces/{w}/files/in/{name}", raw=content)
        ran = s.run(w, "mkdir out && cp in/* out/", collect=["out/*"])
        found = by_path(ran)
        assert set(found) == {"out/" + name for name in contents} and not ran["artifactsTruncated"], ran
        for name, (content, kind) in contents.items():
            a = found["out/" + name]
            assert a["size"] == len(content) and a["sha256"] == hashlib.sha256(content).hexdigest() and a["mime"] == kind, a
            assert s.get(path_of(a["url"])).body == content, a


def names():
    """names with spaces, newlines, quotes, CJK and dots and bytes that are not UTF-8 are listed and open by their links"""
    names_given = ["with space", "new\nline", 'quo"te\'s', "半角と全角.png", "..two", "...", "a?b#c%20d", "back\\slash", "-rf", "é" * 100,
                   "d/" * 30 + "deep", "/".join(["n" * 200] * 15)]
    def made(name, text):
        escaped = "".join(f"\\0{byte:o}" for byte in name)
        return f"f=out/$(printf %b '{escaped}'); mkdir -p \"${{f%/*}}\"; printf {text} > \"$f\""
    script = "\n".join([made(name.encode(), i) for i, name in enumerate(names_given)] + [made(b"bad\xff", "x")])
    with Server() as s:
        ran = s.post("/v1/executions", {"command": script, "collect": ["**", "out/.*", "out/..*"]}).json
        assert ran["status"] == "ok", ran
        found = by_path(ran)
        assert set(found) == {"out/" + name for name in names_given} | {"out/bad%FF"}, sorted(found)
        for i, name in enumerate(names_given):
            got = s.get(path_of(found["out/" + name]["url"]))
            assert got.status == 200 and got.body == str(i).encode(), (name, got)
        assert s.get(path_of(found["out/bad%FF"]["url"])).body == b"x", found["out/bad%FF"]


def what_is_no_file():
    """links are never followed, pipes never opened, a huge sparse file costs nothing: reason quota, no digest"""
    with Server(pools=pool_yaml().replace("workspace: 64Mi", "workspace: 11Gi")) as s:
        w = s.open_workspace()["id"]
        begun = time.monotonic()
        ran = s.run(w, "ln -s /etc/passwd l; ln -s /etc dl; ln -s ../../../etc/passwd up; ln -s l ll; ln -s /proc/self/environ env; "
                       "mkfifo pipe; mkdir sub; mkfifo sub/pipe; truncate -s 10G sparse; truncate -s 60M holes; echo 1 > real; ln real hard",
                    collect=["**"])
        assert ran["status"] == "ok" and time.monotonic() - begun < 15, ran
        found = by_path(ran)
        assert set(found) == {"sparse", "holes", "real", "hard"}, sorted(found)
        assert found["sparse"]["size"] == 10 << 30 and found["sparse"]["url"] is None, found["sparse"]
        assert found["sparse"]["reason"] == "quota" and found["sparse"]["sha256"] is None, found["sparse"]
        assert found["holes"]["sha256"] == hashlib.sha256(bytes(60 << 20)).hexdigest(), found["holes"]
        assert s.run(w, "true", collect=["../**", "/etc/**", "..", "l/*"])["artifacts"] == []


def changed_while_copied():
    """a file that a process left behind goes on writing is changed and has no copy, or is one whole copy of its digest"""
    with Server() as s:
        w = s.open_workspace()["id"]
        ran = s.run(w, "head -c 20000000 /dev/zero > f; (while :; do echo more >> f; done) >/dev/null 2>&1 & echo 1 > still", collect=["**"])
        found = by_path(ran)

        def whole_or_changed(file):
            assert (file.get("reason") == "changed") == (file["url"] is None), file
            assert not file["url"] or hashlib.sha256(s.get(path_of(file["url"])).body).hexdigest() == file["sha256"], file

        whole_or_changed(found["f"])
        assert found["still"]["url"] and len(copies(s)) == (2 if found["f"]["url"] else 1), (found, copies(s))
        ran = s.run(w, "head -c 20000000 /dev/zero > g; (while :; do printf x | dd of=g conv=notrunc status=none; done) >/dev/null 2>&1 &",
                    collect=["g"])
        whole_or_changed(by_path(ran)["g"])


def many_files():
    """of 20,000 files 256 are listed and the answer says that there are more; so it does for trees too deep to walk"""
    with Server(pools=pool_yaml().replace("workspace: 64Mi", "workspace: 1Gi")) as s:
        w = s.open_workspace()["id"]
        ran = s.run(w, "mkdir m && cd m && seq 20000 | xargs touch", collect=["**"])
        assert len(ran["artifacts"]) == 256 and ran["artifactsTruncated"], (len(ran["artifacts"]), ran["artifactsTruncated"])
        assert all(a["url"] for a in ran["artifacts"]) and len(copies(s)) == 256
        again = s.get(f"/v1/executions/{ran['id']}").json
        assert len(again["artifacts"]) == 256 and again["artifactsTruncated"], again["artifactsTruncated"]
        ran = s.run(w, "echo 1 > one", collect=["one"])
        assert list(by_path(ran)) == ["one"] and not ran["artifactsTruncated"], ran
        ran = s.run(w, "d=deep; for i in $(seq 80); do d=$d/d; done; mkdir -p $d; echo 1 > $d/f; echo 1 > deep/g", collect=["deep/**"])
        assert list(by_path(ran)) == ["deep/g"] and ran["artifactsTruncated"], ran


def patterns():
    """patterns: * within a name, ** any directories, hidden names only where spelled out"""
    with Server() as s:
        w = s.open_workspace()["id"]
        made = "mkdir -p a/b .h node_modules; for f in x.png a/y.png a/b/z.png a/b/z.txt .h/h.png node_modules/n.png .dot.png; do echo $RANDOM$$ > $f; done"
        for given, want in [(["**/*.png"], "a/b/z.png a/y.png x.png"), (["*.png"], "a/b/z.png a/y.png x.png"), (["a/*.png"], "a/y.png"),
                            (["a/**"], "a/b/z.png a/b/z.txt a/y.png"), (["?.png"], "a/b/z.png a/y.png x.png"), ([".h/*"], ".h/h.png"), (["./x.png"], "x.png"),
                            (["**/z.*", "x.png"], "a/b/z.png a/b/z.txt x.png"), (["*.gif"], ""), (["**/**/**/**/**/*.png"], "")]:
            assert " ".join(sorted(by_path(s.run(w, made, collect=given)))) == want, given
        for bad in (["x"] * 17, [""], ["x" * 257], [1], "x"):
            problem(s.post(f"/v1/workspaces/{w}/executions", {"command": "true", "collect": bad}), 400, "INVALID_ARGUMENT")


def link_rights():
    """an artifact's link opens its one copy without a token, for reading; forged ones are 403, those past their copy 410"""
    with Server() as s:
        root = {"Authorization": "Bearer " + s.post("/v1/tokens", {"name": "root", "tenant": "ops", "role": "admin"}).json["token"]}
        s.drain = lambda: s.post("/v1/drain", headers=root)
        red, blue = ({"Authorization": "Bearer " + s.post("/v1/tokens", {"name": t, "tenant": t, "role": "user"}, headers=root).json["token"]}
                     for t in ("red", "blue"))
        w = s.post("/v1/workspaces", {}, headers=red).json["id"]
        ran = s.post(f"/v1/workspaces/{w}/executions", {"command": "echo red > f; echo other > g", "collect": ["**"]}, headers=red).json
        url = path_of(by_path(ran)["f"]["url"])
        assert s.get(url).body == b"red\n" and s.get(url, headers=blue).body == b"red\n", "who has the link has the file"
        assert s.get(url).headers["content-disposition"].startswith("attachment")
        problem(s.get(f"/v1/executions/{ran['id']}", headers=blue), 404, "NOT_FOUND")
        assert s.call("DELETE", url).status == 405 and s.call("PUT", url, raw=b"x").status == 405
        token = url.split("/")[3]
        payload, signature = token.split(".")
        said = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        assert said["t"] == "red" and said["w"] == w and said["e"] > time.time() + 3600, said
        for change in ({"t": "blue"}, {"a": said["a"][:-1] + "9"}, {"a": "../../../key"}, {"e": said["e"] + 9}, {"p": "Zw=="}):
            other = base64.urlsafe_b64encode(json.dumps(dict(said, **change), separators=(",", ":")).encode()).decode().rstrip("=")
            problem(s.get(f"/v1/links/{other}.{signature}/f"), 403, "FORBIDDEN")
        for forged in (f"{payload}.", f".{signature}", payload, f"{payload}.{signature[:-2]}AA", "a.b", f"{payload}.{signature}.x"):
            assert s.get(f"/v1/links/{forged}/f").status == 403, forged
        assert s.get(url.rsplit("/", 1)[0] + "/another-name").status == 403, "the name is signed"
        s.call("DELETE", f"/v1/workspaces/{w}", headers=red)
        assert s.get(url).body == b"red\n", "it is kept past its workspace's end"
        problem(s.get(f"/v1/workspaces/{w}/files/f", headers=red), 410, "GONE")
        os.unlink(os.path.join(s.data, "state", "artifacts", next(c for c in copies(s) if c.endswith(said["a"]))))
        problem(s.get(url), 410, "GONE")
        told = by_path(s.get(f"/v1/executions/{ran['id']}", headers=red).json)
        assert told["f"]["url"] is None and told["f"]["reason"] == "gone" and told["g"]["url"], told


def disk_full():
    """on a full disk a run still answers, its artifact has the reason, nothing half-written stays, and later ones are kept"""
    with Server() as s:
        s.stop()
        place = os.path.join(s.data, "state", "artifacts")
        owner = os.stat(place)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=2M,mode=700,uid={owner.st_uid},gid={owner.st_gid}", "tmpfs", place], check=True)
        try:
            s.start()
            w = s.open_workspace()["id"]
            ran = s.run(w, "head -c 1500000 /dev/zero > a; head -c 1500000 /dev/zero > b; echo small > c", collect=["**"])
            found = by_path(ran)
            kept = [f for f in "ab" if found[f]["url"]]
            left = found["b" if kept == ["a"] else "a"]
            assert ran["status"] == "ok" and len(kept) == 1 and left["reason"] == "disk full" and left["url"] is None, ran
            assert found["c"]["url"] and len(copies(s)) == 2 and not [c for c in copies(s) if c.endswith(".part")], (found, copies(s))
            with contextlib.suppress(OSError), open(os.path.join(place, "filler"), "wb") as f:
                f.write(b"x" * (2 << 20))
            ran = s.run(w, "echo now > d", collect=["d"])
            assert ran["status"] == "ok" and by_path(ran)["d"]["reason"] == "disk full", ran
            assert "artifacts.not_kept" in s.log() and s.get(path_of(found["c"]["url"])).body == b"small\n"
            shot = s.post("/v1/executions", {"command": "echo shot > e", "collect": ["e"]}).json
            assert shot["status"] == "ok" and by_path(shot)["e"]["reason"] == "disk full", shot
            os.unlink(os.path.join(place, "filler"))
            again = by_path(s.run(w, "echo again > d", collect=["d"]))["d"]
            assert s.get(path_of(again["url"])).body == b"again\n" and "reason" not in again, again
        finally:
            s.drain()
            s.stop()
            subprocess.run(["umount", place], check=True)


disk_full.only = "oci"


def after_a_restart():
    """copies outlive a restart; what was left half-written, or by a run whose record never came, does not"""
    with Server() as s:
        w = s.open_workspace()["id"]
        kept = by_path(s.run(w, "echo kept > f", collect=["f"]))["f"]
        s.stop()
        place = os.path.join(s.data, "state", "artifacts", os.path.dirname(copies(s)[0]))
        for name in ("ex_" + "0" * 32 + "-0", "ex_" + "0" * 32 + "-1.part"):
            with open(os.path.join(place, name), "w", encoding="ascii") as f:
                f.write("orphan")
        os.mkdir(os.path.join(s.data, "state", "artifacts", "lost+found"), 0o700)
        s.start()
        assert len(copies(s)) == 1 and s.get(path_of(kept["url"])).body == b"kept\n", copies(s)
        wait_for("the run", lambda: by_path(s.run(w, "echo more > g", collect=["g"]))["g"]["url"])


for test in (names, kinds_and_digests):
    test.remote = True

if __name__ == "__main__":
    main("server", [kinds_and_digests, names, what_is_no_file, changed_while_copied, many_files, patterns, link_rights, disk_full,
                    after_a_restart])
