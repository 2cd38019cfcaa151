"""One cluster of this machine: its folder, ports, number and processes. Several may stand side by side, each with a name."""

import glob
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time

import binaries
from places import INSTANCES, Trouble, locked, run

PORTS = ["etcd", "etcd_peer", "api", "controllers", "scheduler", "kubelet", "kubelet_health", "proxy_health", "proxy_metrics"]
# Below the ports that the kernel gives to outgoing connections, so that a port stays free while its process is away.
LOWEST_PORT, HIGHEST_PORT = 20000, 32000
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}")


def started(pid):
    """Returns when the process began, in ticks since boot; None if it has ended. Together with the pid it is never used
    again."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


def free_ports(count, taken):
    found = []
    for port in range(LOWEST_PORT, HIGHEST_PORT):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in taken:
            found.append(port)
        if len(found) == count:
            return found
    raise Trouble(f"no {count} ports are free between {LOWEST_PORT} and {HIGHEST_PORT}")


def names():
    """Returns the names of the instances that exist, running or not."""
    return sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(f"{INSTANCES}/*/state.json"))


def stored(name):
    with open(f"{INSTANCES}/{name}/state.json", encoding="utf-8") as file:
        return json.load(file)


class Instance:
    """Reads the stored data of the instance; make() stores a new one. Not for threads; lock() keeps other processes
    out."""

    def __init__(self, name):
        if not NAME.fullmatch(name):
            raise Trouble(f"'{name}' is no name of a cluster: small letters, digits and dashes, 31 at most")
        self.name, self.folder = name, os.path.join(INSTANCES, name)
        self.state = stored(name) if os.path.exists(f"{self.folder}/state.json") else None

    def __bool__(self):
        return self.state is not None

    def lock(self):
        return locked(f"instance-{self.name}", f"another command works on the cluster {self.name}; waiting for it")

    def make(self):
        """Gives it a number and ports that no other instance has."""
        with locked("instances"):
            others = [stored(name) for name in names()]
            number = next(n for n in range(256) if n not in [other["number"] for other in others] and not in_use(n))
            ports = free_ports(len(PORTS), {port for other in others for port in other["ports"].values()})
            self.state = {"number": number, "ports": dict(zip(PORTS, ports)), "processes": {}, "node": False, "services": False}
            os.makedirs(self.folder, mode=0o700)
            self.store()

    def store(self):
        with open(f"{self.folder}/state.new", "w", encoding="utf-8") as file:
            json.dump(self.state, file, indent=1)
        os.rename(f"{self.folder}/state.new", f"{self.folder}/state.json")

    def forget(self):
        shutil.rmtree(self.folder)
        self.state = None

    def note(self, key, value):
        self.state[key] = value
        self.store()

    @property
    def mark(self):
        """The part of the names of its bridge, its cgroups and its network's files. Short enough for a network
        device."""
        return mark(self.state["number"])

    @property
    def sockets(self):
        """A folder whose path is short enough for the address of a UNIX socket."""
        return f"/run/{self.mark}"

    @property
    def kubeconfig(self):
        return self.credentials("admin")

    def credentials(self, user):
        return f"{self.folder}/{user}.kubeconfig"

    def url(self, port, scheme="https"):
        return f"{scheme}://127.0.0.1:{self.state['ports'][port]}"

    def kubectl(self, *words, **options):
        return run(binaries.path("kubectl"), f"--kubeconfig={self.kubeconfig}", *words, **options)

    # Processes

    def spawn(self, name, *command):
        """Starts it in a session of its own, so that it outlives this command; its output goes to NAME.log."""
        with open(f"{self.folder}/{name}.log", "ab") as log:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)
            except FileNotFoundError as error:
                raise Trouble(f"there is no program {command[0]}; install the packages of the group cluster in debian-packages") from error
        self.state["processes"][name] = {"pid": process.pid, "started": started(process.pid), "command": command}
        self.store()

    def pid(self, name):
        """Returns the pid of the process if it runs."""
        known = self.state["processes"].get(name)
        return known["pid"] if known and started(known["pid"]) == known["started"] else None

    def stop(self, name, number=signal.SIGTERM, seconds=5):
        """Ends the process, by SIGKILL if the signal does not end it in time."""
        pid = self.pid(name)
        if pid is None:
            return
        # Waits for the whole process: other threads than the first may hold its port for a moment longer.
        whole = os.pidfd_open(pid)
        try:
            for each, limit in ((number, seconds), (signal.SIGKILL, 15)):
                os.kill(pid, each)
                if select.select([whole], [], [], limit)[0]:
                    reap(pid)
                    return
        finally:
            os.close(whole)
        raise Trouble(f"process {pid} ({name}) does not end, not even by SIGKILL")

    def restart(self, name):
        """Starts a process that has ended, with the same command."""
        self.spawn(name, *self.state["processes"][name]["command"])

    def wait_for(self, what, check, seconds, process):
        """Polls until the check holds. The end of the process, or of the time, is a Trouble with its log's last lines."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if check():
                return
            reap(self.state["processes"][process]["pid"])
            if self.pid(process) is None:
                raise Trouble(f"{process} has ended; its log {self.folder}/{process}.log ends with:\n{self.log_of(process)}")
            time.sleep(0.1)
        raise Trouble(f"not within {seconds} s: {what}; the log {self.folder}/{process}.log ends with:\n{self.log_of(process)}")

    def log_of(self, name, most=1500):
        with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as file:
            return file.read()[-most:]


def mark(number):
    return f"hearth-kube{number}"


def in_use(number):
    """Returns whether something of this machine has the number, perhaps a cluster of another user."""
    return os.path.exists(f"/sys/class/net/{mark(number)}") or os.path.exists(f"/run/{mark(number)}")


def reap(pid):
    """Reaps an ended child of this process, which stays a zombie otherwise. Children of others are init's."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass
