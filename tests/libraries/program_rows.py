"""Rows of programs.json: a program of an index is installed as a user does it, and its use (uses/NAME.sh) runs in a sandbox and, with the same
workspace, without Hearth. Both must print what the row says."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "server"))
import plain  # noqa: E402
from harness import IMAGES, pool_yaml, wait_for  # noqa: E402
from libraries_test import real_mirror  # noqa: E402

DATA = os.path.join(HERE, "programs.json")
# The pool that ./run serves, and one with room for what does not fit there.
SIZES = {"default": '{cpu: "1", memory: 512Mi, pids: 128, workspace: 256Mi, tmp: 64Mi}',
         "large": '{cpu: "2", memory: 4Gi, pids: 1024, workspace: 16Gi, tmp: 1Gi}'}
# Rows with `debian` need an image of this name: sandbox_images/workshop with `base`, which says python, and all these Debian packages in `packages`.
WORKSHOP = "workshop"
LOOK_SECONDS = 0.05


def read():
    with open(DATA, encoding="utf-8") as f:
        return json.load(f)


def pools():
    texts = []
    sizes = {**SIZES, WORKSHOP: SIZES["large"]} if os.path.isdir(os.path.join(IMAGES, WORKSHOP)) else SIZES
    for name, resources in sizes.items():
        lines = pool_yaml(name=name, image=WORKSHOP if name == WORKSHOP else "python", warm=0).splitlines(keepends=True)
        new = f"    resources: {resources}\n    network: {{mode: Mirror}}\n    prewarm: {{languages: [python, sh], timeout: 60s}}\n"
        texts.append("".join(new if line.startswith("    resources:") else line for line in lines))
    return "---\n".join(texts)


def mirrors():
    """Returns a server's arguments for the indexes that pip and npm use on this machine."""
    registry = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, check=True).stdout.strip()
    return (*real_mirror(), "--mirror-npm", registry)


class Look(threading.Thread):
    """Looks at a sandbox's own control groups, /dev/shm and /tmp while a program runs in it. `most` has the highest numbers."""

    def __init__(self, server, sandbox):
        super().__init__(daemon=True)
        with open(f"/run/hearth/{server.instance}/runc/hearth-{server.instance}-{sandbox[3:]}/state.json", encoding="utf-8") as f:
            self.pid = json.load(f)["init_process_pid"]
        with open(f"/proc/{self.pid}/cgroup", encoding="ascii") as f:
            self.groups = [line.rstrip("\n").split(":", 2) for line in f]
        self.most, self.ended = {"peakMB": 0, "tasks": 0, "shmMB": 0, "tmpMB": 0}, threading.Event()

    def path(self, controller, name):
        old = [path for _, controllers, path in self.groups if controller in controllers.split(",")]
        return f"/sys/fs/cgroup/{controller}{old[0]}/{name}" if old else f"/sys/fs/cgroup{self.groups[0][2]}/{name}"

    def memory(self):
        """What cannot be given back: no page cache of the disk."""
        with open(self.path("memory", "memory.stat"), encoding="ascii") as f:
            stat = dict(line.split() for line in f)
        return int(stat.get("total_rss", stat.get("anon", 0))) + int(stat.get("total_shmem", stat.get("shmem", 0)))

    def used(self, folder):
        found = os.statvfs(f"/proc/{self.pid}/root{folder}")
        return (found.f_blocks - found.f_bfree) * found.f_frsize

    def run(self):
        while not self.ended.is_set():
            try:
                with open(self.path("pids", "pids.current"), encoding="ascii") as f:
                    tasks = int(f.read())
                now = {"peakMB": self.memory() >> 20, "tasks": tasks, "shmMB": self.used("/dev/shm") >> 20, "tmpMB": self.used("/tmp") >> 20}
            except OSError:
                return  # the sandbox has ended
            self.most = {key: max(now[key], most) for key, most in self.most.items()}
            self.ended.wait(LOOK_SECONDS)


class Row:
    """One program in one workspace of a size, and the same files without Hearth."""

    def __init__(self, server, name, row, size):
        self.server, self.name, self.row, self.image = server, name, row, WORKSHOP if size == WORKSHOP else "python"
        opened = server.open_workspace(pool=size, idleTimeoutSeconds=3600)
        self.workspace, self.sandbox = opened["id"], opened["sandboxId"]
        self.manager = row.get("manager", "pip")

    def execute(self, command, seconds=300):
        answer = self.server.post(f"/v1/workspaces/{self.workspace}/executions", {"command": command, "timeoutSeconds": seconds}, timeout=seconds + 60)
        assert answer.status == 200, answer
        return answer.json

    def packages(self, **fields):
        answer = self.server.post(f"/v1/workspaces/{self.workspace}/packages", {"manager": self.manager, "waitSeconds": 60, **fields}, timeout=120)
        assert answer.status == 200, answer
        return answer.json

    def install(self):
        """Installs the row's pins. Returns None, or why it failed."""
        if not self.row["pins"]:
            return None
        told = self.packages(install=self.row["pins"], timeoutSeconds=1800)
        if told["status"] == "running":
            wait_for("the packages", lambda: self.server.get(f"/v1/executions/{told['executionId']}").json["status"] != "running", 1800)
            output = self.server.get(f"/v1/executions/{told['executionId']}").json["stderr"]
            names = [pin.rpartition("@")[0] if self.manager == "npm" else re.split(r"\[|==", pin)[0] for pin in self.row["pins"]]
            failed = [each for each in self.packages(check=names)["packages"].values() if each["state"] != "installed"]
            full = re.search(r"No space left on device|ENOSPC", output)
            if full:  # what is there in part has its metadata already
                return "the workspace's disk is full"
            return (output.strip().splitlines() or ["?"])[-1][:200] if failed else None
        failed = [each["error"] for each in told["packages"].values() if each["state"] != "installed"]
        return None if told["status"] == "done" and not failed else (told.get("error") or (failed or ["?"])[0] or "?").splitlines()[0][:200]

    def put_use(self):
        with open(os.path.join(HERE, "uses", f"{self.name}.sh"), "rb") as f:
            put = self.server.call("PUT", f"/v1/workspaces/{self.workspace}/files/use.sh", raw=b"set -eu -o pipefail\n" + f.read())
        assert put.status == 200, put

    def copy(self, folder):
        """Copies the workspace into a folder of this machine, for a world without Hearth."""
        with urllib.request.urlopen(f"{self.server.url}/v1/workspaces/{self.workspace}/archive", timeout=600) as archive, \
                subprocess.Popen(["tar", "-x", "--no-same-owner", "-C", folder], stdin=subprocess.PIPE) as tar:
            shutil.copyfileobj(archive, tar.stdin, 1 << 20)
        assert tar.returncode == 0, tar.returncode
        subprocess.run(["chown", "-hR", f"{plain.USER}:{plain.USER}", folder], check=True)

    def without(self):
        """Returns what the use gives without Hearth: in the image's tree, with a copy of the workspace, and no network."""
        folder = tempfile.mkdtemp(prefix="hearth-programs-", dir="/var/tmp")
        try:
            self.copy(folder)
            world = plain.like(self.server, self.workspace, self.image, folder)
            try:
                return world.run(["bash", "use.sh"], seconds=self.row.get("seconds", 300))
            finally:
                world.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def measure(self):
        look = Look(self.server, self.sandbox)
        look.start()
        done = self.execute("bash use.sh", self.row.get("seconds", 300))
        look.ended.set()
        look.join()
        return done, {**look.most, "peakMB": max(look.most["peakMB"], done["usage"]["peakMemoryBytes"] >> 20)}

    def close(self):
        self.server.call("DELETE", f"/v1/workspaces/{self.workspace}")


def shown(result, prints):
    """Returns "yes", or how a result is not what the row says."""
    if result["exitCode"] == 0 and result["stdout"] == prints:
        return "yes"
    last = (result["stderr"].strip().splitlines() or [""])[-1][:160]
    end = result.get("status", "ok") if result.get("status") not in (None, "ok", "error") else f"status {result['exitCode']}"
    return f"{end}, {result['stdout'].strip()[-80:]!r}, {last}"


def attempt(server, name, row, size, outside):
    """Installs and runs a row in a workspace of a size. Returns its verdict, its needs, and what its use gives without Hearth, perhaps known before."""
    here = Row(server, name, row, size)
    try:
        if why := here.install():
            return f"not installed: {why}", {}, outside
        disk = int(here.execute("du -sm . | cut -f1")["stdout"])
        here.put_use()
        if outside is None:
            outside = here.without()
        done, most = here.measure()
        return shown(done, row["prints"]), {"diskMB": disk, **most}, outside
    finally:
        here.close()


def measured(server, name, row):
    """Tries the sizes in turn until one is right. Returns the row's measurement."""
    outside, verdicts, needs = None, {}, {}
    sizes = (WORKSHOP,) if "debian" in row else tuple(SIZES)
    for size in sizes:
        verdicts[size], needs, outside = attempt(server, name, row, size, outside)
        if verdicts[size] == "yes":
            break
    return {"day": time.strftime("%Y-%m-%d"), "outside": shown(outside, row["prints"]) if outside else "not installed",
            "same": verdicts[size], "default": verdicts.get("default", "no: the image lacks " + " ".join(row.get("debian", []))), "needs": needs}
