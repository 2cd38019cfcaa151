"""The one cluster of a run of tests, which the first case that needs it opens, and helpers for cases."""

import json
import os

import found
import images
import machine
from harness import wait_for
from places import Trouble

NAMESPACE = f"hearth-test-{os.getpid()}"


class NotOurs(Exception):
    """The case would change a cluster that belongs to somebody else."""


class Lacks(Exception):
    """This machine, or this cluster, lacks something that the case needs."""


class Session:
    """Opens one cluster, raises its level as cases ask for more, and closes it once."""

    def __init__(self):
        self.cluster = None
        self.level = None
        self.before = None
        self.crds = set()  # definitions that a foreign cluster must lose at the end

    def at(self, level):
        """Returns the cluster, at this level or above, with the namespace of these tests."""
        levels = found.command().LEVELS
        if self.cluster is None:
            if not found.given():
                need_root(level)
            self.before = machine_now()
            self.cluster, self.level = found.open_cluster(level), level
            self.cluster.kubectl("create", "namespace", NAMESPACE)
        elif self.cluster.own and levels.index(level) > levels.index(self.level):
            need_root(level)
            self.cluster.raise_to(level)
            self.level = level
        return self.cluster

    def close(self):
        """Closes the cluster. A later case opens a new one."""
        cluster, self.cluster, self.level = self.cluster, None, None
        if cluster:
            try:
                if not cluster.own:
                    cluster.kubectl("delete", "namespace", NAMESPACE)
                    for crd in self.crds:
                        cluster.kubectl("delete", "crd", crd, "--ignore-not-found")
            finally:
                cluster.close()


def need_root(level):
    if level in ("full", "services") and os.geteuid() != 0:
        raise Lacks("a Node needs root")


session = Session()


def machine_now():
    """Returns the machine's settings, and which of the folders that Kubernetes' programs use exist."""
    return machine.settings(), [path for path in machine.FOLDERS if os.path.exists(path)]


def kubectl(*words, **options):
    return session.cluster.kubectl("-n", NAMESPACE, *words, **options)


def get(*words):
    return json.loads(kubectl("get", *words, "-o", "json"))


def apply(*objects, **options):
    return kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), **options)


def refused(call):
    """Returns the text of the refusal."""
    try:
        call()
    except Trouble as trouble:
        return str(trouble)
    raise AssertionError("it was not refused")


def own_cluster(level):
    cluster = session.at(level)
    if not cluster.own:
        raise NotOurs("this cluster is not ours to change")
    return cluster.own


def full():
    """Returns a cluster whose Node runs Pods of images.BUSYBOX."""
    cluster = session.at("full")
    if not cluster.can_load():
        raise Lacks("HEARTH_CLUSTER_LOAD names no command that loads a docker-archive into the cluster of KUBECONFIG")
    if not cluster.own:
        for path in images.base_images():
            cluster.load(path)
    return cluster


def ready(name):
    return any(each["type"] == "Ready" and each["status"] == "True" for each in get("pod", name)["status"].get("conditions", []))


def sandbox(name, command="sleep 600", **more):
    apply(pod(name, command, **more))
    wait_for(f"the Pod {name} is ready", lambda: ready(name), 60)


def pod(name, command, resources=None):
    """Returns a Pod as hardened as sandboxes are, as far as Kubernetes 1.20 has fields for it."""
    limits = {"cpu": "200m", "memory": "32Mi", "ephemeral-storage": "16Mi", **(resources or {})}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": False, "enableServiceLinks": False, "shareProcessNamespace": False, "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0, "activeDeadlineSeconds": 600,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}}],
            "containers": [{
                "name": "main", "image": images.BUSYBOX, "imagePullPolicy": "Never", "command": ["sh", "-c", command],
                "resources": {"limits": limits, "requests": limits},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
                "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
                "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "procMount": "Default",
                                    "capabilities": {"drop": ["ALL"]}}}]}}
