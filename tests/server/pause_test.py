#!/usr/bin/env python3
# suite: seconds=40
"""Pausing, black box: idle workspaces of a pool with onIdle Pause are frozen with all they have, and the next call finds it."""

import glob
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, pool_yaml, wait_for  # noqa: E402

# Counts as long as its process runs.
COUNTER = """
import threading, time
n = 0
def count():
    global n
    while True:
        n += 1
        time.sleep(0.01)
threading.Thread(target=count, daemon=True).start()
"""


def pausing(name="python", idle="2s", lifetime="1h", warm=1):
    return pool_yaml(name, image="python", warm=warm, idle=idle).replace("maxLifetime: 1h", f"maxLifetime: {lifetime}, onIdle: Pause")


def phase(s, workspace):
    answer = s.get(f"/v1/workspaces/{workspace}")
    return answer.json["phase"] if answer.status == 200 else answer.status


def paused(s, workspace):
    wait_for("it to be paused", lambda: phase(s, workspace) == "Paused", 30)


def code(s, workspace, text, context):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", {"code": text, "context": context})
    assert answer.status == 200 and answer.json["status"] == "ok", answer
    return answer.json["stdout"]


def counter(s):
    """Opens a workspace with a context that counts. Returns both ids."""
    workspace = s.open_workspace(pool="python")["id"]
    context = s.post(f"/v1/workspaces/{workspace}/contexts", {"language": "python"}).json["id"]
    code(s, workspace, COUNTER, context)
    return workspace, context


def frozen(s):
    """Returns how many of the server's control groups the kernel has frozen, in either version."""
    count = 0
    for tree in ("/sys/fs/cgroup/freezer", "/sys/fs/cgroup"):
        for path in glob.glob(f"{tree}/hearth-{s.instance}/*/freezer.state") + glob.glob(f"{tree}/hearth-{s.instance}/*/cgroup.freeze"):
            with open(path, encoding="ascii") as file:
                count += file.read().strip() in ("FROZEN", "1")
    return count


def paused_and_resumed():
    """an idle workspace stops with its memory and goes on at the next call; reading about it resumes nothing"""
    with Server(pools=pausing()) as s:
        workspace, context = counter(s)
        view = s.get(f"/v1/workspaces/{workspace}").json
        assert "idleExpiresAt" not in view or view["idleExpiresAt"] is None, view
        before = int(code(s, workspace, "print(n)", context))
        began = time.monotonic()
        paused(s, workspace)
        assert s.runtime != "oci" or frozen(s) == 1, "the kernel does not know"
        time.sleep(4)
        assert phase(s, workspace) == "Paused"
        after = int(code(s, workspace, "print(n)", context))
        ran = time.monotonic() - began
        # It ran about 2 s of some 7; while it is frozen it counts nothing.
        assert before < after < before + (ran - 3) / 0.01, (before, after, ran)
        assert phase(s, workspace) == "Active"
        events = [(e["type"], e["reason"]) for e in s.get(f"/v1/events?resource={workspace}").json["items"]]
        assert ("workspace.paused", "idle") in events and ("workspace.resumed", "called") in events, events
        text = s.ops("/metrics").body.decode()
        spent, count = (float(re.search(rf'hearth_resume_seconds_{what}{{pool="python"}} (\S+)', text)[1]) for what in ("sum", "count"))
        print(f"      resumed after {spent / count * 1000:.2f} ms")
        # Files, the shell, and a change of its deadlines work from there as well.
        for call in (lambda: s.call("PUT", f"/v1/workspaces/{workspace}/files/a.txt", raw=b"a"),
                     lambda: s.get(f"/v1/workspaces/{workspace}/files/a.txt"), lambda: s.post(f"/v1/workspaces/{workspace}/touch"),
                     lambda: s.call("PATCH", f"/v1/workspaces/{workspace}", {"idleTimeoutSeconds": 1})):
            paused(s, workspace)
            answer = call()
            assert answer.status in (200, 201, 204), answer
        paused(s, workspace)


def survives():
    """a workspace that was paused when the server was killed is there after the next start, with its memory"""
    with Server(pools=pausing()) as s:
        workspace, context = counter(s)
        paused(s, workspace)
        s.kill9()
        s.start()
        assert phase(s, workspace) in ("Active", "Paused")
        first = int(code(s, workspace, "print(n)", context))
        assert first > 10, first
        paused(s, workspace)
        assert not [e for e in s.get("/v1/events").json["items"] if "suspect" in e["type"]]


def late():
    """the lifetime of a paused workspace that passes while no server runs ends it at the next start, with that reason"""
    with Server(pools=pausing(idle="1s", lifetime="6s")) as s:
        workspace = s.open_workspace(pool="python")["id"]
        paused(s, workspace)
        s.kill9()
        time.sleep(7)
        s.start()
        wait_for("its end", lambda: phase(s, workspace) == 410, 30)
        gone = s.get(f"/v1/workspaces/{workspace}").json
        assert gone["reason"] == "lifetime", gone
        assert s.runtime != "oci" or frozen(s) == 0, "it is frozen for ever"


def ends():
    """a paused workspace ends when it is deleted, by its lifetime and with its pool, and leaves nothing behind"""
    with Server(pools=pausing(lifetime="8s", warm=3)) as s:
        deleted, late, drained = (s.open_workspace(pool="python")["id"] for _ in range(3))
        for each in (deleted, late, drained):
            paused(s, each)
        assert s.call("DELETE", f"/v1/workspaces/{deleted}").status == 204
        wait_for("the lifetime to end it", lambda: phase(s, late) == 410, 30)
        assert s.get(f"/v1/workspaces/{late}").json["reason"] == "lifetime"
    with Server(pools=pausing()) as s:
        workspace = s.open_workspace(pool="python")["id"]
        paused(s, workspace)
        assert s.post("/v1/pools/python/drain").status == 200
        wait_for("the drain to end it", lambda: phase(s, workspace) == 410, 30)
        assert s.get(f"/v1/workspaces/{workspace}").json["reason"] == "drain"


TESTS = [paused_and_resumed, survives, late, ends]

if __name__ == "__main__":
    main("server", TESTS)
