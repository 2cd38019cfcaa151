#!/usr/bin/env python3
"""Commands in shells that were started ahead, on real sandboxes: they must behave like `sh -c`, or be spawned."""

import http.client
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, pool_yaml, wait_for  # noqa: E402

# Each is run as `command` and as the arguments of a shell; how they end must be the same.
COMMANDS = [
    "echo hi; echo ho >&2; exit 3",
    "echo $0 $# $-; nosuch",
    "echo 'unfinished",
    "cat <<E\n$HOME $A $S\nE\npwd; umask; id -u; id -g",
    "env | sort",
    "sh -c 'kill -9 $$'",
    "python3 -c 'import os; os.abort()'",
    "set -e; false; echo after",
    "trap 'echo bye' EXIT; (exit 4)",
    "ulimit -a | grep -v ^locks; grep -v 'ctxt\\|^Pid\\|^NSpid\\|^NStgid\\|^NSpgid\\|^NSsid\\|^Tgid\\|^PPid\\|^Vm\\|^Rss\\|^Groups\\|^SigQ\\|^Ngid\\|_bits\\|allowed' /proc/self/status",
    "seq 100000 | tail -n 1; yes | head -c 300000 | wc -c",
]


def warm(name, languages, image="python", memory="256Mi"):
    text = pool_yaml(name, image=image, warm=1, memory=memory)
    return text.replace("  template:\n", f"  template:\n    prewarm: {{languages: [{languages}], timeout: 60s}}\n", 1)


POOLS = "---\n".join([warm("ahead", "sh"), pool_yaml("plain", image="python", warm=1, memory="256Mi"),
                      warm("other", "sh", image="shell", memory="64Mi")])


def execute(s, workspace, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", fields)
    assert answer.status == 200, answer
    return answer.json


def parked(s, workspace, command, **fields):
    """Runs the command until a waiting shell takes it: a burst may find none."""
    for _ in range(100):
        result = execute(s, workspace, command=command, **fields)
        if result["interpreter"] == "parked":
            return result
        time.sleep(0.05)
    raise AssertionError(f"never in a parked shell: {result}")


def ending(result):
    return {key: result[key] for key in ("stdout", "stderr", "exitCode", "signal", "status")}


def only_where_asked(s):
    """a pool that asks for parked shells answers so from its first command on, another does not, and one whose image has no dash says why"""
    w = s.open_workspace(pool="ahead")["id"]
    first = execute(s, w, command="echo hi")
    assert first["interpreter"] == "parked" and first["stdout"] == "hi\n", first
    stored = s.get(f"/v1/executions/{first['id']}").json
    assert stored["interpreter"] == "parked", stored
    shot = s.post("/v1/executions", {"command": "echo hi", "pool": "ahead"}).json
    assert shot["interpreter"] == "parked" and shot["stdout"] == "hi\n", shot
    for workspace, fields in ((w, {"argv": ["sh", "-c", "echo hi"]}), (w, {"command": "cat", "stdin": "hi\n"}),
                              (w, {"command": "echo hi", "cwd": "/tmp"}), (w, {"command": "echo hi", "env": {"LANG": "C"}}),
                              (s.open_workspace(pool="plain")["id"], {"command": "echo hi"}),
                              (s.open_workspace(pool="other")["id"], {"command": "echo hi"})):
        result = execute(s, workspace, **fields)
        assert result["interpreter"] is None and result["stdout"] == "hi\n", (fields, result)
    told = {c["type"]: c for c in s.get("/v1/pools/other").json["status"]["conditions"]}["Prewarmed"]
    assert told["status"] == "False" and "dash" in told["message"], told


def as_a_shell_does(s):
    """what commands print, return and leave is what sh -c does, with the environment and the secrets of the workspace"""
    w = s.open_workspace(pool="ahead", env={"A": "it's\n$HOME \"q\""}, secrets={"S": "hush"})["id"]
    first = execute(s, w, command="echo \"$A-$S\"; env | grep -c '^S=hush$'")
    assert first["interpreter"] == "parked" and first["stdout"] == "it's\n$HOME \"q\"-hush\n1\n", first
    for command in COMMANDS:
        expected = ending(execute(s, w, argv=["/bin/sh", "-c", command]))
        got = ending(parked(s, w, command))
        assert got == expected, (command, got, expected)
    over = parked(s, w, "echo $A$B", env={"A": "1", "B": "2"})
    assert over["stdout"] == "12\n", over


def one_of_several(s, workspace, command):
    """Runs it in a parked shell while others wait beside it. Each attempt ends the others, so they need time to come back."""
    for _ in range(10):
        time.sleep(1)
        result = execute(s, workspace, command=command)
        if result["interpreter"] == "parked" and result["stdout"]:
            return result
    raise AssertionError(f"never in a parked shell: {result}")


def lost_shells(s):
    """parked shells that are killed or stopped from inside cost no run"""
    w = s.open_workspace(pool="ahead")["id"]
    for name in ("KILL", "STOP"):
        hit = one_of_several(s, w, "for p in /proc/[0-9]*; do [ ${p#/proc/} != $$ ] && tr '\\0' ' ' <$p/cmdline 2>/dev/null |"
                           f" grep -q '^/bin/sh -i +m -c' && kill -{name} ${{p#/proc/}} && echo hit; done; true")
        assert hit["status"] == "ok" and "hit" in hit["stdout"], hit
        for i in range(4):
            out = execute(s, w, command=f"echo {i} >>{name}; cat {name}")
            assert out["status"] == "ok" and out["stdout"] == "".join(f"{k}\n" for k in range(i + 1)), out
        parked(s, w, "true")


def ends(s):
    """held output, deadlines, background commands and fork bombs end as with sh -c"""
    w = s.open_workspace(pool="ahead")["id"]
    for run in (lambda command, **fields: parked(s, w, command, **fields),
                lambda command, **fields: execute(s, w, argv=["/bin/sh", "-c", command], **fields)):
        began = time.time()
        held = run("sleep 66 & echo hi")
        assert held["status"] == "ok" and held["stdout"] == "hi\n" and time.time() - began < 30, held
        late = run("setsid sh -c 'sleep 67 & sleep 67' & echo on; sleep 67", timeoutSeconds=1)
        assert late["status"] == "timeout" and late["stdout"] == "on\n", late
        left = execute(s, w, argv=["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep [6]7' | wc -l"])
        assert left["stdout"] == "0\n", left
    # The last one, because a bomb leaves a sandbox that others cannot use.
    bomb = parked(s, w, "f() { f | f & }; f; sleep 60", timeoutSeconds=2)
    assert bomb["status"] in ("timeout", "failed"), bomb
    wait_for("processes again", lambda: execute(s, w, command="echo $((6 * 7))")["stdout"] == "42\n", 30)


def found_again(s):
    """a command in a parked shell goes on behind a killed server, and ends as what it is"""
    w = s.open_workspace(pool="ahead")["id"]
    wait = "echo on; until [ -e go ]; do sleep 0.05; done; echo off; exit 5"

    def ask():
        try:
            s.post(f"/v1/workspaces/{w}/executions", {"command": wait})
        except (OSError, http.client.HTTPException):
            pass  # the server is killed before it can answer

    asking = threading.Thread(target=ask)
    asking.start()
    listed = wait_for("the start", lambda: [x for x in s.get(f"/v1/workspaces/{w}/executions").json["items"] if x["outputBytes"]])
    assert listed[0]["interpreter"] == "parked", listed
    s.kill9()
    asking.join()
    s.start()
    execute(s, w, argv=["touch", "go"])
    out = wait_for("the end", lambda: (x := s.get(f"/v1/executions/{listed[0]['id']}").json)["status"] != "running" and x)
    assert (out["stdout"], out["exitCode"], out["interpreter"]) == ("on\noff\n", 5, "parked"), out


def parked_shells():
    """commands in parked shells: only where asked for; as sh -c does them; lost shells cost no run; they end as others; a killed server finds them again"""
    with Server(POOLS, args=("--default-pool", "ahead")) as s:  # one for all: its image takes longer to unpack than they run
        for part in (only_where_asked, as_a_shell_does, lost_shells, ends, found_again):
            part(s)


if __name__ == "__main__":
    main("server", [parked_shells])
