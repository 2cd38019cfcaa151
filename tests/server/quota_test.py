#!/usr/bin/env python3
# suite: seconds=30
"""Quotas, black box: what a tenant may have at most holds at the edge and over a crash, and is set by REST, the command line and the file."""

import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Server, main, pool_yaml, wait_for  # noqa: E402

ADMIN, RED, BLUE = ("a" * 32, "r" * 32, "b" * 32)


def config(quotas=""):
    import hashlib
    lines = "tokens:\n"
    for token, tenant, role in ((ADMIN, "default", "admin"), (RED, "red", "user"), (BLUE, "blue", "user")):
        lines += f"- {{name: {tenant}, tenant: {tenant}, role: {role}, sha256: {hashlib.sha256(token.encode()).hexdigest()}}}\n"
    return lines + quotas


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def claim(s, token=RED, **fields):
    return s.post("/v1/workspaces", dict({"pool": "shell"}, **fields), headers=bearer(token), timeout=60)


def held():
    """of many claims at the edge of a quota exactly as many get a workspace as it allows; others do not notice; a crash changes nothing"""
    with Server(pool_yaml(warm=8, on_empty="Fail", members=20), config=config()) as s:
        s.token = ADMIN
        put = s.call("PUT", "/v1/quotas/red", {"workspaces": 3, "memory": "1Gi"})
        assert put.status == 200 and put.json["source"] == "store" and put.json["used"]["workspaces"] == 0, put
        with concurrent.futures.ThreadPoolExecutor(16) as clients:
            answers = list(clients.map(lambda _: claim(s), range(32)))
        had = [a.json["id"] for a in answers if a.status == 201]
        refused = [a for a in answers if a.status != 201]
        assert len(had) == 3, answers
        assert all(a.status == 429 and a.json["errorCode"] in ("QUOTA_EXCEEDED", "POOL_EXHAUSTED") and int(a.headers["retry-after"]) >= 1 for a in refused), refused
        [told] = {a.json["detail"] for a in refused if a.json["errorCode"] == "QUOTA_EXCEEDED"}
        assert told == "tenant red uses 3 of its quota of 3 workspaces", told
        assert claim(s, BLUE).status == 201
        mine = s.get("/v1/quotas", headers=bearer(RED)).json["items"]
        assert [each["tenant"] for each in mine] == ["red"] and mine[0]["used"]["memory"] == "384Mi", mine
        assert s.get("/v1/quotas/blue", headers=bearer(RED)).status == 404
        assert s.call("PUT", "/v1/quotas/red", {"workspaces": 99}, headers=bearer(RED)).status == 403
        below = s.call("PUT", "/v1/quotas/red", {"workspaces": 1, "memory": "128Mi"})
        assert below.status == 422 and below.json["errors"][0]["pointer"] == "/workspaces" and "3 are in use" in below.json["errors"][0]["reason"], below
        assert s.get("/v1/quotas/red", headers=bearer(RED)).json["quota"] == {"workspaces": 3, "memory": "1Gi"}
        s.kill9()
        s.start()
        after = s.get("/v1/quotas/red", headers=bearer(RED)).json
        assert after["used"]["workspaces"] == 3 and after["quota"]["workspaces"] == 3, after
        assert claim(s).status == 429
        assert s.call("DELETE", f"/v1/workspaces/{had[0]}", headers=bearer(RED)).status == 204
        wait_for("a warm sandbox", lambda: s.get("/v1/pools/shell").json["status"]["ready"] > 0, 30)
        assert claim(s).status == 201


def refusals():
    """what a quota can never hold is a 422, a rate tells when the next claim may come, and bad quotas name their fields"""
    with Server(pool_yaml(warm=2), config=config("quotas:\n- {tenant: '*', memory: 100Mi}\n")) as s:
        s.token = ADMIN
        never = claim(s)
        assert never.status == 422 and "whole quota" in never.json["detail"] and never.json["errors"][0]["pointer"] == "/limits/memoryBytes", never
        lower = claim(s, limits={"memoryBytes": 64 << 20})
        assert lower.status == 201, lower
        assert s.get("/v1/quotas/red", headers=bearer(RED)).json["source"] == "everyone"
        fixed = s.call("PUT", "/v1/quotas/*", {"workspaces": 1})
        assert fixed.status == 409 and "configuration" in fixed.json["detail"], fixed
        slow = s.call("PUT", "/v1/quotas/blue", {"claimsPerSecond": 0.05, "claimsBurst": 1})
        assert slow.status == 200, slow
        assert claim(s, BLUE).status == 201
        late = claim(s, BLUE)
        assert late.status == 429 and late.json["errorCode"] == "RATE_LIMITED" and 15 <= int(late.headers["retry-after"]) <= 20, late
        for body, pointer in (({"memory": "much"}, "/memory"), ({"cpu": "-1"}, "/cpu"), ({"claimsBurst": 2}, "/claimsBurst"), ({"claimsPerSecond": 0}, "/claimsPerSecond")):
            bad = s.call("PUT", "/v1/quotas/blue", body)
            assert bad.status == 422 and bad.json["errors"][0]["pointer"] == pointer, bad
        assert s.call("PUT", "/v1/quotas/no%20tenant", {"workspaces": 1}).status == 404
        assert s.call("PUT", "/v1/quotas/blue", {"gpu": 1}).status == 400


def executions():
    """executions that run at once are counted, and those that have ended are not"""
    with Server(pool_yaml(warm=2), config=config()) as s:
        s.token = ADMIN
        assert s.call("PUT", "/v1/quotas/red", {"executions": 1}).status == 200
        workspace = claim(s).json["id"]

        def run(command, **fields):
            return s.post(f"/v1/workspaces/{workspace}/executions", dict({"command": command}, **fields), headers=bearer(RED))
        for _ in range(20):
            assert run("true").status == 200
        running = run("sleep 600", background=True)
        assert running.status in (200, 201, 202), running
        refused = run("true")
        assert refused.status == 429 and refused.json["errorCode"] == "QUOTA_EXCEEDED" and "executions" in refused.json["detail"], refused
        assert s.call("DELETE", f"/v1/executions/{running.json['id']}", headers=bearer(RED)).status == 204
        wait_for("it to end", lambda: run("true").status == 200, 20)


def command_line():
    """hearth quota sets and deletes, hearth get quotas shows, and mistakes are told"""
    with Server(pool_yaml(warm=1), config=config()) as s:
        s.token = ADMIN
        with tempfile.NamedTemporaryFile("w") as token:
            token.write(ADMIN)
            token.flush()

            def hearth(*words):
                env = dict(os.environ, HEARTH_URL=s.url, HEARTH_TOKEN=ADMIN)
                return subprocess.run([os.path.join(BUILD, "hearth"), *words], capture_output=True, text=True, env=env, timeout=60, check=False)
            done = hearth("quota", "set", "red", "--workspaces", "4", "--memory", "2Gi", "--claims-per-second", "2.5")
            assert done.returncode == 0 and "0/4" in done.stdout and "0/2Gi" in done.stdout, done
            shown = hearth("get", "quotas")
            assert shown.returncode == 0 and "red" in shown.stdout and "2.5" in shown.stdout and "store" in shown.stdout, shown
            assert hearth("get", "quota", "red", "-o", "name").stdout == "red\n"
            assert hearth("quota", "set", "red").returncode == 2
            wrong = hearth("quota", "set", "red", "--workspaces", "many")
            assert wrong.returncode == 2 and "--workspaces" in wrong.stderr, wrong
            wrong = hearth("quota", "set", "red", "--memory", "many")
            assert wrong.returncode == 1 and "/memory" in wrong.stderr, wrong
            assert hearth("quota", "delete", "red").returncode == 0
            assert hearth("quota", "delete", "red").returncode == 3


TESTS = [held, refusals, executions, command_line]
for test in TESTS:
    test.only = "oci"  # nothing of it is the runtime's

if __name__ == "__main__":
    main("server", TESTS)
