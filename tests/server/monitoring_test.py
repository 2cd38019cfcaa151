#!/usr/bin/env python3
"""The files that operators import: rules and alerts by promtool, dashboards by Grafana's own types, every query of both
against a real Prometheus that scrapes a server with work to do, and a runbook for each alert."""

import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import yaml

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpu_machine import Machine, gpu_pool  # noqa: E402
from harness import BUILD, main, npm_ci, pool_yaml, wait_for  # noqa: E402
from prometheus import prometheus, promtool  # noqa: E402

# suite: seconds=60 needs=hearth-fake,gpu-standin,node
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
RULES = os.path.join(ROOT, "helm/hearth/alerts.yaml")
BOARDS = sorted(glob.glob(os.path.join(ROOT, "helm/hearth/dashboards/*.json")))
# Panels whose histograms stay empty if nothing goes wrong: they have series, but no number.
QUIET = {"Late ends, p99", "Resumes, p99", "Time in line, p99", "Claims that found none"}

# For each alert: series with which it fires (values each minute, as promtool writes them), and series with which it
# does not. For the long window of each burn rate: hours of claims, and a share of slow ones that uses up the rest too
# fast.
BURNS = {"1h": (2, 0.2), "6h": (7, 0.08), "1d": (30, 0.04), "3d": (84, 0.015)}
CASES = {
    "HearthDown": ({'up{job="hearth"}': "0x20", 'hearth_build_info{job="hearth"}': "1x20"}, {'up{job="hearth"}': "1x20", 'hearth_build_info{job="hearth"}': "1x20"}),
    "HearthNoLeader": ({'hearth_leader{job="h",instance="a",lease="l"}': "0x20", 'hearth_leader{job="h",instance="b",lease="l"}': "0x20"},
                       {'hearth_leader{job="h",instance="a",lease="l"}': "0x20", 'hearth_leader{job="h",instance="b",lease="l"}': "1x20"}),
    "HearthTwoLeaders": ({'hearth_leader{job="h",instance="a",lease="l"}': "1x20", 'hearth_leader{job="h",instance="b",lease="l"}': "1x20"},
                         {'hearth_leader{job="h",instance="a",lease=""}': "1x20", 'hearth_leader{job="h",instance="b",lease=""}': "1x20"}),  # each alone
    "HearthPoolEmpty": ({'hearth_pool_sandboxes{job="h",pool="p",state="ready"}': "0x20", 'hearth_pool_desired_sandboxes{job="h",pool="p"}': "3x20",
                         'hearth_sandbox_start_seconds_count{job="h",pool="p"}': "3x20"},
                        {'hearth_pool_sandboxes{job="h",pool="p",state="ready"}': "0x20", 'hearth_pool_desired_sandboxes{job="h",pool="p"}': "3x20",
                         'hearth_sandbox_start_seconds_count{job="h",pool="p"}': "0x20"}),  # its image is being made ready
    "HearthClaimsWait": ({'hearth_claim_queue_depth{job="h",pool="p"}': "2x20"}, {'hearth_claim_queue_depth{job="h",pool="p"}': "2 0 2 0 2 0 2 0 2 0 2 0 2 0 2 0"}),
    "HearthPoolDegraded": ({'hearth_pool_degraded{job="h",pool="p"}': "1x20"}, {'hearth_pool_degraded{job="h",pool="p"}': "0x20"}),
    "HearthSandboxesFail": ({'hearth_sandbox_failures_total{job="h",pool="p",reason="lost"}': "0+5x20", 'hearth_sandbox_start_seconds_count{job="h",pool="p"}': "0+10x20"},
                            {'hearth_sandbox_failures_total{job="h",pool="p",reason="lost"}': "0+1x20", 'hearth_sandbox_start_seconds_count{job="h",pool="p"}': "0+10x20"}),
    "HearthReclaimsLate": ({'hearth_reclaim_lag_seconds_bucket{job="h",pool="p",le="30"}': "0x20", 'hearth_reclaim_lag_seconds_bucket{job="h",pool="p",le="60"}': "0+9x20",
                            'hearth_reclaim_lag_seconds_bucket{job="h",pool="p",le="+Inf"}': "0+9x20"},
                           {'hearth_reclaim_lag_seconds_bucket{job="h",pool="p",le="30"}': "0+9x20", 'hearth_reclaim_lag_seconds_bucket{job="h",pool="p",le="60"}': "0+9x20",
                            'hearth_reclaim_lag_seconds_bucket{job="h",pool="p",le="+Inf"}': "0+9x20"}),
    "HearthReconcilesFail": ({'hearth_reconcile_total{job="h",kind="pool",result="error"}': "0+30x30"}, {'hearth_reconcile_total{job="h",kind="pool",result="error"}': "0+1x30"}),
    "HearthSandboxesSilent": ({'hearth_suspect_sandboxes{job="h",pool="p"}': "1x20"}, {'hearth_suspect_sandboxes{job="h",pool="p"}': "0x20"}),
    "HearthLeftovers": ({'hearth_sweep_leftovers{job="h"}': "1x30"}, {'hearth_sweep_leftovers{job="h"}': "0x30"}),
    "HearthGpuUnhealthy": ({'hearth_gpus{job="h",instance="a",state="Faulty"}': "1x20"}, {'hearth_gpus{job="h",instance="a",state="Leased"}': "1x20"}),
    "HearthQuotaFull": ({'hearth_tenant_quota_use{job="h",tenant="t",resource="cpu"}': "4x30", 'hearth_tenant_quota_limit{job="h",tenant="t",resource="cpu"}': "4x30"},
                        {'hearth_tenant_quota_use{job="h",tenant="t",resource="cpu"}': "3x30", 'hearth_tenant_quota_limit{job="h",tenant="t",resource="cpu"}': "4x30"}),
    "HearthDiskLow": ({'hearth_disk_free_bytes{job="h",instance="a",disk="state"}': "11x20", 'hearth_disk_reserved_bytes{job="h",instance="a",disk="state"}': "10x20"},
                      {'hearth_disk_free_bytes{job="h",instance="a",disk="state"}': "13x20", 'hearth_disk_reserved_bytes{job="h",instance="a",disk="state"}': "10x20"}),
    "HearthHostPressure": ({'hearth_host_pressure_seconds_total{job="h",instance="a",resource="memory"}': "0+30x20"},
                           {'hearth_host_pressure_seconds_total{job="h",instance="a",resource="memory"}': "0+3x20", 'hearth_host_pressure_seconds_total{job="h",instance="a",resource="cpu"}': "0+60x20"}),
    "HearthJournalFails": ({'hearth_journal_write_failures_total{job="h",instance="a"}': "0+1x20"}, {'hearth_journal_write_failures_total{job="h",instance="a"}': "7x20"}),
    "HearthLosesRecords": ({'hearth_journal_records_lost_total{job="h",instance="a"}': "0x10 1x10", 'hearth_audit_entries_total{job="h",instance="a",result="lost"}': "0x20"},
                           {'hearth_journal_records_lost_total{job="h",instance="a"}': "1x20", 'hearth_audit_entries_total{job="h",instance="a",result="lost"}': "0x20"}),
    "HearthDatabaseDamaged": ({'hearth_database_damage_total{job="h",instance="a",found="running"}': "0x10 1x10"}, {'hearth_database_damage_total{job="h",instance="a",found="running"}': "0x20"}),
    "HearthLauncherStuck": ({'hearth_launcher_operations_stuck{job="h",instance="a",operation="destroy"}': "1x20"}, {'hearth_launcher_operations_stuck{job="h",instance="a",operation="destroy"}': "0x20"}),
    "HearthWorkersBusy": ({'hearth_http_workers_busy{job="h",instance="a",listener="api"}': "127x20", 'hearth_http_workers{job="h",instance="a",listener="api"}': "128x20"},
                          {'hearth_http_workers_busy{job="h",instance="a",listener="api"}': "30x20", 'hearth_http_workers{job="h",instance="a",listener="api"}': "128x20"}),
    "HearthCertificateEnds": ({'hearth_tls_certificate_expiry_timestamp_seconds{job="h",instance="a"}': "500000x20"}, {'hearth_tls_certificate_expiry_timestamp_seconds{job="h",instance="a"}': "0x20"}),
    "HearthLogStalls": ({'hearth_log_lines_dropped_total{job="h",instance="a"}': "0+3x20"}, {'hearth_log_lines_dropped_total{job="h",instance="a"}': "3x20"}),
    "HearthSpansDropped": ({'hearth_spans_dropped_total{job="h",instance="a",reason="refused"}': "0+3x20"}, {'hearth_spans_dropped_total{job="h",instance="a",reason="refused"}': "3x20"}),
    "HearthMirrorFails": ({'hearth_egress_requests_total{job="h",pool="p",kind="mirror",decision="unreachable"}': "0+3x40", 'hearth_egress_requests_total{job="h",pool="p",kind="mirror",decision="hit"}': "0+3x40"},
                          {'hearth_egress_requests_total{job="h",pool="p",kind="mirror",decision="not_found"}': "0+30x40", 'hearth_egress_requests_total{job="h",pool="p",kind="mirror",decision="hit"}': "0+30x40"}),
}


def rules():
    """every alert fires where it should and is quiet where it should be, by promtool's own tests, and each burn rate by its window"""
    promtool("check", "rules", RULES)
    with open(RULES, encoding="utf-8") as f:
        known = {each["alert"] for group in yaml.safe_load(f)["groups"] for each in group["rules"] if "alert" in each}
    assert known == {*CASES, "HearthClaimsFailOrAreSlow"}, known ^ set(CASES)
    tests = []
    for alert, (firing, quiet) in CASES.items():
        for series, fires in ((firing, True), (quiet, False)):
            at = max(len(values.split()) if "x" not in values else sum(int(n) for n in re.findall(r"x(\d+)", values)) for values in series.values()) - 2
            tests.append({"interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()], "name": f"{alert} {fires}",
                          "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)', "eval_time": f"{at}m", "exp_samples": [{"labels": "{}", "value": int(fires)}]}]})
    with tempfile.TemporaryDirectory() as folder:
        tested(folder, "1m", tests)
        for window in BURNS:
            tested(folder, "15m" if "d" in window else "1m", [burn(window, share) for share in (BURNS[window][1], 0.005)])  # twice as good as it must be


def burn(window, share):
    """Returns a test for promtool: this share of the claims is slow, for longer than the window."""
    hours, bad = BURNS[window]
    step = 15 if "d" in window else 1
    steps, claims = hours * 60 // step, 60 * step
    # Half of them cold, which may take longer.
    series = {'hearth_claim_duration_seconds_count{job="h",source="warm"}': claims / 2, 'hearth_claim_duration_seconds_bucket{job="h",source="warm",le="0.25"}': claims / 2 * (1 - share),
              'hearth_claim_duration_seconds_count{job="h",source="cold"}': claims / 2, 'hearth_claim_duration_seconds_bucket{job="h",source="cold",le="10.0"}': claims / 2 * (1 - share),
              'hearth_claims_total{job="h",result="ok"}': claims, 'hearth_claims_total{job="h",result="failed"}': 0,
              'hearth_claims_total{job="h",result="refused",reason="POOL_EXHAUSTED"}': 0}
    return {"interval": f"{step}m", "name": f"{window} {share}", "input_series": [{"series": name, "values": f"0+{each:g}x{steps}"} for name, each in series.items()],
            "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="HearthClaimsFailOrAreSlow",window="{window}",alertstate="firing"}}) or vector(0)',
                                  "eval_time": f"{(steps - 1) * step}m", "exp_samples": [{"labels": "{}", "value": int(share == bad)}]}]}


def tested(folder, interval, tests):
    path = os.path.join(folder, "tests.yaml")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"rule_files": [RULES], "evaluation_interval": interval, "tests": tests}, f)
    assert "SUCCESS" in promtool("test", "rules", path)


def runbooks():
    """each alert has a section in the runbooks, and the other way round; each link of a panel leads to one; each command there is one of ours"""
    with open(os.path.join(ROOT, "docs/runbooks.md"), encoding="utf-8") as f:
        page = f.read()
    sections = set(re.findall(r"^## (Hearth\w+)$", page, re.MULTILINE))
    assert sections == {*CASES, "HearthClaimsFailOrAreSlow"}, sections ^ set(CASES)
    with open(RULES, encoding="utf-8") as f:
        links = re.findall(r"runbook_url: docs/runbooks\.md#(\w+)", f.read())
    links += [link["url"].split("#")[1] for _, panel in panels() for link in panel["links"]]
    assert set(links) <= {each.lower() for each in sections}, links
    for words in set(re.findall(r"`hearth ([a-z]+)", page)):
        assert subprocess.run([os.path.join(BUILD, "hearth"), "help", words], capture_output=True, check=False).returncode == 0, words


def panels():
    for path in BOARDS:
        with open(path, encoding="utf-8") as f:
            for panel in json.load(f)["panels"]:
                if panel["type"] != "row":
                    yield os.path.basename(path), panel


def dashboards():
    """each dashboard is one by Grafana's own types; panels have a unit, a description and thresholds, overlap nowhere, and rate over the scrape's interval"""
    node = os.path.join(HERE, "monitoring")
    npm_ci(node)
    checked = subprocess.run(["node", os.path.join(node, "dashboards.mjs"), *BOARDS], capture_output=True, text=True, timeout=120, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with tempfile.TemporaryDirectory() as folder, open(BOARDS[0], encoding="utf-8") as f:
        wrong = os.path.join(folder, "wrong.json")
        with open(wrong, "w", encoding="utf-8") as out:
            out.write(f.read().replace('"mode": "absolute"', '"mode": "absolutely"', 1))
        assert subprocess.run(["node", os.path.join(node, "dashboards.mjs"), wrong], capture_output=True, timeout=120, check=False).returncode == 1
    uids = set()
    for path in BOARDS:
        with open(path, encoding="utf-8") as f:
            board = json.load(f)
        assert board["uid"] not in uids and len(board["uid"]) <= 40 and board["title"] and board["description"] and not board["editable"], path
        uids.add(board["uid"])
        taken, ids = set(), set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            assert not cells & taken and all(x < 24 for x, _ in cells) and panel["id"] not in ids, panel
            taken |= cells
            ids.add(panel["id"])
    for board, panel in panels():
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["description"] and defaults["unit"] and defaults["thresholds"]["steps"], (board, panel["title"])
        for target in panel["targets"]:
            for function in ("rate(", "increase("):
                assert function not in target["expr"] or "[$__rate_interval]" in target["expr"], target
            assert "histogram_quantile" not in target["expr"] or panel["type"] == "stat" or target["exemplar"], target
            assert 'job=~"$job"' in target["expr"], target


# A command for a sandbox whose network is Egress: it asks for a host that is not allowed.
ASK = "printf 'GET http://example.invalid/ HTTP/1.1\\r\\nHost: example.invalid\\r\\nConnection: close\\r\\n\\r\\n' | nc 127.0.0.1 3128"


def work(s, over):
    """Does the work of a day, again and again."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    while not over.is_set():
        w = s.post("/v1/workspaces", {"pool": "shell"}).json["id"]
        s.post(f"/v1/workspaces/{w}/executions", {"command": "echo hi"})
        s.post(f"/v1/workspaces/{w}/executions", {"command": "exit 1"})
        s.call("DELETE", f"/v1/workspaces/{w}")
        s.post("/v1/workspaces", {"pool": "none"})
        s.post("/v1/executions", {"pool": "net", "command": ASK})
        s.post("/v1/executions", {"pool": "gpu", "command": "true"})
        hello = s.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}, headers=headers).headers
        session = {"Mcp-Session-Id": hello["mcp-session-id"]} if "mcp-session-id" in hello else {}
        s.post("/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "run", "arguments": {"command": "true", "pool": "shell"}}}, headers={**headers, **session})
        over.wait(0.3)


def answered():
    """every query of every panel, rule and variable has an answer from a real Prometheus that scrapes a server at work, and no alert fires"""
    net = pool_yaml("net", warm=1).replace("    resources:", "    network: {mode: Egress, allow: [service.invalid]}\n    resources:")
    with Machine() as machine, machine.server("---\n".join([pool_yaml(warm=2), net, gpu_pool()])) as s:
        s.call("PUT", "/v1/quotas/default", {"workspaces": 50})
        over = threading.Event()
        worker = threading.Thread(target=work, args=(s, over))
        with prometheus(s, RULES) as get:
            worker.start()
            try:
                wait_for("Prometheus", lambda: (get("query", query="hearth_build_info") or {}).get("result"), 40)
                time.sleep(12)  # as long as the rates look back
                missing = settle(get)
                assert not missing, missing
                for name in ("job", "pool"):
                    assert get(f"label/{name}/values"), name
                firing = get("query", query='ALERTS{alertstate="firing"}')["result"]
                assert not firing, firing
                health = [(rule["name"], rule.get("lastError")) for group in get("rules")["groups"] for rule in group["rules"] if rule["health"] == "err"]
                assert not health, health
            finally:
                over.set()
                worker.join()
        promtool("check", "metrics", text=s.ops("/metrics").body.decode())


def settle(get):
    """Returns the queries that have no answer after a minute."""
    end = time.monotonic() + 60
    while (left := unanswered(get)) and time.monotonic() < end:
        time.sleep(2)
    return left


def unanswered(get):
    left = []
    for board, panel in panels():
        for target in panel["targets"]:
            expr = target["expr"].replace("$__rate_interval", "10s").replace("$job", "hearth").replace("$pool", ".+")
            found = get("query", query=expr)
            numbers = [float(each["value"][1]) for each in found["result"]] if found else []
            if not numbers or all(math.isnan(each) for each in numbers) and panel["title"] not in QUIET:
                left.append((board, panel["title"], expr, numbers[:3]))
    return left


TESTS = [rules, runbooks, dashboards, answered]
for each in TESTS:
    each.only = "oci"

if __name__ == "__main__":
    main("server", TESTS)
