#!/usr/bin/env python3
# suite: seconds=130 needs=gpu-standin
"""Ten faults, each provoked for real and found as docs/on-call.md says: its alert fires and its panel shows it in a real Prometheus,
its command names the cause, and the console's view reads it."""

import concurrent.futures
import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from disk_test import empty, server_on_ext4, take_all  # noqa: E402
from gpu_machine import Machine, gpu_pool, uuid  # noqa: E402
from harness import BUILD, REPO, Server, main, note, pool_yaml, wait_for  # noqa: E402
from index import Index, wheel  # noqa: E402
from ondemand_test import config, small  # noqa: E402
from prometheus import prometheus  # noqa: E402
from registry import Registry  # noqa: E402

RULES = os.path.join(REPO, "helm/hearth/alerts.yaml")


def row(fault):
    """A line of the table of docs/on-call.md: alerts, dashboard, panel, view of the console, command."""
    with open(os.path.join(REPO, "docs/on-call.md"), encoding="utf-8") as f:
        [cells] = [line.split(" | ") for line in f if line.startswith(f"| {fault} | ")]
    board, panel = re.match(r"(\w+), \*(.+?)\*", cells[2]).groups()
    return {"alerts": re.findall(r"\[(Hearth\w+)\]\(runbooks\.md#(\w+)\)", cells[1]), "board": board, "panel": panel,
            "view": cells[3], "command": re.match(r"`(.+?)`", cells[4])[1], "says": cells[4]}


class OnCall:
    """Somebody who has the page, Grafana, the console and a shell."""

    def __init__(self, server, get, fault):
        self.server, self.get, self.row = server, get, row(fault)

    def paged(self, alert, **labels):
        """Waits until the alert fires, with these labels; it must be one of the row, and lead to a runbook."""
        assert (alert, alert.lower()) in self.row["alerts"], self.row
        with open(os.path.join(REPO, "docs/runbooks.md"), encoding="utf-8") as f:
            assert f"## {alert}\n" in f.read()
        chosen = "".join(f',{name}="{value}"' for name, value in labels.items())
        wait_for(f"the alert {alert}", lambda: self.ask(f'ALERTS{{alertname="{alert}",alertstate="firing"{chosen}}}'), 30)

    def ask(self, expression):
        found = self.get("query", query=expression)
        return found["result"] if found else []

    def graph(self, least=0.0, **labels):
        """Waits until a series of the row's panel with these labels is above `least`."""
        def shown():
            for each in sum((self.ask(expression) for expression in queries), []):
                if labels.items() <= each["metric"].items() and float(each["value"][1]) > least:
                    return each
            return None
        [panel] = [panel for board in boards() if board["title"] == f"Hearth / {self.row['board']}" for panel in board["panels"]
                   if panel["title"] == self.row["panel"]]
        queries = [target["expr"].replace("$__rate_interval", "20s").replace("$job", "hearth").replace("$pool", ".+") for target in panel["targets"]]
        return wait_for(f"the panel {self.row['panel']}", shown, 30)

    def types(self, **names):
        """What the row's command prints, its words in capitals replaced."""
        words = [names.get(word, word) for word in self.row["command"].split()]
        assert words[0] == "hearth" and not any(word.isupper() for word in words), words
        return hearth(self.server, *words[1:])

    def opens(self, view, path):
        """What a view of the console reads."""
        assert self.row["view"].startswith(view), self.row
        with open(os.path.join(REPO, "api/console/page/main.js"), encoding="utf-8") as f:
            assert f'title: "{view}"' in f.read()
        answer = self.server.get(path)
        assert answer.status == 200, answer
        return answer.json


def boards():
    for path in glob.glob(os.path.join(REPO, "helm/hearth/dashboards/*.json")):
        with open(path, encoding="utf-8") as f:
            yield json.load(f)


@contextlib.contextmanager
def on_call(server, fault):
    """Prometheus has the rules as they are, but does not wait: what holds for a moment here holds for minutes there."""
    with tempfile.TemporaryDirectory(prefix="hearth-rules-") as folder:
        path = os.path.join(folder, "rules.yaml")
        with open(RULES, encoding="utf-8") as f, open(path, "w", encoding="utf-8") as out:
            out.write(re.sub(r"^    for: \w+$", "    for: 0s", f.read(), flags=re.MULTILINE))
        with prometheus(server, path) as get:
            someone = OnCall(server, get, fault)
            wait_for("Prometheus", lambda: someone.ask("hearth_build_info"), 40)
            yield someone


def hearth(s, *words):
    done = subprocess.run([os.path.join(BUILD, "hearth"), *words, "--url", s.url, *(["--token", s.token] if s.token else [])],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return done.stdout


def condition(pool, kind):
    return next(each for each in pool["status"]["conditions"] if each["type"] == kind)


def close(s, workspace):
    assert s.call("DELETE", f"/v1/workspaces/{workspace}").status == 204


def field(table, name):
    return re.search(rf"^{re.escape(name)} +(.+)$", table, re.MULTILINE)[1]


def empty_pool():
    """an empty pool: all its sandboxes are claimed and its members reached, and the claims that wait are seen"""
    with Server(pools=pool_yaml(warm=1, members=1, max_wait="60s")) as s, on_call(s, "Empty pool") as who, \
            concurrent.futures.ThreadPoolExecutor(1) as one:
        held = s.open_workspace(pool="shell")
        waiting = one.submit(s.open_workspace, pool="shell")
        who.paged("HearthPoolEmpty", pool="shell")
        who.paged("HearthClaimsWait", pool="shell")
        who.graph(state="claimed")
        said = who.types(POOL="shell")
        assert field(said, "status.claimed") == field(said, "spec.limits.members") == "1" and field(said, "status.waiting") == "1", said
        assert held["id"] in said, said
        [pool] = who.opens("Pools", "/v1/pools?limit=100")["items"]
        assert (pool["status"]["ready"], pool["status"]["claimed"], pool["status"]["waiting"]) == (0, 1, 1), pool
        assert held["id"] in hearth(s, "get", "workspaces")
        close(s, held["id"])
        waited = waiting.result(30)
        assert "the wait in line: pool shell had no ready sandbox" in hearth(s, "explain", waited["id"])


TESTS = [empty_pool]
for test in TESTS:
    test.only = "oci"

if __name__ == "__main__":
    main("server", TESTS)
