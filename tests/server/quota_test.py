#!/usr/bin/env python3
# suite: seconds=30 needs=hearth-fake
"""Quotas, black box: they hold under races and over kill -9, are read and set by role, and claims of several workspaces
are all or nothing. Standard library only."""

import concurrent.futures
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Server, main, pool_yaml, wait_for  # noqa: E402

POOL = pool_yaml(image="any", warm=12, per_tenant=1000)


def put(s, tenant, **quota):
    return s.call("PUT", f"/v1/quotas/{tenant}", quota)


def own(s):
    return s.get("/v1/quota").json


def races():
    """claims that race at the edge of a quota get exactly what it allows, and the refusal says which it is"""
    with Server(pools=POOL, runtime="fake") as s:
        wait_for("the pool", lambda: s.get("/v1/pools/shell").json["status"]["ready"] >= 12)
        made = put(s, "default", workspaces=5)
        assert made.status == 201 and made.json["source"] == "store", made
        with concurrent.futures.ThreadPoolExecutor(24) as many:
            answers = list(many.map(lambda _: s.post("/v1/workspaces", {"pool": "shell"}), range(100)))
        opened = [a for a in answers if a.status == 201]
        refused = [a for a in answers if a.status != 201]
        assert len(opened) == 5, [a.status for a in answers]
        for answer in refused:
            assert answer.status == 429 and answer.json["errorCode"] == "QUOTA_EXCEEDED", answer
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json["errors"][0]["pointer"] == "/workspaces", answer.json
        assert own(s)["use"]["workspaces"] == 5, own(s)
        less = put(s, "default", workspaces=4)
        assert less.status == 422 and "uses 5" in less.json["errors"][0]["reason"], less
        assert own(s)["quota"]["workspaces"] == 5
        for answer in opened:
            s.call("DELETE", f"/v1/workspaces/{answer.json['id']}")
        wait_for("the release", lambda: own(s)["use"]["workspaces"] == 0)
        assert s.post("/v1/workspaces", {"pool": "shell"}).status == 201


def resources():
    """cpu, memory, executions and rate are limited too, and what never fits is 422"""
    with Server(pools=POOL, runtime="fake") as s:
        limits = s.open_workspace(pool="shell")["limits"]
        put(s, "default", cpu="1m", memory="1Mi")  # below what is in use
        assert own(s)["source"] == "none", own(s)
        assert own(s)["use"]["memoryBytes"] == limits["memoryBytes"], (own(s), limits)
        assert put(s, "other", memory="1Mi").status == 201
        assert put(s, "default", claimsPerSecond=1, claimBurst=2).status == 201
        codes = [s.post("/v1/workspaces", {"pool": "shell"}) for _ in range(4)]
        assert [a.status for a in codes].count(429) >= 1, codes
        late = next(a for a in codes if a.status == 429)
        assert late.json["errorCode"] == "RATE_LIMITED" and late.headers["retry-after"] == "1", late.json
        assert put(s, "default", executions=0).status == 200
        workspace = next(a for a in codes if a.status == 201).json["id"]
        run = s.post(f"/v1/workspaces/{workspace}/executions", {"command": "echo hi"})
        assert run.status == 422 and run.json["errors"][0]["pointer"] == "/executions", run
        for wrong, pointer in (({"weight": 0}, "/weight"), ({"cpu": "much"}, "/cpu"),
                               ({"guaranteed": {"nowhere": 1}}, "/guaranteed/nowhere"),
                               ({"guaranteed": {"shell": 9999}}, "/guaranteed/shell")):
            answer = put(s, "other", **wrong)
            assert answer.status == 422 and answer.json["errors"][0]["pointer"] == pointer, answer.json
        text = s.ops("/metrics").body.decode()
        assert 'hearth_tenant_quota_limit{resource="executions",tenant="default"} 0' in text, text


def survives():
    """a quota and what counts in it are there again after kill -9"""
    with tempfile.TemporaryDirectory(prefix="hearth-quota-") as data:
        os.chmod(data, 0o755)
        file = os.path.join(data, "quotas.yaml")
        with open(file, "w", encoding="utf-8") as out:
            out.write("team: {workspaces: 7}\n")
        with Server(pools=POOL, runtime="fake", args=["--quotas", file]) as s:
            assert put(s, "default", workspaces=3, weight=2).status == 201
            declared = s.get("/v1/quotas/team").json
            assert declared["source"] == "config" and declared["quota"]["workspaces"] == 7, declared
            assert put(s, "team", workspaces=1).status == 409
            s.kill9()
            s.start()
            kept = own(s)
            assert kept["quota"]["workspaces"] == 3 and kept["quota"]["weight"] == 2, kept
            assert [q["tenant"] for q in s.get("/v1/quotas").json["items"]] == ["default", "team"]
            assert s.call("DELETE", "/v1/quotas/default").status == 204
            assert own(s)["source"] == "none"
            assert s.call("DELETE", "/v1/quotas/default").status == 404


def batches():
    """a claim of several workspaces gets all of them or none, and its key finds them again"""
    with Server(pools=pool_yaml(image="any", warm=4, per_tenant=6), runtime="fake") as s:
        key = {"Idempotency-Key": "batch-1"}
        three = s.call("POST", "/v1/workspaces:batch", {"count": 3, "pool": "shell"}, headers=key)
        assert three.status == 201 and len({w["id"] for w in three.json["items"]}) == 3, three
        again = s.call("POST", "/v1/workspaces:batch", {"count": 3, "pool": "shell"}, headers=key)
        assert [w["id"] for w in again.json["items"]] == [w["id"] for w in three.json["items"]], again
        other = s.call("POST", "/v1/workspaces:batch", {"count": 2, "pool": "shell"}, headers=key)
        assert other.status == 422 and other.json["errorCode"] == "IDEMPOTENCY_MISMATCH", other
        many = s.post("/v1/workspaces:batch", {"count": 7, "pool": "shell"})
        assert many.status == 422 and many.json["errors"][0]["pointer"] == "/count", many.json
        over = s.post("/v1/workspaces:batch", {"count": 4, "pool": "shell"})
        assert over.status == 429 and over.json["errorCode"] == "QUOTA_EXCEEDED", over.json
        assert own(s)["use"]["workspaces"] == 3
        assert put(s, "default", workspaces=5).status == 201
        six = s.post("/v1/workspaces:batch", {"count": 6, "pool": "shell"})
        assert six.status == 422 and six.json["errors"][0]["pointer"] == "/workspaces", six.json
        for workspace in three.json["items"]:
            s.call("DELETE", f"/v1/workspaces/{workspace['id']}")
        wait_for("the release", lambda: own(s)["use"]["workspaces"] == 0)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # each one waits for all of its own
            answers = list(pool.map(
                lambda _: s.post("/v1/workspaces:batch", {"count": 3, "pool": "shell"}), range(6)))
        assert sorted(a.status for a in answers) == [201] + [429] * 5, [a.status for a in answers]


def command_line():
    """`hearth quota` sets, shows and removes quotas, and `hearth open -n` opens several workspaces"""
    with Server(pools=POOL, runtime="fake") as s:
        def hearth(*words):
            return subprocess.run([os.path.join(BUILD, "hearth"), *words, "--url", s.url], capture_output=True,
                                  text=True, timeout=60)
        done = hearth("quota", "set", "default", "workspaces=4", "cpu=8", "guaranteed.shell=2")
        assert done.returncode == 0, done.stderr
        assert hearth("quota", "set", "default", "cpu=").returncode == 0
        assert own(s)["quota"] == {"workspaces": 4, "weight": 1, "guaranteed": {"shell": 2}}, own(s)
        opened = hearth("open", "-n", "3")
        assert opened.returncode == 0 and len(opened.stdout.split()) == 3, opened
        table = hearth("get", "quotas").stdout
        assert "3/4" in table and "default" in table, table
        assert hearth("open", "-n", "2").returncode != 0
        wrong = hearth("quota", "set", "default", "workspaces=2")
        assert wrong.returncode != 0 and "uses 3" in wrong.stderr, wrong
        assert hearth("quota", "remove", "default").returncode == 0
        assert "none" in hearth("quota", "show").stdout


def containers():
    """with real containers a quota holds at the edge and over kill -9, and executions that have ended do not count"""
    with Server(pools=pool_yaml(warm=8, members=20, on_empty="Fail")) as s:
        assert put(s, "default", workspaces=4, memory="1Gi", executions=1).status == 201
        with concurrent.futures.ThreadPoolExecutor(16) as many:
            answers = list(many.map(lambda _: s.post("/v1/workspaces", {"pool": "shell"}), range(32)))
        mine = [a.json["id"] for a in answers if a.status == 201]
        assert len(mine) == 4 and {a.status for a in answers} == {201, 429}, [a.status for a in answers]
        for _ in range(20):
            assert s.post(f"/v1/workspaces/{mine[0]}/executions", {"command": "true"}).status == 200
        running = s.post(f"/v1/workspaces/{mine[0]}/executions", {"command": "sleep 600", "background": True})
        refused = s.post(f"/v1/workspaces/{mine[1]}/executions", {"command": "true"})
        assert refused.status == 429 and refused.json["errorCode"] == "QUOTA_EXCEEDED", refused
        s.kill9()
        s.start()
        assert own(s)["use"] == {"workspaces": 4, "cpu": "4", "memoryBytes": 4 * (128 << 20), "gpus": 0, "executions": 1}, own(s)
        assert s.post("/v1/workspaces", {"pool": "shell"}).status == 429
        assert s.call("DELETE", f"/v1/executions/{running.json['id']}").status == 204
        wait_for("its end", lambda: s.post(f"/v1/workspaces/{mine[1]}/executions", {"command": "true"}).status == 200, 20)
        for each in mine[:2]:
            assert s.call("DELETE", f"/v1/workspaces/{each}").status == 204
        wait_for("warm sandboxes", lambda: s.get("/v1/pools/shell").json["status"]["ready"] >= 8, 30)
        assert s.post("/v1/workspaces:batch", {"count": 3, "pool": "shell"}).status == 429
        two = s.post("/v1/workspaces:batch", {"count": 2, "pool": "shell"})
        assert two.status == 201 and len(two.json["items"]) == 2 and own(s)["use"]["workspaces"] == 4, two


def held_back():
    """a pool without a line (`onEmpty: Fail`) holds ready sandboxes back for guarantees: who has none gets one, whoever is quicker"""
    with Server(pools=pool_yaml(warm=3, members=3, on_empty="Fail")) as s:
        root = {"Authorization": "Bearer " + s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]}

        def tenant(name):
            made = s.post("/v1/tokens", {"name": name, "tenant": name, "role": "user"}, headers=root)
            return {"Authorization": "Bearer " + made.json["token"]}

        def claim(headers):
            return s.call("POST", "/v1/workspaces", {"pool": "shell"}, headers=headers)
        try:
            greedy, quiet = tenant("greedy"), tenant("quiet")
            assert s.call("PUT", "/v1/quotas/quiet", {"guaranteed": {"shell": 2}}, headers=root).status == 201
            wait_for("the pool", lambda: s.get("/v1/pools/shell", headers=root).json["status"]["ready"] == 3)
            taken = [claim(greedy) for _ in range(4)]
            assert [each.status for each in taken] == [201, 429, 429, 429], taken
            taken = [claim(quiet) for _ in range(3)]
            assert [each.status for each in taken] == [201, 201, 429], taken
        finally:
            s.post("/v1/drain", headers=root)
            s.stop()


for test in (races, resources, survives, batches, command_line, containers, held_back):
    test.only = "oci"  # nothing in it depends on the runtime


if __name__ == "__main__":
    main("server", [races, resources, survives, batches, command_line, containers, held_back])
