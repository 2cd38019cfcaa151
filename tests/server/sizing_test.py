#!/usr/bin/env python3
# suite: seconds=40 needs=hearth-fake
"""Sizing, black box: a pool with a forecast follows its claims and publishes it, and `hearth simulate` compares ways of
sizing on what the server has recorded. Standard library only."""

import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Server, main, pool_yaml, wait_for  # noqa: E402

PREDICTIVE = pool_yaml(image="any", warm=1, per_tenant=1000).replace(
    "  onEmpty:", "  sizing: {mode: Predictive, missRate: 0.01}\n  onEmpty:")


def simulate(*words):
    return subprocess.run([os.path.join(BUILD, "hearth"), "simulate", *words], capture_output=True, text=True, timeout=60)


def forecasts():
    """a Predictive pool keeps to floor and ceiling, publishes forecast, misses and price, and records its claims"""
    with tempfile.TemporaryDirectory(prefix="hearth-traces-") as traces:
        os.chmod(traces, 0o777)
        s = Server(pools=PREDICTIVE, runtime="fake", args=["--record-traces", traces])
        with s:
            for _ in range(40):
                workspace = s.open_workspace(pool="shell")["id"]
                assert s.call("DELETE", f"/v1/workspaces/{workspace}").status in (200, 204)
                time.sleep(0.02)  # the claims of a second or so
            def status():
                return s.get("/v1/pools/shell").json["status"]
            seen = wait_for("the forecast", lambda: (now := status())["forecast"]["claimsPerSecond"] > 0.1 and now)
            assert 1 <= seen["desired"] <= 20, seen
            assert 0 <= seen["missRate"] <= 1 and seen["forecast"]["target"] <= 20, seen
            text = s.ops("/metrics").body.decode()
            for series in ("pool_forecast_claims_per_second", "pool_forecast_sandboxes", "pool_miss_ratio",
                           "pool_idle_sandbox_seconds_total"):
                assert f'hearth_{series}{{pool="shell"}}' in text, series
            trace = os.path.join(traces, "shell.trace")
            wait_for("the trace", lambda: os.path.exists(trace) and len(open(trace, encoding="utf-8").readlines()) >= 40)
            done = simulate("--trace", trace, "-o", "json")
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["items"][0]["predictive"]["claims"] >= 40
            wrong = s.call("PATCH", "/v1/pools/shell", {"spec": {"sizing": {"missRate": 2}}},
                           headers={"Content-Type": "application/merge-patch+json"})
            assert wrong.status == 422 and wrong.json["errors"][0]["pointer"] == "/spec/sizing/missRate", wrong


def comparisons():
    """`hearth simulate` prints its table, and refuses a trace with holes by file, line and value"""
    table = simulate("--shape", "diurnal", "--claims", "20000")
    assert table.returncode == 0, table.stderr
    for word in ("Static", "Predictive", "Clairvoyant", "MISS RATE", "diurnal 1"):
        assert word in table.stdout, table.stdout
    with tempfile.NamedTemporaryFile("w", suffix=".trace") as bad:
        bad.write("1\n2\nsoon\n")
        bad.flush()
        refused = simulate("--trace", bad.name)
        assert refused.returncode == 2 and f'{bad.name} line 3: "soon" is no time' in refused.stderr, refused.stderr
    printed = simulate("--shape", "rare", "--claims", "50", "--print-trace")
    assert printed.returncode == 0 and len(printed.stdout.splitlines()) == 51, printed.stderr
    with tempfile.NamedTemporaryFile("w", suffix=".trace") as made:
        made.write(printed.stdout)
        made.flush()
        again = json.loads(simulate("--trace", made.name, "-o", "json").stdout)["items"][0]
        first = json.loads(simulate("--shape", "rare", "--claims", "50", "-o", "json").stdout)["items"][0]
        for key in ("claims", "misses", "sandboxes"):
            assert again["predictive"][key] == first["predictive"][key], (again, first)
    many = simulate("--shape", "rare", "--seeds", "2", "--print-trace")
    assert many.returncode == 2 and "--print-trace would print 2 traces" in many.stderr, many.stderr


for test in (forecasts, comparisons):
    test.only = "oci"  # nothing in it depends on the runtime


if __name__ == "__main__":
    main("server", [forecasts, comparisons])
