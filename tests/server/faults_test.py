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
from harness import BUILD, REPO, Server, free_port, main, note, pool_yaml, wait_for  # noqa: E402
from index import Index, wheel  # noqa: E402
from ondemand_test import config, small  # noqa: E402
from prometheus import promtool, scraping  # noqa: E402
from registry import Registry  # noqa: E402

RULES = os.path.join(REPO, "helm/hearth/alerts.yaml")


def table():
    """The lines of docs/on-call.md, by fault: alerts, dashboard, panel, view of the console, command."""
    rows = {}
    with open(os.path.join(REPO, "docs/on-call.md"), encoding="utf-8") as f:
        for line in f:
            if "](runbooks.md#" not in line:
                continue
            fault, alerts, graph, view, command, _ = (cell.strip() for cell in line.strip("| \n").split(" | "))
            board, panel = re.match(r"(\w+), \*(.+?)\*", graph).groups()
            rows[fault] = {"alerts": re.findall(r"\[(Hearth\w+)\]\(runbooks\.md#(\w+)\)", alerts), "board": board, "panel": panel,
                           "view": view, "command": re.match(r"`(.+?)`", command)[1]}
    return rows


class Monitor:
    """One Prometheus for all cases, as each of its starts takes five seconds: each fault is a job of its own, whose server comes when its
    case runs. It has the rules as they are, but does not wait: what holds for a moment here holds for minutes there."""

    def __init__(self):
        self.stack, self.get = contextlib.ExitStack(), None
        self.ports = {fault: free_port() for fault in table()}

    def start(self):
        if self.get is None:
            path = os.path.join(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-rules-")), "rules.yaml")
            with open(RULES, encoding="utf-8") as f, open(path, "w", encoding="utf-8") as out:
                out.write(re.sub(r"^    for: \w+$", "    for: 0s", f.read(), flags=re.MULTILINE))
            self.get = self.stack.enter_context(scraping({job(fault): port for fault, port in self.ports.items()}, path))

    def port(self, fault):
        """For the server of that fault."""
        self.start()
        return self.ports[fault]


def job(fault):
    return "hearth-" + fault.lower().replace(" ", "-")


monitor = Monitor()


class OnCall:
    """Somebody who has the page, Grafana, the console and a shell."""

    def __init__(self, server, fault):
        self.server, self.job, self.row = server, job(fault), table()[fault]
        now = time.time()  # rates count from what was seen before
        wait_for("Prometheus", lambda: self.ask(f'timestamp(hearth_build_info{{job="{self.job}"}}) > {now}'), 40)

    def paged(self, alert, **labels):
        """Waits until the alert fires, with these labels; it must be one of the row, and lead to a runbook."""
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
    pools = pool_yaml(warm=1, members=1, max_wait="60s")
    with Server(pools=pools, ops_port=monitor.port("Empty pool")) as s, concurrent.futures.ThreadPoolExecutor(1) as one:
        who = OnCall(s, "Empty pool")
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


@contextlib.contextmanager
def slow_umoci():
    """A umoci that takes eleven seconds for images with the tag slow, more than the objective of claims allows; gives the words
    before a server's that put it in the machine's place."""
    with tempfile.TemporaryDirectory(prefix="hearth-umoci-") as folder:
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "bin"), 0o755)
        shutil.copy(shutil.which("umoci"), os.path.join(folder, "bin", "umoci-itself"))
        path = os.path.join(folder, "bin", "umoci")
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\ncase \"$*\" in *:slow*) sleep 11 ;; esac\nexec umoci-itself \"$@\"\n")
        os.chmod(path, 0o755)
        yield ["unshare", "--mount", "--propagation", "private", "sh", "-ec", f'mount -t overlay overlay -o lowerdir={folder}:/usr /usr\nexec "$@"', "sh"]


def slow_layout(path, text):
    """An image that slow_umoci takes its time for."""
    archive = small(path + ".tar", None, text)
    subprocess.run(["skopeo", "--insecure-policy", "copy", "--quiet", "docker-archive:" + archive, f"oci:{path}:slow"], check=True)
    os.remove(archive)
    return path


def slow_image():
    """a slow image: claims that were in time no longer are, and the timeline of one names the unpacking"""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-slow-"))
        os.chmod(folder, 0o755)
        registry = stack.enter_context(Registry({"team/slow:1": slow_layout(f"{folder}/fetched", "a")}))
        s = Server(config=config(registry, allow=[registry.place + "/team/*:*"]), ops_port=monitor.port("Slow image"))
        s.wrapper = stack.enter_context(slow_umoci())
        slow_layout(os.path.join(s.data, "images", "declared"), "b")
        stack.enter_context(s)
        who = OnCall(s, "Slow image")
        pool = yaml.safe_load(pool_yaml("declared", image="declared", warm=0, on_empty="Create", max_wait="60s"))
        assert s.call("PUT", "/v1/pools/declared", pool).status == 201
        with concurrent.futures.ThreadPoolExecutor(8) as many:
            named = many.submit(s.open_workspace, image=registry.place + "/team/slow:1")
            waiting = [many.submit(s.open_workspace, pool="declared") for _ in range(6)]
            for _ in range(20):
                assert s.post("/v1/executions", {"command": "true", "pool": "shell"}).status == 200
            workspace = named.result(60)["id"]
            for each in waiting:
                each.result(60)
        who.paged("HearthClaimsFailOrAreSlow", window="1h")
        who.graph(least=5, stage="queue")
        said = who.types(WORKSPACE=workspace)
        assert "was the unpacking of the image on this machine" in said, said
        assert who.opens("Workspaces", f"/v1/workspaces/{workspace}/timeline")["largest"] == "unpack"


def full_disk():
    """a full disk: the pool says what does not fit, and recovers once there is room"""
    with server_on_ext4(400, pools=pool_yaml(warm=1, on_empty="Fail"), ops_port=monitor.port("Full disk")) as (s, disk):
        who = OnCall(s, "Full disk")
        held = s.open_workspace()["id"]
        wait_for("another one", lambda: s.get("/v1/pools/shell").json["status"]["ready"] == 1)
        take_all(disk)
        second = s.post("/v1/workspaces", {})
        who.paged("HearthPoolDegraded", pool="shell")
        refused = s.post("/v1/workspaces", {})
        assert second.status == 201 and refused.status == 507 and refused.json["errorCode"] == "DISK_FULL", (second, refused)
        said = who.types()
        assert "Degraded" in said and "64Mi does not fit: 0 of the disk are free" in said, said
        [pool] = who.opens("Pools", "/v1/pools?limit=100")["items"]
        degraded = condition(pool, "Degraded")
        assert degraded["status"] == "True" and degraded["reason"] == "DiskFull" and "kept for the server's state" in degraded["message"], degraded
        who.paged("HearthDiskLow", disk="workspaces")
        who.paged("HearthDiskLow", disk="state")
        who.graph()  # what is kept; nothing is free
        assert s.run(held, "echo on")["stdout"] == "on\n"
        empty(disk)
        again = wait_for("room", lambda: (a := s.post("/v1/workspaces", {})).status == 201 and a, 40)
        assert s.run(again.json["id"], "echo on")["stdout"] == "on\n"


def stuck_launcher():
    """a stuck launcher: its operation is named, ps shows that it is stopped, and claims are served when it goes on"""
    with Server(pools=pool_yaml(warm=2), ops_port=monitor.port("Stuck launcher")) as s:
        who = OnCall(s, "Stuck launcher")
        [launcher] = s.launcher_pids()
        os.kill(launcher, signal.SIGSTOP)
        try:
            failed = s.post("/v1/workspaces", {"limits": {"cpu": 0.5}})  # which the launcher has to set
            assert failed.status == 504 and "the launcher did not answer to narrow" in failed.json["detail"], failed
            who.paged("HearthLauncherStuck", operation="narrow")
            who.graph(operation="narrow")
            said = who.types()
            assert re.search("event=launcher.stuck operation=narrow", said), said
            assert "sandbox.failed" in [each["type"] for each in who.opens("Events", "/v1/events?limit=100")["items"]]
            with open(os.path.join(REPO, "docs/runbooks.md"), encoding="utf-8") as f:
                look = re.search(r"`(ps -eo pid,.+?)`", f.read())[1]
            shown = subprocess.run(look, shell=True, capture_output=True, text=True, check=False).stdout
            assert re.search(rf"^ *{launcher} T", shown, re.MULTILINE), shown
        finally:
            os.kill(launcher, signal.SIGCONT)
        wait_for("the end of the alert", lambda: not who.fires("HearthLauncherStuck"), 30)
        assert s.run(s.open_workspace(limits={"cpu": 0.5})["id"], "echo on")["stdout"] == "on\n"


def tenant_takes_all():
    """a greedy tenant: it has all of a pool and of its quota, by name, and another one waits"""
    with Server(pools=pool_yaml(warm=2, members=2, max_wait="90s"), ops_port=monitor.port("Greedy tenant")) as s:
        who = OnCall(s, "Greedy tenant")
        s.token = s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]
        of = {tenant: {"headers": {"Authorization": "Bearer " + s.post("/v1/tokens", {"name": tenant, "tenant": tenant, "role": "user"}).json["token"]}}
              for tenant in ("greedy", "polite")}
        assert s.call("PUT", "/v1/quotas/greedy", {"workspaces": 2}).status == 201
        with concurrent.futures.ThreadPoolExecutor(1) as one:
            for _ in range(2):
                assert s.post("/v1/workspaces", {}, **of["greedy"]).status == 201
            waiting = one.submit(s.post, "/v1/workspaces", {}, timeout=90, **of["polite"])
            who.paged("HearthClaimsWait", pool="shell")
            who.paged("HearthQuotaFull", tenant="greedy", resource="workspaces")
            who.graph(least=0.99, tenant="greedy", resource="workspaces")
            said = who.types()
            assert re.search(r"^greedy +store +2/2 ", said, re.MULTILINE), said
            seen = who.opens("Workspaces", "/v1/workspaces?limit=100")["items"]
            assert [each["tenant"] for each in seen] == ["greedy"] * 2, seen
            close(s, seen[0]["id"])
            served = waiting.result(60)
            assert served.status == 201, served
            assert "was the wait in line: pool shell had no ready sandbox (2 claimed" in hearth(s, "explain", served.json["id"])


def dead_mirror():
    """a dead mirror: the log names the package, the index is told to have failed, and so does the workspace's record"""
    pool = pool_yaml("m", warm=1).replace("    resources:", "    network: {mode: Mirror}\n    resources:")
    with Index([wheel("hearthfoo")]) as index, Server(pools=pool, args=["--mirror-pypi", index.pypi], ops_port=monitor.port("Dead mirror")) as s:
        who = OnCall(s, "Dead mirror")
        workspace = s.open_workspace(pool="m")["id"]
        ask = "unset http_proxy; wget -q -O /dev/null ${PIP_INDEX_URL}%s/"
        assert s.run(workspace, ask % "hearthfoo")["status"] == "ok"
        index.leave()

        def fires():
            assert s.run(workspace, ask % "hearthbar")["status"] == "failed"
            return who.fires("HearthMirrorFails")
        wait_for("the alert", fires, 30)
        who.paged("HearthMirrorFails", pool="m")
        who.graph(decision="index_failed")
        said = who.types()
        assert re.search(rf"event=egress.request workspace={workspace} .*destination=pypi:hearthbar decision=index_failed status=502", said), said
        asked = s.get(f"/v1/workspaces/{workspace}/egress").json  # of the runbook
        assert asked["refused"] > 0 and "index_failed" in [each["decision"] for each in asked["latest"]], asked
        runs = who.opens("Workspaces", f"/v1/workspaces/{workspace}/executions")["items"]
        assert {"ok", "failed"} == {each["status"] for each in runs}, runs


def unhealthy_gpu():
    """an unhealthy GPU: it is given to nobody, and its XID is told"""
    with Machine(2) as machine, machine.server(gpu_pool(warm=2), ops_port=monitor.port("Unhealthy GPU")) as s:
        who = OnCall(s, "Unhealthy GPU")
        machine.write(1, "xid", "79")
        who.paged("HearthGpuUnhealthy")
        who.graph(state="Faulty")
        said = who.types()
        assert re.search(rf"^{uuid(1)} .* Faulty .* XID 79, a critical error: reset the GPU", said, re.MULTILINE), said
        [ill] = [each for each in who.opens("GPUs", "/v1/gpus?limit=100")["items"] if each["state"] == "Faulty"]
        assert ill["uuid"] == uuid(1) and "XID 79" in ill["reason"] and ill["holders"] == [], ill
        assert ("gpu.faulty", uuid(1)) in [(each["type"], each["resource"]) for each in s.get("/v1/events?limit=100").json["items"]]
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
    with Server(pools=pool_yaml(warm=0), ops_port=monitor.port("Leader lost")) as s:
        who = OnCall(s, "Leader lost")
        assert who.graph()["value"][1] == "1" and s.ops("/readyz").status == 200
        [leads] = who.ask(f'hearth_leader{{job="{who.job}"}}')
        assert not leads["metric"].get("lease"), leads
        assert not who.fires("HearthNoLeader")
    note("a leader that is really lost needs a Kubernetes: ./test cluster, and tests/cluster/failover for many of them in a row")


def memory():
    """memory: a program at its limit is told as oom, in the graph, the command and the console; the machine's pressure is counted"""
    with Server(pools=pool_yaml(warm=1, memory="64Mi"), ops_port=monitor.port("Memory")) as s:
        who = OnCall(s, "Memory")
        workspace = s.open_workspace()["id"]
        done = s.run(workspace, "exec tail -c 104857600 /dev/zero")
        assert done["status"] == "oom" and done["usage"]["peakMemoryBytes"] >= 60 << 20, done
        who.graph(status="oom")
        said = who.types()
        assert re.search(rf"^{done['id']} +{workspace} +oom ", said, re.MULTILINE), said
        [run] = who.opens("Workspaces", f"/v1/workspaces/{workspace}/executions")["items"]
        assert run["status"] == "oom", run
        assert s.get(f"/v1/workspaces/{workspace}/usage").json["memoryPeakBytes"] >= 60 << 20
        if os.path.exists("/proc/pressure/memory"):
            assert {"cpu", "memory", "io"} <= {each["metric"]["resource"] for each in who.ask(f'hearth_host_pressure_seconds_total{{job="{who.job}"}}')}
        assert s.run(workspace, "echo on")["stdout"] == "on\n"


def unread_log():
    """a log that nobody reads: requests are answered, lines are dropped and counted, and the last ones are told all the same"""
    with Server(args=["--log-level", "debug"], ops_port=monitor.port("Unread log")) as s:
        assert s.stop() == 0
        whole, pipe = s.log_path, os.path.join(s.data, "log.pipe")
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 4096)
        reader = None
        try:
            s.log_path, s.log = pipe, lambda: "(unread)"
            s.start()
            who = OnCall(s, "Unread log")

            def fires():
                for _ in range(100):
                    assert s.get("/v1/pools/none").status == 404  # each is a line
                return who.fires("HearthLogStalls")
            wait_for("the alert", fires, 40)
            who.paged("HearthLogStalls")
            who.graph()
            shot = s.post("/v1/executions", {"command": "echo on"}).json
            assert shot["stdout"] == "on\n", shot
            assert shot["workspaceId"] in who.types()
            assert s.ops("/readyz").status == 200
            reader = subprocess.Popen(["cat", pipe], stdout=subprocess.DEVNULL)
            s.drain()
            assert s.stop() == 0
        finally:
            if reader:
                reader.kill()
                reader.wait()
            s.log_path = whole
            del s.log
            os.close(end)


TESTS = [empty_pool, slow_image, full_disk, stuck_launcher, tenant_takes_all, dead_mirror, unhealthy_gpu, leader_lost, memory, unread_log]
for test in TESTS:
    test.only = "oci"

if __name__ == "__main__":
    with monitor.stack:
        main("server", TESTS)
