#!/usr/bin/env python3
# suite: seconds=70 needs=node cases=matrix,work,notices,bridge,seeds,sessions,compat,waiting
"""Runs ./run against a server of its own with a shell and a Python pool, which it restarts when asked, its module
compat against one that serves the clients of an earlier system, and waiting against one that has a pool of a single
sandbox, and tokens. Arguments name modules; all without."""

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


def tokens(server):
    """The headers of an admin, and a token each of two tenants, as the module waiting wants them."""
    def made(tenant, role, headers=None):
        return server.post("/v1/tokens", {"name": tenant, "tenant": tenant, "role": role}, headers=headers).json["token"]
    root = {"Authorization": "Bearer " + made("ops", "admin")}
    return root, {"HEARTH_TOKEN": made("red", "user", root), "HEARTH_OTHER_TOKEN": made("blue", "user", root)}


def drive(server, modules, with_tokens=False):
    """The status of ./run with these modules, all without one."""
    with server:
        root, given = tokens(server) if with_tokens else (None, {})
        asked = os.path.join(server.data, "restart")
        env = dict(os.environ, HEARTH_URL=server.url,
                   HEARTH_BIN=os.path.join(harness.BUILD, "hearth"),
                   HEARTH_TEST_STAGE=harness.stage_name("server"),
                   HEARTH_RESTART=f"touch {asked}; while [ -e {asked} ]; do sleep 0.1; done",
                   HEARTH_OPS=f"http://127.0.0.1:{server.ops_port}",
                   **harness.sanitizer_options(os.path.join(server.data, "report")), **given)
        clients = subprocess.Popen(
            [os.path.join(os.path.dirname(os.path.abspath(__file__)), "run"), *modules], env=env)
        while clients.poll() is None:
            if os.path.exists(asked):
                server.stop()
                server.start()
                os.remove(asked)
            time.sleep(0.05)
        if root:
            server.post("/v1/drain", headers=root)
            server.stop()
    return clients.returncode


def main():
    wanted = sys.argv[1:]
    status = 0
    alone = ("compat", "waiting")
    if not wanted or set(wanted) - set(alone):
        # A fixed default, so that a language has to be looked for and is not met by chance.
        status |= drive(harness.Server(pools=pools(), config="defaultPool: shell\n", ready_within=300),
                        [name for name in wanted if name not in alone])
    if not wanted or "compat" in wanted:
        status |= drive(harness.Server(pools=pools(), args=("--compat", "s3"), ready_within=300), ["compat"])
    if not wanted or "waiting" in wanted:
        narrow = harness.pool_yaml() + "---\n" + harness.pool_yaml("narrow", warm=1, max_wait="60s", members=1, per_tenant=100)
        status |= drive(harness.Server(pools=narrow, config="defaultPool: shell\n"), ["waiting"], True)
    return status


if __name__ == "__main__":
    sys.exit(main())
