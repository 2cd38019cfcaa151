#!/usr/bin/env python3
"""The commands of every day, with the real program against a real server: what they show, choose and change. Standard
library only."""

import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, SLOWER, Server, Shared, main, pool_yaml, wait_for  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")
shared = Shared(pools=pool_yaml(warm=3))


def hearth(s, *words, stdin="", cwd=None):
    """Runs a command to its end. Returns the result, with text."""
    return subprocess.run([HEARTH, *words], input=stdin, capture_output=True, text=True, cwd=cwd, timeout=60 * SLOWER, check=False,
                          env=dict(os.environ, HEARTH_URL=s.url, NO_COLOR="1"))


def says(s, *words, **fields):
    """Returns the output of a command, which must succeed."""
    ran = hearth(s, *words, **fields)
    assert ran.returncode == 0, ran
    return ran.stdout


def shown_whole():
    """the output of an execution is shown line by line, and filters choose or are refused"""
    with shared as s:
        red = s.open_workspace(name="red", labels={"team": "red"})["id"]
        blue = s.open_workspace(name="blue", labels={"team": "blue"})["id"]
        execution = s.run(red, "echo one; echo two; printf '\\033[31m' >&2; echo; echo three >&2")["id"]
        text = says(s, "get", "execution", execution)
        assert "\nstdout:\none\ntwo\n" in text and "three" in text and "\033" not in text, text
        assert says(s, "get", "workspaces", "-l", "team=red", "-q") == red + "\n"
        assert says(s, "get", "workspaces", "--pool", "nosuch", "-q") == ""
        assert set(says(s, "get", "workspaces", "--pool", "shell", "--tenant", "default", "-q").split()) == {red, blue}
        assert says(s, "get", "workspaces", "--tenant", "other", "-q") == ""
        assert says(s, "get", "sandboxes", "-w", "blue", "-o", "wide").count("sb_") == 1
        assert blue in says(s, "get", "events", "--resource", blue) and red not in says(s, "get", "events", "--resource", blue)
        assert hearth(s, "get", "sandboxes", "--pool", "nosuch").returncode == 3
        for words in (("pools", "--pool", "shell"), ("executions", "-w", red, "-l", "a=b"), ("workspace", red, "--pool", "shell")):
            refused = hearth(s, "get", *words)
            assert refused.returncode == 2 and "hint:" in refused.stderr, (words, refused)


def restarts():
    """at a start a file of --pools wins over what was applied, and the log says so; --pools-once leaves it alone"""
    with Server(pools=pool_yaml(warm=1)) as s:
        def restart(*extra):
            s.stop()
            s.extra = list(extra)
            s.start()
            return s.get("/v1/pools/shell").json["spec"]["warm"]["min"]

        def change():
            assert s.call("PATCH", "/v1/pools/shell", {"spec": {"warm": {"min": 2, "max": 2}}}).status == 200

        assert restart() == 1 and "pool.replaced" not in s.log()
        change()
        assert restart() == 1 and "pool.replaced" in s.log() and "--pools-once" in s.log(), s.log()[-2000:]
        change()
        file, s.pools_file = s.pools_file, None
        assert restart("--pools-once", file) == 2
        assert s.call("DELETE", "/v1/pools/shell").status in (202, 204)
        assert restart("--pools-once", file) == 1, "a pool that is not there is declared"


def by_name():
    """a workspace goes by its name or a part of its id in every command, and two that fit are an error"""
    with shared as s:
        one = s.open_workspace(name="one")["id"]
        s.open_workspace(name="twice")
        s.open_workspace(name="twice")
        assert says(s, "run", "-w", "one", "--command", "echo kept > f; echo ran") == "ran\n"
        assert says(s, "exec", one[:20], "sh", "-c", "cat f; echo $0 $LEVEL", "-it") == "kept\n-it\n"
        assert says(s, "exec", "-e", "LEVEL=2", "one", "sh", "-c", "echo $LEVEL") == "2\n"
        assert hearth(s, "exec", "one", "false").returncode == 1
        assert says(s, "cp", "one:f", "-") == "kept\n"
        assert "sandboxId" in says(s, "get", "workspace", "one")
        described = says(s, "describe", "workspace", "one")
        assert "executions:" in described and "events:" in described, described
        assert "f" in says(s, "ls", "one:").split()
        twice = hearth(s, "exec", "twice", "true")
        assert twice.returncode == 2 and "ws_" in twice.stderr, twice
        assert hearth(s, "exec", "nosuch", "true").returncode == 3
        assert says(s, "rm", "one:f") == "one:f deleted\n"
        says(s, "exec", "one", "sh", "-c", "mkdir full; touch full/a")
        full = hearth(s, "rm", "one:full")
        assert full.returncode == 1 and "hearth rm -r one:full" in full.stderr, full
        assert says(s, "rm", "-r", "one:full") == "one:full deleted\n"
        for words in (("exec", "", "touch", "f"), ("run", "-w", "", "--command", "touch f"), ("rm", ""), ("logs", "")):
            empty = hearth(s, *words)
            assert empty.returncode == 2 and "is empty" in empty.stderr, empty
        assert says(s, "exec", "-e", "NO_COLOR", "one", "sh", "-c", "echo $NO_COLOR") == "1\n"
        assert hearth(s, "rm", "one:").returncode == 2, "that would be everything"
        assert says(s, "rm", "one") == f"workspace {one} deleted\n"
        assert s.get(f"/v1/workspaces/{one}").status == 410


def closed_pipes():
    """a program whose output nobody reads any more is ended, as in a shell; one that is only watched goes on"""
    with shared as s:
        w = s.open_workspace(name="piped")["id"]
        for words in (("run", "-w", "piped", "--command", "while :; do echo line; done"), ("exec", "piped", "yes")):
            run = subprocess.Popen([HEARTH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=dict(os.environ, HEARTH_URL=s.url))
            try:
                assert run.stdout.readline()
                run.stdout.close()
                assert run.wait(60 * SLOWER) == 141, run.stderr.read()
            finally:
                run.kill()
                run.wait()
            wait_for("its end", lambda: says(s, "ps", "-q", "piped") == "")
        e = says(s, "run", "-d", "-w", "piped", "--command", "while :; do echo line; sleep 0.05; done").strip()
        follow = subprocess.Popen([HEARTH, "logs", "-f", e], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=dict(os.environ, HEARTH_URL=s.url))
        try:
            assert follow.stdout.readline()
            follow.stdout.close()
            assert follow.wait(60 * SLOWER) == 141
        finally:
            follow.kill()
            follow.wait()
        assert says(s, "ps", "-q", w) == e + "\n"
        says(s, "stop", e)


def long_work():
    """detached work is listed, followed, read and stopped; stopping kills what does not end"""
    with shared as s:
        w = s.open_workspace(name="long")["id"]
        until = "until [ -e go ]; do sleep 0.05; done; echo last; exit 7"
        e = says(s, "run", "-d", "-w", "long", "--command", "echo first; echo aside >&2; " + until).strip()
        assert says(s, "ps", "-q") == e + "\n" and w in says(s, "ps", "long")
        wait_for("its output", lambda: says(s, "logs", e) == "first\n")
        assert hearth(s, "logs", e[:20]).stderr == "aside\n"
        follow = subprocess.Popen([HEARTH, "attach", e], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True,
                                  env=dict(os.environ, HEARTH_URL=s.url))
        try:
            assert follow.stdout.readline() == "first\n"
            says(s, "cp", "-", "long:go")
            assert follow.communicate(timeout=60 * SLOWER)[0] == "last\n" and follow.returncode == 7
        finally:
            follow.kill()
            follow.communicate()
        assert e in says(s, "__complete", "logs", "ex_"), "it can be completed"
        assert says(s, "logs", "-f", e) == "first\nlast\n"
        assert says(s, "ps", "-q") == "" and says(s, "ps", "--all", "-q").split() == [e]
        soft = says(s, "run", "-d", "-w", "long", "--command", "sleep 1000").strip()
        hard = says(s, "run", "-d", "-w", "long", "--command", "trap '' TERM; touch deaf; while :; do sleep 0.05; done").strip()
        wait_for("the trap", lambda: hearth(s, "cp", "long:deaf", "-").returncode == 0)
        assert f"{soft} stopped" in says(s, "stop", soft)
        assert f"{hard} killed" in says(s, "stop", "-t", "0.2", "long")
        assert f"{hard} had ended" in says(s, "stop", hard)
        alone = says(s, "run", "-d", "--command", "sleep 1000").strip()
        assert says(s, "ps", "-q") == alone + "\n", "in a workspace of its own, too"
        says(s, "stop", alone)


def files_of_a_run():
    """files go along with a run and come back, arguments too, and nothing leaves the folder for them"""
    here = tempfile.mkdtemp(prefix="hearth-run-")
    try:
        with shared as s:
            with open(f"{here}/a.sh", "w", encoding="ascii") as f:
                f.write('echo "$@"; cat data.csv; mkdir -p deep; tr a-z A-Z < data.csv > deep/up.csv')
            with open(f"{here}/data.csv", "w", encoding="ascii") as f:
                f.write("x,y\n")
            ran = hearth(s, "run", "--file", "data.csv", "--out", "back/here", "a.sh", "one", "two", "--", "-v", cwd=here)
            assert ran.returncode == 0 and ran.stdout == "one two -v\nx,y\n", ran
            assert open(f"{here}/back/here/deep/up.csv", encoding="ascii").read() == "X,Y\n", ran
            os.symlink(here, f"{here}/back/deep")
            w = s.open_workspace()["id"]
            ran = hearth(s, "run", "-w", w, "--out", "back", "--command", "mkdir deep; echo 1 > deep/owned; echo 2 > fine", cwd=here)
            assert "left out" in ran.stderr and not os.path.exists(f"{here}/owned"), ran
            assert open(f"{here}/back/fine", encoding="ascii").read() == "2\n", ran
            assert hearth(s, "run", "-t", "0.5", "--command", "sleep 100").returncode == 124
            says(s, "cp", "-r", "a.sh", "data.csv", f"{w}:many/", cwd=here)
            assert set(says(s, "exec", w, "ls", "many").split()) == {"a.sh", "data.csv"}
            assert hearth(s, "cp", "a.sh", "data.csv", f"{w}:one", cwd=here).returncode == 2
    finally:
        shutil.rmtree(here)


def pool_without_image():
    """who waits for a pool that cannot make sandboxes is told why as soon as that is known, not after maxWait"""
    with Server(pools=pool_yaml("broken", image="nosuch", max_wait="5m")) as s:
        began = time.monotonic()
        refused = hearth(s, "run", "-p", "broken", "--command", "true")
        assert refused.returncode == 1 and "cannot make sandboxes" in refused.stderr and "nosuch" in refused.stderr, refused
        assert time.monotonic() - began < 60, refused


def pools_change():
    """apply says what changes, a dry run changes nothing, scale changes the warm sandboxes, and -o yaml can be applied"""
    with Server(pools=pool_yaml(warm=1)) as s:
        manifest = says(s, "get", "pool", "shell", "-o", "yaml")
        assert says(s, "apply", "-f", "-", stdin=manifest) == "pool shell unchanged\n"
        changed = manifest.replace("min: 1", "min: 2")
        dry = says(s, "apply", "--dry-run", "-f", "-", stdin=changed)
        assert dry.startswith("pool shell configured (dry run)\n") and "/warm/min: 1 -> 2\n" in dry, dry
        assert s.get("/v1/pools/shell").json["spec"]["warm"]["min"] == 1
        assert "/warm/min: 1 -> 2\n" in says(s, "apply", "-f", "-", stdin=changed)
        assert says(s, "scale", "shell", "0", "3") == "pool shell scaled: min 0, max 3\n"
        assert says(s, "scale", "shell", "4") == "pool shell scaled: min 4, max 4, raised from 3\n"
        assert hearth(s, "scale", "shell", "many").returncode == 2 and hearth(s, "scale", "nosuch", "1").returncode == 3


def watched():
    """--watch prints what is there and then what changes, one list after another"""
    with shared as s:
        w = s.open_workspace(name="first")["id"]
        with tempfile.NamedTemporaryFile("r", encoding="ascii") as seen:
            watch = subprocess.Popen([HEARTH, "get", "workspaces", "--watch", "-q"], stdout=open(seen.name, "w", encoding="ascii"),
                                     stdin=subprocess.DEVNULL, env=dict(os.environ, HEARTH_URL=s.url))
            try:
                wait_for("the first", lambda: w in open(seen.name, encoding="ascii").read())
                second = s.open_workspace(name="second")["id"]
                wait_for("the second", lambda: second in open(seen.name, encoding="ascii").read())
            finally:
                watch.kill()
                watch.communicate()


def mistakes():
    """the commonest mistakes at a terminal each get a short answer that names the right words"""
    here = tempfile.mkdtemp(prefix="hearth-mistakes-")
    try:
        with open(f"{here}/note.txt", "w", encoding="ascii") as f:
            f.write("x")
        with shared as s:
            w = s.open_workspace(name="mine")["id"]
            e = s.run(w, "true")["id"]
            for typed, status, words in (
                    ("start", 2, ["hearth serve"]), ("kill", 2, ["hearth stop"]), ("pools", 2, ["hearth get pools"]), ("exe mine ls", 2, ["hearth exec"]),
                    ("--bogus 1 get pools", 2, ["hearth COMMAND --bogus"]), ("stats", 2, ["hearth top"]), ("describe mine", 2, ["hearth describe workspace mine"]),
                    ("scale shell --min 3", 2, ["hearth scale", "POOL MIN"]), ("get secrets", 2, ["pools", "workspaces"]),
                    ("get pod", 2, ["hearth get sandboxes"]), ("get pols", 2, ["did you mean pools"]),
                    ("exec ls", 2, ["hearth exec WORKSPACE PROGRAM"]), ("exec nosuch ls", 3, ["no workspace nosuch", "hearth ls"]),
                    (f"exec {e} ls", 3, ["that is an execution", "hearth ps --all"]),
                    (f"logs {w}", 2, ["is a workspace", f"hearth ps --all {w}"]), ("logs mine", 2, ["is a workspace", "hearth ps --all mine"]),
                    ("run -p shel --command true", 3, ["no pool shel", "shell"]), ("run --image python:3 --command true", 1, ["pools have: shell"]),
                    ("run -l pyton -c 1", 1, ["pyton", "available languages: sh"]), ("run note.txt", 2, ["note.txt", "-l LANGUAGE"]),
                    ("run gone.py", 2, ["no file gone.py"]), ("run ls", 2, ["hearth run -- ls"]), ("run ls /tmp", 2, ["hearth run -- ls"]),
                    ("run --memory 1gb -c 1", 2, ["1gb", "256Mi"]), ("run --memory 1Ti -c true", 1, ["128Mi", "shell"]),
                    ("open --memory 5", 2, ["--memory must be between 32 MiB and 16 TiB"]), ("open -p Shell!", 2, ["--pool must be"]),
                    ("run --time-out 3 -c 1", 2, ["did you mean --timeout"]), ("cp note.txt mine", 2, ["WORKSPACE:PATH"]),
                    ("delete mine", 2, ["workspace"]), ("delete ws nosuch", 3, ["no workspace nosuch"]), ("images", 2, ["hearth image list"]), ("get ws -l foo", 2, ["foo", "K=V"]),
                    ("ls --watch", 2, ["hearth get workspaces --watch"]), ("ps -w", 2, ["hearth get executions --watch"]),
                    ("logs --tail 3 x", 2, ["tail -n"]), ("run --rm --command true", 2, ["leave it out"]), ("run -v .:/x -c 1", 2, ["--file", "--out"]), ("mcp-config claud", 2, ["did you mean claude"])):
                ran = hearth(s, *typed.split(), cwd=here)
                assert ran.returncode == status and ran.stdout == "", (typed, ran)
                assert all(word in ran.stderr for word in words), (typed, words, ran.stderr)
                assert ran.stderr.startswith("error: ") and ran.stderr.count("\n") <= 3, (typed, ran.stderr)
            for env, words in (({"HEARTH_TOKEN": "wrong"}, ["HEARTH_TOKEN", "hearth token create"]),
                               ({"HEARTH_URL": "http://127.0.0.1:1"}, ["is the server running?", "hearth doctor", "--url"]),
                               ({"HEARTH_URL": "127.0.0.1:8080"}, ["http://HOST:PORT"])):
                ran = subprocess.run([HEARTH, "get", "pools"], capture_output=True, text=True, timeout=60 * SLOWER, check=False,
                                     env=dict(os.environ, **{"HEARTH_URL": s.url, "NO_COLOR": "1", **env}))
                assert ran.returncode != 0 and all(word in ran.stderr for word in words), (env, ran)
    finally:
        shutil.rmtree(here)


def ends():
    """the server of these tests leaves nothing"""
    shared.end()


TESTS = [shown_whole, by_name, closed_pipes, long_work, files_of_a_run, watched, mistakes, restarts, pool_without_image, pools_change, ends]
for test in TESTS:
    test.only = "oci"  # they test parts in front of any runtime

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        shared.clean_up()
