#!/usr/bin/env python3
"""Schedules of a real server: a pool follows its windows, a mistake changes nothing, and `hearth schedule` explains."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Server, main, pool_yaml, wait_for  # noqa: E402

# Each minute another entry: three, then none.
TURNS = """  schedules:
    - {name: three, cron: "*/2 * * * *", duration: 1m, warm: {min: 3, max: 3}}
    - {name: none, cron: "1-59/2 * * * *", timeZone: Asia/Shanghai, duration: 1m, warm: {max: 0}}
"""
NIGHT = {"name": "night", "cron": "0 20 * * *", "timeZone": "Asia/Shanghai", "warm": {"min": 0, "max": 2}}


def hearth(s, *words):
    env = dict(os.environ, **({"HEARTH_URL": s.url} if s else {}))
    return subprocess.run([os.path.join(BUILD, "hearth"), *words], capture_output=True, text=True, env=env, timeout=60, check=False)


def status(s):
    return s.get("/v1/pools/shell").json["status"]


def follows():
    """each minute's schedule raises the pool to three or empties it, in sandboxes, status and events"""
    with Server(pools=pool_yaml(warm=1) + TURNS) as s:
        seen = []

        def turned():
            now = status(s)
            name = now["schedule"]["entry"]
            if now["ready"] == {"three": 3, "none": 0}.get(name) and now["creating"] == 0 and name not in seen:
                seen.append(name)
            return len(seen) == 2
        wait_for("both schedules", turned, 130)
        begun = {e["reason"] for e in s.get("/v1/events?type=pool.schedule_began").json["items"]}
        assert begun & {"three", "none"}, begun
        retired = s.get("/v1/events?type=sandbox.retired").json["items"]
        assert seen == ["none", "three"] or {e["reason"] for e in retired} == {"schedule"}, retired


def mistakes():
    """a wrong line, zone or number is a 422 that names the field and what is allowed, and the pool stays as it was"""
    with Server(pools=pool_yaml(warm=1)) as s:
        before = s.get("/v1/pools/shell").json
        for entry, pointer, word in [(dict(NIGHT, cron="61 * * * *"), "cron", "0 to 59"), (dict(NIGHT, timeZone="Asia/Shangai"), "timeZone", "Asia/Shangai"),
                                     (dict(NIGHT, warm={"min": 3, "max": 1}), "warm/min", "max"), (dict(NIGHT, cron="@often"), "cron", "@daily")]:
            answer = s.call("PATCH", "/v1/pools/shell", {"spec": {"warm": {"min": 2}, "schedules": [entry]}})
            assert answer.status == 422 and answer.json["errorCode"] == "INVALID_SPEC", answer
            [error] = answer.json["errors"]
            assert error["pointer"] == f"/spec/schedules/0/{pointer}" and word in json.dumps(error), error
            assert s.get("/v1/pools/shell").json["spec"] == before["spec"], answer
        assert "schedule" not in before["status"], before


def explains():
    """`hearth schedule explain` tells the next day of a pool and of a file, and is exact about mistakes"""
    with Server(pools=pool_yaml(warm=1)) as s, tempfile.TemporaryDirectory() as folder:
        answer = s.call("PATCH", "/v1/pools/shell", {"spec": {"schedules": [NIGHT, {"name": "day", "cron": "0 8 * * *", "timeZone": "Asia/Shanghai", "warm": {}}]}})
        assert answer.status == 200 and answer.json["spec"]["schedules"][0]["sweep"] is False, answer
        told = hearth(s, "schedule", "explain", "shell", "--at", "2026-11-25T06:00:00Z")
        assert told.returncode == 0, told
        rows = [line.split() for line in told.stdout.splitlines()]
        assert [row[5:7] for row in rows[1:]] == [["day", "1..20"], ["night", "0..2"], ["day", "1..20"]], told.stdout
        assert rows[2][:5] == ["2026-11-25", "20:00", "CST", "2026-11-25", "12:00"], told.stdout
        path = os.path.join(folder, "pool.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(pool_yaml() + '  schedules: [{name: dst, cron: "30 2 * * *", timeZone: America/New_York, duration: 1h, warm: {min: 9}}]\n')
        told = hearth(None, "schedule", "explain", "-f", path, "--at", "2026-03-08T06:00:00Z", "-o", "json")
        moments = json.loads(told.stdout)["moments"]
        assert [m["at"] for m in moments] == ["2026-03-08T06:00:00.000Z", "2026-03-08T07:00:00.000Z", "2026-03-08T08:00:00.000Z"], moments
        assert [m["min"] for m in moments] == [2, 9, 2], moments
        for words in [("explain",), ("show", "shell"), ("explain", "-f", path, "other"), ("explain", "shell", "--at", "noon"), ("explain", "shell", "--hours", "0")]:
            assert hearth(s, "schedule", *words).returncode == 2, words
        with open(path, "a", encoding="utf-8") as f:
            f.write('    - {name: bad}\n')
        assert hearth(None, "schedule", "explain", "-f", path).returncode == 2


if __name__ == "__main__":
    main("server", [follows, mistakes, explains])
