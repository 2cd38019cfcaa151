"""The faults of docs/on-call.md, each on a server of its own: a context begins well, `begin` provokes the fault and `mend` ends it.
tests/server/faults_test.py asserts what is told of each, and tests/server/faults/pictures shows it."""

import concurrent.futures
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import yaml

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from disk_test import empty, server_on_ext4, take_all  # noqa: E402
from gpu_machine import Machine, gpu_pool, uuid  # noqa: E402
from harness import BUILD, Server, pool_yaml, wait_for  # noqa: E402
from index import Index, wheel  # noqa: E402
from ondemand_test import config, small  # noqa: E402
from registry import Registry  # noqa: E402


def hearth(s, *words):
    """What the command line prints."""
    done = subprocess.run([os.path.join(BUILD, "hearth"), *words, "--url", s.url, *(["--token", s.token] if s.token else [])],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    return done.stdout


def close(s, workspace):
    assert s.call("DELETE", f"/v1/workspaces/{workspace}").status == 204


class Fault:
    """`s` is the server while the context lasts; `names` are those that the page writes in capitals."""

    def __init__(self, *ops_ports):
        self.ops_ports, self.ops_port = ops_ports, next(iter(ops_ports), None)
        self.s, self.names = None, {}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.enter(stack)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *why):
        return self.stack.__exit__(*why)

    def enter(self, stack):
        """Sets `s`; what ends with the context is put on the stack."""
        raise NotImplementedError

    def usual(self):
        """Asked now and then before the fault: what is served as long as all is well."""

    def begin(self):
        """Comes back when the fault is there, or soon will be."""
        raise NotImplementedError

    def again(self):
        """Asked now and then while the fault lasts: does what keeps it in sight."""

    def mend(self):
        """Ends what would not end with the server, or hinders its end."""

    def says(self, *words):
        """What a command that the page names prints."""
        return hearth(self.s, *words[1:])


class EmptyPool(Fault):
    """All members of a pool are claimed, and one more claim waits; `waited` is its workspace."""

    MEMBERS = 3

    def enter(self, stack):
        pools = pool_yaml(warm=2, members=self.MEMBERS, max_wait="90s")
        self.s = stack.enter_context(Server(pools=pools, ops_port=self.ops_port))
        self.one = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        self.held, self.waiting, self.names = [], None, {"POOL": "shell"}

    def begin(self):
        self.held = [self.s.open_workspace(pool="shell")["id"] for _ in range(self.MEMBERS)]
        self.waiting = self.one.submit(self.s.open_workspace, pool="shell")
        wait_for("a claim in line", lambda: self.s.get("/v1/pools/shell").json["status"]["waiting"] == 1)

    def mend(self):
        close(self.s, self.held.pop())
        self.names["WORKSPACE"] = self.waiting.result(30)["id"]


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


class SlowImage(Fault):
    """Claims that had to wait for an image: six of a pool that was declared just before, of which WORKSPACE is one, and one by the
    image's name, whose workspace is `by_name`."""

    def enter(self, stack):
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hearth-slow-"))
        os.chmod(folder, 0o755)
        registry = stack.enter_context(Registry({"team/slow:1": slow_layout(f"{folder}/fetched", "a")}))
        self.image = registry.place + "/team/slow:1"
        self.s = Server(config=config(registry, allow=[registry.place + "/team/*:*"]), ops_port=self.ops_port)
        self.s.wrapper = stack.enter_context(slow_umoci())
        slow_layout(os.path.join(self.s.data, "images", "declared"), "b")
        stack.enter_context(self.s)

    def usual(self):
        assert self.s.post("/v1/executions", {"command": "true", "pool": "shell"}).status == 200

    def begin(self):
        s = self.s
        pool = yaml.safe_load(pool_yaml("declared", image="declared", warm=0, on_empty="Create", max_wait="60s"))
        assert s.call("PUT", "/v1/pools/declared", pool).status == 201
        with concurrent.futures.ThreadPoolExecutor(8) as many:
            named = many.submit(s.open_workspace, image=self.image)
            waiting = [many.submit(s.open_workspace, pool="declared") for _ in range(6)]
            for _ in range(20):
                self.usual()
            self.by_name = named.result(60)["id"]
            self.names["WORKSPACE"] = [each.result(60)["id"] for each in waiting][0]


class FullDisk(Fault):
    """A disk of which nothing is free. `held` is a workspace from before, `second` the answer to a claim of what was ready."""

    def enter(self, stack):
        self.s, self.disk = stack.enter_context(server_on_ext4(400, pools=pool_yaml(warm=1, on_empty="Fail"), ops_port=self.ops_port))

    def begin(self):
        self.held = self.s.open_workspace()["id"]
        wait_for("another one", lambda: self.s.get("/v1/pools/shell").json["status"]["ready"] == 1)
        take_all(self.disk)
        self.second = self.s.post("/v1/workspaces", {})

    def mend(self):
        empty(self.disk)


class StuckLauncher(Fault):
    """A launcher that was stopped. `failed` is the answer to a claim whose limits it has to set."""

    def enter(self, stack):
        self.s = stack.enter_context(Server(pools=pool_yaml(warm=2), ops_port=self.ops_port))
        [self.launcher] = self.s.launcher_pids()
        stack.callback(self.mend)

    def usual(self):
        close(self.s, self.s.open_workspace()["id"])

    def begin(self):
        os.kill(self.launcher, signal.SIGSTOP)
        self.failed = self.s.post("/v1/workspaces", {"limits": {"cpu": 0.5}})

    def mend(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.launcher, signal.SIGCONT)


class GreedyTenant(Fault):
    """A tenant that has all of a pool, as its quota is as large as that, and another one whose claim waits."""

    QUOTAS = {"greedy": 4, "polite": 2}

    def enter(self, stack):
        self.s = stack.enter_context(Server(pools=pool_yaml(warm=2, members=self.QUOTAS["greedy"], max_wait="90s"), ops_port=self.ops_port))
        self.one = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        self.s.token = self.s.post("/v1/tokens", {"name": "root", "role": "admin"}).json["token"]
        self.of = {tenant: {"headers": {"Authorization": "Bearer " + self.s.post("/v1/tokens", {"name": tenant, "tenant": tenant, "role": "user"}).json["token"]}}
                   for tenant in self.QUOTAS}
        for tenant, most in self.QUOTAS.items():
            assert self.s.call("PUT", f"/v1/quotas/{tenant}", {"workspaces": most}).status == 201

    def begin(self):
        self.held = [self.s.post("/v1/workspaces", {}, **self.of["greedy"]).json["id"] for _ in range(self.QUOTAS["greedy"])]
        self.waiting = self.one.submit(self.s.post, "/v1/workspaces", {}, timeout=90, **self.of["polite"])

    def mend(self):
        close(self.s, self.held.pop())
        self.served = self.waiting.result(60)


class DeadMirror(Fault):
    """An index of packages that no longer answers, and a workspace that asks it."""

    def enter(self, stack):
        pool = pool_yaml("m", warm=1).replace("    resources:", "    network: {mode: Mirror}\n    resources:")
        self.index = stack.enter_context(Index([wheel("hearthfoo")]))
        self.s = stack.enter_context(Server(pools=pool, args=["--mirror-pypi", self.index.pypi], ops_port=self.ops_port))
        self.names["WORKSPACE"] = self.s.open_workspace(pool="m")["id"]
        self.usual()

    def ask(self, package):
        return self.s.run(self.names["WORKSPACE"], f"unset http_proxy; wget -q -O /dev/null ${{PIP_INDEX_URL}}{package}/")["status"]

    def usual(self):
        assert self.ask("hearthfoo") == "ok"

    def begin(self):
        self.index.leave()
        assert self.ask("hearthbaz") == "failed"
        self.again()

    def again(self):
        assert self.ask("hearthbar") == "failed"


class UnhealthyGpu(Fault):
    """A machine of two GPUs, the second of which has a critical error."""

    GPU = uuid(1)

    def enter(self, stack):
        self.machine = stack.enter_context(Machine(2))
        self.s = stack.enter_context(self.machine.server(gpu_pool(warm=2), ops_port=self.ops_port))

    def begin(self):
        self.machine.write(1, "xid", "79")


class Memory(Fault):
    """A program that is ended at its limit of memory; `done` is its execution. Another one reads more files than its limit keeps,
    and so waits for memory."""

    # Readers at several places of twice the limit drop each other's pages; they stay at one processor and 64 MiB.
    READ = ("dd if=/dev/zero of=data bs=1M count=128 2>/dev/null; for i in 1 2 3 4; do "
            "(while :; do dd if=data of=/dev/null bs=1M skip=$((i * 28)); dd if=data of=/dev/null bs=1M; done) 2>/dev/null & done; wait")

    def enter(self, stack):
        pools = pool_yaml(warm=1, memory="64Mi").replace("workspace: 64Mi", "workspace: 160Mi")
        self.s = stack.enter_context(Server(pools=pools, ops_port=self.ops_port))
        self.one = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        self.busy, self.names["WORKSPACE"] = None, self.s.open_workspace()["id"]
        stack.callback(self.mend)

    def usual(self):
        assert self.s.run(self.names["WORKSPACE"], "true")["status"] == "ok"

    def begin(self):
        self.done = self.s.run(self.names["WORKSPACE"], "exec tail -c 104857600 /dev/zero")

    def again(self):
        self.begin()

    def press(self, seconds):
        """For so long at most, beside what else is done."""
        self.busy = self.s.open_workspace()["id"]
        self.one.submit(self.s.run, self.busy, self.READ, timeoutSeconds=seconds)

    def mend(self):
        if self.busy:
            close(self.s, self.busy)
            self.busy = None


class UnreadLog(Fault):
    """A server whose standard error is a pipe, and whose reader stalls. The load is the same before and after."""

    def enter(self, stack):
        s = self.s = stack.enter_context(Server(args=["--log-level", "debug"], ops_port=self.ops_port))
        assert s.stop() == 0
        whole, pipe = s.log_path, os.path.join(s.data, "log.pipe")
        os.mkfifo(pipe)
        self.end = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        stack.callback(os.close, self.end)
        fcntl.fcntl(self.end, fcntl.F_SETPIPE_SZ, 4096)
        s.log_path, s.log = pipe, lambda: "(unread)"

        def whole_again():
            s.log_path = whole
            del s.log
        stack.callback(whole_again)
        s.start()
        self.reader = subprocess.Popen(["cat", pipe], stdout=subprocess.DEVNULL)
        stack.callback(self.mend)

    def usual(self):
        for _ in range(100):
            assert self.s.get("/v1/pools/shell").status == 200  # each is a line

    def begin(self):
        self.reader.send_signal(signal.SIGSTOP)
        self.again()

    def again(self):
        self.usual()

    def mend(self):
        """The log is read again, and the server ends: its last lines need a reader."""
        if self.reader.poll() is None:
            self.reader.send_signal(signal.SIGCONT)
            try:
                self.s.drain()
                assert self.s.stop() == 0
            finally:
                self.reader.kill()
                self.reader.wait()


# By their names in docs/on-call.md. A lost leader needs a Kubernetes: leader.py has it.
FAULTS = {"Empty pool": EmptyPool, "Slow image": SlowImage, "Full disk": FullDisk, "Stuck launcher": StuckLauncher, "Greedy tenant": GreedyTenant,
          "Dead mirror": DeadMirror, "Unhealthy GPU": UnhealthyGpu, "Memory": Memory, "Unread log": UnreadLog}
