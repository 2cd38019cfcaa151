"""Everything of a cluster on this machine outside its own processes' memory: it must be gone after `cluster down`."""

import glob
import os

import node
import services
from instance import started


class Traces:
    """Knows the names of a cluster's things, also after the cluster has been taken down."""

    def __init__(self, instance):
        self.folder, self.sockets, self.mark = instance.folder, instance.sockets, instance.mark
        self.cgroups = node.cgroup_roots(instance)

    def found(self):
        """Returns kind and name of each trace."""
        return sorted([*self.processes(), *self.mounts(), *self.paths(), *self.links(), *self.chains()])

    def processes(self):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    command = file.read().replace("\0", " ")
                with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
                    groups = file.read()
            except OSError:  # it has ended
                continue
            if int(pid) != os.getpid() and started(pid) and (self.folder in command or self.sockets + "/" in command or f"/{self.mark}/" in groups):
                yield "process", f"{pid} {command[:100]}"

    def mounts(self):
        with open("/proc/self/mounts", encoding="utf-8") as file:
            for line in file:
                if self.folder in line or self.sockets + "/" in line:
                    yield "mount", line.split()[1]

    def paths(self):
        for path in [self.folder, self.sockets, *self.cgroups]:
            if os.path.exists(path):
                yield "path", path

    def links(self):
        if os.path.exists(f"/sys/class/net/{self.mark}"):
            yield "link", self.mark
        for path in glob.glob("/sys/class/net/*/master"):
            if os.path.basename(os.path.realpath(path)) == self.mark:
                yield "link", path

    def chains(self):
        for table in services.TABLES:
            for chain in services.chains(table):
                yield "chain", f"{table} {chain}"
