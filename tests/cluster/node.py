"""A node of one machine: containerd, the network of its Pods, kubelet. Needs root."""

import contextlib
import glob
import json
import os
import shlex
import shutil
import signal
import time

import binaries
import images
import machine
from control_plane import gateway
from places import Trouble, locked, run, write

NAME = "localhost"  # every machine resolves it to the loopback, where kubelet listens


def start(instance):
    """Starts the node, and waits until it is Ready."""
    if os.geteuid() != 0:
        raise Trouble("a node needs root; without it only `cluster up api` and `up control` can run")
    with locked("instances"):
        machine.save()
        instance.note("node", True)
    start_containerd(instance)
    for path in images.base_images():
        load(instance, path)
    if instance.pid("kubelet") is None:
        start_kubelet(instance)
    instance.wait_for("the Node is Ready", lambda: is_ready(instance), 90, "kubelet")


def is_ready(instance):
    try:
        found = json.loads(instance.kubectl("get", "node", NAME, "-o", "json"))
    except Trouble:  # it is not registered yet
        return False
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found["status"]["conditions"])


# containerd

def start_containerd(instance):
    if instance.pid("containerd") is not None:
        return
    os.makedirs(instance.sockets, mode=0o711, exist_ok=True)
    write(f"{instance.folder}/cni/node.conflist", json.dumps(network(instance), indent=1))
    write(f"{instance.folder}/containerd.toml", CONTAINERD.format(folder=instance.folder, sockets=instance.sockets, pause=images.PAUSE))
    instance.spawn("containerd", "unshare", "--mount", "--propagation=private", "sh", "-ec", own_folders(instance), "sh",
                   "containerd", "--config", f"{instance.folder}/containerd.toml")
    instance.wait_for("containerd answers", lambda: answers(instance), 30, "containerd")


def own_folders(instance):
    """Returns the script that gives the node its own folders in place of the machine's, then becomes containerd. Mounts of the
    node stay in its mount namespace, and end with its last process."""
    lines = ["mount --make-rshared /"]
    for path in machine.FOLDERS:
        own = f"{instance.folder}/folders{path}"
        os.makedirs(own, exist_ok=True)
        lines.append(f"mount --bind {shlex.quote(own)} {path}")
    return "\n".join([*lines, 'exec "$@"'])


def network(instance):
    """Makes a bridge. Its name and its network's name contain the instance's mark, by which clean-up finds them."""
    subnet = gateway(instance).rpartition(".")[0] + ".0/24"
    ranges = {"type": "host-local", "dataDir": f"{instance.folder}/cni-addresses", "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": instance.mark, "isGateway": True, "ipMasq": False, "hairpinMode": True, "ipam": ranges}
    return {"cniVersion": "0.4.0", "name": instance.mark, "plugins": [bridge, {"type": "loopback"}]}


def answers(instance):
    try:
        ctr(instance, "version")
        return True
    except Trouble:
        return False


def ctr(instance, *words):
    return run("ctr", "--address", f"{instance.sockets}/containerd", "--namespace", "k8s.io", *words)


def load(instance, path):
    """Brings a docker-archive into the node; Pods name it with imagePullPolicy Never."""
    ctr(instance, "images", "import", path)


# kubelet

def cgroup_roots(instance):
    """Returns the folders of the node's cgroups: one in each hierarchy of version 1, or the one of version 2."""
    top = "/sys/fs/cgroup"
    if os.path.exists(f"{top}/cgroup.controllers"):
        return [f"{top}/{instance.mark}"]
    return [f"{path}/{instance.mark}" for path in glob.glob(f"{top}/*") if os.path.isdir(path) and not os.path.islink(path)]


def start_kubelet(instance):
    for path in cgroup_roots(instance):
        os.makedirs(path, exist_ok=True)
    ports = instance.state["ports"]
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": "127.0.0.1", "port": ports["kubelet"], "readOnlyPort": 0,
        "healthzBindAddress": "127.0.0.1", "healthzPort": ports["kubelet_health"],
        "tlsCertFile": f"{instance.folder}/pki/kubelet.crt", "tlsPrivateKeyFile": f"{instance.folder}/pki/kubelet.key",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {"clientCAFile": f"{instance.folder}/pki/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{instance.mark}", "failSwapOn": False,
        "podPidsLimit": 512,
        "clusterDomain": "cluster.local", "clusterDNS": ["10.96.0.10"], "resolvConf": "/etc/resolv.conf",
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "makeIPTablesUtilChains": False,  # kube-proxy makes the ones that it needs, where it runs
        "featureGates": {"DevicePlugins": False},  # their socket has one place on a machine, and GPUs here are imitated
        "nodeStatusUpdateFrequency": "5s", "syncFrequency": "10s", "serializeImagePulls": False,
        "volumePluginDir": f"{instance.folder}/kubelet/volume-plugins", "containerLogMaxSize": "10Mi",
    }
    write(f"{instance.folder}/kubelet.json", json.dumps(config, indent=1))
    socket = f"unix://{instance.sockets}/containerd"
    # In the mount namespace of containerd: it must see the volumes that kubelet mounts.
    instance.spawn("kubelet", "nsenter", f"--mount=/proc/{instance.pid('containerd')}/ns/mnt",
                   binaries.path("kubelet"), f"--config={instance.folder}/kubelet.json", f"--kubeconfig={instance.credentials('kubelet')}",
                   "--container-runtime=remote", f"--container-runtime-endpoint={socket}", f"--image-service-endpoint={socket}",
                   f"--root-dir={instance.folder}/kubelet", f"--cert-dir={instance.folder}/kubelet/pki", f"--hostname-override={NAME}",
                   f"--pod-infra-container-image={images.PAUSE}")


# version = 2 is the format's; sockets of /run have short paths; network namespaces lie in the instance's folder.
CONTAINERD = """version = 2
root = "{folder}/containerd"
state = "{sockets}/state"
[grpc]
  address = "{sockets}/containerd"
[debug]
  address = "{sockets}/debug"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "{sockets}/runc"
"""


# The end

def stop(instance):
    """Ends the node and its Pods at once, found by the kernel's data: this works after any crash, too."""
    instance.stop("kubelet")
    instance.stop("containerd")
    until(lambda: not end_pods(instance), "the processes of its Pods end")
    until(lambda: not remove_cgroups(instance), "its cgroups can be removed")
    if os.path.exists(f"/sys/class/net/{instance.mark}"):
        run("ip", "link", "delete", instance.mark)
    shutil.rmtree(instance.sockets, ignore_errors=True)


def until(check, what, seconds=15):
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            raise Trouble(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def pods(instance):
    """Returns the processes in the node's cgroups."""
    found = set()
    for root in cgroup_roots(instance):
        for folder, _, _ in os.walk(root):
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", encoding="ascii") as file:
                found.update(int(pid) for pid in file.read().split())
    return sorted(found)


def shims(instance):
    """Returns containerd's shims of this node: each one's command line has the socket."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            if words[0].startswith(b"/usr/bin/containerd-shim") and f"{instance.sockets}/containerd".encode() in words:
                found.append(int(pid))
    return found


def end_pods(instance):
    """Kills processes and shims of Pods, and returns those that still lived. Thaws them first: runc freezes a container while it ends it, a
    frozen process does not die, and its shim may be gone by then."""
    for root in cgroup_roots(instance):
        for folder, _, files in os.walk(root):
            for name, word in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
                if name in files:
                    with contextlib.suppress(OSError):
                        write(f"{folder}/{name}", word)
    return kill(pods(instance) + shims(instance))


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def remove_cgroups(instance):
    """Removes the cgroups. Returns those that could not be removed yet."""
    left = []
    for root in cgroup_roots(instance):
        for folder, _, _ in os.walk(root, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                left.append(folder)
    return left
