#!/usr/bin/env python3
# suite: seconds=150 needs=gpu-standin
"""Ten faults, each provoked for real and found as docs/on-call.md says: its alert fires and its panel shows it in a real Prometheus, its command
names the cause, and the console's view reads it. For a lost leader, only the rule is tested here; tests/cluster/wires.py has a real one."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "faults")]
from harness import BUILD, REPO, Server, main, note, pool_yaml, wait_for  # noqa: E402
from prometheus import promtool  # noqa: E402
from provoke import FAULTS, hearth  # noqa: E402
from scraped import RULES, Monitor, boards, job, table  # noqa: E402

monitor = Monitor()


class OnCall:
    """A person on call, with docs/on-call.md, Grafana, the console and a shell."""

    def __init__(self, server, fault):
        self.server, self.job, self.row = server, job(fault), table()[fault]
        now = time.time()  # rates need samples from before
        wait_for("Prometheus", lambda: self.ask(f'timestamp(hearth_build_info{{job="{self.job}"}}) > {now}'), 40)

    def paged(self, alert, **labels):
        """Waits until the alert fires with these labels. It must be one of the row's, and lead to a runbook."""
        assert (alert, alert.lower()) in self.row["alerts"], self.row
        with open(os.path.join(REPO, "docs/runbooks.md"), encoding="utf-8") as f:
            assert f"## {alert}\n" in f.read()
        chosen = "".join(f',{name}="{value}"' for name, value in labels.items())
        wait_for(f"the alert {alert}", lambda: self.ask(f'ALERTS{{alertname="{alert}",alertstate="firing",job="{self.job}"{chosen}}}'), 40)

    def ask(self, expression):
        found = monitor.get("query", query=expression)
        return found["result"] if found else []

    def fires(self, alert):
        return self.ask(f'ALERTS{{alertname="{alert}",alertstate="firing",job="{self.job}"}}')

    def graph(self, least=0.0, **labels):
        """Waits until a series of the row's panel with these labels is above `least`."""
        def shown():
            for each in sum((self.ask(expression) for expression in queries), []):
                if labels.items() <= each["metric"].items() and float(each["value"][1]) > least:
                    return each
            return None
        [panel] = [panel for board in boards() if board["title"] == f"Hearth / {self.row['board']}" for panel in board["panels"]
                   if panel["title"] == self.row["panel"]]
        queries = [target["expr"].replace("$__rate_interval", "20s").replace("$job", self.job).replace("$pool", ".+") for target in panel["targets"]]
        return wait_for(f"the panel {self.row['panel']}", shown, 30)

    def types(self, **names):
        """Runs the row's command, with its words in capitals replaced. Returns its output."""
        words = [names.get(word, word) for word in self.row["command"].split()]
        assert words[0] == "hearth" and not any(word.isupper() for word in words), words
        return hearth(self.server, *words[1:])

    def opens(self, view, path):
        """Returns the data that a view of the console reads."""
        assert self.row["view"].startswith(view), self.row
        with open(os.path.join(REPO, "api/console/page/main.js"), encoding="utf-8") as f:
            assert f'title: "{view}"' in f.read()
        answer = self.server.get(path)
        assert answer.status == 200, answer
        return answer.json


def condition(pool, kind):
    return next(each for each in pool["status"]["conditions"] if each["type"] == kind)


def provoked(fault):
    """Returns the fault on a server that the monitor scrapes."""
    return FAULTS[fault](*monitor.of(fault))


def empty_pool():
    """an empty pool: all its sandboxes are claimed and its members reached, and the claims that wait are seen"""
    with provoked("Empty pool") as fault:
        s, who = fault.s, OnCall(fault.s, "Empty pool")
        fault.begin()
        who.paged("HearthPoolEmpty", pool="shell")
        who.paged("HearthClaimsWait", pool="shell")
        who.graph(state="claimed")
        said = who.types(**fault.names)
        assert "as many sandboxes as limits.members allows (3), 3 of them claimed" in said, said
        described = hearth(s, "describe", "pool", "shell")
        assert all(held in described for held in fault.held), described
        [pool] = who.opens("Pools", "/v1/pools?limit=100")["items"]
        assert condition(pool, "ScalingLimited")["reason"] == "MembersLimit", pool
        assert (pool["status"]["ready"], pool["status"]["claimed"], pool["status"]["waiting"]) == (0, 3, 1), pool
        assert fault.held[0] in hearth(s, "get", "workspaces")
        fault.mend()
        assert "the wait in line: pool shell had no ready sandbox" in hearth(s, "explain", fault.names["WORKSPACE"])


def slow_image():
    """a slow image: claims that were in time no longer are, and the timeline of one names the unpacking"""
    with provoked("Slow image") as fault:
        who = OnCall(fault.s, "Slow image")
        fault.begin()
        who.paged("HearthClaimsFailOrAreSlow", window="1h")
        who.graph(least=5, stage="queue")
        said = who.types(**fault.names)
        assert "because its image was being unpacked" in said, said
        assert who.opens("Workspaces", f"/v1/workspaces/{fault.names['WORKSPACE']}/timeline")["largest"] == "queue"
        assert "was the unpacking of the image on this machine" in hearth(fault.s, "explain", fault.by_name)
        # The series of the image's pool appear early; the series of claims without a pool stay.
        assert re.search(r'^hearth_claims_total\{[^}]*pool=""', fault.s.ops("/metrics").body.decode(), re.MULTILINE)
        told = [(each["type"], each["resource"]) for each in fault.s.get("/v1/events?limit=500").json["items"]]
        assert ("pool.image_unpacking", "declared") in told and ("pool.image_unpacked", "declared") in told, told


def full_disk():
    """a full disk: the pool says what does not fit, and recovers once there is room"""
    with provoked("Full disk") as fault:
        s, who = fault.s, OnCall(fault.s, "Full disk")
        fault.begin()
        who.paged("HearthPoolDegraded", pool="shell")
        refused = s.post("/v1/workspaces", {})
        assert fault.second.status == 201 and refused.status == 507 and refused.json["errorCode"] == "DISK_FULL", (fault.second, refused)
        said = who.types()
        assert "Degraded" in said and "64Mi does not fit: the disk has 0 free" in said, said
        [pool] = who.opens("Pools", "/v1/pools?limit=100")["items"]
        degraded = condition(pool, "Degraded")
        assert degraded["status"] == "True" and degraded["reason"] == "DiskFull" and "kept for the server's state" in degraded["message"], degraded
        who.paged("HearthDiskLow", disk="workspaces")
        who.paged("HearthDiskLow", disk="state")
        who.graph()  # the panel shows the kept bytes, as none are free
        looked = subprocess.run([os.path.join(BUILD, "hearth"), "doctor", "--data-dir", s.data], capture_output=True, text=True, timeout=60, check=False)
        assert looked.returncode != 0 and re.search(r"^.*disk.*0 of .* are free on the disk of ", looked.stdout, re.MULTILINE), looked
        assert s.run(fault.held, "echo on")["stdout"] == "on\n"
        fault.mend()
        again = wait_for("room", lambda: (a := s.post("/v1/workspaces", {})).status == 201 and a, 40)
        assert s.run(again.json["id"], "echo on")["stdout"] == "on\n"


def stuck_launcher():
    """a stuck launcher: its operation is named, ps shows that it is stopped, and claims are served when it goes on"""
    with provoked("Stuck launcher") as fault:
        s, who = fault.s, OnCall(fault.s, "Stuck launcher")
        fault.begin()
        assert fault.failed.status == 504 and "the launcher did not answer in time (operation narrow)" in fault.failed.json["detail"], fault.failed
        who.paged("HearthLauncherStuck", operation="narrow")
        who.graph(operation="narrow")
        said = wait_for("the reason", lambda: (text := who.types()) and "Degraded" in text and text, 35)
        assert "the launcher has not answered in time (operation narrow)" in said, said
        [pool] = who.opens("Pools", "/v1/pools?limit=100")["items"]
        assert condition(pool, "Degraded")["reason"] == "RuntimeStuck", pool
        assert re.search("event=launcher.stuck operation=narrow", hearth(s, "logs", "--server"))
        with open(os.path.join(REPO, "docs/runbooks.md"), encoding="utf-8") as f:
            look = re.search(r"`(ps -eo pid,.+?)`", f.read())[1]
        shown = subprocess.run(look, shell=True, capture_output=True, text=True, check=False).stdout
        assert re.search(rf"^ *{fault.launcher} T", shown, re.MULTILINE), shown
        fault.mend()
        wait_for("the end of the alert", lambda: not who.fires("HearthLauncherStuck"), 30)
        wait_for("the end of the condition", lambda: condition(s.get("/v1/pools/shell").json, "Degraded")["status"] == "False", 35)
        assert s.run(s.open_workspace(limits={"cpu": 0.5})["id"], "echo on")["stdout"] == "on\n"


def tenant_takes_all():
    """a greedy tenant: its quota is as large as the pool, it has all of it, by name, and another one waits"""
    with provoked("Greedy tenant") as fault:
        s, who = fault.s, OnCall(fault.s, "Greedy tenant")
        fault.begin()
        who.paged("HearthClaimsWait", pool="shell")
        who.paged("HearthQuotaFull", tenant="greedy", resource="workspaces")
        who.graph(least=0.99, tenant="greedy", resource="workspaces")
        said = who.types()
        assert re.search(r"^greedy +store +4/4 ", said, re.MULTILINE), said
        seen = who.opens("Workspaces", "/v1/workspaces?limit=100")["items"]
        assert [each["tenant"] for each in seen] == ["greedy"] * 4, seen
        fault.mend()
        assert fault.served.status == 201, fault.served
        assert "was the wait in line: pool shell had no ready sandbox (4 claimed" in hearth(s, "explain", fault.served.json["id"])


def dead_mirror():
    """a dead mirror: the log names the package, the index is told to have failed, and so does the workspace's record"""
    with provoked("Dead mirror") as fault:
        s, who = fault.s, OnCall(fault.s, "Dead mirror")
        workspace = fault.names["WORKSPACE"]
        fault.begin()

        def fires():
            fault.again()
            return who.fires("HearthMirrorFails")
        wait_for("the alert", fires, 30)
        who.paged("HearthMirrorFails", pool="m")
        who.graph(decision="index_failed")
        said = wait_for("the reason", lambda: (text := who.types()) and "pypi: " in text and text, 35)
        assert "pypi: the index is unreachable" in said, said
        [pool] = who.opens("Pools", "/v1/pools?limit=100")["items"]
        assert condition(pool, "Mirrored")["reason"] == "IndexFails", pool
        logged = hearth(s, "logs", "--server")
        assert re.search(rf"event=egress.request workspace={workspace} .*destination=pypi:hearthbar decision=index_failed status=502", logged), logged
        asked = s.get(f"/v1/workspaces/{workspace}/egress").json  # the runbook asks this
        assert asked["refused"] > 0 and "index_failed" in [each["decision"] for each in asked["latest"]], asked


def unhealthy_gpu():
    """an unhealthy GPU: it is given to nobody, and its XID is told"""
    with provoked("Unhealthy GPU") as fault:
        s, who = fault.s, OnCall(fault.s, "Unhealthy GPU")
        fault.begin()
        who.paged("HearthGpuUnhealthy")
        who.graph(state="Faulty")
        said = who.types()
        assert re.search(rf"^{fault.GPU} .* Faulty .* XID 79, a critical error: reset the GPU", said, re.MULTILINE), said
        [ill] = [each for each in who.opens("GPUs", "/v1/gpus?limit=100")["items"] if each["state"] == "Faulty"]
        assert ill["uuid"] == fault.GPU and "XID 79" in ill["reason"] and ill["holders"] == [], ill
        assert ("gpu.faulty", fault.GPU) in [(each["type"], each["resource"]) for each in s.get("/v1/events?limit=100").json["items"]]
        pool = s.get("/v1/pools/gpu").json
        assert condition(pool, "GpusAvailable")["reason"] == "TooFewFree" and "1 Faulty" in condition(pool, "GpusAvailable")["message"], pool


def leader_lost():
    """no leader: the rule fires for replicas of which none leads, and a server without replicas leads by itself"""
    alerts = table()["Leader lost"]["alerts"]
    assert ("HearthNoLeader", "hearthnoleader") in alerts, alerts
    firing = {"interval": "1m", "input_series": [{"series": f'hearth_leader{{job="h",instance="{each}",namespace="n",lease="l"}}', "values": "0x5"} for each in "ab"],
              "alert_rule_test": [{"alertname": "HearthNoLeader", "eval_time": "2m", "exp_alerts": [{
                  "exp_labels": {"severity": "critical", "job": "h", "namespace": "n", "lease": "l"},
                  "exp_annotations": {"summary": "No replica of h leads: nothing is made or ended", "runbook_url": "docs/runbooks.md#hearthnoleader"}}]}]}
    with tempfile.TemporaryDirectory(prefix="hearth-rules-") as folder:
        path = os.path.join(folder, "tests.yaml")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"rule_files": [RULES], "tests": [firing]}, f)
        assert "SUCCESS" in promtool("test", "rules", path)
    with Server(pools=pool_yaml(warm=0), ops_port=monitor.of("Leader lost")[0]) as s:
        who = OnCall(s, "Leader lost")
        assert who.graph()["value"][1] == "1" and s.ops("/readyz").status == 200
        [leads] = who.ask(f'hearth_leader{{job="{who.job}"}}')
        assert not leads["metric"].get("lease"), leads
        assert not who.fires("HearthNoLeader")
    note("a leader that is really lost needs a Kubernetes: nobody_leads in ./test cluster, and tests/cluster/failover for many of them in a row")


def memory():
    """memory: a program at its limit is told as oom, in the graph, the command and the console; the machine's pressure pages"""
    with provoked("Memory") as fault:
        s, who = fault.s, OnCall(fault.s, "Memory")
        fault.begin()
        workspace, done = fault.names["WORKSPACE"], fault.done
        assert done["status"] == "oom" and done["usage"]["peakMemoryBytes"] >= 60 << 20, done
        who.graph(status="oom")
        said = who.types()
        assert re.search(rf"^{done['id']} +{workspace} +oom ", said, re.MULTILINE), said
        assert "was killed because it ran out of memory" in hearth(s, "explain", done["id"])
        [run] = who.opens("Workspaces", f"/v1/workspaces/{workspace}/executions")["items"]
        assert run["status"] == "oom", run
        assert s.get(f"/v1/workspaces/{workspace}/usage").json["memoryPeakBytes"] >= 60 << 20
        assert s.run(workspace, "echo on")["stdout"] == "on\n"
        if os.path.exists("/proc/pressure/memory"):
            assert {"cpu", "memory", "io"} <= {each["metric"]["resource"] for each in who.ask(f'hearth_host_pressure_seconds_total{{job="{who.job}"}}')}
            fault.press(40)
            before, begin = stalled(), time.monotonic()
            try:
                who.paged("HearthHostPressure", resource="memory")
            except AssertionError:
                share = (stalled() - before) / (time.monotonic() - begin)
                assert share < 0.35, f"memory was short in {share:.0%} of the time, and nobody was paged"
                note(f"this machine's memory was short in only {share:.0%} of the time: HearthHostPressure was not provoked")
            fault.mend()


def stalled():
    """Returns the seconds in which some task of the machine has waited for memory."""
    with open("/proc/pressure/memory", encoding="ascii") as f:
        return int(re.search(r"some .*total=(\d+)", f.read())[1]) / 1e6


def unread_log():
    """a log that nobody reads: requests are answered, lines are dropped and counted, and the last ones are told all the same"""
    with provoked("Unread log") as fault:
        s, who = fault.s, OnCall(fault.s, "Unread log")
        fault.begin()

        def fires():
            fault.again()
            return who.fires("HearthLogStalls")
        wait_for("the alert", fires, 40)
        who.paged("HearthLogStalls")
        who.graph()
        shot = s.post("/v1/executions", {"command": "echo on"}).json
        assert shot["stdout"] == "on\n", shot
        assert shot["workspaceId"] in who.types()
        assert any(shot["workspaceId"] in each["text"] for each in who.opens("Log", "/v1/logs?limit=1000")["items"])
        assert s.ops("/readyz").status == 200
        fault.mend()


TESTS = [empty_pool, slow_image, full_disk, stuck_launcher, tenant_takes_all, dead_mirror, unhealthy_gpu, leader_lost, memory, unread_log]
for test in TESTS:
    test.only = "oci"

if __name__ == "__main__":
    with monitor.stack:
        main("server", TESTS)
