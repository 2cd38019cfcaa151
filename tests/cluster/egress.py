"""The way out of Pods: the cases of tests/server/egress_test.py, on sandboxes whose connections are carried by frames."""

import contextlib
import os
import subprocess

import egress_test
from harness import wait_for
from index import Index, wheel
from sandboxes import PYTHON, load_images, serving
from session import own_cluster, session

INSTALL = "pip install --quiet hearthfoo && python3 -c 'import hearthfoo; print(1)'"


@contextlib.contextmanager
def server(*pools, args=()):
    load_images(session.at("full"), PYTHON)
    with serving("---\n".join(pools), args) as s:
        wait_for("the warm Pods", lambda: all(each["status"]["ready"] == each["spec"]["warm"]["min"] for each in s.get("/v1/pools").json["items"]), 120)
        yield s


def pool(name, mode, allow=(), warm=1, image=PYTHON):
    return pool_of_one_machine(name, mode, allow, warm, image)


# Its cases find these instead of their own.
pool_of_one_machine, egress_test.pool, egress_test.server = egress_test.pool, pool, server


def same(test):
    """Returns the case of one machine, with its own name and words."""
    def here():
        test()
    here.__name__, here.__doc__ = f"pods_{test.__name__}", f"in Pods, too: {test.__doc__}"
    return here


def way_out_again():
    """when the network cuts the connections to a Pod, its workspace has its way out again, and what was being carried broke"""
    own_cluster("full")
    with Index([wheel("hearthfoo")]) as index, server(pool("m", "Mirror"), args=egress_test.mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        held = s.post(f"/v1/workspaces/{workspace}/executions", {"language": "python", "background": True, "code": (
            "import socket\ns = socket.create_connection(('127.0.0.1', 3128))\ns.sendall(b'GET /pypi/simple/x/ HT')\nprint('held', flush=True)\n"
            "try:\n  print('end', s.recv(1))\nexcept OSError as e:\n  print(type(e).__name__)")}).json
        wait_for("the held connection", lambda: "held" in s.get(f"/v1/executions/{held['id']}").json["stdout"], 20)
        subprocess.run(["ss", "--kill", "state", "established", "( dport = :7017 )"], check=True, capture_output=True)
        wait_for("its end", lambda: s.get(f"/v1/executions/{held['id']}").json["status"] == "ok", 30)
        assert "ConnectionResetError" in s.get(f"/v1/executions/{held['id']}").json["stdout"]
        assert s.run(workspace, INSTALL, timeoutSeconds=100)["stdout"].strip() == "1"


CASES = [same(test) for test in (egress_test.pip_installs, egress_test.allowed_service, egress_test.survives_restart, egress_test.floods)]
CASES.append(way_out_again)
# The other cases of one machine take minutes here, and use the same code. dns_tunnel is not among them: it tests the network
# itself, and the bridge of the tests' own cluster enforces no NetworkPolicy.
if os.environ.get("HEARTH_CLUSTER_EGRESS") == "all":
    CASES += [same(test) for test in (
        egress_test.moved_to_denied, egress_test.npm_installs, egress_test.one_download, egress_test.lying_index, egress_test.says_why,
        egress_test.denied_addresses, egress_test.denied_within_exempt, egress_test.beside_output, egress_test.held_heads,
        egress_test.packages)]
