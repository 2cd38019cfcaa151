#!/usr/bin/env python3
# suite: seconds=40
"""Questions of operators, black box: why something was slow, who used how much, and what the server logs."""

import concurrent.futures
import contextlib
import csv
import io
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, REPO, Server, main, pool_yaml, wait_for  # noqa: E402


def hearth(s, *words, status=0):
    done = subprocess.run([os.path.join(BUILD, "hearth"), *words, "--url", s.url], capture_output=True, text=True, check=False)
    assert done.returncode == status, done
    return done.stdout


def timeline(s, kind, name):
    answer = s.get(f"/v1/{kind}/{name}/timeline")
    assert answer.status == 200, answer
    return answer.json


def stages(line):
    return {each["stage"]: each["ms"] for each in line["stages"]}


def slow_claims():
    """a timeline names the largest cause of a claim: nothing, the line, or the making of its sandbox; also after its end and a crash"""
    pools = pool_yaml(warm=1, members=1) + "---\n" + pool_yaml("cold", warm=0, on_empty="Create")
    with Server(pools=pools) as s:
        first = s.open_workspace(pool="shell")
        warm = timeline(s, "workspaces", first["id"])
        assert warm["kind"] == "workspace" and warm["queuePlace"] is None and warm["poolThen"]["ready"] == 1, warm
        # Both tell the same claim; the timeline notes it a moment before the answer is made.
        assert abs(warm["totalMs"] - first["claim"]["totalMs"]) < max(50, first["claim"]["totalMs"] / 2), (warm, first)

        with concurrent.futures.ThreadPoolExecutor(1) as one:
            waiting = one.submit(s.open_workspace, pool="shell")
            time.sleep(1)
            s.call("DELETE", f"/v1/workspaces/{first['id']}")
            second = waiting.result(30)
        line = timeline(s, "workspaces", second["id"])
        assert line["largest"] == "queue" and line["queuePlace"] == 1 and line["poolThen"]["claimed"] == 1, line
        assert "the wait in line: pool shell had no ready sandbox" in line["sentence"] and stages(line)["queue"] > 900, line
        assert line["pressureThen"] is None or set(line["pressureThen"]) == {"cpu", "memory", "io"}, line

        made = s.open_workspace(pool="cold")
        cold = timeline(s, "workspaces", made["id"])
        assert cold["largest"] in ("create", "warm") and "made for it" in cold["sentence"], cold

        said = hearth(s, "explain", second["id"])
        assert said.startswith(line["sentence"]) and "queue" in said and "the pool then: 0 ready, 1 claimed" in said, said
        assert json.loads(hearth(s, "explain", second["id"], "-o", "json"))["largest"] == "queue"

        assert s.call("DELETE", f"/v1/workspaces/{second['id']}").status == 204
        assert s.get(f"/v1/workspaces/{second['id']}").status == 410 and timeline(s, "workspaces", second["id"]) == line
        s.kill9()
        s.start()
        assert timeline(s, "workspaces", second["id"]) == line
        assert timeline(s, "workspaces", made["id"])["sentence"] == cold["sentence"]
        assert s.get("/v1/workspaces/ws_none/timeline").status == 404
        assert "no workspace" in subprocess.run([os.path.join(BUILD, "hearth"), "explain", "ws_none", "--url", s.url], capture_output=True,
                                                text=True, check=False).stderr


def slow_runs():
    """an execution's timeline tells a program that computes from one that waits, and grows while it runs"""
    with Server() as s:
        w = s.open_workspace()["id"]
        waited = s.run(w, "sleep 0.5; echo late")
        line = timeline(s, "executions", waited["id"])
        assert line["largest"] == "run" and "mostly waited" in line["sentence"] and line["firstOutputMs"] >= 500, line
        busy = s.run(w, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
        said = timeline(s, "executions", busy["id"])["sentence"]
        assert "it used processors for" in said and "mostly waited" not in said, said
        running = s.post(f"/v1/workspaces/{w}/executions", {"command": "sleep 60", "background": True}).json
        wait_for("its start", lambda: "run" in stages(timeline(s, "executions", running["id"])))
        early = timeline(s, "executions", running["id"])
        assert early["running"] and "still running" in early["sentence"], early
        time.sleep(0.2)
        assert timeline(s, "executions", running["id"])["totalMs"] > early["totalMs"]
        shot = s.post("/v1/executions", {"command": "true"}).json
        whole = timeline(s, "executions", shot["id"])
        assert {"bind", "run"} <= set(stages(whole)) and whole["poolThen"] is not None, whole


def others_timelines():
    """a timeline is its tenant's and the operators': others are told that there is none"""
    with Server() as s:
        make = s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]
        s.token = make
        tokens = {name: s.post("/v1/tokens", {"name": name, "tenant": tenant, "role": role}).json["token"]
                  for name, tenant, role in (("mine", "mine", "user"), ("other", "other", "user"), ("ops", "other", "operator"))}

        def ask(name, path, method="GET", body=None):
            return s.call(method, path, body, headers={"Authorization": f"Bearer {tokens[name]}"})
        w = ask("mine", "/v1/workspaces", "POST", {}).json["id"]
        e = ask("mine", f"/v1/workspaces/{w}/executions", "POST", {"command": "true"}).json["id"]
        for path in (f"/v1/workspaces/{w}/timeline", f"/v1/executions/{e}/timeline"):
            assert ask("mine", path).status == 200 and ask("other", path).status == 404, path
        assert ask("ops", f"/v1/workspaces/{w}/timeline").status == 200
        assert ask("ops", f"/v1/executions/{e}/timeline").status == 404
        wait_for("its use", lambda: "mine" in {row["tenant"] for row in ask("ops", "/v1/usage").json["items"]}, 30)
        assert ask("other", "/v1/usage").json["items"] == []
        assert [row["tenant"] for row in ask("mine", "/v1/usage").json["items"]] == ["mine"]
        for name in ("mine", "ops"):
            assert ask(name, "/v1/logs").status == 403 and ask(name, "/v1/log-level").status == 403, name


def use():
    """what workspaces use is summed up by tenant and pool, also across a restart, as JSON, CSV and counters"""
    with Server() as s:
        w = s.open_workspace()["id"]
        s.run(w, "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done")
        assert s.call("DELETE", f"/v1/workspaces/{w}").status == 204

        def row(**query):
            words = "&".join(f"{key}={value}" for key, value in query.items())
            items = s.get(f"/v1/usage?{words}").json["items"]
            return items[0] if items else None
        wait_for("its last look", lambda: (row() or {"cpuSeconds": 0})["cpuSeconds"] > 0.1)
        mine = row(by="tenant,pool", since="1h")
        assert mine["tenant"] == "default" and mine["pool"] == "shell" and mine["claims"] == 1 and mine["sandboxSeconds"] > 0.1, mine
        assert row(by="pool")["tenant"] is None
        kept = s.open_workspace()["id"]
        s.stop()
        s.start()
        assert row()["claims"] == 2, row()
        s.call("DELETE", f"/v1/workspaces/{kept}")
        text = s.get("/v1/usage", headers={"Accept": "text/csv"})
        assert text.headers["content-type"].startswith("text/csv")
        [line] = list(csv.DictReader(io.StringIO(text.body.decode())))
        assert line["tenant"] == "default" and float(line["cpuSeconds"]) >= mine["cpuSeconds"], line
        metrics = s.ops("/metrics").body.decode()
        assert 'hearth_tenant_workspaces{tenant_class="other"}' in metrics and "hearth_tenant_sandbox_seconds_total{" in metrics
        shown = hearth(s, "usage", "--by", "tenant,pool")
        assert "default" in shown and "shell" in shown and "SANDBOX-H" in shown, shown
        assert hearth(s, "usage", "--csv").startswith("tenant,pool,claims")
        for query, field in (("by=hour", "/by"), ("since=yesterday", "/since"), ("until=2001-01-01T00:00:00Z", "/until")):
            refused = s.get(f"/v1/usage?{query}")
            assert refused.status == 400 and refused.json["errors"][0]["pointer"] == field, (query, refused)


def log():
    """the log's last lines and new ones come over the API, and its level changes without a restart"""
    with Server() as s:
        assert s.get("/v1/log-level").json == {"level": "info"}
        follow = subprocess.Popen([os.path.join(BUILD, "hearth"), "logs", "--server", "-f", "--tail", "1000", "--url", s.url],
                                  stdout=subprocess.PIPE, text=True)
        try:
            seen = []

            def until(word):
                while not any(word in line for line in seen):
                    line = follow.stdout.readline()
                    assert line, seen
                    seen.append(line)
            until("event=server.ready" if "event=server.ready" in s.log() else "event=")
            assert not any("level=debug" in line for line in seen)
            assert hearth(s, "log-level", "debug") == "debug\n"
            until("event=log.level")
            w = s.open_workspace()["id"]
            until("level=debug")
            s.call("DELETE", f"/v1/workspaces/{w}")
            until(w)
        finally:
            follow.terminate()
            follow.wait()
        lines = s.get("/v1/logs?limit=1000").json["items"]
        assert [line["id"] for line in lines] == list(range(lines[0]["id"], lines[0]["id"] + len(lines)))
        assert all(line["text"] in s.log() for line in lines)
        assert len(s.get("/v1/logs?limit=2").json["items"]) == 2
        assert hearth(s, "logs", "--server", "--tail", "1").count("\n") == 1
        assert s.call("PUT", "/v1/log-level", {"level": "loud"}).status == 400
        assert hearth(s, "log-level", "error") == "error\n"
        before = len(s.log())
        s.open_workspace()
        time.sleep(0.5)
        assert len(s.log()) == before
        hearth(s, "log-level", "loud", status=2)


def page():
    """browsers get the console at the server's address, with a policy that allows nothing else; programs get what they got before"""
    with Server() as s:
        html = s.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert html.status == 200 and html.headers["content-type"] == "text/html; charset=utf-8" and b"<main" in html.body, html
        policy = html.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy, policy
        assert html.headers["x-content-type-options"] == "nosniff"
        for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
            assert s.get("/", headers=accept).json["name"] == "hearth", accept
        script = s.get("/console/main.js")
        assert script.headers["content-type"] == "text/javascript; charset=utf-8" and script.status == 200
        again = s.get("/console/main.js", headers={"If-None-Match": script.headers["etag"]})
        assert again.status == 304 and again.body == b"", again
        head = s.call("HEAD", "/console/main.js")
        assert head.status == 200 and head.body == b"" and int(head.headers["content-length"]) == len(script.body), head
        for path in ("/console/", "/console/nothing.js", "/console/../v1/pools", "/console/%2e%2e/main.js"):
            assert s.get(path).status in (400, 404), path
        assert s.post("/console/main.js").status in (404, 405)
        foreign = s.post("/v1/workspaces", {}, headers={"Origin": "http://elsewhere.example"})
        assert foreign.status == 403, foreign
        own = s.post("/v1/workspaces", {}, headers={"Origin": s.url})
        assert own.status == 201, own


def rotation():
    """logrotate with the file of the docs moves audit log and access log away, and the server goes on in new ones"""
    if not shutil.which("logrotate"):
        raise AssertionError("logrotate is not installed")
    with Server(config="audit: {file: audit.log}\naccessLog: access.log\n") as s:
        path = os.path.join(s.data, "audit.log")
        access = os.path.join(s.data, "access.log")

        def written(file):
            with contextlib.suppress(FileNotFoundError), open(file, encoding="utf-8") as f:
                return f.read().count('"method":"POST"')
            return 0
        s.open_workspace()
        wait_for("an entry", lambda: written(path) == written(access) == 1)
        with open(os.path.join(REPO, "docs", "systemd", "hearth.logrotate"), encoding="utf-8") as f:
            rules = f.read().replace("/var/log/hearth/audit.log", path).replace("/var/log/hearth/access.log", access)
        rules_file = os.path.join(s.data, "rules")
        with open(rules_file, "w", encoding="utf-8") as f:
            f.write(rules)
        subprocess.run(["logrotate", "--force", "--state", os.path.join(s.data, "state-of-logrotate"), rules_file], check=True)
        assert written(path + ".1") == written(access + ".1") == 1
        time.sleep(1.2)  # it looks once a second
        s.open_workspace()
        wait_for("new files", lambda: written(path) == written(access) == 1)
        assert written(path + ".1") == written(access + ".1") == 1


if __name__ == "__main__":
    main("server", [slow_claims, slow_runs, others_timelines, use, log, page, rotation])
