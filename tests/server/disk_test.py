#!/usr/bin/env python3
"""Full disks and readers that stall: the server goes on, says what is the matter, and loses nothing."""

import contextlib
import fcntl
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, SLOWER, Server, main, new_key, pool_yaml, wait_for  # noqa: E402

MIB = 1 << 20


@contextlib.contextmanager
def server_with(folder, mib, **fields):
    """Yields a server and a folder of its data directory that is a file system of its own, `mib` MiB large."""
    data = tempfile.mkdtemp(prefix="hearth-server-")
    path = os.path.join(data, folder)
    try:
        os.chmod(data, 0o711)
        os.mkdir(path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0700", "tmpfs", path], check=True)
        try:
            with Server(data_dir=data, **fields) as s:
                yield s, path
        finally:
            subprocess.run(["umount", "-l", path], check=True)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def fill(path):
    """Fills the file system of the path."""
    with open(os.path.join(path, "filler"), "wb", buffering=0) as f:
        for size in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while f.write(b"\0" * size) == size:
                    pass


def empty(path):
    os.unlink(os.path.join(path, "filler"))


@contextlib.contextmanager
def server_on_ext4(mib, **fields):
    """Yields a server whose data directory is on a small ext4, a tenth of which only root may use, and the ext4. Its log
    is elsewhere."""
    folder = tempfile.mkdtemp(prefix="hearth-server-")
    image, path = os.path.join(folder, "disk.img"), os.path.join(folder, "disk")
    try:
        os.chmod(folder, 0o711)
        os.mkdir(path)
        with open(image, "wb") as f:
            f.truncate(mib * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "10", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, path], check=True)
        try:
            s = Server(data_dir=os.path.join(path, "data"), **fields)
            s.log_path = os.path.join(folder, "server.log")
            with s:
                yield s, path
        finally:
            if subprocess.run(["umount", path], capture_output=True, check=False).returncode != 0:
                subprocess.run(["umount", "-l", path], check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def take_all(path):
    """Fills the file system, also the part that only root may use."""
    with open(os.path.join(path, "filler"), "ab") as f:
        at = f.tell()
        for size in (16 * MIB, MIB, 4096):
            with contextlib.suppress(OSError):
                while True:
                    os.posix_fallocate(f.fileno(), at, size)
                    at += size
    assert os.statvfs(path).f_bavail == 0


def metric(server, name):
    return float(re.search(rf"^{name} (\S+)$", server.ops("/metrics").body.decode(), re.MULTILINE)[1])


def full_state_disk():
    """with a full disk results wait and come through, changes are DISK_FULL, a one shot stays until its result is durable"""
    with server_with("state", 48) as (s, state):
        w = s.open_workspace()["id"]
        assert s.run(w, "echo before")["stdout"] == "before\n"
        fill(state)
        # Requests that need no disk are answered: the result stays in memory until there is room.
        key = {"Idempotency-Key": new_key()}
        body = {"command": "head -c 300000 /dev/zero | tr '\\0' x; echo; head -c 8 /dev/urandom | od -An -tx1"}
        shot = s.post("/v1/executions", body, headers=key)
        assert shot.status == 200 and len(shot.json["stdout"]) > 300000, shot
        kept = s.run(w, "echo within; seq 20000")
        wait_for("a refused write", lambda: metric(s, "hearth_journal_pending_bytes") > 300000)

        # Requests that need the disk are refused with a reason, after the data file's last free bytes are used up.
        def patched():
            return s.call("PATCH", f"/v1/workspaces/{w}", {"labels": {f"k{i}": "x" * 60 for i in range(20)}})

        refused = wait_for("a refused change", lambda: (a := patched()).status != 200 and a, 60)
        for answer in (refused, patched(), patched()):
            assert answer.status == 507 and answer.json["errorCode"] == "DISK_FULL" and answer.json["hint"], answer
        assert metric(s, "hearth_journal_write_failures_total") > 0
        held = s.get(f"/v1/workspaces/{shot.json['workspaceId']}")
        assert held.status == 200, held  # its sandbox has not been ended
        for result in (shot.json, kept):
            again = s.get(f"/v1/executions/{result['id']}")
            assert again.json["stdout"] == result["stdout"], again
        again = s.post("/v1/executions", body, headers=key)
        assert again.json["stdout"] == shot.json["stdout"], again

        # Finally, too much waits for new work to be accepted. All other requests are served.
        flood = {"command": "head -c 10000000 /dev/zero | tr '\\0' x", "outputLimitBytes": 10000000, "background": True}

        def pushed_back():
            answer = s.post(f"/v1/workspaces/{w}/executions", flood)
            if answer.status != 202:
                return answer
            wait_for("its end", lambda: all(e["status"] != "running" for e in s.get(f"/v1/workspaces/{w}/executions").json["items"]))
            return None

        refused = wait_for("the push-back", pushed_back, 120)
        assert refused.status == 503 and refused.json["errorCode"] == "UNAVAILABLE", refused
        assert int(refused.headers["retry-after"]) >= 1 and refused.json["hint"], refused
        assert s.post("/v1/workspaces", {}).status == 503
        assert s.get(f"/v1/workspaces/{w}").status == 200 and s.ops("/healthz").status == 200

        subprocess.run(["mount", "-o", "remount,size=400m", state], check=True)
        empty(state)
        wait_for("all of it on disk", lambda: metric(s, "hearth_journal_pending_bytes") == 0, 60)
        wait_for("the one shot's end", lambda: s.get(f"/v1/workspaces/{shot.json['workspaceId']}").status == 410)
        assert metric(s, "hearth_journal_records_lost_total") == 0
        assert patched().status == 200
        assert s.run(w, "echo after")["stdout"] == "after\n"
        assert s.log().count("journal.write_failed") < 10, "the log is flooded"
        s.kill9()
        s.start()
        for result in (shot.json, kept):
            again = s.get(f"/v1/executions/{result['id']}")
            assert again.json["stdout"] == result["stdout"], again


def crash_with_a_full_disk():
    """a one shot whose result could not be written is answered after kill -9, from its sandbox, once there is room"""
    with server_with("state", 48) as (s, state):
        key = {"Idempotency-Key": new_key()}
        body = {"command": "head -c 8 /dev/urandom | od -An -tx1; head -c 5000000 /dev/zero | tr '\\0' x", "outputLimitBytes": 6000000}
        fill(state)
        shot = s.post("/v1/executions", body, headers=key)
        assert shot.status == 200, shot
        wait_for("a refused write", lambda: metric(s, "hearth_journal_write_failures_total") > 0 or
                 metric(s, "hearth_journal_pending_bytes") > 0)
        s.kill9()
        empty(state)
        s.start()
        again = wait_for("its answer", lambda: (a := s.post("/v1/executions", body, headers=key)).status == 200 and a)
        assert again.json["id"] == shot.json["id"] and again.json["stdout"] == shot.json["stdout"], (shot, again)
        wait_for("its end", lambda: s.get(f"/v1/workspaces/{shot.json['workspaceId']}").status == 410)


def start_on_a_full_disk(how):
    with server_on_ext4(800, pools=pool_yaml(warm=1)) as (s, disk):
        def token(name, role, **headers):
            answer = s.post("/v1/tokens", {"name": name, "role": role}, **headers)
            assert answer.status == 201, answer
            return answer.json["id"], {"headers": {"Authorization": "Bearer " + answer.json["token"]}}

        _, admin = token("root", "admin")
        s.drain = lambda: s.post("/v1/drain", **admin)
        stolen, thief = token("stolen", "user", **admin)
        later, later_thief = token("later", "user", **admin)
        opened = s.post("/v1/workspaces", {}, **admin)
        assert opened.status == 201, (opened, s.log()[-3000:])
        w = opened.json["id"]

        def said(word):
            answer = s.post(f"/v1/workspaces/{w}/executions", {"command": f"echo {word}"}, **admin)
            return answer.status == 200 and answer.json["stdout"] == word + "\n"

        assert said("before")
        take_all(disk)
        wait_for("a database that takes no more",
                 lambda: s.call("PATCH", f"/v1/workspaces/{w}", {"labels": {f"k{i}": new_key() for i in range(20)}}, **admin).status == 507, 60)
        # A stolen token is still revoked, and stays revoked.
        assert s.get("/v1/workspaces", **thief).status == 200
        assert s.call("DELETE", f"/v1/tokens/{stolen}", **admin).status == 204
        assert s.get("/v1/workspaces", **thief).status == 401

        how(s)
        take_all(disk)  # the space that the server's end has freed
        s.start(wait=0)

        def serves():
            assert s.process.poll() is None, s.log()[-3000:]
            with contextlib.suppress(OSError):
                return s.get(f"/v1/workspaces/{w}", **admin).status == 200
            return False

        wait_for("a start on the full disk", serves, 60)
        assert said("within"), "the workspace has not survived"
        assert s.get("/v1/workspaces", **thief).status == 401
        assert s.get("/v1/workspaces", **later_thief).status == 200
        assert s.call("DELETE", f"/v1/tokens/{later}", **admin).status == 204
        assert s.get("/v1/workspaces", **later_thief).status == 401

        empty(disk)
        wait_for("a change", lambda: s.post("/v1/tokens", {"name": "next", "role": "user"}, **admin).status == 201)
        s.kill9()
        s.start()
        assert said("after")
        assert [t["name"] for t in s.get("/v1/tokens", **admin).json["items"] if t["name"] != "next"] == ["root"]
        for gone in (thief, later_thief):
            assert s.get("/v1/workspaces", **gone).status == 401


def start_on_a_full_disk_after_kill():
    """on an ext4 that is full to root's reserve a token is revoked, and after kill -9 the server starts with its workspaces"""
    start_on_a_full_disk(Server.kill9)


def start_on_a_full_disk_after_stop():
    """on an ext4 that is full to root's reserve a token is revoked, and after a stop the server starts with its workspaces"""
    start_on_a_full_disk(Server.stop)


def damaged_on_a_full_disk():
    """a database that is damaged on a full disk ends no start: it stays closed, and the workspace of before goes on"""
    for where in ("header", "tokens"):
        with server_on_ext4(800, pools=pool_yaml(warm=1)) as (s, disk):
            made = s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]
            admin = {"headers": {"Authorization": "Bearer " + made}}
            s.drain = lambda: s.post("/v1/drain", **admin)
            w = s.post("/v1/workspaces", {}, **admin).json["id"]
            s.stop()
            database = os.path.join(s.data, "state", "hearth.db")
            with contextlib.closing(sqlite3.connect(database)) as reader:
                page = reader.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'tokens'").fetchone()[0]
                size = reader.execute("PRAGMA page_size").fetchone()[0]
            with open(database, "r+b") as f:
                f.seek(0 if where == "header" else (page - 1) * size)
                f.write(b"x" * size)
            take_all(disk)

            def closed():
                assert s.process.poll() is None, s.log()[-3000:]
                with contextlib.suppress(OSError):
                    return s.get(f"/v1/workspaces/{w}", **admin).status == 401
                return False

            for _ in range(2):
                s.start(wait=0)
                wait_for("a start on the full disk, closed", closed, 60)
                s.kill9()
                take_all(disk)
            empty(disk)
            made = subprocess.run([os.path.join(BUILD, "hearth"), "token", "create", "--role", "admin", "--offline", "--data-dir", s.data],
                                  capture_output=True, text=True, check=True).stdout.strip()
            admin["headers"]["Authorization"] = "Bearer " + made
            s.start()
            again = s.post(f"/v1/workspaces/{w}/executions", {"command": "echo on"}, **admin)
            assert again.status == 200 and again.json["stdout"] == "on\n", again


start_on_a_full_disk_after_kill.only = start_on_a_full_disk_after_stop.only = damaged_on_a_full_disk.only = "oci"


def promised_disk():
    """workspaces are promised no more than the disk times the over-commit; a claim beyond it is DISK_FULL, and room comes back"""
    pools = pool_yaml(warm=2, on_empty="Fail")
    # 99 MiB without the reserve, times two: room for three of 64 MiB.
    with server_with("storage", 110, pools=pools, args=["--disk-overcommit", "2"]) as (s, _):
        opened = [s.open_workspace()["id"], s.open_workspace()["id"]]
        wait_for("the third", lambda: s.get("/v1/pools/shell").json["status"]["ready"] == 1)

        def degraded():
            conditions = s.get("/v1/pools/shell").json["status"]["conditions"]
            return next((c for c in conditions if c["type"] == "Degraded" and c["status"] in (True, "True")), None)

        told = wait_for("the condition", degraded)
        assert told["reason"] == "DiskFull" and "64Mi does not fit: 192Mi of" in told["message"], told
        opened.append(s.open_workspace()["id"])
        refused = s.post("/v1/workspaces", {})
        assert refused.status == 507 and refused.json["errorCode"] == "DISK_FULL", refused
        assert "--disk-overcommit" in refused.json["hint"], refused
        assert metric(s, "hearth_workspace_disk_promised_bytes") == 192 * MIB
        assert metric(s, "hearth_workspace_disk_limit_bytes") == 198 * MIB
        s.kill9()
        s.start()
        wait_for("the same count", lambda: metric(s, "hearth_workspace_disk_promised_bytes") == 192 * MIB)
        assert s.post("/v1/workspaces", {}).status == 507
        assert s.call("DELETE", f"/v1/workspaces/{opened[0]}").status == 204
        again = wait_for("room", lambda: (a := s.post("/v1/workspaces", {})).status == 201 and a, 20)
        assert s.run(again.json["id"], "echo on")["stdout"] == "on\n"


promised_disk.only = "oci"


def stalled_log():
    """with a log that nobody reads requests are answered; what is dropped is counted and told, and the server ends"""
    pool = pool_yaml(name="out").replace("    resources:", "    network: {mode: Egress, allow: [\"allowed.invalid:80\"]}\n    resources:")
    with Server(pools=pool, args=["--log-level", "debug"]) as s:
        assert s.stop() == 0
        whole, pipe = s.log_path, os.path.join(s.data, "log.pipe")
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        try:
            s.log_path, s.log = pipe, lambda: "(unread)"
            s.start()
            w = s.open_workspace()["id"]
            # Each refusal is a line of the log.
            host = ".".join(["x" * 60] * 4)
            ask = f"for i in $(seq 200); do wget -q -O /dev/null http://{host}/; done; echo asked"
            begin = time.monotonic()
            while metric(s, "hearth_log_lines_dropped_total") == 0:
                assert s.run(w, ask, timeoutSeconds=100)["stdout"] == "asked\n"
                assert time.monotonic() - begin < 300, s.get(f"/v1/workspaces/{w}/egress")
            assert s.run(w, "echo on")["stdout"] == "on\n"
            assert s.post("/v1/executions", {"command": "echo shot"}).json["stdout"] == "shot\n"
            assert s.ops("/healthz").status == 200
            text = []

            def read():
                with contextlib.suppress(OSError):  # the test closes it when it has seen enough
                    text.extend(iter(lambda: os.read(end, 65536), b""))

            reader = threading.Thread(target=read, daemon=True)
            reader.start()  # it reads again
            wait_for("the log to tell of the gap", lambda: b"log.dropped lines=" in b"".join(text), 30)
            s.run(w, ask, timeoutSeconds=100)
            s.drain()
            assert s.stop() == 0
            wait_for("the last line", lambda: b"event=server.stopped" in b"".join(text), 10)
            lines = b"".join(text).splitlines()
            told = sum(int(line.split(b"lines=")[1].split()[0]) for line in lines if b"event=log.dropped " in line)
            assert told > 0 and all(line.startswith(b"ts=20") for line in lines if b"egress.request" in line), told
        finally:
            s.log_path = whole
            del s.log
            os.close(end)


def stalled_to_the_end():
    """a log that nobody ever reads does not keep the server from starting or ending"""
    with Server() as s:
        assert s.stop() == 0
        whole, pipe = s.log_path, os.path.join(s.data, "log.pipe")
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        os.set_blocking(end, False)
        with contextlib.suppress(BlockingIOError):
            while os.write(end, b"." * 4096):
                pass
        try:
            s.log_path, s.log = pipe, lambda: "(unread)"
            s.start()
            assert s.run(s.open_workspace()["id"], "echo on")["stdout"] == "on\n"
            s.drain()
            begin = time.monotonic()
            assert s.stop() == 0
            assert time.monotonic() - begin < 20 * SLOWER
        finally:
            s.log_path = whole
            del s.log
            os.close(end)


if __name__ == "__main__":
    main("server", [full_state_disk, crash_with_a_full_disk, start_on_a_full_disk_after_kill, start_on_a_full_disk_after_stop,
                    damaged_on_a_full_disk, promised_disk, stalled_log, stalled_to_the_end])
