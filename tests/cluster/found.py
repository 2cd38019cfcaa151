"""The cluster that tests run on: the one of KUBECONFIG if it answers, one of kind if that is installed, otherwise the tests'
own."""

import contextlib
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile

import binaries
import node
from instance import Instance, names, started
from places import HERE, Trouble, run


def command():
    """Returns the command `cluster` as a module."""
    loader = importlib.machinery.SourceFileLoader("cluster_command", os.path.join(HERE, "cluster"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Cluster:
    """The common part of all clusters. `own` is the Instance if the tests may damage it, otherwise None."""

    own = None

    def __init__(self, kubeconfig):
        self.kubeconfig = kubeconfig

    def kubectl_command(self, *words):
        program = binaries.path("kubectl") if self.own or not shutil.which("kubectl") else "kubectl"
        several = os.pathsep in self.kubeconfig  # only the environment can name several
        return [program, *([] if several else [f"--kubeconfig={self.kubeconfig}"]), *words]

    def kubectl(self, *words, **options):
        return run(*self.kubectl_command(*words), **options)

    def can_load(self):
        return "HEARTH_CLUSTER_LOAD" in os.environ

    def load(self, path):
        """Brings an image to its nodes by the command in HEARTH_CLUSTER_LOAD, to which the path is added."""
        run("sh", "-c", f'{os.environ["HEARTH_CLUSTER_LOAD"]} "$1"', "sh", path)

    def close(self):
        pass


class Own(Cluster):
    """The tests' own cluster, at the given level of tests/cluster/cluster."""

    def __init__(self, level, name):
        self.own = Instance(name)
        try:
            self.own = command().up(self.own, level)
        except BaseException:
            command().down(self.own)
            raise
        super().__init__(self.own.kubeconfig)

    def raise_to(self, level):
        self.own = command().up(self.own, level)

    def can_load(self):
        return True

    def load(self, path):
        node.load(self.own, path)

    def close(self):
        command().down(self.own)


class Kind(Cluster):
    def __init__(self, name):
        self.name = name
        super().__init__(os.path.join(tempfile.mkdtemp(prefix="hearth-kind-"), "kubeconfig"))
        run("kind", "create", "cluster", "--name", name, "--kubeconfig", self.kubeconfig, "--wait", "3m")

    def can_load(self):
        return True

    def load(self, path):
        run("kind", "load", "image-archive", path, "--name", self.name)

    def close(self):
        run("kind", "delete", "cluster", "--name", self.name, "--kubeconfig", self.kubeconfig)
        shutil.rmtree(os.path.dirname(self.kubeconfig))


def given():
    """Returns the cluster of KUBECONFIG, or None if it does not answer."""
    path = os.environ.get("KUBECONFIG")
    if not path:
        return None
    cluster = Cluster(path)
    with contextlib.suppress(Trouble, subprocess.TimeoutExpired):
        cluster.kubectl("get", "--raw", "/readyz", timeout=20)
        return cluster
    print(f"the cluster of KUBECONFIG={path} does not answer; going on without it", flush=True)
    return None


def missing(required):
    """Returns the reason why there can be no cluster here, or None. If `required`, it builds one."""
    if given() or shutil.which("kind") or binaries.ready():
        return None
    if required:
        binaries.build()
        return None
    return f"Kubernetes is not built here; run once, for 4 to 10 minutes: {os.path.relpath(HERE)}/cluster build"


def sweep():
    """Takes down the clusters that a killed run has left: their names contain its pid."""
    for name in names():
        owner = re.match(r"test-(\d+)", name)
        if owner and started(owner[1]) is None:
            command().down(Instance(name))


def open_cluster(level):
    """Opens a cluster of this level at least. The caller closes it."""
    sweep()
    name = f"test-{os.getpid()}"
    return given() or (Kind(name) if shutil.which("kind") else Own(level, name))
