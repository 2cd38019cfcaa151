"""Replicas of Hearth on one cluster: one leads, the others carry connections to it, and another takes over with what was claimed."""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time

from harness import Server, clean_up, pool_yaml, wait_for
from sandboxes import AGENT, SHELL, load_images, ready, write_kubeconfig
from session import get, session

LEASE = "hearth"
TAKEOVER = 15 + 5  # the lease's duration, and what starting may take


class Replicas:
    """Servers with the same keys and Lease. The first leads once it is ready."""

    def __init__(self, folder, pools, count, shared=False):
        cluster = self.place()
        self.folder, self.pools = folder, pools
        self.config, self.keys = os.path.join(folder, "kubeconfig"), os.path.join(folder, "keys")
        write_kubeconfig(cluster, self.config)
        os.mkdir(self.keys, 0o755)
        for name in ("key", "agent-key"):
            with open(os.path.join(self.keys, name), "wb") as file:
                file.write(os.urandom(32))
        self.shared = os.path.join(folder, "shared") if shared else None
        subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
        if shared:
            os.mkdir(self.shared)
            os.chmod(self.shared, 0o777)
        self.all = [self.make() for _ in range(count)]
        try:
            for each in self.all:
                each.start(wait=60)
        except BaseException:
            self.close()
            for each in self.all:
                clean_up(each)
            raise

    def place(self):
        cluster = session.at("full")
        load_images(cluster)
        return cluster

    def make(self):
        more = ["--shared-volume", self.shared] if self.shared else []
        return Server(pools=self.pools, runtime="kubernetes",
                      args=["--kubeconfig", self.config, "--agent-image", AGENT, "--keys", self.keys, "--lease", LEASE, *more])

    def leader(self):
        return next((each for each in self.all if each.process.poll() is None and leads(each)), None)

    def follower(self):
        leader = self.leader()
        return next(each for each in self.all if each is not leader and each.process.poll() is None)

    def next_leader(self, but, seconds=TAKEOVER):
        found = wait_for("another leads", lambda: (self.leader() if self.leader() is not but else None), seconds)
        found.wait_ready(30)
        return found

    def close(self):
        with contextlib.suppress(Exception):
            self.leader().drain()
        for each in self.all:
            if each.process and each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
                each.process.terminate()
        for each in self.all:
            with contextlib.suppress(subprocess.TimeoutExpired):
                if each.process:
                    each.process.wait(20)


def leads(server):
    try:
        return re.search(r'^hearth_leader\{lease="[^"]+"\} 1$', server.get("/metrics", port=server.ops_port, timeout=2).body.decode(), re.MULTILINE) is not None
    except OSError:
        return False


@contextlib.contextmanager
def replicas(warm=2, count=2, shared=False, kind=Replicas):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        all_of_them = kind(folder, pool_yaml(image=SHELL, warm=warm), count, shared)
        try:
            leader = wait_for("a leader", all_of_them.leader, 30)
            leader.wait_ready(30)
            wait_for("warm Pods", lambda: ready(leader) == warm, 120)
            yield all_of_them
        except BaseException:
            for each in all_of_them.all:
                print(f"--- {each.port}\n{each.log()[-3000:]}")
            raise
        finally:
            all_of_them.close()
            for each in all_of_them.all:
                clean_up(each)


def lines(seconds):
    return {"argv": ["sh", "-c", f"for i in $(seq {seconds}); do echo line $i; sleep 1; done"], "background": True}


def whole(server, execution, seconds):
    """Checks that the execution ended well, and that nothing of its output is missing."""
    path = f"/v1/executions/{execution}"
    wait_for("the execution's end", lambda: server.get(path).json["status"] != "running", seconds + 60)
    done = server.get(path).json
    assert done["status"] == "ok" and done["stdout"].splitlines() == [f"line {i}" for i in range(1, seconds + 1)], done


def every_replica_serves():
    """any replica takes claims, files and streams: one leads, and the other carries connections to it"""
    with replicas() as r:
        leader, follower = r.leader(), r.follower()
        lease = get("lease", LEASE)
        assert lease["metadata"]["annotations"]["hearth.dev/address"] == f"127.0.0.1:{leader.port}", lease
        assert follower.ops("/readyz").body.decode() == f"standing by for 127.0.0.1:{leader.port}\n"
        workspace = follower.open_workspace()
        assert follower.call("PUT", f"/v1/workspaces/{workspace['id']}/files/f.bin", raw=bytes(range(256)) * 8000).status in (200, 201)
        assert leader.call("GET", f"/v1/workspaces/{workspace['id']}/files/f.bin").body == bytes(range(256)) * 8000
        begun = follower.post(f"/v1/workspaces/{workspace['id']}/executions", lines(2)).json
        events = follower.call("GET", f"/v1/executions/{begun['id']}/events").body.decode()
        assert "line 1" in events and "line 2" in events, events


def killed_leader():
    """after kill -9 of the leader another one leads: workspaces, files and running executions go on, a keyed claim gives the first answer, nothing is handed out twice"""
    with replicas() as r:
        leader, follower = r.leader(), r.follower()
        key = {"Idempotency-Key": "the-one"}
        first = follower.post("/v1/workspaces", {"pool": "shell"}, headers=key).json
        follower.run(first["id"], "echo kept > f")
        begun = follower.post(f"/v1/workspaces/{first['id']}/executions", lines(25)).json
        wait_for("the claim is noted at its Pod", lambda: "hearth.dev/claimed" in get(
            "pod", first["sandboxId"].replace("_", "-"))["metadata"]["labels"], 20)
        leader.kill9()
        assert follower.get("/v1/pools").status == 503
        began = time.monotonic()
        assert r.next_leader(leader) is follower
        print(f"      another led after {time.monotonic() - began:.1f} s")
        again = follower.post("/v1/workspaces", {"pool": "shell"}, headers=key)
        assert again.json["id"] == first["id"] and again.json["sandboxId"] == first["sandboxId"], (first, again.json)
        assert follower.run(first["id"], "cat f")["stdout"] == "kept\n"
        whole(follower, begun["id"], 25)
        others = [follower.open_workspace() for _ in range(2)]
        assert len({first["sandboxId"], *(each["sandboxId"] for each in others)}) == 3


def stopped_leader():
    """a leader that is stopped for longer than its lease lasts ends when it goes on, and harms nothing"""
    with replicas() as r:
        leader, follower = r.leader(), r.follower()
        workspace = leader.open_workspace()
        os.kill(leader.process.pid, signal.SIGSTOP)
        assert r.next_leader(leader) is follower
        before = {pod["metadata"]["name"] for pod in pods_of_all()}
        claimed = [workspace, follower.open_workspace()]
        os.kill(leader.process.pid, signal.SIGCONT)
        assert wait_for("the end of the old leader", lambda: leader.process.poll() is not None, 20)
        assert leader.process.returncode == 75 and "leader.deposed" in leader.log(), leader.log()[-2000:]
        for each in claimed:
            assert follower.run(each["id"], "echo on")["stdout"] == "on\n"
        gone = before - {pod["metadata"]["name"] for pod in pods_of_all()}
        assert not gone, gone


def ended_leader():
    """a leader that is ended lets another lead at once, whose claims find the same workspaces"""
    with replicas() as r:
        leader, follower = r.leader(), r.follower()
        workspace = leader.open_workspace()
        leader.process.terminate()
        assert r.next_leader(leader, 8) is follower
        assert leader.process.wait(20) == 0
        assert follower.run(workspace["id"], "echo on")["stdout"] == "on\n"
        leader.start(wait=30)
        assert leader.ops("/readyz").body.decode().startswith("standing by for ")


def shared_history():
    """replicas that share a history: after kill -9 the next leader, and the one after it, answer for all that has ended, and for tokens and pools of clients"""
    with replicas(shared=True) as r:
        leader, follower = r.leader(), r.follower()
        once = {"Idempotency-Key": "the-one-shot"}
        shot = {"pool": "shell", "argv": ["sh", "-c", "od -An -N8 -tx8 /dev/urandom | tee out.txt"], "collect": ["*.txt"]}
        ran = follower.post("/v1/executions", shot, headers=once).json
        assert ran["status"] == "ok" and ran["artifacts"][0]["path"] == "out.txt", ran
        gone = {"Idempotency-Key": "the-workspace"}
        workspace = follower.post("/v1/workspaces", {"pool": "shell"}, headers=gone).json
        inside = follower.run(workspace["id"], "seq 20000")
        assert follower.call("DELETE", f"/v1/workspaces/{workspace['id']}").status == 204
        living = follower.open_workspace()
        assert follower.call("PATCH", f"/v1/workspaces/{living['id']}", {"labels": {"mine": "yes"}}).status == 200
        manifest = {**follower.get("/v1/pools/shell").json, "metadata": {"name": "other"}}
        manifest["spec"]["warm"]["min"] = 0
        declared = follower.call("PUT", "/v1/pools/other", {key: manifest[key] for key in ("apiVersion", "kind", "metadata", "spec")})
        assert declared.status in (200, 201), declared
        token = follower.post("/v1/tokens", {"name": "admin", "role": "admin"}).json["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        link = ran["artifacts"][0]["url"]
        asked = [("GET", f"/v1/executions/{ran['id']}"), ("GET", link[link.index("/", 8):] if "://" in link else link), ("GET", f"/v1/executions/{inside['id']}"),
                 ("GET", f"/v1/workspaces/{workspace['id']}"), ("GET", f"/v1/workspaces/{living['id']}"), ("GET", "/v1/pools/other"), ("GET", "/v1/tokens")]
        keyed = [("/v1/executions", shot, once), ("/v1/workspaces", {"pool": "shell"}, gone)]

        def told(server):
            answers = [server.call(*each, headers=bearer) for each in asked] + [server.call("POST", path, body, headers={**key, **bearer}) for path, body, key in keyed]
            return [(each.status, lasting(each)) for each in answers]
        wait_for("the ends are written", lambda: leader.get(f"/v1/executions/{inside['id']}", headers=bearer).json["status"] == "ok", 20)
        before = told(leader)
        assert [status for status, _ in before] == [200, 200, 200, 410, 200, 200, 200, 200, 410], before
        leader.kill9()
        assert r.next_leader(leader) is follower
        same(told(follower), before)
        # The first one again. It has an old database, and must read what the other one wrote.
        leader.start(wait=60)
        later = follower.call("POST", f"/v1/workspaces/{living['id']}/executions", {"argv": ["echo", "later"]}, headers=bearer).json
        follower.kill9()
        assert r.next_leader(follower) is leader
        same(told(leader), before)
        assert leader.call("GET", f"/v1/executions/{later['id']}", headers=bearer).json["stdout"] == "later\n"
        leader.drain = lambda: leader.call("POST", "/v1/drain", headers=bearer)


def same(now, before):
    for one, other in zip(now, before):
        assert one == other, (one, other)


def lasting(answer):
    """Returns the parts of an answer that do not change with the time and the address of the request."""
    try:
        told = answer.json
    except ValueError:
        return answer.body

    def kept(value):
        if isinstance(value, list):
            return [kept(each) for each in value]
        if isinstance(value, dict):
            return {key: kept(each) for key, each in value.items() if key not in PASSING}
        return value
    if "spec" in told:
        told.pop("status")
    return kept(told)


PASSING = ("requestId", "traceId", "url", "urlExpiresAt", "lastActiveAt", "expiresAt", "idleExpiresAt", "lastUsedAt", "agoSeconds")


def pods_of_all():
    return get("pods", "-l", "app.kubernetes.io/managed-by=hearth")["items"]


CASES = [every_replica_serves, killed_leader, stopped_leader, ended_leader, shared_history]
