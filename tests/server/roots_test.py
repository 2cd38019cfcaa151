#!/usr/bin/env python3
"""Any image works: a real Debian root and a real musl root, as foreign images; and the memory that an import of a
large one takes. The files made for it stay in build/test-data/roots."""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, IMAGES, Server, main, on_docker, pool_yaml, wait_for  # noqa: E402
from image_test import HEARTH, busybox, hearth, inspect  # noqa: E402

ROOTS = os.path.join(os.path.dirname(os.path.normpath(IMAGES)), "roots")
CONFIG = {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin", "APP=own"], "WorkingDir": "/srv/app", "User": "nobody:nogroup",
          "Entrypoint": ["/bin/false"], "Cmd": ["never"], "Volumes": {"/var/lib/data": {}}, "ExposedPorts": {"80/tcp": {}}}
MOST_MEMORY = 64 << 20
LARGE = 256 << 20

SAY = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
    char where[256];
    printf("%s %d %s %s\n", argc > 1 ? argv[1] : "-", (int)getuid(), getenv("APP"), getcwd(where, sizeof where));
    return 0;
}
"""


def cached(name, make):
    """Returns the tar of a root, which is made once by make(FILE)."""
    path = os.path.join(ROOTS, name + ".tar")
    if not os.path.exists(path):
        os.makedirs(ROOTS, exist_ok=True)
        make(path + ".new")
        os.rename(path + ".new", path)
    return path


def make_debian(path):
    """Makes a root like Debian's slim images, from the archives that this machine uses."""
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)",
                            "Created-By: Packages"], check=True, capture_output=True, text=True).stdout.splitlines()
    sources = "".join(sorted({"deb " + line.split(" ", 1)[1] + "\n" for line in lines if line.startswith("Debian bookworm")
                              or (line.startswith("Debian ") and " bookworm" in line)}))
    options = "".join(line + "\n" for line in subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True)
                      .stdout.splitlines() if re.match(r"Acquire::(https?|Check-Valid-Until|Retries)\b", line) and not line.endswith(' "";'))
    with tempfile.TemporaryDirectory() as tmp:
        for name, text in (("sources.list", sources), ("apt.conf", options)):
            with open(f"{tmp}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        subprocess.run(["mmdebstrap", "--mode=root", "--variant=minbase", f"--aptopt={tmp}/apt.conf", "--format=tar",
                        "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg", "--keyring=/etc/apt/trusted.gpg.d",
                        "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
                        "--dpkgopt=path-exclude=/usr/share/locale/*", "bookworm", path, f"{tmp}/sources.list"],
                       check=True, stderr=subprocess.DEVNULL)


def make_musl(path):
    """Makes a root with busybox as the shell, musl's loader, and a program that is linked to it."""
    with tempfile.TemporaryDirectory() as root:
        for folder in ("bin", "lib", "etc", "srv/app"):
            os.makedirs(f"{root}/{folder}")
        with open(f"{root}/bin/busybox", "wb") as f:
            f.write(busybox())
        for applet in ("sh", "cat", "ls", "id", "env"):
            os.symlink("busybox", f"{root}/bin/{applet}")
        with open(f"{root}/say.c", "w", encoding="utf-8") as f:
            f.write(SAY)
        subprocess.run(["musl-gcc", "-O1", "-o", f"{root}/bin/say", f"{root}/say.c"], check=True)
        os.unlink(f"{root}/say.c")
        with open(f"{root}/bin/say", "rb") as f:
            loader = re.search(rb"/lib/ld-musl-[a-z0-9_]+\.so\.1", f.read()).group().decode()
        shutil.copy(os.path.realpath(loader), root + loader)
        for folder, _, files in os.walk(root):
            for name in files:
                if not os.path.islink(f"{folder}/{name}"):
                    os.chmod(f"{folder}/{name}", 0o755)
        with open(f"{root}/etc/passwd", "w", encoding="utf-8") as f:
            f.write("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
        subprocess.run(["tar", "-C", root, "--owner=0", "--group=0", "-cf", path, "."], check=True)


def save(path, tag, layer, config):
    """Writes an archive like `docker save`, of one layer that is in a file."""
    digest = hashlib.sha256()
    with open(layer, "rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
    name = digest.hexdigest()
    about = json.dumps({"architecture": "amd64", "os": "linux", "config": config,
                        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + name]}}).encode()
    config_name = hashlib.sha256(about).hexdigest() + ".json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [tag], "Layers": [name + "/layer.tar"]}]).encode()
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        archive.add(layer, name + "/layer.tar", filter=lambda info: info)
        for member, data in ((config_name, about), ("manifest.json", manifest)):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="hearth-roots-") as path:
        os.chmod(path, 0o711)
        yield path


def code(s, workspace, language, text):
    return s.post(f"/v1/workspaces/{workspace}/executions", {"code": text, "language": language})


def debian_root():
    """a root as Debian's slim images have it works with its own user, environment, directory and entrypoint"""
    with scratch() as tmp, Server(pools=pool_yaml(warm=0)) as s:
        archive = save(f"{tmp}/debian.tar", "debian:bookworm-slim", cached("debian", make_debian), CONFIG)
        hearth(s, "import", archive, "--name", "debian", "--pool", "debian")
        languages = inspect(s, "debian")["languages"]
        assert {"bash", "sh"} <= set(languages) and "python" not in languages, languages
        wait_for("the pool", lambda: s.get("/v1/pools/debian").json["status"]["ready"] >= 1, 60)
        w = s.open_workspace(image="debian:bookworm-slim")["id"]
        out = s.run(w, "id -u; pwd; echo $APP $HEARTH_IMAGE_WORKDIR $HOME; . /etc/os-release; echo $ID; dpkg -s libc6 | grep -c ^Package; "
                       "touch /etc/x 2>/dev/null || echo readonly; echo kept > f; cat f")
        assert out["stdout"] == "1000\n/workspace\nown /srv/app /workspace\ndebian\n1\nreadonly\nkept\n", out
        assert code(s, w, "bash", "a=(1 2 3); echo ${#a[@]} $BASH_VERSION").json["stdout"].startswith("3 5."), languages
        if "perl" in languages:
            assert code(s, w, "perl", 'print 6*7, "\\n"').json["stdout"] == "42\n"
        answer = code(s, w, "python", "1")
        assert answer.status == 400 and "bash" in json.dumps(answer.json["errors"]), answer
        answer = s.post("/v1/workspaces", {"image": "debian", "language": "python"})
        assert answer.status == 422 and "available languages: " in answer.json["hint"] and "bash" in answer.json["hint"], answer


def musl_root():
    """a root with musl and a program that is linked to it works the same"""
    with scratch() as tmp, Server(pools=pool_yaml(warm=0)) as s:
        archive = save(f"{tmp}/musl.tar", "alpine:3", cached("musl", make_musl), CONFIG)
        hearth(s, "import", archive, "--name", "musl", "--pool", "musl")
        assert inspect(s, "musl")["languages"] == ["sh"], inspect(s, "musl")
        wait_for("the pool", lambda: s.get("/v1/pools/musl").json["status"]["ready"] >= 1, 60)
        w = s.open_workspace(image="alpine:3")["id"]
        out = s.post(f"/v1/workspaces/{w}/executions", {"argv": ["/bin/say", "hi"]}).json
        assert out["stdout"] == "hi 1000 own /workspace\n", out
        assert s.run(w, "say there; ls /lib")["stdout"].startswith("there 1000 own /workspace\nld-musl-"), out
        assert code(s, w, "sh", "echo $((6*7)); exit 3").json["exitCode"] == 3
        answer = code(s, w, "bash", "1")
        assert answer.status == 400 and "sh" in json.dumps(answer.json["errors"]), answer
        answer = s.post("/v1/workspaces", {"image": "musl", "language": "python"})
        assert answer.status == 422 and "available languages: sh" in answer.json["hint"], answer


def high_water(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def family(pid):
    """Returns the process and its children: their programs and most memory."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
            stat = f.read()
            if int(name) == pid or int(stat.rsplit(")", 1)[1].split()[1]) == pid:
                found[int(name)] = (stat[stat.index("(") + 1:stat.rindex(")")], high_water(name))
    return found


class Peak:
    """The most memory of Hearth's own processes while it lives: the server, its launcher, a command."""

    def __init__(self, *pids):
        self.pids, self.most, self.end = list(pids), {}, threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self):
        while not self.end.wait(0.02):
            for pid in list(self.pids):
                for child, (name, most) in family(pid).items():
                    if child == pid or name.startswith("hearth"):
                        key = f"{name} {child if child in self.pids else 'op'}"
                        self.most[key] = max(self.most.get(key, 0), most)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.thread.join()


def large_image(path, size):
    """Writes an image with a layer of noise, which does not compress, and a shell."""
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(f"{root}/bin")
        with open(f"{root}/bin/busybox", "wb") as f:
            f.write(busybox())
        os.chmod(f"{root}/bin/busybox", 0o755)
        os.symlink("busybox", f"{root}/bin/sh")
        with open(f"{root}/noise", "wb") as f:
            for _ in range(size >> 20):
                f.write(os.urandom(1 << 20))
        subprocess.run(["tar", "-C", root, "--owner=0", "--group=0", "-cf", path + ".layer", "."], check=True)
    save(path, "large:1", path + ".layer", {})
    os.unlink(path + ".layer")
    return path


def little_memory(size=LARGE):
    """importing a large image and making a pool of it takes little memory of command, server and launcher"""
    with scratch() as tmp, Server(pools=pool_yaml(warm=0)) as s:
        archive = large_image(f"{tmp}/large.tar", size)
        begin = time.monotonic()
        command = subprocess.Popen([HEARTH, "image", "import", archive, "--name", "large", "--data-dir", s.data, "--url", s.url],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with Peak(s.process.pid, *s.launcher_pids(), command.pid) as peak:
            command.wait()
            assert command.returncode == 0, command.stderr.read()
            command.stderr.close()
            imported = time.monotonic() - begin
            begin = time.monotonic()
            put = s.call("PUT", "/v1/pools/large", {
                "apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "large"},
                "spec": {"template": {"image": "large"}, "warm": {"min": 1}}})
            assert put.status == 201, put
            wait_for("the pool", lambda: s.get("/v1/pools/large").json["status"]["ready"] >= 1, 600)
        print(f"      imported in {imported:.1f} s, warm after {time.monotonic() - begin:.1f} s; " +
              ", ".join(f"{name}: {most >> 20} MiB" for name, most in sorted(peak.most.items())), flush=True)
        if "san" not in os.path.basename(BUILD):
            assert peak.most and all(most < MOST_MEMORY for most in peak.most.values()), peak.most
        if not on_docker():
            # Then as a layout.
            command = subprocess.Popen([HEARTH, "image", "import", os.path.join(s.data, "images", "large"), "--name", "again", "--data-dir", s.data],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with Peak(command.pid) as peak:
                assert command.wait() == 0
            assert all(most < MOST_MEMORY for most in peak.most.values()), peak.most


if __name__ == "__main__":
    if os.environ.get("HEARTH_LARGE_MIB"):
        LARGE = int(os.environ["HEARTH_LARGE_MIB"]) << 20
        little_memory.__defaults__ = (LARGE,)
    main("server", [debian_root, musl_root, little_memory])
