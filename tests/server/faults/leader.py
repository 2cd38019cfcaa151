"""A lost leader, for the pictures: a fault of two replicas on a real API server, whose Pods are stand-ins."""

import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE), os.path.join(os.path.dirname(os.path.dirname(HERE)), "cluster")]
from harness import clean_up, pool_yaml, wait_for  # noqa: E402
from provoke import Fault, close  # noqa: E402
from sandboxes import ready  # noqa: E402
from session import kubectl, own_cluster, session  # noqa: E402
from stand_ins import standing_in  # noqa: E402
from wires import Wired  # noqa: E402

WARM = 6


class Scraped(Wired):
    """Each replica shows its metrics where they are looked for."""

    stand_ins = True

    def __init__(self, folder, ops_ports):
        self.ops_ports = list(ops_ports)
        super().__init__(folder, pool_yaml(image="stand-in:1", warm=WARM), len(ops_ports))

    def make(self):
        server = super().make()
        server.ops_port = self.ops_ports.pop(0)
        return server


class LeaderLost(Fault):
    """The leader is killed, and the other replica, `s`, cannot reach the API server."""

    def enter(self, stack):
        stack.callback(session.close)
        stack.enter_context(standing_in(own_cluster("control")))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-leader-"))
        os.chmod(folder, 0o755)
        servers = Scraped(folder, self.ops_ports)
        for each in servers.all:
            stack.callback(clean_up, each)
        stack.callback(servers.close)
        self.leader = wait_for("a leader", servers.leader, 30)
        self.leader.wait_ready(30)
        wait_for("warm Pods", lambda: ready(self.leader) == WARM, 60)
        self.s = servers.follower()

    def usual(self):
        close(self.s, self.s.open_workspace()["id"])

    def begin(self):
        self.s.wire.cut()
        self.leader.kill9()

    def again(self):
        refused = self.s.post("/v1/workspaces", {})
        assert refused.status == 503, refused

    def says(self, *words):
        assert words[:3] == ("kubectl", "get", "lease"), words
        return kubectl("get", "lease", "-o", "yaml")
