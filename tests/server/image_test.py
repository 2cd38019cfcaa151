#!/usr/bin/env python3
# suite: needs=kernel_probe
"""User images, black box: imported from archives and layouts that are made here, checked, used and collected. The
tricks of a hostile archive must fail with a reason and leave nothing."""

import contextlib
import hashlib
import http.server
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, IMAGES, Server, main, pool_yaml, wait_for  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")
NO_SANDBOX = pool_yaml(warm=0)


def entry(name, content=None, **fields):
    """Returns one member of a layer: a file with content, or as `fields` say."""
    info = tarfile.TarInfo(name)
    info.mode = 0o755
    for key, value in fields.items():
        setattr(info, key, value)
    data = content.encode() if isinstance(content, str) else content or b""
    info.size = len(data)
    return info, data


def directory(name):
    return entry(name, type=tarfile.DIRTYPE)


def link(name, target):
    return entry(name, type=tarfile.SYMTYPE, linkname=target)


def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def save(path, tag, *layers, config=None):
    """Writes an archive like `docker save`."""
    blobs = [tar(members) for members in layers]
    names = [hashlib.sha256(blob).hexdigest() for blob in blobs]
    about = json.dumps({"architecture": "amd64", "os": "linux", "config": config or {},
                        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + n for n in names]}}).encode()
    config_name = hashlib.sha256(about).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [tag] if tag else None,
                            "Layers": [n + "/layer.tar" for n in names]}])
    members = [entry(n + "/layer.tar", b) for n, b in zip(names, blobs)]
    with open(path, "wb") as f:
        f.write(tar(members + [entry(config_name, about), entry("manifest.json", manifest)]))
    return path


def busybox():
    """Returns the static program of the image "shell"."""
    with open(os.path.join(IMAGES, "shell", "index.json"), encoding="utf-8") as f:
        manifest = json.load(f)["manifests"][0]["digest"]
    blobs = os.path.join(IMAGES, "shell", "blobs", "sha256")
    with open(os.path.join(blobs, manifest[7:]), encoding="utf-8") as f:
        layer = json.load(f)["layers"][0]["digest"]
    with tarfile.open(os.path.join(blobs, layer[7:]), "r:gz") as archive:
        return archive.extractfile("./bin/busybox").read()


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="hearth-image-") as path:
        yield path


def hearth(server, *words, status=0, env=None):
    """Runs `hearth image …` on the server's data. Returns (stdout, stderr)."""
    done = subprocess.run([HEARTH, "image", *words, "--data-dir", server.data, "--url", server.url],
                          capture_output=True, text=True, timeout=120, env=dict(os.environ, **(env or {})), check=False)
    assert done.returncode == status, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def inspect(server, name):
    return json.loads(hearth(server, "inspect", name, "-o", "json")[0])


def images(server):
    return {item["name"] for item in json.loads(hearth(server, "list", "-o", "json")[0])["items"]}


def unfinished(server):
    """Returns the files that an import must not leave."""
    left = []
    for folder in ("images", "rootfs"):
        for name in os.listdir(os.path.join(server.data, folder)):
            if name.startswith((".unfinished-", ".old-", ".archive-")) or name.endswith(".import"):
                left.append(name)
    return left


def two_commands():
    """an archive of docker save becomes a warm pool with one more command, and answers to name, reference and digest"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        path = save(f"{tmp}/x.tar", "python:3.9-slim", [entry("bin/busybox", busybox()), link("bin/sh", "busybox")],
                    config={"Env": ["PATH=/bin", "APP=yes", "LD_PRELOAD=/x.so", "NVIDIA_VISIBLE_DEVICES=all", "HOME=/root"],
                            "WorkingDir": "/srv", "User": "nobody", "Entrypoint": ["/bin/false"]})
        out, err = hearth(s, "import", path, "--name", "x", "--pool", "x")
        assert "image x imported, sha256:" in out and "pool x created" in out, out
        assert "copying x" in err and "unpacking and checking x" in err, err
        assert "pool x configured" in hearth(s, "import", path, "--name", "x", "--pool", "x")[0]
        if s.get("/v1/capabilities").json["runtime"] == "oci":  # a daemon already has the images that are imported here
            with scratch() as other:  # a store that is not this server's
                ran = subprocess.run([HEARTH, "image", "import", path, "--name", "x9", "--pool", "x9", "--data-dir", other], capture_output=True,
                                     text=True, env=dict(os.environ, HEARTH_URL=s.url), check=False)
                assert ran.returncode == 1 and "keeps its images elsewhere" in ran.stderr and "--data-dir" in ran.stderr, ran
                assert s.get("/v1/pools/x9").status == 404
        image = inspect(s, "x")
        assert image["reference"] == "python:3.9-slim" and image["languages"] == ["sh"], image
        assert image["config"]["env"] == ["PATH=/bin", "APP=yes"] and image["pools"] == ["x"], image
        wait_for("a warm pool", lambda: s.get("/v1/pools/x").json["status"]["ready"] >= 2)
        for name in ("x", "python:3.9-slim", "docker.io/library/python:3.9-slim", image["digest"],
                     "python@" + image["digest"], "x@" + image["digest"]):
            w = s.open_workspace(image=name)
            assert w["pool"] == "x", w
            assert s.call("DELETE", f"/v1/workspaces/{w['id']}").status in (200, 202, 204)
        for name in ("python", "python:3.9", "python@sha256:" + "0" * 64):
            assert s.post("/v1/workspaces", {"image": name}).status == 422, name
        w = s.open_workspace(image="x")
        out = s.run(w["id"], "echo $APP:$LD_PRELOAD:$NVIDIA_VISIBLE_DEVICES:$HOME:$HEARTH_IMAGE_WORKDIR; pwd; id -u")
        assert out["stdout"] == "yes:::/workspace:/srv\n/workspace\n1000\n", out
        out = s.post(f"/v1/workspaces/{w['id']}/executions", {"code": "echo $((6*7))", "language": "sh"}).json
        assert out["stdout"] == "42\n", out
        refused = s.post(f"/v1/workspaces/{w['id']}/executions", {"code": "1", "language": "python"})
        assert refused.status == 400 and "sh" in json.dumps(refused.json["errors"]), refused
        refused = s.post("/v1/workspaces", {"image": "x", "language": "python"})
        assert refused.status == 422 and "available languages: sh" in refused.json["hint"], refused
        listed = {i["name"]: i for i in s.get("/v1/capabilities").json["images"]}
        assert listed["x"]["languages"] == ["sh"] and listed["x"]["digest"] == image["digest"], listed


def tags():
    """a pool takes a reference pinned by digest, and a tag only if it says so"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        hearth(s, "import", save(f"{tmp}/x.tar", "team/app:1", [entry("bin/busybox", busybox()), link("bin/sh", "busybox")]))
        digest = inspect(s, "team-app-1")["digest"]

        def put(name, **template):
            return s.call("PUT", f"/v1/pools/{name}", {
                "apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": name},
                "spec": {"template": template, "warm": {"min": 1}}})

        refused = put("tag", image="team/app:1")
        assert refused.status == 422 and "allowTags" in json.dumps(refused.json), refused
        assert put("tag", image="team/app:1", allowTags=True).status == 201
        assert put("pin", image="team/app:1@" + digest).status == 201
        for pool in ("tag", "pin"):
            wait_for(pool, lambda: s.get(f"/v1/pools/{pool}").json["status"]["ready"] == 1)
        assert "used by pool pin, tag" in hearth(s, "remove", "team-app-1", status=1)[1]
        assert put("gone", image="team/app@sha256:" + "0" * 64).status == 201
        wait_for("a degraded pool", lambda: "there is no image" in json.dumps(s.get("/v1/pools/gone").json["status"]))


def any_root():
    """one static program without a shell and a root of busybox alone become workspaces"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        with open(os.path.join(BUILD, "tests", "kernel_probe"), "rb") as f:
            probe = f.read()
        hearth(s, "import", save(f"{tmp}/s.tar", "scratch:1", [entry("probe", probe)]), "--name", "scratch", "--pool", "scratch")
        assert inspect(s, "scratch")["languages"] == []
        wait_for("the pool", lambda: s.get("/v1/pools/scratch").json["status"]["ready"] >= 1)
        w = s.open_workspace(pool="scratch")
        out = s.post(f"/v1/workspaces/{w['id']}/executions", {"argv": ["/probe"]}).json
        assert out["status"] in ("ok", "failed") and out["exitCode"] not in (125, 126, 127), out
        assert s.run(w["id"], "true")["exitCode"] == 127
        put = s.call("PUT", f"/v1/workspaces/{w['id']}/files/a", raw=b"kept")
        assert put.status in (200, 201, 204) and s.get(f"/v1/workspaces/{w['id']}/files/a").body == b"kept"
        refused = s.post(f"/v1/workspaces/{w['id']}/executions", {"code": "x", "language": "sh"})
        assert refused.status == 400 and "the image has no languages" in json.dumps(refused.json), refused

        hearth(s, "import", os.path.join(IMAGES, "shell"), "--name", "box", "--pool", "box")
        assert inspect(s, "box")["languages"] == ["sh"]
        wait_for("the pool", lambda: s.get("/v1/pools/box").json["status"]["ready"] >= 1)
        assert s.run(s.open_workspace(image="box")["id"], "echo $((1+1))")["stdout"] == "2\n"


def python_image():
    """an image of half a gigabyte is imported from a layout and answers"""
    with Server(pools=NO_SANDBOX) as s:
        hearth(s, "import", os.path.join(IMAGES, "python"), "--name", "py", "--pool", "py")
        assert "python" in inspect(s, "py")["languages"]
        wait_for("the pool", lambda: s.get("/v1/pools/py").json["status"]["ready"] >= 1, 60)
        out = s.post("/v1/executions", {"code": "print(6*7)", "language": "python", "image": "py"}).json
        assert out["stdout"] == "42\n", out


def sources():
    """archives and layouts with one or several images are told apart, and a wrong source says what to do"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        one = save(f"{tmp}/One.tar", None, [entry("bin/sh", busybox())])
        assert "image one imported" in hearth(s, "import", one)[0]
        subprocess.run(["gzip", "-k", one], check=True)
        assert "image one unchanged" in hearth(s, "import", one + ".gz")[0]
        layout = os.path.join(s.data, "images", "one")
        assert "image two imported" in hearth(s, "import", layout, "--name", "two")[0]
        subprocess.run(["tar", "-C", layout, "-cf", f"{tmp}/oci.tar", "."], check=True)
        assert "image three imported" in hearth(s, "import", f"{tmp}/oci.tar", "--name", "three")[0]
        assert len({inspect(s, name)["digest"] for name in ("one", "two", "three")}) == 1

        def refused(*words, says, status=1):
            out = hearth(s, "import", *words, status=status)
            assert says in out[1], (words, out)
            assert not unfinished(s), unfinished(s)

        refused(f"{tmp}/none.tar", says="there is no archive", status=3)
        refused("python:3.9-slim", says="docker://python:3.9-slim", status=3)
        refused(one, "--name", "../x", says="not a name for an image")
        refused("docker://a b", says="not a reference")
        refused(__file__, says="`docker save IMAGE -o FILE` makes one")
        refused(tmp, says="not an OCI layout")
        out = hearth(s, "import", "docker-daemon:none:1", status=1, env={"DOCKER_HOST": f"unix://{tmp}/no.sock"})[1]
        assert "no Docker daemon answers" in out and "DOCKER_HOST" in out, out
        damaged = f"{tmp}/damaged.tar"
        with open(one, "rb") as f, open(damaged, "wb") as g:
            content = bytearray(f.read())
            content[600_000] ^= 1
            g.write(content)
        refused(damaged, says="cannot be")
        assert images(s) >= {"one", "two", "three", "shell"}


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry with as much as a pull needs. It serves the image of one OCI layout under one tag."""

    layout, asked = "", []

    def do_GET(self):
        parts = self.path.split("/")
        kind, what = (parts[-2], parts[-1]) if len(parts) > 4 else ("", "")
        with open(os.path.join(self.layout, "index.json"), encoding="utf-8") as f:
            digest = json.load(f)["manifests"][0]["digest"]
        if kind == "manifests":
            self.asked.append(what)
            what = digest if what == "1" else what
        path = os.path.join(self.layout, "blobs", "sha256", what.removeprefix("sha256:"))
        found = self.path == "/v2/" or kind in ("manifests", "blobs") and os.path.exists(path)
        body = b"{}"
        if found and kind:
            with open(path, "rb") as f:
                body = f.read()
        self.send_response(200 if found else 404)
        if kind == "manifests":
            self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def registry():
    """an image of a registry is copied by the digest that its tag has, and the digest is recorded"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        Registry.layout, Registry.asked = os.path.join(IMAGES, "shell"), []
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            place = f"127.0.0.1:{web.server_port}/team/shell"
            os.makedirs(f"{tmp}/.config/containers")
            with open(f"{tmp}/.config/containers/registries.conf", "w", encoding="utf-8") as f:
                f.write(f'[[registry]]\nlocation = "127.0.0.1:{web.server_port}"\ninsecure = true\n')
            env = {"HOME": tmp}
            out = hearth(s, "import", f"docker://{place}:1", "--name", "far", "--pool", "far", env=env)[0]
            image = inspect(s, "far")
            assert "image far imported" in out and image["reference"] == place + ":1", image
            assert image["sourceDigest"].startswith("sha256:") and image["sourceDigest"] in Registry.asked, (image, Registry.asked)
            wait_for("the pool", lambda: s.get("/v1/pools/far").json["status"]["ready"] >= 1)
            assert s.open_workspace(image=f"{place}@{image['sourceDigest']}")["pool"] == "far"
            out = hearth(s, "import", f"docker://{place}@sha256:{'0' * 64}", "--name", "no", status=3, env=env)[1]
            assert "cannot be copied" in out and not unfinished(s), out
        finally:
            web.shutdown()
            thread.join()
            web.server_close()


def replaced():
    """an import of a known name replaces it whole; running workspaces keep theirs; what nobody uses is collected"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        def version(text):
            return save(f"{tmp}/{text}.tar", "v:1", [entry("bin/busybox", busybox()), link("bin/sh", "busybox"),
                                                    entry("version", text)])
        hearth(s, "import", version("old"), "--name", "v", "--pool", "v")
        old = inspect(s, "v")["digest"]
        wait_for("the pool", lambda: s.get("/v1/pools/v").json["status"]["ready"] >= 1)
        w = s.open_workspace(image="v")["id"]
        assert "image v replaced" in hearth(s, "import", version("new"), "--name", "v")[0]
        assert s.run(w, "cat /version")["stdout"] == "old"
        assert "used by pool v" in hearth(s, "remove", "v", status=1)[1]
        assert s.call("DELETE", "/v1/pools/v").status in (200, 202, 204)
        wait_for("the pool's end", lambda: len(s.get("/v1/sandboxes").json["items"]) == 1)
        trees = os.path.join(s.data, "rootfs")
        hearth(s, "remove", "v")
        assert "v" not in images(s)
        assert os.path.isdir(os.path.join(trees, old[7:])), "the tree of a live workspace was taken"
        assert s.run(w, "cat /version")["stdout"] == "old"
        s.call("DELETE", f"/v1/workspaces/{w}")
        wait_for("its end", lambda: not s.get("/v1/sandboxes").json["items"])
        s.stop()
        s.start()  # it collects at its start
        wait_for("the tree's end", lambda: not os.path.exists(os.path.join(trees, old[7:])))
        assert not [n for n in os.listdir(trees) if old[7:] in n]


def interrupted():
    """an import that is stopped or killed leaves nothing, and the image of that name as it was"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        hearth(s, "import", save(f"{tmp}/a.tar", "a:1", [entry("bin/sh", busybox())]), "--name", "a")
        before = inspect(s, "a")["digest"]
        big = save(f"{tmp}/big.tar", "a:2", [entry(f"f{i}", os.urandom(1 << 20)) for i in range(96)])
        for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for moment in (0.15, 0.6):
                process = subprocess.Popen([HEARTH, "image", "import", big, "--name", "a", "--data-dir", s.data],
                                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                time.sleep(moment)
                process.send_signal(stop)
                process.wait(30)
                process.stderr.close()
                if stop == signal.SIGKILL:
                    continue
                assert process.returncode != 0 and not unfinished(s), (stop, process.returncode, unfinished(s))
        assert inspect(s, "a")["digest"] == before
        s.stop()
        s.start()  # it clears the leftovers of the killed import
        wait_for("a clean store", lambda: not unfinished(s))


def hostile():
    """hostile archives are refused for what is wrong with them, touch nothing outside and leave nothing"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        victim = os.path.join(tmp, "victim")
        os.makedirs(victim)
        os.chmod(victim, 0o777)
        os.chmod(tmp, 0o777)
        with open(os.path.join(victim, "file"), "w", encoding="utf-8") as f:
            f.write("untouched")
        os.chmod(os.path.join(victim, "file"), 0o666)
        trees = set(os.listdir(os.path.join(s.data, "rootfs")))
        deep = "/".join("d" * 1 for _ in range(200))
        cases = {
            "dev": ([[link("dev", "/host")]], "/dev is a link"),
            "proc": ([[link("proc", "usr")]], "/proc is a link"),
            "workspace": ([[link("workspace", victim)]], "/workspace is a link"),
            "tmp": ([[entry("tmp", "file")]], "/tmp must be a directory"),
            "pipe": ([[entry("p", type=tarfile.FIFOTYPE)]], "/p is a pipe"),
            "climb": ([[directory("a"), link("a/b", "../../..")]], "climbs out"),
            "newline": ([[entry("a\nb", "x")]], "control characters"),
            "latin": ([[entry("caf\udce9", "x")]], "not UTF-8"),
            "deep": ([[directory(deep)]], "too deep"),
        }
        for name, (layers, reason) in cases.items():
            out = hearth(s, "import", save(f"{tmp}/{name}.tar", "h:1", *layers), "--name", "h", status=1)[1]
            assert reason in out, (name, out)
            assert not unfinished(s) and "h" not in images(s), (name, unfinished(s))
        assert set(os.listdir(os.path.join(s.data, "rootfs"))) - trees <= {".lock"}
        # Paths that could lead outside are refused, or stay inside.
        sly = {
            "slip": [[entry("../../../../../.." + victim + "/file", "changed")]],
            "absolute": [[entry(victim + "/file", "changed")]],
            "through": [[link("out", victim)], [entry("out/file", "changed")]],
            "hard": [[entry("h", type=tarfile.LNKTYPE, linkname=victim + "/file")]],
            "hard-up": [[entry("h", type=tarfile.LNKTYPE, linkname="../../../../../../.." + victim + "/file")]],
            "delete": [[link("out", victim)], [entry("out/.wh.file", "")]],
            "delete-all": [[link("out", victim)], [entry("out/.wh..wh..opq", "")]],
            "delete-up": [[entry("a", "x")], [entry(".wh...", "")]],
            "device": [[entry("disk", type=tarfile.BLKTYPE, devmajor=8, devminor=0)]],
        }
        for name, layers in sly.items():
            path = save(f"{tmp}/{name}.tar", "h:1", *layers)
            done = subprocess.run([HEARTH, "image", "import", path, "--name", "sly-" + name, "--data-dir", s.data],
                                  capture_output=True, text=True, timeout=60, check=False)
            print(f"      {name}: {(done.stderr or done.stdout).strip().splitlines()[-1][:120]}", flush=True)
            with open(os.path.join(victim, "file"), encoding="utf-8") as f:
                assert f.read() == "untouched", name
            assert os.listdir(victim) == ["file"] and not unfinished(s), name
        for root, _, files in os.walk(os.path.join(s.data, "rootfs")):
            for name in files:
                mode = os.lstat(os.path.join(root, name)).st_mode
                assert not (mode & 0o170000) in (0o060000, 0o020000), os.path.join(root, name)


def whiteouts():
    """layers delete what was below them, and setuid bits and owners of the image do not survive"""
    with scratch() as tmp, Server(pools=NO_SANDBOX) as s:
        hearth(s, "import", save(
            f"{tmp}/w.tar", "w:1",
            [entry("bin/busybox", busybox(), mode=0o6755, uid=7, gid=8), link("bin/sh", "busybox"), entry("gone", "1"),
             directory("opaque"), entry("opaque/old", "1"), entry("secret", "s", mode=0o600, uid=99)],
            [entry(".wh.gone", ""), entry("opaque/.wh..wh..opq", ""), entry("opaque/new", "2")]), "--name", "w", "--pool", "w")
        tree = os.path.join(s.data, "rootfs", inspect(s, "w")["digest"][7:])
        assert not os.path.exists(os.path.join(tree, "gone")) and os.listdir(os.path.join(tree, "opaque")) == ["new"]
        for root, folders, files in os.walk(tree):
            for name in folders + files:
                status = os.lstat(os.path.join(root, name))
                assert status.st_uid == 0 and not status.st_mode & 0o6000, (root, name)
        wait_for("the pool", lambda: s.get("/v1/pools/w").json["status"]["ready"] >= 1)
        assert s.run(s.open_workspace(pool="w")["id"], "cat /secret")["stdout"] == "s"


def disk_full():
    """a full disk is told as such, and leaves nothing half done"""
    with scratch() as tmp:
        data = os.path.join(tmp, "data")
        os.makedirs(data)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m,mode=711", "tmpfs", data], check=True)
        try:
            path = save(f"{tmp}/big.tar", "big:1", [entry(f"f{i}", os.urandom(1 << 20)) for i in range(80)])
            done = subprocess.run([HEARTH, "image", "import", path, "--data-dir", data],
                                  capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 1 and "the disk of the data directory is full" in done.stderr, done
            left = [n for folder in ("images", "rootfs") for n in os.listdir(os.path.join(data, folder))]
            assert all(n.endswith("lock") for n in left), left
        finally:
            subprocess.run(["umount", data], check=True)


# Docker handles its images itself; the store and its checks are the same.
for test in (two_commands, tags, sources, registry, replaced, interrupted, hostile, whiteouts, disk_full, python_image):
    test.only = "oci"

if __name__ == "__main__":
    main("server", [two_commands, tags, any_root, python_image, sources, registry, replaced, interrupted, hostile, whiteouts, disk_full])
