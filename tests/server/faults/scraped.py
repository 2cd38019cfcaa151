"""What someone on call looks at: the table of docs/on-call.md, the dashboards, and one Prometheus for the servers of all faults."""

import contextlib
import glob
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import REPO, free_port  # noqa: E402
from prometheus import scraping  # noqa: E402

RULES = os.path.join(REPO, "helm/hearth/alerts.yaml")


def table():
    """The lines of docs/on-call.md, by fault: alerts, dashboard, panel, view of the console, command."""
    rows = {}
    with open(os.path.join(REPO, "docs/on-call.md"), encoding="utf-8") as f:
        for line in f:
            if not line.startswith("| ") or "](runbooks.md#" not in line:
                continue
            fault, alerts, graph, view, command, _ = (cell.strip() for cell in line.strip("| \n").split(" | "))
            fault = re.sub(r"\[(.+?)\]\(#.+?\)", r"\1", fault)
            board, panel = re.match(r"(\w+), \*(.+?)\*", graph).groups()
            rows[fault] = {"alerts": re.findall(r"\[(Hearth\w+)\]\(runbooks\.md#(\w+)\)", alerts), "board": board, "panel": panel,
                           "view": view, "command": re.match(r"`(.+?)`", command)[1]}
    return rows


class Monitor:
    """One Prometheus for all cases, as each of its starts takes five seconds: each fault is a job of its own, whose server comes when its
    case runs. It has the rules as they are, but does not wait: what holds for a moment here holds for minutes there."""

    WINDOW = re.compile(r"(hearth_host_pressure_seconds_total{[^}]*})\[5m]")  # a rate of five minutes needs some minutes

    def __init__(self):
        self.stack, self.get = contextlib.ExitStack(), None
        self.ports = {fault: [free_port(), free_port()] for fault in table()}

    def start(self):
        if self.get is None:
            path = os.path.join(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-rules-")), "rules.yaml")
            with open(RULES, encoding="utf-8") as f, open(path, "w", encoding="utf-8") as out:
                rules, found = self.WINDOW.subn(r"\1[20s]", f.read())
                assert found, "no rule has that rate"
                out.write(re.sub(r"^    for: \w+$", "    for: 0s", rules, flags=re.MULTILINE))
            self.get = self.stack.enter_context(scraping({job(fault): port for fault, port in self.ports.items()}, path))

    def of(self, fault):
        """The ports for metrics of the servers of that fault: of one, or of two replicas."""
        self.start()
        return self.ports[fault]


def job(fault):
    return "hearth-" + fault.lower().replace(" ", "-")


def boards():
    for path in glob.glob(os.path.join(REPO, "helm/hearth/dashboards/*.json")):
        with open(path, encoding="utf-8") as f:
            yield json.load(f)
