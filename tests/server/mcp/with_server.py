#!/usr/bin/env python3
"""Runs ./run against a server of its own with a shell and a Python pool, which it restarts when asked, and its module
compat against one that serves the clients of an earlier system. Arguments name modules; all without."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import harness  # noqa: E402


def pools():
    names = [name for name in ("shell", "python")
             if os.path.exists(os.path.join(harness.IMAGES, name))]
    return "---\n".join(harness.pool_yaml(name, image=name, memory="256Mi") for name in names)


def drive(server, modules):
    """The status of ./run with these modules, all without one."""
    with server:
        asked = os.path.join(server.data, "restart")
        env = dict(os.environ, HEARTH_URL=server.url,
                   HEARTH_BIN=os.path.join(harness.BUILD, "hearth"),
                   HEARTH_TEST_STAGE=harness.stage_name("server"),
                   HEARTH_RESTART=f"touch {asked}; while [ -e {asked} ]; do sleep 0.1; done",
                   **harness.sanitizer_options(os.path.join(server.data, "report")))
        clients = subprocess.Popen(
            [os.path.join(os.path.dirname(os.path.abspath(__file__)), "run"), *modules], env=env)
        while clients.poll() is None:
            if os.path.exists(asked):
                server.stop()
                server.start()
                os.remove(asked)
            time.sleep(0.05)
    return clients.returncode


def main():
    wanted = sys.argv[1:]
    status = 0
    if wanted != ["compat"]:
        # A fixed default, so that a language has to be looked for and is not met by chance.
        status |= drive(harness.Server(pools=pools(), config="defaultPool: shell\n", ready_within=300), wanted)
    if not wanted or wanted == ["compat"]:
        status |= drive(harness.Server(pools=pools(), args=("--compat", "s3"), ready_within=300), ["compat"])
    return status


if __name__ == "__main__":
    sys.exit(main())
