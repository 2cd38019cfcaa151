#!/usr/bin/env python3
"""How `hearth serve` begins, fails and ends, as its caller sees it: an obstacle is reported at once and in words,
nothing is left behind, and it ends when asked to, whatever it is doing. Standard library only."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, IMAGES, REPO, Server, clean_up, commands_with, main, missing, pool_yaml, record, wait_for  # noqa: E402
from index import Index, wheel  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")


@contextlib.contextmanager
def server(**fields):
    """Yields a server that the test starts by hand, and that may not start at all."""
    s = Server(**fields)
    try:
        yield s
    finally:
        if s.process and s.process.poll() is None:
            s.stop()
        clean_up(s)


def refused(s, *words, seconds=30):
    """Checks that it ended by itself with status 1 or 2 and printed each of these words. Returns its output."""
    status = s.process.wait(seconds)
    said = s.log()
    assert status in (1, 2), (status, said)
    for word in words:
        assert word in said, (word, said)
    assert "hearth doctor` and --url" not in said, said
    return said


def nothing_left(s, ended_at_once=False):
    """A server that ended at once may leave marks of members whose end had begun: its next start clears them."""
    def left():
        return [entry for entry in s.leftovers() if not (ended_at_once and entry.startswith("claim mark"))]
    wait_for("the end of all that it made", lambda: not left(), seen=left)
    wait_for("the end of its processes", lambda: not commands_with(s.data))
    if not ended_at_once:
        wait_for("the end of its folder in /run", lambda: not os.path.exists(f"/run/hearth/{s.instance}"))


def unpacked(s):
    """Returns the trees of images, whole or not."""
    folder = os.path.join(s.data, "rootfs")
    return [name for name in os.listdir(folder) if name not in (".lock", ".view", ".empty", ".scratch")] if os.path.isdir(folder) else []


def taken_port():
    """a port that another program has is told at once: no image is unpacked, and nothing is left"""
    for flag, attribute in (("--listen", "port"), ("--ops-listen", "ops_port")):
        with server() as s, socket.socket() as other:
            trees = unpacked(s)
            other.bind(("127.0.0.1", getattr(s, attribute)))
            other.listen()
            s.start(wait=0)
            said = refused(s, f"({flag}): another program has that port", "ss -ltnp")
            assert "image.preparing" not in said and unpacked(s) == trees, (said, unpacked(s))
            nothing_left(s)


@contextlib.contextmanager
def hanging_umoci():
    """Puts a umoci that only hangs in place of the machine's: the launcher looks for programs in the machine's folders
    only. Yields the command that mounts it there."""
    with tempfile.TemporaryDirectory(prefix="hearth-start-") as folder:
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "bin"), 0o755)
        path = os.path.join(folder, "bin", "umoci")
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nexec sleep 1000\n")
        os.chmod(path, 0o755)
        yield f"mount -t overlay overlay -o lowerdir={folder}:/usr /usr"


def fresh(hang):
    """Returns a server without an image unpacked by an earlier test. It and its launcher run behind the mount `hang`."""
    s = Server()
    s.wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", hang + '\nexec "$@"', "sh"]
    folder = os.path.join(s.data, "rootfs")
    if os.path.isdir(folder):
        subprocess.run(["rm", "-rf", folder], check=True)
    return s


def ready(s):
    try:
        return s.ops("/readyz")
    except OSError:
        return None


def unpacking(s):
    answer = wait_for("unpacking", lambda: (a := ready(s)) and b"unpacking" in a.body and a)
    assert answer.status == 503 and b"unpacking image shell" in answer.body, answer
    wait_for("umoci", lambda: [pid for pid in commands_with("sleep\0" + "1000")])
    return answer


def ended_while_unpacking():
    """while an image is unpacked the server is not ready, and the first signal ends it, a second one at once"""
    with hanging_umoci() as hang:
        for sign in (signal.SIGINT, signal.SIGTERM):
            s = fresh(hang)
            try:
                s.start(wait=0)
                unpacking(s)
                answer = s.get("/v1/pools")
                assert answer.status == 200 and answer.json["items"][0]["status"]["ready"] == 0, answer
                assert "Unpacking image shell, once" in s.log(), s.log()
                s.process.send_signal(sign)
                assert s.process.wait(20) == 0, s.log()
                assert "server.stopped" in s.log() and "image.not_ready" not in s.log(), s.log()
                nothing_left(s)
                # Half-done work does not stand in the way of the next start.
                s.wrapper = []
                with s:
                    assert not [name for name in unpacked(s) if name.startswith(".unfinished")], unpacked(s)
                    assert s.run(s.open_workspace()["id"], "echo hi")["stdout"] == "hi\n"
            finally:
                if s.process and s.process.poll() is None:
                    s.kill9()
                clean_up(s)


def served_while_unpacking():
    """a workspace of before is served at once, also where another pool's image is still to be unpacked"""
    with Server() as s:
        w = s.open_workspace()["id"]
        s.run(w, "echo kept > file")
        s.kill9()
        s.write_pools(pool_yaml() + "---\n" + pool_yaml("python", image="python"))
        s.start(wait=0)
        answer = wait_for("its workspace", lambda: (a := asked(s, f"/v1/workspaces/{w}")) and a.status != 503 and a)
        assert answer.status == 200 and ready(s).status == 503, (answer, ready(s))
        wait_for("its unpacking", lambda: b"unpacking image python" in ready(s).body)
        assert s.run(w, "cat file")["stdout"] == "kept\n"
        assert b"unpacking image python" in ready(s).body, ready(s)  # all of this was before the unpacking ended


def asked(s, path):
    try:
        return s.get(path)
    except OSError:
        return None


def second_signal():
    """a second signal waits for nothing, and what the launcher was doing ends with the server"""
    with hanging_umoci() as hang:
        s = fresh(hang)
        try:
            s.start(wait=0)
            unpacking(s)
            # Stopped, so that both signals are there when it goes on: the first cannot end it before the second
            # comes.
            s.process.send_signal(signal.SIGSTOP)
            s.process.send_signal(signal.SIGTERM)
            s.process.send_signal(signal.SIGINT)
            s.process.send_signal(signal.SIGCONT)
            assert s.process.wait(20) == 1, s.log()
            assert "server.stopped" not in s.log(), s.log()
            wait_for("the end of umoci", lambda: not commands_with("sleep\0" + "1000"))
            nothing_left(s, ended_at_once=True)
            s.wrapper = []
            with s:
                pass  # its end finds nothing left, marks included
        finally:
            clean_up(s)


def delayed_end():
    """with a delay it serves on after SIGTERM while it says that it is not ready, and a second signal does not wait"""
    with Server(args=["--shutdown-delay-seconds", "3"]) as s:
        for signals, status in ((1, 0), (2, 1)):
            began = time.monotonic()
            s.process.send_signal(signal.SIGTERM)
            answer = wait_for("it says so", lambda: (a := ready(s)) and a.status == 503 and a)
            assert b"stopping" in answer.body, answer
            workspace = s.open_workspace()["id"]  # by a new connection
            assert s.run(workspace, "echo hi")["stdout"] == "hi\n"
            s.call("DELETE", f"/v1/workspaces/{workspace}")
            if signals == 2:
                s.process.send_signal(signal.SIGTERM)
            assert s.process.wait(30) == status, s.log()
            assert (time.monotonic() - began >= 3) == (signals == 1), s.log()
            s.start()


def full_disk():
    """on a full disk the launcher's own reason is told, with what to do"""
    with server() as s:
        folder = tempfile.mkdtemp(prefix="hearth-full-")
        os.chmod(folder, 0o711)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=711", "tmpfs", folder], check=True)
        try:
            # The server's state has a disk of its own: else it may be the first to find the disk full.
            os.mkdir(folder + "/state")
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", folder + "/state"], check=True)
            s.serves_from = folder
            s.start(wait=0)
            said = refused(s, "disk of the data directory is full", "make room in " + folder, "--data-dir")
            assert s.process.returncode == 1 and "launcher.died" not in said, said
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
            os.rmdir(folder)


def places_that_cannot_be():
    """a data directory, a manifest, an audit log and a runtime that cannot be are refused by their flags, with a way out"""
    manifest = os.path.join(tempfile.gettempdir(), "hearth-no-such.yaml")
    cases = [(["--data-dir", "/proc/x"], ["/proc/x (--data-dir) cannot be made", "choose another one with --data-dir"]),
             (["--data-dir", "/sys/hearth"], ["/sys/hearth (--data-dir) cannot be made", "choose another one"]),
             (["--pools", manifest], [f"--pools: {manifest} cannot be read: No such file", "pool.yaml"]),
             (["--pools", "/etc"], ["--pools: /etc cannot be read: Is a directory"]),
             (["--audit-log", "/nowhere/a.log"], ["--audit-log: the audit log /nowhere/a.log cannot be written", "folder"]),
             (["--access-log", "/nowhere/a.log"], ["--access-log: the access log /nowhere/a.log cannot be written", "folder"]),
             (["--audit-log", "a.log", "--access-log", "a.log"], ["--access-log: ", "is the audit log (--audit-log)", "a file of its own"]),
             (["--oci-runtime", "no-such-runtime"],
              ["--oci-runtime: there is no program no-such-runtime", "apt-get install -y runc"])]
    for flags, words in cases:
        with server() as s:
            if flags[0] == "--data-dir":
                s.serves_from = flags[1]
            else:
                s.extra += flags
            s.start(wait=0)
            refused(s, *words)
            nothing_left(s)


def closed_folder():
    """an audit log where the server's user may not go is refused, and no file is left there"""
    with server() as s, tempfile.TemporaryDirectory(prefix="hearth-start-") as folder:
        os.chmod(folder, 0o700)
        s.extra += ["--audit-log", folder + "/audit.log"]
        s.start(wait=0)
        refused(s, f"--audit-log: the audit log {folder}/audit.log cannot be written by the user hearth", "may enter")
        assert os.listdir(folder) == [], os.listdir(folder)
        nothing_left(s)
        os.chmod(folder, 0o711)
        s.start()
        s.stop()
        assert stat.S_IMODE(os.stat(folder + "/audit.log").st_mode) == 0o600


def read_only_data():
    """a data directory that can only be read is refused"""
    with server() as s:
        folder = tempfile.mkdtemp(prefix="hearth-readonly-")
        os.chmod(folder, 0o711)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=711", "tmpfs", folder], check=True)
        try:
            s.serves_from = folder
            s.start(wait=0)
            refused(s, f"{folder} (--data-dir) cannot be written: Read-only file system", "choose another one")
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
            os.rmdir(folder)


def first_step():
    """without a pool the first thing to do is to declare one, not to run something"""
    with server() as s:
        s.pools_file = None
        s.start()
        said = wait_for("the greeting", lambda: (log := s.log()) and "Stop: Ctrl-C" in log and log)
        assert "No pool is declared. Declare one: " in said and " apply --url http" in said, said
        assert " run " not in said.split("No pool is declared")[1], said


def default_pool():
    """a default pool that is not declared is warned of, told to who names no pool, and found once it is declared"""
    with server(args=["--default-pool", "zz"]) as s:
        s.start()
        said = s.log()
        assert "pool.default_missing" in said and "The default pool zz is not declared" in said, said
        answer = s.post("/v1/workspaces", {})
        assert answer.status == 404 and answer.json["message"] == "the default pool zz is not declared", answer
        assert "shell" in answer.json["hint"], answer
        s.open_workspace(pool="shell")
        for flags, level, words in ((["--default-pool", "zz"], "warn", "zz is not declared; declared pools: shell"),
                                    (["--default-pool", "shell"], "ok", "shell is declared")):
            done = subprocess.run([HEARTH, "doctor", "-o", "json", "--data-dir", s.data, "--pools", s.pools_file, *flags],
                                  capture_output=True, text=True, timeout=60, check=False)
            found = {c["name"]: c for c in json.loads(done.stdout)["checks"]}["default pool"]
            assert found["level"] == level and words in found["message"], found
        done = subprocess.run([HEARTH, "doctor", "--data-dir", s.data], capture_output=True, text=True, timeout=60, check=False,
                              env=dict(os.environ, HEARTH_URL=s.url))
        assert re.search(rf"\[ok\] +HEARTH_URL +{s.url} is served", done.stdout), done.stdout
        s.write_pools(pool_yaml(name="zz", warm=1))
        subprocess.run([HEARTH, "apply", "--url", s.url, "-f", s.pools_file], capture_output=True, timeout=60, check=True)
        assert s.open_workspace()["pool"] == "zz"
        s.drain()


def default_warm():
    """the pool of ./run keeps as many sandboxes warm as the machine affords: at least 4, at most its maximum"""
    script = os.path.join(REPO, "sandbox_images", "default_pool")

    def warm(*memory):
        made = subprocess.run([script, *memory], capture_output=True, text=True, timeout=60, check=True).stdout
        with open(os.path.join(REPO, "sandbox_images", "python", "pool.yaml"), encoding="utf-8") as file:
            assert made.splitlines()[-5:] == file.read().splitlines()[-5:], made
        return int(re.search(r"^  warm: \{min: (\d+),", made, re.MULTILINE).group(1))
    assert [warm(memory, "8") for memory in ("512", "4096", "8192", "16384", "262144")] == [4, 4, 8, 16, 20]
    assert [warm("262144", cores) for cores in ("1", "2", "64")] == [4, 8, 20]
    assert 4 <= warm() <= 20


def indexes():
    """the pool of ./run gets the indexes that pip and npm are set up with, or else their defaults, and --no-mirror shuts that way"""
    names = ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "HEARTH_MIRROR_PYPI", "HEARTH_MIRROR_NPM", "NPM_CONFIG_REGISTRY", "npm_config_registry")
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(IMAGES, os.path.join(folder, "images"))
        bare = {name: value for name, value in os.environ.items() if name not in names}
        bare.update(HOME=folder, PIP_CONFIG_FILE=os.path.join(folder, "pip.conf"), NPM_CONFIG_USERCONFIG=os.path.join(folder, "npmrc"),
                    NPM_CONFIG_GLOBALCONFIG=os.path.join(folder, "none"), HEARTH_MIRROR_HOSTS="files.example")

        def write(name, text):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)

        def made(mirror="yes", before="", **env):
            script = (f'repo={REPO}; . "$repo/sandbox_images/setup.sh"; {before} make_pool {mirror} {folder} >{folder}/said; '
                      'printf "%s\\n" "${HEARTH_MIRROR_PYPI:-}" "${HEARTH_MIRROR_NPM:-}"; cat "$1/default-pool.yaml"')
            ran = subprocess.run(["bash", "-euo", "pipefail", "-c", script, "bash", folder], capture_output=True, text=True, timeout=60, check=True,
                                 env={**bare, **env})
            pypi, npm, pool = ran.stdout.split("\n", 2)
            with open(os.path.join(folder, "said"), encoding="utf-8") as file:
                said = file.read()
            return pypi, npm, re.search(r"^ *network: \{mode: (\w+)\}", pool, re.MULTILINE).group(1), said
        pypi, npm, mode, said = made()
        assert re.fullmatch(r"https://\S+/simple/?", pypi) and re.fullmatch(r"https://\S+/", npm) and mode == "Mirror", (pypi, npm, mode)
        assert pypi in said and npm in said and "--no-mirror" in said, said
        # A machine without npm: its own default is in the image.
        assert made(before='command() { [[ ${2:-} != npm ]] && builtin command "$@"; };')[1] == npm
        write("pip.conf", "[global]\nindex-url = https://me:hush@one.example/simple/\n")
        write("npmrc", "registry=https://two.example/npm/\n")
        pypi, npm, mode, said = made()
        assert (pypi, npm) == ("https://me:hush@one.example/simple/", "https://two.example/npm/"), (pypi, npm)
        assert "hush" not in said and "https://one.example/simple/" in said and "https://two.example/npm/" in said, said
        write("pip.conf", "[global]\nindex-url = https://one.example/simple/\n[install]\nindex-url = https://three.example/simple/\n")
        assert made()[0] == "https://three.example/simple/"
        assert made(PIP_INDEX_URL="https://four.example/simple/")[0] == "https://four.example/simple/"
        assert made(HEARTH_MIRROR_PYPI="https://five.example/simple/")[0] == "https://five.example/simple/"
        pypi, npm, mode, said = made(before="given_pypi=https://six.example/simple/;")
        assert pypi == "https://six.example/simple/" and pypi in said, said
        assert made(mirror="no") == ("", "", "None", ""), made(mirror="no")
    with Index([wheel("six")]) as index:
        pages = index.project
        script = f'repo={REPO}; . "$repo/sandbox_images/setup.sh"; file_host http://localhost:{index.port}/simple/'
        for files, host in (("../../files", ""), (f"http://127.0.0.1:{index.port}/files", f"127.0.0.1:{index.port}\n")):
            index.project = lambda name, accept, to=files: (pages(name, "")[0], pages(name, "")[1].replace("../../files", to))
            found = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60, check=True,
                                   env={name: value for name, value in bare.items() if name != "PIP_FIND_LINKS"})
            assert found.stdout == host, (found, index.asked)
    ran = subprocess.run([os.path.join(REPO, "run"), "--help"], capture_output=True, text=True, timeout=60, check=True)
    assert "--no-mirror" in ran.stdout and "PIP_INDEX_URL" in ran.stdout, ran


def notified():
    """systemd is told when the server serves and when it stops, and no child could tell it so"""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        os.chmod(folder, 0o755)
        manager.bind(os.path.join(folder, "notify"))
        os.chmod(os.path.join(folder, "notify"), 0o777)  # as systemd's: the server is not root when it serves
        manager.setblocking(False)
        os.environ["NOTIFY_SOCKET"] = os.path.join(folder, "notify")
        try:
            with server() as s:
                s.start()
                assert s.ops("/readyz").status == 200
                assert manager.recv(1000).startswith(b"READY=1\n")
                assert s.run(s.open_workspace()["id"], "env")["stdout"].find("NOTIFY_SOCKET") < 0
                s.drain()
                s.stop()
                assert manager.recv(1000).startswith(b"STOPPING=1\n")
        finally:
            del os.environ["NOTIFY_SOCKET"]


def drained():
    """a drained server says so: not ready, its pools Drained, nobody is told to try again; until it is undrained or started again"""
    with server() as s:
        s.start()
        assert subprocess.run([HEARTH, "drain", "--url", s.url], timeout=60, check=False).returncode == 0
        answer = s.ops("/readyz")
        assert answer.status == 503 and b"drained" in answer.body, answer

        def shown():
            return subprocess.run([HEARTH, "get", "pools", "--url", s.url], capture_output=True, text=True, timeout=60,
                                  check=True).stdout
        wait_for("Drained", lambda: "Drained" in shown())
        answer = s.post("/v1/workspaces", {})
        assert answer.status == 503 and not answer.json["retryable"], answer
        assert "retry-after" not in answer.headers and "retryAfterSeconds" not in answer.json, answer
        assert "hearth undrain" in answer.json["hint"] and "next start" in answer.json["hint"], answer
        done = subprocess.run([HEARTH, "undrain", "--url", s.url], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0 and "filled again" in done.stdout, done
        wait_for("the server to be ready", lambda: s.ops("/readyz").status == 200)
        s.open_workspace()
        wait_for("the pool to be full", lambda: "Drained" not in shown())
        s.drain()
        s.stop()
        s.start()  # and it is as before
        s.open_workspace()
        s.drain()


def overlays():
    """Returns whether hanging_umoci() works: not every machine lets a file system lie over another one's folder."""
    with hanging_umoci() as hang:
        return subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-ec", hang], capture_output=True,
                              check=False).returncode == 0


TESTS = [taken_port, ended_while_unpacking, served_while_unpacking, second_signal, delayed_end, full_disk, places_that_cannot_be, closed_folder, read_only_data,
         first_step, default_pool, default_warm, indexes, notified, drained]
for test in TESTS:
    test.only = "oci"

if __name__ == "__main__":
    if not missing() and not overlays():
        for test in (ended_while_unpacking, second_signal):
            record("skip", "server", f"{test.__doc__} (no overlay can be mounted here)")
            TESTS.remove(test)
    main("server", TESTS)
