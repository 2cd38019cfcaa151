#!/usr/bin/env python3
# suite: seconds=50
"""`limits` of a claim: the limits that the kernel enforces, the pool that serves it, and values that are refused."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from harness import BUILD, Server, main, on_docker, pool_yaml, wait_for  # noqa: E402

MIB = 1 << 20
# Busybox' tail keeps what it reads.
COUNTS_100_MIB = "head -c 104857600 /dev/zero | tail -c 104857600 | wc -c"
FORKS = "i=0; while [ $i -lt 60 ]; do sleep 60 & i=$((i+1)); done; echo $i"


def pools():
    small = pool_yaml(warm=2, memory="256Mi").replace('cpu: "1"', 'cpu: "2"')
    return small + "---\n" + pool_yaml(name="large", warm=1, memory="512Mi").replace("pids: 128", "pids: 64")


def in_force(s, sandbox, controller, v1, v2):
    """Returns a limit as the kernel has it: the first word of its file."""
    if on_docker():
        name = f"hearth-{s.instance}-{sandbox[3:]}"
        pid = harness.dockerd.items(f"/containers/{name}/json")["State"]["Pid"]
    else:
        with open(f"/run/hearth/{s.instance}/runc/hearth-{s.instance}-{sandbox[3:]}/state.json", encoding="utf-8") as f:
            pid = json.load(f)["init_process_pid"]
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
        groups = [line.rstrip("\n").split(":", 2) for line in f]
    old = [path for _, controllers, path in groups if controller in controllers.split(",")]
    path = f"/sys/fs/cgroup/{controller}{old[0]}/{v1}" if old else f"/sys/fs/cgroup{groups[0][2]}/{v2}"
    with open(path, encoding="ascii") as f:
        return f.read().split()[0]


def kernel_limits(s, sandbox):
    return {"memoryBytes": int(in_force(s, sandbox, "memory", "memory.limit_in_bytes", "memory.max")),
            "quota": int(in_force(s, sandbox, "cpu", "cpu.cfs_quota_us", "cpu.max")),
            "pids": int(in_force(s, sandbox, "pids", "pids.max", "pids.max"))}


def refused(answer, *pointers):
    assert answer.status == 422 and answer.json["errorCode"] == "INVALID_SPEC", answer
    assert [e["pointer"] for e in answer.json["errors"]] == list(pointers), answer
    assert answer.json["hint"], answer
    return answer.json


def narrowed():
    """a claim's limits are in force when it is answered, hold over kill -9, and a neighbour of the pool has the pool's"""
    with Server(pools=pools()) as s:
        wide = s.open_workspace()
        assert (wide["limits"]["cpu"], wide["limits"]["memoryBytes"], wide["limits"]["pids"]) == (2, 256 * MIB, 128), wide
        held = s.open_workspace(limits={"cpu": 0.5, "memoryBytes": 64 * MIB, "pids": 32})
        assert held["claim"]["source"] == "warm" and held["pool"] == "shell", held
        expected = {"memoryBytes": 64 * MIB, "quota": 50000, "pids": 32}
        assert kernel_limits(s, held["sandboxId"]) == expected, held
        assert kernel_limits(s, wide["sandboxId"]) == {"memoryBytes": 256 * MIB, "quota": 200000, "pids": 128}
        assert s.run(wide["id"], "echo $OMP_NUM_THREADS")["stdout"] == "2\n"
        assert s.run(held["id"], "echo $OMP_NUM_THREADS")["stdout"] == "1\n"

        def check():
            view = s.get(f"/v1/workspaces/{held['id']}").json["limits"]
            assert view == {**wide["limits"], "cpu": 0.5, "memoryBytes": 64 * MIB, "pids": 32}, view
            assert kernel_limits(s, held["sandboxId"]) == expected
            assert s.run(held["id"], "exec tail -c 104857600 /dev/zero", timeoutSeconds=60)["status"] == "oom"

        assert s.run(wide["id"], COUNTS_100_MIB, timeoutSeconds=60)["stdout"] == "104857600\n"
        check()
        s.kill9()
        s.start()
        check()
        assert s.run(wide["id"], FORKS)["stdout"] == "60\n"
        bounded = s.run(held["id"], FORKS)
        assert bounded["stdout"] != "60\n" and "fork" in bounded["stderr"], bounded
        assert int(in_force(s, held["sandboxId"], "pids", "pids.current", "pids.current")) <= 32
        # Its leftover processes are being killed. Until then there may be no room for another process.
        alive = {"command": "echo alive"}
        wait_for("room for a process", lambda: s.post(f"/v1/workspaces/{held['id']}/executions", alive).status == 200)
        assert s.run(held["id"], "echo alive")["stdout"] == "alive\n"


def one_shots():
    """a one shot is held to its limits too, and the next one in the pool is not"""
    with Server(pools=pools()) as s:
        run = {"command": "exec tail -c 104857600 /dev/zero", "timeoutSeconds": 60}
        out = s.post("/v1/executions", {**run, "limits": {"memoryBytes": 64 * MIB}})
        assert out.status == 200 and out.json["status"] == "oom", out
        out = s.post("/v1/executions", {"command": COUNTS_100_MIB, "timeoutSeconds": 60})
        assert out.json["status"] == "ok" and out.json["stdout"] == "104857600\n", out
        key = {"Idempotency-Key": harness.new_key()}
        first = s.post("/v1/executions", {"command": "od -An -N8 -tx1 /dev/urandom", "limits": {"pids": 32}}, headers=key)
        again = s.post("/v1/executions", {"command": "od -An -N8 -tx1 /dev/urandom", "limits": {"pids": 32}}, headers=key)
        assert first.status == 200 and again.json["stdout"] == first.json["stdout"], (first, again)
        other = s.post("/v1/executions", {"command": "od -An -N8 -tx1 /dev/urandom", "limits": {"pids": 33}}, headers=key)
        assert other.status == 422 and other.json["errorCode"] == "IDEMPOTENCY_MISMATCH", other


def never_widened():
    """more than a pool has is refused with its figures; without a pool, smaller ones are passed over"""
    with Server(pools=pools()) as s:
        told = refused(s.post("/v1/workspaces", {"pool": "shell", "limits": {"cpu": 2.001, "memoryBytes": 512 * MIB, "pids": 129}}),
                       "/limits/cpu", "/limits/memoryBytes", "/limits/pids")
        assert "256Mi" in told["detail"] and "128" in told["errors"][2]["reason"], told
        large = s.open_workspace(limits={"memoryBytes": 300 * MIB})
        assert large["pool"] == "large" and large["limits"]["memoryBytes"] == 300 * MIB, large
        assert kernel_limits(s, large["sandboxId"])["memoryBytes"] == 300 * MIB
        told = refused(s.post("/v1/workspaces", {"limits": {"memoryBytes": 513 * MIB}}), "/limits/memoryBytes")
        assert "512Mi" in told["errors"][0]["reason"], told
        refused(s.post("/v1/workspaces", {"limits": {"memoryBytes": 512 * MIB, "pids": 128}}), "/limits")
        refused(s.post("/v1/executions", {"command": "true", "limits": {"pids": 129}}), "/limits/pids")
        refused(s.post("/v1/workspaces", {"limits": {"workspaceBytes": 8 * MIB}}), "/limits/workspaceBytes")
        refused(s.post("/v1/workspaces", {"limits": {"tmpBytes": 8 * MIB}}), "/limits/tmpBytes")
        assert s.post("/v1/workspaces", {"limits": {"pids": 7}}).status == 400
        assert s.post("/v1/workspaces", {"limits": {}}).status == 201


def in_use_already():
    """memory below what a warm sandbox uses fails the claim in words; that sandbox ends, and the pool is whole again"""
    pool = pool_yaml(warm=1, memory="256Mi").replace("tmp: 16Mi", "tmp: 64Mi").replace(
        "    resources:", "    prewarm: {command: [sh, -c, 'head -c 48000000 /dev/zero > /tmp/full']}\n    resources:")
    with Server(pools=pool) as s:
        def ready():
            return [x["id"] for x in s.get("/v1/sandboxes").json["items"] if x["phase"] == "Ready"]

        before = wait_for("a warm sandbox", ready)
        told = refused(s.post("/v1/workspaces", {"limits": {"memoryBytes": 32 * MIB}}), "/limits/memoryBytes")
        assert "must be above" in told["errors"][0]["reason"], told
        wait_for("another warm sandbox", lambda: ready() and not set(before) & set(ready()), 30)
        wait_for("the end of the first", lambda: s.get(f"/v1/sandboxes/{before[0]}").status == 404, 30)
        held = s.open_workspace(limits={"memoryBytes": 96 * MIB})
        assert s.run(held["id"], "wc -c < /tmp/full")["stdout"] == "48000000\n"


def command_line():
    """the command line asks for limits in words of people, and tells what is refused"""
    with Server(pools=pools()) as s:
        def hearth(*words):
            return subprocess.run([os.path.join(BUILD, "hearth"), *words], capture_output=True, text=True, timeout=120, check=False,
                                  env=dict(os.environ, HEARTH_URL=s.url, NO_COLOR="1"))

        opened = hearth("open", "--memory", "64Mi", "--cpu", "500m", "--pids", "32")
        view = s.get(f"/v1/workspaces/{opened.stdout.strip()}").json
        assert (view["limits"]["memoryBytes"], view["limits"]["cpu"], view["limits"]["pids"]) == (64 * MIB, 0.5, 32), (opened, view)
        assert hearth("run", "--memory", "64Mi", "--", "tail", "-c", "104857600", "/dev/zero").returncode == 137
        assert hearth("run", "--cpu", "0.5", "--command", "echo $OMP_NUM_THREADS").stdout == "1\n"
        more = hearth("run", "-p", "shell", "--pids", "129", "--command", "true")
        assert more.returncode != 0 and "128" in more.stderr, more
        wrong = hearth("run", "-w", view["id"], "--pids", "16", "--command", "true")
        assert wrong.returncode == 2 and "--workspace" in wrong.stderr, wrong


narrowed.remote = True
command_line.only = "oci"

SEEN = r"""
import json, os
def read(*names):
    for name in names:
        if os.path.exists("/sys/fs/cgroup/" + name):
            return open("/sys/fs/cgroup/" + name).read().split()[0]
print(json.dumps({"memoryBytes": int(read("memory.max", "memory/memory.limit_in_bytes")),
                  "quota": int(read("cpu.max", "cpu/cpu.cfs_quota_us")), "pids": int(read("pids.max", "pids/pids.max")),
                  "groups": sorted({line.rstrip().split(":", 2)[2] for line in open("/proc/self/cgroup")}),
                  "writable": [d for d, _, files in os.walk("/sys") if os.access(d, os.W_OK)
                               or any(os.access(os.path.join(d, f), os.W_OK) for f in files)]}))
"""
HEAP = "console.log(JSON.stringify([v8.getHeapStatistics().heap_size_limit / 2 ** 20, process.constrainedMemory() / 2 ** 20]))"


def seen_by_programs():
    """programs find their own limits in their control group, in code of a warm interpreter too, and after a claim has lowered them"""
    with Server(pools=pool_yaml("python", "python", warm=2, memory="512Mi")) as s:
        for limits, expected in (({}, {"memoryBytes": 512 * MIB, "quota": 100000, "pids": 128}),
                                 ({"cpu": 0.5, "memoryBytes": 256 * MIB, "pids": 64}, {"memoryBytes": 256 * MIB, "quota": 50000, "pids": 64})):
            w = s.open_workspace(pool="python", limits=limits)["id"]
            out = s.post(f"/v1/workspaces/{w}/executions", {"code": SEEN, "language": "python"}).json
            assert json.loads(out["stdout"]) == {**expected, "groups": ["/"], "writable": []}, out
            out = s.post(f"/v1/workspaces/{w}/executions", {"command": f"node -e '{HEAP}'"}).json
            heap, memory = json.loads(out["stdout"])
            # Half of the limit and what Node keeps beside it; 259 at least. Without a limit it would be gigabytes.
            assert memory == expected["memoryBytes"] / MIB and heap < max(memory * 0.6, 260), out
            assert s.run(w, "nproc")["stdout"] == "1\n"


if __name__ == "__main__":
    main("server", [narrowed, seen_by_programs, one_shots, never_widened, in_use_already, command_line])
