#!/usr/bin/env python3
# suite: seconds=60
"""GPUs, black box: real containers lease the devices of a stand-in for NVIDIA's libraries, whose memory is a file that the sandbox
has mounted, so that anything left of a former user is seen."""

import concurrent.futures
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_machine import MEMORY, Machine, gpu_pool, uuid  # noqa: E402
from harness import BUILD, Server, main, pool_yaml, wait_for  # noqa: E402

SECRET = "of-the-former-user"


def gpus(s):
    return {each["uuid"]: each for each in s.get("/v1/gpus").json["items"]}


def state(s, number=0):
    return gpus(s)[uuid(number)]["state"]


def metric(s, name):
    return sum(float(line.split()[-1]) for line in s.ops("/metrics").body.decode().splitlines() if line.startswith(name))


def scrubs(s):
    return metric(s, 'hearth_gpu_scrub_seconds_count{result="clean"}')


def open_with_gpu(s, **fields):
    return s.open_workspace(gpu={"count": 1}, **fields)


def keep_secret(s, workspace, number=0):
    s.run(workspace, f"printf %s {SECRET} | dd of=/gpu/{number} bs=1 seek=70000 conv=notrunc 2>/dev/null")


def hearth(s, *words):
    return subprocess.run([os.path.join(BUILD, "hearth"), *words, "--url", s.url], capture_output=True, text=True, check=False)


def residue():
    """the next user of a device finds nothing of the former one, and sandboxes without a GPU have no part of it"""
    with Machine() as machine, machine.server(gpu_pool() + "---\n" + pool_yaml("plain", warm=1)) as s:
        first = open_with_gpu(s)
        assert first["pool"] == "gpu" and first["gpus"] == [uuid(0)], first
        seen = s.run(first["id"], "ls /dev/nvidia0 && head -c 4 /dev/nvidia0 | od -An -tx1 && echo $GPU_0")
        assert seen["stdout"].split() == ["/dev/nvidia0", "00", "00", "00", "00", "yes"], seen
        holder = gpus(s)[uuid(0)]
        assert holder["state"] == "Leased" and holder["holders"][0]["workspaceId"] == first["id"], holder
        keep_secret(s, first["id"])
        assert SECRET.encode() in machine.memory(0), "the stand-in's memory is not what the sandbox has"

        plain = s.open_workspace(pool="plain")
        outside = s.run(plain["id"], "ls /dev/nvidia0 /gpu 2>&1; echo $GPU_0; mknod /tmp/n c 1 5 2>&1")
        assert "yes" not in outside["stdout"] and outside["stdout"].count("No such file") == 2, outside

        before = scrubs(s)
        assert s.call("DELETE", f"/v1/workspaces/{first['id']}").status == 204
        second = open_with_gpu(s)
        assert second["gpus"] == [uuid(0)] and second["sandboxId"] != first["sandboxId"]
        assert scrubs(s) == before + 1, (before, scrubs(s))
        assert SECRET not in s.run(second["id"], "cat /gpu/0")["stdout"] and not any(machine.memory(0)), "the former user's bytes are there"
        assert s.get(f"/v1/workspaces/{second['id']}/usage").json["gpus"] == [uuid(0)]


def leases():
    """two devices are two sandboxes' and never one's, and a claim of both gets both"""
    pools = gpu_pool(warm=1, max_wait="2s") + "---\n" + gpu_pool("pair", warm=0, count=2)
    with Machine(2) as machine, machine.server(pools) as s:
        with concurrent.futures.ThreadPoolExecutor(2) as two:
            mine = list(two.map(lambda _: open_with_gpu(s, pool="gpu"), range(2)))
        assert sorted(m["gpus"] for m in mine) == [[uuid(0)], [uuid(1)]], mine
        third = s.post("/v1/workspaces", {"gpu": {"count": 1}})
        assert third.status == 429 and "waits for GPUs" in third.json["message"], third
        conditions = {c["type"]: c for c in s.get("/v1/pools/gpu").json["status"]["conditions"]}
        assert conditions["GpusAvailable"]["status"] == "False" and "0 are free" in conditions["GpusAvailable"]["message"], conditions
        for each in mine:
            s.call("DELETE", f"/v1/workspaces/{each['id']}")
        pair = s.open_workspace(gpu={"count": 2})
        assert pair["pool"] == "pair" and sorted(pair["gpus"]) == [uuid(0), uuid(1)], pair
        assert s.run(pair["id"], "echo $GPU_0 $GPU_1")["stdout"] == "yes yes\n"
        assert s.get("/v1/quota").json["use"]["gpus"] == 2
        small = s.call("PUT", "/v1/quotas/default", {"gpus": 1})
        assert small.status == 422 and small.json["errors"][0]["pointer"] == "/gpus", small
        assert s.call("DELETE", f"/v1/workspaces/{pair['id']}").status == 204
        wait_for("its place", lambda: s.call("PUT", "/v1/quotas/default", {"gpus": 1}).status == 201, 10)
        too_many = s.post("/v1/workspaces", {"gpu": {"count": 2}})
        assert too_many.status == 422 and "asks for 2 GPUs" in too_many.json["message"], too_many


def one_server():
    """the devices are one server's at a time, and the next one scrubs what that has had"""
    with Machine() as machine, machine.server(gpu_pool()) as s:
        with machine.server(pool_yaml("plain", warm=1)) as other:
            assert gpus(other) == {}, gpus(other)
            refused = other.call("PUT", "/v1/pools/gpu", {k: v for k, v in s.get("/v1/pools/gpu").json.items() if k != "status"})
            assert refused.status == 422 and f"process {s.process.pid}" in str(refused.json), refused
        mine = open_with_gpu(s)
        keep_secret(s, mine["id"])
        s.kill9()
        with machine.server(gpu_pool()) as other:  # the sandbox lives on, and keeps its device
            assert gpus(other) == {}, gpus(other)
        s.start()
        assert s.call("DELETE", f"/v1/workspaces/{mine['id']}").status == 204
        wait_for("its scrub", lambda: scrubs(s) == 1, 20)
        s.stop()
        with machine.server(gpu_pool()) as other:
            open_with_gpu(other)
            assert scrubs(other) == 1 and not any(machine.memory(0)), "it believed the other's scrub"


def survives():
    """a lease and a scrub that has begun survive kill -9: the device is nobody else's, and is scrubbed before it is"""
    with Machine() as machine, machine.server(gpu_pool(max_wait="40s")) as s:
        mine = open_with_gpu(s)
        keep_secret(s, mine["id"])
        s.kill9()
        s.start()
        assert gpus(s)[uuid(0)]["holders"][0]["workspaceId"] == mine["id"]
        assert s.get(f"/v1/workspaces/{mine['id']}").json["gpus"] == [uuid(0)]
        assert SECRET.encode() in machine.memory(0)
        assert SECRET in s.run(mine["id"], "cat /gpu/0 | tr -d '\\0'")["stdout"]

        machine.write(0, "hang-scrub")
        assert s.call("DELETE", f"/v1/workspaces/{mine['id']}").status == 204
        wait_for("the scrub", lambda: state(s) == "Scrubbing", 30)
        s.kill9()
        wait_for("the scrub's end with its server", lambda: not programs(machine), 10)
        os.remove(machine.place(0, "hang-scrub"))
        s.start()
        second = open_with_gpu(s)
        assert not any(machine.memory(0)), "the scrub that was cut off counted as one"
        assert SECRET not in s.run(second["id"], "cat /gpu/0")["stdout"]

        # A server that ends in order does not wait for a scrub, and condemns nothing.
        machine.write(0, "hang-scrub")
        keep_secret(s, second["id"])
        s.call("DELETE", f"/v1/workspaces/{second['id']}")
        wait_for("the scrub", lambda: state(s) == "Scrubbing", 30)
        s.process.send_signal(signal.SIGTERM)
        s.process.wait(20)
        os.remove(machine.place(0, "hang-scrub"))
        s.start()
        open_with_gpu(s)
        assert not any(machine.memory(0))


def programs(machine):
    """Returns the pids of helpers that have the stand-in's folder in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f, open(f"/proc/{pid}/comm", encoding="ascii") as name:
                if machine.root.encode() in f.read() and name.read().startswith("hearth-gpu"):
                    found.append(pid)
        except OSError:
            pass
    return found


def crashes():
    """wherever the server dies while a device changes hands, it is scrubbed before the next sandbox has it"""
    for point in ("gpu.lease.before", "gpu.lease.after", "create.after", "destroy.before", "destroy.after", "gpu.scrub.before",
                  "gpu.scrub.after"):
        with Machine() as machine, machine.server(gpu_pool()) as s:
            mine = open_with_gpu(s)
            keep_secret(s, mine["id"])
            s.stop()
            s.start(wait=0, env={"HEARTH_CRASH_AT": point})
            wait_for("an answer", lambda: answers(s) or s.process.poll() is not None, 60)
            if s.process.poll() is None:
                delete_until_dead(s, mine["id"])
            assert s.process.wait(60) == -signal.SIGKILL, point
            s.start()
            if s.get(f"/v1/workspaces/{mine['id']}").status == 200:
                assert SECRET.encode() in machine.memory(0), point
                s.call("DELETE", f"/v1/workspaces/{mine['id']}")
            after = open_with_gpu(s)
            assert after["sandboxId"] != mine["sandboxId"]
            assert SECRET.encode() not in machine.memory(0), point


def answers(s):
    try:
        return s.get("/readyz", port=s.ops_port).status == 200
    except OSError:
        return False


def delete_until_dead(s, workspace):
    try:
        s.call("DELETE", f"/v1/workspaces/{workspace}", timeout=10)
    except OSError:
        pass


def condemned():
    """a device whose memory cannot be verified is given to nobody, says why, and comes back when an operator has it scrubbed"""
    with Machine() as machine, machine.server(gpu_pool(max_wait="2s")) as s:
        mine = open_with_gpu(s)
        machine.write(0, "mismatch")
        s.call("DELETE", f"/v1/workspaces/{mine['id']}")
        wait_for("its condemnation", lambda: state(s) == "Condemned", 30)
        refused = s.post("/v1/workspaces", {"gpu": {"count": 1}})
        assert refused.status in (429, 503), refused
        table = hearth(s, "get", "gpus").stdout
        assert "Condemned" in table and uuid(0) in table, table
        assert any(e["type"] == "gpu.condemned" and e["resource"] == uuid(0) for e in s.get("/v1/events").json["items"])
        s.kill9()
        s.start()
        assert state(s) == "Condemned" and gpus(s)[uuid(0)]["reason"], gpus(s)
        os.remove(machine.place(0, "mismatch"))
        done = hearth(s, "gpu", "scrub", uuid(0))
        assert done.returncode == 0, done
        assert open_with_gpu(s)["gpus"] == [uuid(0)]
        assert hearth(s, "gpu", "scrub", uuid(0)).returncode != 0  # it is no longer condemned


def faults():
    """a device with a fault is not given out while it lasts"""
    with Machine(2) as machine, machine.server(gpu_pool(warm=2)) as s:
        wait_for("both", lambda: s.get("/v1/pools/gpu").json["status"]["ready"] == 2, 30)
        machine.write(1, "ecc", "3")
        wait_for("the fault", lambda: state(s, 1) == "Faulty", 30)
        assert "3" in gpus(s)[uuid(1)]["reason"], gpus(s)
        assert s.get("/v1/pools/gpu").json["status"]["ready"] == 1
        os.remove(machine.place(1, "ecc"))
        wait_for("its return", lambda: s.get("/v1/pools/gpu").json["status"]["ready"] == 2, 40)


def refusals():
    """what no device can give is refused with the field, the value and what there is"""
    with Machine(2) as machine, machine.server(pool_yaml(warm=1)) as s:
        products = s.get("/v1/capabilities").json["gpus"]
        assert products == [{"product": "NVIDIA H100 80GB HBM3", "profile": None, "memoryBytes": MEMORY, "count": 2}], products
        for gpu, field, words in (({"count": 3}, "/spec/template/gpu/count", "only 2 fit"),
                                  ({"count": 1, "product": ["A10"]}, "/spec/template/gpu/product", "2 of NVIDIA H100"),
                                  ({"count": 1, "sharing": "Mig"}, "/spec/template/gpu/sharing", "MIG"),
                                  ({"count": 99}, "/spec/template/gpu/count", "16")):
            answer = s.post("/v1/pools", {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "g"},
                                          "spec": {"template": {"image": "shell", "gpu": gpu}}})
            assert answer.status == 422 and answer.json["errors"][0]["pointer"] == field, answer
            assert words in answer.json["errors"][0]["reason"], answer
        assert s.get("/v1/pools/g").status == 404
        none = s.post("/v1/workspaces", {"gpu": {"count": 1}})
        assert none.status == 422 and none.json["errors"][0] == {"pointer": "/gpu", "reason": "no pool has GPUs"}, none
        assert s.get(f"/v1/gpus/{uuid(7)}").status == 404
        assert s.post(f"/v1/gpus/{uuid(0)}/scrub").status == 409
    with Server(pools=pool_yaml(warm=1), args=["--gpu-library", "libno-such-thing.so.1"]) as s:
        answer = s.post("/v1/pools", {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "g"},
                                      "spec": {"template": {"image": "shell", "gpu": {"count": 1}}}})
        assert answer.status == 422 and "libno-such-thing.so.1" in answer.json["errors"][0]["reason"], answer
        assert s.open_workspace()["gpus"] == []


ALL = [residue, leases, one_server, survives, crashes, condemned, faults, refusals]
for test in ALL:
    test.only = "oci"  # a daemon would need NVIDIA's driver


if __name__ == "__main__":
    main("server", ALL)
