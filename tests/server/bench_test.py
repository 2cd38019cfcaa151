# suite: seconds=80 needs=hearth-bench,hearth-scale
"""`hearth-bench` against a real server: what its report holds, and that it leaves nothing behind."""

import json
import os
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree

from harness import BUILD, SLOWER, Dockerd, Server, main, pool_yaml, wait_for


def bench(s, *args, env=None, status=0):
    """Runs the bench. Returns its report and the text beside it."""
    done = subprocess.run([os.path.join(BUILD, "hearth-bench"), "--url", s.url, "--json", "--allow-busy", *args],
                          env=dict(os.environ, **(env or {})), capture_output=True, text=True, timeout=300 * SLOWER, check=False)
    assert done.returncode == status, done
    return json.loads(done.stdout) if done.stdout else None, done.stderr


def nothing_left(s, pools=("shell",)):
    assert not s.get("/v1/workspaces").json["items"]
    assert [p["metadata"]["name"] for p in s.get("/v1/pools").json["items"]] == list(pools)


def row(report, name):
    return next(o for o in report["operations"] if o["name"] == name)


def python_pool():
    return pool_yaml("python", "python", memory="512Mi").replace(
        "  warm:", "    prewarm: {languages: [python], timeout: 60s}\n  warm:")


def every_series():
    """bench measures each kind of interpreter as what it is, verified, and writes JSON and a chart"""
    with Server(pools=python_pool()) as s, tempfile.TemporaryDirectory() as folder:
        chart = os.path.join(folder, "chart.svg")
        report, _ = bench(s, "--rounds", "4", "--svg", chart)
        names = ["no-op", "claim", "close", "one shot", "shell", "shell parked", "python", "numpy", "context", "python cold", "write 1 KiB",
                 "read 1 KiB", "write 1 MiB", "read 1 MiB"]
        assert [o["name"] for o in report["operations"]] == names, report
        for operation in report["operations"]:
            times = operation["hearth"]
            assert times["samples"] == 4 and 0 < times["p50Ms"] <= times["p90Ms"] <= times["p99Ms"], operation
        assert set(report["interpreters"]["python cold"]) == {"cold"}, report["interpreters"]
        assert set(report["interpreters"]["context"]) == {"context"}, report["interpreters"]
        assert report["interpreters"]["shell parked"].get("parked"), report["interpreters"]
        assert "shell" not in report["interpreters"], report["interpreters"]
        assert report["interpreters"]["numpy"].get("zygote"), report["interpreters"]
        assert report["memory"]["perWarmSandbox"]["pssBytes"] > 1 << 20, report["memory"]
        assert report["memory"]["perWarmSandbox"]["cgroupBytes"] > 1 << 20, report["memory"]
        assert report["runtime"] == "oci" and report["rounds"] == 4 and not report["stopped"], report
        assert {"loadAverage", "foreignCpuShare", "timesTrustworthy", "serverVersion", "kernel"} <= set(report), report
        root = xml.etree.ElementTree.parse(chart).getroot()
        assert root.tag.endswith("svg") and "Python, started cold" in " ".join(root.itertext())
        nothing_left(s, ["python"])


def clients_and_sizes():
    """bench measures throughput, pools of several sizes and their memory, and refuses what memory does not allow"""
    with Server(pools=pool_yaml(memory="64Mi")) as s:
        report, _ = bench(s, "--rounds", "0", "--concurrency", "1,4", "--operations", "20", "--pools", "2,5", "--fake-pools", "10")
        rows = report["throughput"]["rows"]
        assert [(r["operation"], r["clients"]) for r in rows] == [
            (o, c) for c in (1, 4) for o in ("claim", "release", "one shot")], rows
        for r in rows:
            assert r["operations"] == sum(n for kind, n in r["how"].items() if kind != "tried again") > 0 and r["perSecond"] > 0, r
        assert rows[0]["how"] == {"warm": report["throughput"]["warmSandboxes"]}, rows
        assert [p["size"] for p in report["pools"]] == [2, 5], report["pools"]
        for p in report["pools"]:
            assert p["refilled"] == p["size"] and p["refillSeconds"] > 0 and p["claim"]["samples"] == 50, p
            assert p["perWarmSandbox"]["pssBytes"] > 0 and p["perWarmSandbox"]["cgroupBytes"] > 0, p
        assert report["fakePools"][0]["claim"]["p50Ms"] > 0, report["fakePools"]
        assert report["fakePools"][0]["perWarmSandbox"]["pssBytes"] is None, report["fakePools"]
        nothing_left(s)


def stopped():
    """Ctrl-C ends a bench at once, with what it has measured, and leaves neither pool nor workspace"""
    with Server(pools=python_pool()) as s:
        for args in (["--rounds", "100000"], ["--rounds", "0", "--pools", "40"], ["--rounds", "0", "--concurrency", "4"]):
            process = subprocess.Popen([os.path.join(BUILD, "hearth-bench"), "--url", s.url, "--json", *args],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_for("the bench's own pool", lambda: len(s.get("/v1/pools").json["items"]) > 1 or process.poll() is not None, 60)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60 * SLOWER)
            assert process.returncode == 130, (args, process.returncode, err)
            assert json.loads(out)["stopped"], out
            nothing_left(s, ["python"])


def refused():
    """bench says what to do where nothing can be measured"""
    with Server() as s:
        _, said = bench(s, "--svg", "/nowhere/chart.svg", status=1)
        assert "cannot write" in said and "hint:" in said, said
        _, said = bench(s, "--pools", "1001", status=2)
        assert "1 to 1000" in said, said
        nothing_left(s)


def beside_docker():
    """bench against docker measures exec, run and cp in the same rounds and removes its container and image"""
    d = Dockerd()
    try:
        d.start()
        with Server() as s:
            trees = [os.path.join(s.data, "rootfs", name) for name in os.listdir(os.path.join(s.data, "rootfs"))]
            tree = next(t for t in trees if os.path.isdir(t) and not os.path.basename(t).startswith("."))
            report, _ = bench(s, "--rounds", "3", "--against", "docker", "--docker-rootfs", tree, env=d.env)
            for name in ("claim", "close", "one shot", "shell", "write 1 KiB", "read 1 MiB"):
                assert row(report, name)["docker"]["samples"] == 3 and row(report, name)["ratioP50"] > 0, row(report, name)
            assert "ratioP99" not in row(report, "shell"), report  # too few rounds for this ratio
            assert report["dockerContainer"] == "own" and report["dockerVersion"], report
            assert not d.items("/containers/json?all=1") and not d.items("/images/json")
            nothing_left(s)
    finally:
        d.close()


def scale():
    """hearth-scale adopts all its sandboxes after a crash, and refuses what open files do not allow"""
    program = os.path.join(BUILD, "hearth-scale")
    done = subprocess.run([program, "--pools", "3", "--warm", "5", "--claims", "10", "--guaranteed", "2"], capture_output=True, text=True,
                          timeout=60 * SLOWER)
    assert "an idle workspace ends after it was due" in done.stdout, done
    assert done.returncode == 0 and "adopting 15 sandboxes" in done.stderr, done
    assert "claim, 3 pools of 5 " in done.stdout and "claim, 3 pools of 5, 2 tenants guaranteed" in done.stdout, done
    done = subprocess.run(["prlimit", "--nofile=600", program, "--pools", "3"], capture_output=True, text=True, timeout=60 * SLOWER)
    assert done.returncode == 4 and "open files is too low" in done.stderr and "ulimit -Hn" in done.stderr, done


TESTS = [scale, every_series, clients_and_sizes, stopped, refused, beside_docker]
for test in TESTS:
    test.only = "oci"

if __name__ == "__main__":
    main("server", TESTS)
