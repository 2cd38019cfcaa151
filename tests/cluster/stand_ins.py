#!/usr/bin/env python3
"""Nodes of a test cluster that run no containers, for more Pods than this machine can run.

    python3 tests/cluster/stand_ins.py CLUSTER [--nodes N] [--pods N]

The cluster (tests/cluster/cluster) needs level `control`. The scheduler gives Pods to these nodes as to any other. For each of Hearth's Pods
one real hearth-agent runs as a process, without a sandbox around it, on a loopback address of its own; its Pod's status says what kubelet
would say. So claims, binds and the API server's work are real, but a start takes a millisecond: no measurement here shows the speed of a
real node. All agents have the same key. Prints `ready`, and ends all of them on SIGTERM or SIGINT."""

import argparse
import contextlib
import http.client
import json
import os
import queue
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
from instance import Instance  # noqa: E402
from places import Trouble  # noqa: E402

BUILD = os.environ.get("HEARTH_BUILD", os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "dev"))
AGENT = os.path.join(BUILD, "hearth-agent")
PORT = 7017  # the port of the agents of Pods
LISTEN_FD = 3
WORKERS = 4
HEARTBEAT = 10
PATIENCE = 120  # longer than between two bookmarks of a watch
MERGE = "application/merge-patch+json"


class Api:
    """One connection to the API server, opened again after it broke. Not for threads."""

    def __init__(self, cluster):
        pki = f"{cluster.folder}/pki"
        self.context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
        self.context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
        self.port = cluster.state["ports"]["api"]
        self.connection = None

    def open(self, method, path, body=None, kind="application/json"):
        """Returns the unread answer. Raises OSError or HTTPException if there is none."""
        if self.connection is None:
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=self.context)
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
            return self.connection.getresponse()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def call(self, method, path, body=None, kind="application/json"):
        """Returns the status and the object of the answer. Asks twice if a kept connection had ended."""
        for last in (False, True):
            try:
                answer = self.open(method, path, body, kind)
                return answer.status, json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                self.close()
                if last:
                    raise

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


@contextlib.contextmanager
def standing_in(cluster, nodes=10, pods=1000):
    """Runs such nodes in a process of their own, as a context."""
    words = [sys.executable, os.path.abspath(__file__), cluster.name, f"--nodes={nodes}", f"--pods={pods}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            if process.stdout.readline() != "ready\n":
                raise Trouble("the nodes without containers did not start")
            yield process
        finally:
            process.terminate()


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Nodes:
    """The state of the nodes in the cluster, kept fresh by a thread."""

    def __init__(self, cluster, count, pods):
        self.api, self.names = Api(cluster), [f"stand-in-{number}" for number in range(count)]
        room = {"cpu": "100000", "memory": "100Ti", "ephemeral-storage": "100Ti", "pods": str(pods)}
        for name in self.names:
            self.api.call("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}}})
            told, answer = self.api.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"capacity": room, "allocatable": room, **self.healthy()}}, MERGE)
            assert told == 200, answer
            lease = {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {"holderIdentity": name, "leaseDurationSeconds": 40}}
            self.api.call("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease)
        threading.Thread(target=self.beat, daemon=True).start()

    @staticmethod
    def healthy():
        return {"conditions": [{"type": "Ready", "status": "True", "reason": "StandIn", "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}

    def beat(self):
        while True:
            renewed = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
            for name in self.names:
                with contextlib.suppress(OSError, http.client.HTTPException):
                    self.api.call("PATCH", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}", {"spec": {"renewTime": renewed}}, MERGE)
            time.sleep(HEARTBEAT)


class Agents:
    """The processes, by their Pods' UIDs. Thread-safe."""

    def __init__(self, folder):
        self.folder, self.lock, self.count = folder, threading.Lock(), 0
        self.pids, self.ended = {}, queue.Queue()
        os.mkdir(f"{folder}/root")
        os.mkdir(f"{folder}/tmp")
        os.chmod(f"{folder}/tmp", 0o1777)
        os.chmod(f"{folder}/root", 0o777)
        os.chmod(folder, 0o755)
        with open(f"{folder}/languages.json", "w", encoding="ascii") as file:
            file.write('{"shell":{"file":"main.sh","run":["sh","{file}"]}}')
        child = os.posix_spawn(AGENT, [AGENT, "--make-identity", f"{folder}/identity", f"{folder}/public"], {})
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the agent made no key"
        with open(f"{folder}/public", encoding="ascii") as file:
            self.public = file.read().strip()
        with open(f"{folder}/identity", "rb") as file:
            self.identity = file.read()
        self.out = os.open(f"{folder}/agents.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def start(self, pod):
        """Starts an agent. Returns the address where it listens."""
        with self.lock:
            self.count += 1
            number = self.count
        address = f"127.{64 + number // 65025}.{number // 255 % 255}.{1 + number % 255}"
        uid, container = pod["metadata"]["uid"], pod["spec"]["containers"][0]
        key = container["command"][container["command"].index("--server-key") + 1]
        identity = f"{self.folder}/identity-{uid}"
        with open(os.open(identity, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(self.identity)
        environment = {each["name"]: each["value"] for each in container.get("env", []) if "value" in each}
        environment |= {"HEARTH_AGENT_UNCONFINED": "1", "HEARTH_AGENT_ROOT": f"{self.folder}/root", "HEARTH_AGENT_RUN": f"{self.folder}/tmp",
                        "HEARTH_AGENT_LANGUAGES": f"{self.folder}/languages.json", "PATH": os.environ["PATH"]}
        with socket.create_server((address, PORT), backlog=64) as listener:
            words = [AGENT, "--server-key", key, "--pod", uid, "--identity", identity]
            actions = [(os.POSIX_SPAWN_DUP2, listener.fileno(), LISTEN_FD), (os.POSIX_SPAWN_DUP2, self.out, 1), (os.POSIX_SPAWN_DUP2, self.out, 2)]
            with self.lock:
                self.pids[uid] = os.posix_spawn(AGENT, words, environment, file_actions=actions, setsid=True)
        return address

    def end(self, uid):
        with self.lock:
            pid = self.pids.pop(uid, None)
            if pid is not None:
                os.kill(pid, signal.SIGTERM)

    def reap(self):
        """Reports the agents that ended by themselves."""
        while True:
            try:
                pid, _ = os.wait()
            except ChildProcessError:
                time.sleep(0.1)
                continue
            with self.lock:
                uid = next((uid for uid, known in self.pids.items() if known == pid), None)
                self.pids.pop(uid, None)
            if uid:
                self.ended.put(uid)

    def end_all(self):
        for uid in list(self.pids):
            self.end(uid)


class Kubelet:
    """Follows the Pods of the nodes and brings each to what it should be. Pods are shared out among workers by their UIDs, so that one Pod's
    changes stay in order."""

    def __init__(self, cluster, nodes, agents):
        self.cluster, self.nodes, self.agents = cluster, set(nodes), agents
        self.queues = [queue.Queue() for _ in range(WORKERS)]
        for each in self.queues:
            threading.Thread(target=self.work, args=(each,), daemon=True).start()

    def follow(self):
        """Reads a list and a watch, and starts again from the list when the watch breaks. Never returns."""
        api, path = Api(self.cluster), "/api/v1/pods?labelSelector=hearth.dev/sandbox"
        while True:
            try:
                _, listed = api.call("GET", path)
                for pod in listed["items"]:
                    self.see(pod, False)
                version = listed["metadata"]["resourceVersion"]
                for line in api.open("GET", f"{path}&watch=true&allowWatchBookmarks=true&timeoutSeconds=3000&resourceVersion={version}"):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "BOOKMARK":
                        self.see(event["object"], event["type"] == "DELETED")
            except (OSError, http.client.HTTPException, KeyError, ValueError) as error:
                print(f"the watch ended: {error!r}", file=sys.stderr)
                time.sleep(0.5)
            api.close()

    def see(self, pod, deleted):
        if pod["spec"].get("nodeName") in self.nodes:
            self.queues[hash(pod["metadata"]["uid"]) % WORKERS].put((pod, deleted))

    def work(self, pods):
        api, started = Api(self.cluster), set()
        while True:
            pod, deleted = pods.get()
            uid = pod["metadata"]["uid"]
            try:
                if deleted:
                    self.agents.end(uid)
                    started.discard(uid)
                elif "deletionTimestamp" in pod["metadata"]:
                    self.agents.end(uid)
                    api.call("DELETE", self.path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
                elif uid not in started:
                    started.add(uid)
                    api.call("PATCH", f"{self.path(pod)}/status", self.running(pod, self.agents.start(pod)), MERGE)
            except (OSError, http.client.HTTPException) as error:
                print(f"{pod['metadata']['name']}: {error!r}", file=sys.stderr)
                started.discard(uid)
                time.sleep(0.2)
                pods.put((pod, deleted))

    @staticmethod
    def path(pod):
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def running(self, pod, address):
        at = now()
        met = [{"type": each, "status": "True", "lastTransitionTime": at} for each in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
        every = {"image": "stand-in", "imageID": "", "restartCount": 0, "ready": True}
        begun = {"name": pod["spec"]["initContainers"][0]["name"], **every,
                 "state": {"terminated": {"exitCode": 0, "message": self.agents.public, "startedAt": at, "finishedAt": at}}}
        runs = {"name": pod["spec"]["containers"][0]["name"], **every, "state": {"running": {"startedAt": at}}}
        return {"status": {"phase": "Running", "hostIP": "127.0.0.1", "podIP": address, "podIPs": [{"ip": address}], "startTime": at,
                           "conditions": met, "initContainerStatuses": [begun], "containerStatuses": [runs]}}

    def tell_ends(self):
        """Reports an agent that is gone as a container that has ended. Never returns."""
        api = Api(self.cluster)
        while True:
            uid = self.agents.ended.get()
            with contextlib.suppress(OSError, http.client.HTTPException):
                _, listed = api.call("GET", "/api/v1/pods?labelSelector=hearth.dev/sandbox")
                for pod in listed["items"]:
                    if pod["metadata"]["uid"] == uid:
                        gone = {"name": pod["spec"]["containers"][0]["name"], "image": "stand-in", "imageID": "", "restartCount": 0, "ready": False,
                                "state": {"terminated": {"exitCode": 0, "finishedAt": now()}}}
                        api.call("PATCH", f"{self.path(pod)}/status", {"status": {"phase": "Succeeded", "containerStatuses": [gone]}}, MERGE)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip(), description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cluster")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--pods", type=int, default=1000, help="on each node")
    options = parser.parse_args()
    cluster = Instance(options.cluster)
    if not cluster:
        sys.exit(f"there is no cluster {options.cluster}; tests/cluster/cluster up control --name {options.cluster}")
    if not os.access(AGENT, os.X_OK):
        sys.exit(f"there is no {AGENT}; build it, or set HEARTH_BUILD")
    # An agent's listening socket is descriptor 3, so no other may be there: dup2 to itself would not outlive exec.
    while (kept := os.open("/dev/null", os.O_RDONLY)) < LISTEN_FD:
        pass
    os.set_inheritable(kept, False)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    folder = tempfile.mkdtemp(prefix="hearth-stand-ins-")
    agents = Agents(folder)
    try:
        nodes = Nodes(cluster, options.nodes, options.pods)
        kubelet = Kubelet(cluster, nodes.names, agents)
        for each in (agents.reap, kubelet.follow, kubelet.tell_ends):
            threading.Thread(target=each, daemon=True).start()
        print("ready", flush=True)
        stop.wait()
    finally:
        agents.end_all()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
