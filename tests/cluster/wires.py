"""Replicas whose ways to the API server can be cut."""

import contextlib
import os
import re
import socket
import threading

import replicas
from harness import free_port, wait_for
from session import get, session


class Wire:
    """The way of one replica to the API server, which can be cut."""

    def __init__(self, target):
        self.target, self.whole, self.open = target, True, set()
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if not self.whole:
                client.close()
                continue
            try:
                server = socket.create_connection(self.target)
            except OSError:
                client.close()
                continue
            self.open |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()
            if not self.whole:  # it was cut meanwhile
                self.cut()

    def carry(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for each in (source, sink):
            self.open.discard(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
                each.close()

    def cut(self):
        self.whole = False
        for each in list(self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.whole = True


class Wired(replicas.Replicas):
    """Each replica has its own wire."""

    stand_ins = False

    def place(self):
        return session.at("control") if self.stand_ins else super().place()

    def make(self):
        server = super().make()
        address = session.cluster.own.url("api").split("//")[1]
        host, port = address.split(":")
        server.wire = Wire((host, int(port)))
        config = os.path.join(self.folder, f"kubeconfig-{server.port}")
        with open(self.config, encoding="utf-8") as source, open(config, "w", encoding="utf-8") as file:
            file.write(source.read().replace(address, f"{host}:{server.wire.port}"))
        server.extra[server.extra.index("--kubeconfig") + 1] = config
        return server


def nobody_leads():
    """a killed leader and a replica that cannot reach the API server: claims get 503, hearth_leader is 0, the Lease tells since when; once it can, it leads"""
    with replicas.replicas(kind=Wired) as r:
        leader, follower = r.leader(), r.follower()
        assert follower.open_workspace()["pool"] == "shell"
        follower.wire.cut()
        leader.kill9()
        wait_for("a refused claim", lambda: follower.post("/v1/workspaces", {}).status == 503, 10)
        renewed = get("lease", replicas.LEASE)["spec"]["renewTime"]
        with contextlib.suppress(AssertionError):
            r.next_leader(leader, 2 * replicas.TAKEOVER)
            raise RuntimeError("it leads without the API server")
        assert re.search(r'^hearth_leader\{lease="[^"]+"\} 0$', follower.ops("/metrics").body.decode(), re.MULTILINE)
        assert follower.post("/v1/workspaces", {}).status == 503
        assert get("lease", replicas.LEASE)["spec"]["renewTime"] == renewed
        follower.wire.mend()
        assert r.next_leader(leader, replicas.TAKEOVER) is follower
        assert follower.open_workspace()["pool"] == "shell"


def cut_off_leader():
    """a leader that is cut off from the API server loses to another one: what runs goes on, a keyed claim gives the first answer, nothing is handed out twice; then it ends"""
    with replicas.replicas(kind=Wired) as r:
        leader, follower = r.leader(), r.follower()
        key = {"Idempotency-Key": "the-one"}
        first = follower.post("/v1/workspaces", {"pool": "shell"}, headers=key).json
        begun = follower.post(f"/v1/workspaces/{first['id']}/executions", replicas.lines(30)).json["id"]
        leader.wire.cut()
        wait_for("the other one leads", lambda: replicas.leads(follower), replicas.TAKEOVER)
        follower.wait_ready(30)
        assert follower.post("/v1/workspaces", {"pool": "shell"}, headers=key).json["id"] == first["id"]
        hands = [first["sandboxId"]]
        # The old leader still has the warm Pods in its memory, but the agents refuse its number.
        for server in (follower, leader, follower, leader):
            with contextlib.suppress(OSError):
                answer = server.post("/v1/workspaces", {"pool": "shell"})
                if answer.status == 201:
                    hands.append(answer.json["sandboxId"])
        assert len(hands) > 1 and len(set(hands)) == len(hands), hands
        replicas.whole(follower, begun, 30)
        leader.wire.mend()
        wait_for("the end of the old leader", lambda: leader.process.poll() is not None, 30)
        assert leader.process.returncode == 75, leader.process.returncode
        assert follower.run(first["id"], "echo on")["stdout"] == "on\n"


CASES = [nobody_leads, cut_off_leader]
