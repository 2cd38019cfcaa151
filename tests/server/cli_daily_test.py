#!/usr/bin/env python3
"""The commands of every day, with the real program against a real server: what they show, choose and change. Standard
library only."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, SLOWER, Server, Shared, main, pool_yaml  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")
shared = Shared(pools=pool_yaml(warm=3))


def hearth(s, *words, stdin="", cwd=None):
    """Runs a command to its end; gives the result, with text."""
    return subprocess.run([HEARTH, *words], input=stdin, capture_output=True, text=True, cwd=cwd, timeout=60 * SLOWER, check=False,
                          env=dict(os.environ, HEARTH_URL=s.url, NO_COLOR="1"))


def says(s, *words, **fields):
    """The output of a command that succeeds."""
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


def ends():
    """the server of these tests leaves nothing"""
    shared.end()


TESTS = [shown_whole, restarts, ends]
for test in TESTS:
    test.only = "oci"  # what they look at is in front of any runtime

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        shared.clean_up()
