"""Cases of tests/gpu/run with a server: real containers that compute on a real GPU. They need what the server needs (root, runc),
and the image python-bare in HEARTH_TEST_IMAGES, which `sandbox_images/build python-bare` makes."""

import base64
import concurrent.futures
import contextlib
import json
import os
import secrets
import shutil
import tempfile
import time

import driver_cdi
from harness import IMAGES, Server, pool_yaml, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
LIBRARY = "libcuda.so.1"
LONG = 300  # seconds of what goes through a device's whole memory
libraries = []  # of NVML and CUDA on the host, as run says


def pool(name, warm=1, more="", **fields):
    return pool_yaml(name, image="python-bare", warm=warm, memory="4Gi", max_wait="120s", **fields).replace(
        "    resources:", f"    gpu: {{count: 1{more}}}\n    resources:")


@contextlib.contextmanager
def serving(pools):
    folder = tempfile.mkdtemp(prefix="hearth-cdi-")
    try:
        os.chmod(folder, 0o755)
        driver_cdi.write(os.path.join(folder, "nvidia.json"), libraries[1])
        args = ["--gpu-library", libraries[0], "--cuda-library", libraries[1], "--cdi-folders", folder]
        with Server(pools=pools, args=args, ready_within=LONG) as s:
            yield s
    finally:
        shutil.rmtree(folder)


def opened(s, pool_name="gpu", **fields):
    """A workspace with a GPU and the programs, and how long the client waited for it."""
    begin = time.monotonic()
    files = []
    for name in ("tenant.py", "vector_add.py"):
        with open(os.path.join(HERE, name), "rb") as file:
            files.append({"path": name, "base64": base64.b64encode(file.read()).decode()})
    answer = s.post("/v1/workspaces", dict(fields, pool=pool_name, files=files), timeout=LONG)
    assert answer.status == 201, answer
    return answer.json, (time.monotonic() - begin) * 1000


def python(s, workspace, *words, **fields):
    answer = s.post(f"/v1/workspaces/{workspace['id']}/executions",
                    dict(fields, argv=[PYTHON, *words], timeoutSeconds=LONG), timeout=LONG)
    assert answer.status in (200, 202), answer
    return answer.json


def added(s, workspace):
    """The steps of an addition in a workspace, which was right."""
    ran = python(s, workspace, "vector_add.py", LIBRARY)
    assert ran["status"] == "ok", ran
    said = json.loads(ran["stdout"])
    assert said["right"], said
    return said["ms"]


def tenant(s, workspace, what, pattern, **fields):
    return python(s, workspace, "tenant.py", what, LIBRARY, workspace["gpus"][0], pattern, **fields)


def end(s, workspace):
    assert s.call("DELETE", f"/v1/workspaces/{workspace['id']}").status == 204


def state(s):
    return [each["state"] for each in s.get("/v1/gpus").json["items"]]


def shown(**numbers):
    print("      " + ", ".join(f"{name} {number:.1f} ms" for name, number in numbers.items()), flush=True)


def vector_add():
    """a claim gets a GPU and adds two vectors on it; what each warm level leaves to wait for is measured"""
    with serving(pool("gpu") + "---\n" + pool("cold", warm=0, on_empty="Create")) as s:
        workspace, waited = opened(s)
        first, again = added(s, workspace), added(s, workspace)
        shown(claim=workspace["claim"]["totalMs"], answer=waited, first_kernel=sum(first.values()), second_process=sum(again.values()),
              **{f"of_first_{name}": ms for name, ms in first.items()})
        outside = s.run(workspace["id"], "ls /dev; cat /proc/mounts | head -50")
        assert "nvidia" in outside["stdout"], outside
        end(s, workspace)
        assert s.call("DELETE", "/v1/pools/gpu").status == 204
        wait_for("a free device", lambda: state(s) == ["Free"], 60)
        workspace, waited = opened(s, "cold")
        shown(image_only_claim=waited, create=workspace["claim"]["createMs"], warm=workspace["claim"]["warmMs"])
        added(s, workspace)


def lease():
    """one device is one workspace's, the next claim waits for its scrub and finds nothing of the first tenant"""
    with serving(pool("gpu")) as s:
        pattern = secrets.token_hex(64)
        first, _ = opened(s)
        leaving = tenant(s, first, "leave", pattern, background=True)
        wait_for("the pattern", lambda: "bytes" in s.get(f"/v1/executions/{leaving['id']}").json["stdout"], LONG)
        with concurrent.futures.ThreadPoolExecutor(1) as one:
            next_claim = one.submit(opened, s)
            time.sleep(1)
            assert not next_claim.done() and state(s) == ["Leased"], state(s)
            end(s, first)
            begin = time.monotonic()
            second, _ = next_claim.result(LONG)
        shown(end_to_next_claim=(time.monotonic() - begin) * 1000)
        assert second["gpus"] == first["gpus"] and second["sandboxId"] != first["sandboxId"], (first, second)
        scanned = tenant(s, second, "scan", pattern)
        assert scanned["status"] == "ok", scanned
        found = json.loads(scanned["stdout"])
        assert found["hits"] == 0 and found["bytes"] > 1 << 30, found


def shared():
    """two sandboxes of one shared device both compute"""
    with serving(pool("gpu", warm=2, more=", sharing: Shared, sharedBy: 2")) as s:
        both = [opened(s)[0] for _ in range(2)]
        assert both[0]["gpus"] == both[1]["gpus"], both
        for workspace in both:
            added(s, workspace)


def killed_server():
    """a lease and the program on its device survive kill -9 of the server; the device is scrubbed before the next claim"""
    with serving(pool("gpu")) as s:
        pattern = secrets.token_hex(64)
        workspace, _ = opened(s)
        running = python(s, workspace, "vector_add.py", LIBRARY, "0.1", background=True)

        def lines():
            return s.get(f"/v1/executions/{running['id']}").json["stdout"].count("\n")
        wait_for("an addition", lambda: lines() > 2, 60)
        s.kill9()
        s.start()
        before = lines()
        assert state(s) == ["Leased"] and s.get(f"/v1/workspaces/{workspace['id']}").json["gpus"] == workspace["gpus"]
        wait_for("another addition", lambda: lines() > before + 5, 60)
        assert '"right": false' not in s.get(f"/v1/executions/{running['id']}").json["stdout"]
        assert s.call("DELETE", f"/v1/executions/{running['id']}").status == 204
        leaving = tenant(s, workspace, "leave", pattern, background=True)
        wait_for("the pattern", lambda: "bytes" in s.get(f"/v1/executions/{leaving['id']}").json["stdout"], LONG)
        end(s, workspace)
        s.kill9()  # wherever the scrub is
        s.start()
        second, _ = opened(s)
        scanned = tenant(s, second, "scan", pattern)
        assert scanned["status"] == "ok" and json.loads(scanned["stdout"])["hits"] == 0, scanned


def missing():
    """Why no server can be run here, or None."""
    if not os.path.exists(os.path.join(IMAGES, "python-bare", "index.json")):
        return f"there is no image {IMAGES}/python-bare; sandbox_images/build python-bare --output makes it"
    return None if shutil.which("runc") and os.geteuid() == 0 else "a server with real containers needs root and runc"


CASES = [vector_add, lease, shared, killed_server]
