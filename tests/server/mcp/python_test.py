#!/usr/bin/env python3
# suite: seconds=45 sanitizers=no
"""The official Python MCP SDK of both generations against a real server, over each of its transports: no result and no message
of ours is one that it refuses, and no session ends. With HEARTH_TEST_CLIENTS=all also over every other transport, and with log
messages. The packages come from PyPI, at the versions of python/*.txt."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from environments import environment  # noqa: E402
from harness import BUILD, SLOWER, Shared, main, pool_yaml, record  # noqa: E402

ALL = os.environ.get("HEARTH_TEST_CLIENTS") == "all"
FLOW = os.path.join(HERE, "python", "flow.py")
python = Shared(pools=pool_yaml("python", image="python", memory="512Mi"))


def drive(pins, *kinds):
    program = environment("mcp-" + pins, os.path.join(HERE, "python", pins + ".txt"))
    with python as s:
        done = subprocess.run([program, FLOW, *kinds], capture_output=True, text=True, timeout=300 * SLOWER, check=False,
                              env=dict(os.environ, HEARTH_URL=s.url, HEARTH_BIN=os.path.join(BUILD, "hearth")))
        assert done.returncode == 0, (done.stdout[-1000:], done.stderr[-6000:])
        print("      " + done.stdout.strip().replace("\n", "\n      "))


def second_generation():
    """the Python SDK of the second generation runs code, sees large figures and long output, and keeps its session"""
    drive("sdk2", "client", "sse")
    if ALL:
        drive("sdk2", "logs", "client of 2026-07-28", "client with a handshake", "client by stdio", "sse", "http")


def first_generation():
    """the Python SDK of the first generation does the same"""
    drive("sdk1", "http")
    if ALL:
        drive("sdk1", "logs", "http", "sse", "stdio")


def ends():
    """the server of these tests leaves nothing behind"""
    python.end()


TESTS = [second_generation, first_generation, ends]
for each in TESTS:
    each.only = "oci"  # what a client sees does not depend on the runtime

if __name__ == "__main__":
    try:
        for name in ("sdk2", "sdk1"):
            environment("mcp-" + name, os.path.join(HERE, "python", name + ".txt"))
    except OSError as e:
        for each in TESTS[:-1]:
            record("skip", "server", f"{each.__doc__} (the SDK cannot be had: {e})")
        sys.exit(0)
    try:
        main("server", TESTS)
    finally:
        python.clean_up()
