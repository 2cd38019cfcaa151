#!/usr/bin/env python3
"""The console in a real browser, served by a real server: what it shows, does, survives, and what hostile output cannot do."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SLOWER, Server, Shared, main, npm_ci, pool_yaml, record  # noqa: E402

# suite: seconds=90 needs=node,chromium sanitizers=no
NODE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "console")
CHROMIUM = os.environ.get("HEARTH_CHROMIUM", "/usr/bin/chromium")
POOL = "python"

python = Shared(pools=pool_yaml(POOL, image="python", memory="512Mi", warm=2))


def address(server):
    """Returns the URL where the browser finds the console of a server."""
    return server.url + "/"


class Browser:
    """One Chromium for all cases, in console.mjs: it gets each case as a line of JSON and answers with one."""

    def __init__(self):
        self.process = None

    def case(self, name, server, **given):
        if self.process is None or self.process.poll() is not None:
            npm_ci(NODE)
            self.process = subprocess.Popen(["node", os.path.join(NODE, "console.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            text=True, env=dict(os.environ, HEARTH_CHROMIUM=CHROMIUM))
        self.process.stdin.write(json.dumps({"case": name, "url": address(server), "pool": POOL, **given}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the browser's program has ended"
        error = json.loads(line)["error"]
        assert error is None, error

    def end(self):
        if self.process is None:
            return
        self.process.stdin.close()
        try:
            self.process.wait(10 * SLOWER)
        except subprocess.TimeoutExpired:
            self.process.kill()


browser = Browser()


def pools():
    """the console shows the pools, their numbers and, one click further, their conditions"""
    with python as s:
        browser.case("pools", s)


def claim():
    """a claim made elsewhere appears without a reload"""
    with python as s:
        browser.case("claim", s)


def code():
    """code that runs in the page shows its output, its value and a picture"""
    with python as s:
        browser.case("code", s)


def terminal():
    """a terminal answers a typed command, and the keyboard gets out of it"""
    with python as s:
        browser.case("terminal", s)


def log():
    """the log goes on in the page, and its filter leaves what fits"""
    with python as s:
        browser.case("log", s)


def end():
    """a workspace ends only after a question, and its reason is shown"""
    with python as s:
        browser.case("end", s)


def hostile():
    """hostile output, names and results stay text: no script runs, nothing is fetched, a line of 1 MiB does not stop the page"""
    with python as s:
        browser.case("hostile", s)


def accessible():
    """axe finds nothing serious or critical in any view, light and dark"""
    with python as s:
        browser.case("axe", s)


def tokens():
    """a user signs in with a token, sees only own workspaces and no GPUs, and no token stays after signing out"""
    with Server(pools=pool_yaml(warm=2)) as s:
        s.token = admin = s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]
        user = s.post("/v1/tokens", {"name": "somebody", "tenant": "theirs", "role": "user"}).json["token"]
        foreign = s.open_workspace(pool="shell")["id"]
        own = s.post("/v1/workspaces", {"pool": "shell"}, headers={"Authorization": f"Bearer {user}"}).json["id"]
        browser.case("user", s, admin=admin, token=user, own=own, foreign=foreign)


def restart():
    """the server is killed and started again: a banner comes and goes, and a run of before shows each line once"""
    with Server(pools=pool_yaml(warm=1)) as s:
        browser.case("follow", s, pool="shell")
        s.kill9()
        browser.case("lost", s)
        s.start()
        browser.case("back", s)


def harmless():
    """no page of these cases has sent a request elsewhere, broken its Content-Security-Policy or failed"""
    with python as s:
        browser.case("pools", s)
        browser.case("harmless", s)


def ends():
    """the server of these cases leaves nothing behind"""
    python.end()


TESTS = [pools, claim, code, terminal, log, end, hostile, accessible, tokens, restart, harmless, ends]
for each in TESTS:
    each.only = "oci"  # the console is the same on all of them

if __name__ == "__main__":
    if shutil.which(CHROMIUM) is None:
        for each in TESTS:
            record("skip", "server", f"{each.__doc__} ({CHROMIUM} is not installed: apt-get install chromium)")
        sys.exit(0)
    try:
        main("server", TESTS)
    finally:
        browser.end()
        python.clean_up()
