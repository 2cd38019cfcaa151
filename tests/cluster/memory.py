"""Memory of Pods: processes that the kernel kills for memory are reported as such, by the agent while it lives, otherwise by
the Pod's status."""

import json

from harness import pool_yaml, wait_for
from sandboxes import SHELL, ready, serving
from session import own_cluster

# Busybox' tail keeps what it reads.
BOMB = "exec tail -c 190000000 /dev/zero"


def small_pool(warm=1):
    return pool_yaml(image=SHELL, warm=warm, memory="64Mi")


def with_ram(pool):
    """Gives its Pods a file system in memory at /ram that only their memory limit bounds."""
    template = {"spec": {"volumes": [{"name": "ram", "emptyDir": {"medium": "Memory"}}],
                         "containers": [{"name": "sandbox", "volumeMounts": [{"name": "ram", "mountPath": "/ram"}]}]}}
    return pool.replace("    allowTags:", f"    podTemplate: {json.dumps(template)}\n    allowTags:")


def killed_for_memory():
    """a process of a Pod that the kernel ends for memory is told as oom; the workspace and its neighbour go on, their use is known"""
    own_cluster("full")  # on other clusters, the kernel may end a container at once
    with serving(small_pool(warm=2)) as s:
        wait_for("two warm Pods", lambda: ready(s) == 2, 90)
        hungry, neighbour = s.open_workspace()["id"], s.open_workspace()["id"]
        s.run(hungry, "echo kept > f")
        killed = s.run(hungry, "kill -9 $$")
        assert (killed["status"], killed["signal"]) == ("killed", "KILL"), killed
        begun = s.post(f"/v1/workspaces/{neighbour}/executions", {"argv": ["sh", "-c", "sleep 5; echo through"], "background": True}).json["id"]
        told = s.run(hungry, BOMB, timeoutSeconds=60)
        assert told["status"] == "oom", told
        again = s.run(hungry, BOMB, timeoutSeconds=60)
        assert again["status"] == "oom", again
        killed = s.run(hungry, "kill -9 $$")
        assert killed["status"] == "killed", killed  # the kernel's kills were the earlier ones
        assert s.run(hungry, "cat f")["stdout"] == "kept\n"
        used = s.get(f"/v1/workspaces/{hungry}/usage").json
        assert 32 << 20 < used["memoryPeakBytes"] <= 64 << 20 and used["cpuMs"] > 0 and used["processes"] > 0, used
        wait_for("the neighbour's end", lambda: s.get(f"/v1/executions/{begun}").json["status"] != "running", 30)
        done = s.get(f"/v1/executions/{begun}").json
        assert (done["status"], done["stdout"]) == ("ok", "through\n"), done


def ended_for_memory():
    """a Pod whose whole container the kernel ends for memory ends its workspace with that reason, and what ran in it is told as oom"""
    own_cluster("full")
    with serving(with_ram(small_pool())) as s:
        wait_for("a warm Pod", lambda: ready(s) == 1, 90)
        workspace = s.open_workspace()
        path = f"/v1/workspaces/{workspace['id']}"
        # Files in memory outlive their writers: the kernel ends one process after the other, and finally the agent.
        begun = s.post(f"{path}/executions", {"command": "sleep 300", "background": True}).json["id"]

        def over():
            s.post(f"{path}/executions", {"command": "cat /dev/zero >> /ram/fill", "timeoutSeconds": 10})
            return s.get(path).status == 410
        wait_for("the workspace's end", over, 90)
        gone = s.get(path).json
        assert gone["reason"] == "oom" and "memory" in gone["detail"], gone
        told = s.get(f"/v1/executions/{begun}").json
        assert told["status"] == "oom", told
        assert "its container ran out of memory" in s.log()
        wait_for("a warm Pod again", lambda: ready(s) == 1, 90)


CASES = [killed_for_memory, ended_for_memory]
