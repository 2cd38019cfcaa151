"""The changes of a node to the whole machine: settings of the kernel, and folders whose paths are fixed in Kubernetes'
programs. The first node saves the old state, the last one restores it."""

import contextlib
import json
import os

from places import CACHE

SAVED = f"{CACHE}/machine.json"
SETTINGS = [
    "kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys", "kernel/panic", "kernel/panic_on_oops", "net/bridge/bridge-nf-call-iptables",
    "net/ipv4/conf/all/route_localnet", "net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max", "vm/overcommit_memory", "vm/panic_on_oom",
]
# A node sees folders of its own instead of these, in its own mount namespace.
FOLDERS = ["/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers", "/var/log/pods"]


def settings():
    """Returns the settings that this kernel has, with their values."""
    found = {}
    for name in SETTINGS:
        with contextlib.suppress(OSError), open(f"/proc/sys/{name}", encoding="ascii") as file:
            found[name] = file.read().strip()
    return found


def save():
    """Saves the machine's state, unless an earlier node did. Makes the missing folders."""
    if not os.path.exists(SAVED):
        made = [path for path in FOLDERS if not os.path.exists(path)]
        with open(SAVED, "w", encoding="ascii") as file:
            json.dump({"settings": settings(), "made": made}, file)
    for path in FOLDERS:
        os.makedirs(path, exist_ok=True)


def restore():
    """Restores the saved state. Reports and leaves what cannot be restored: nothing here may stop a clean-up."""
    if not os.path.exists(SAVED):
        return
    with open(SAVED, encoding="ascii") as file:
        saved = json.load(file)
    now = settings()
    for name, value in saved["settings"].items():
        if now.get(name, value) != value:
            put_back(name, value)
    for path in saved["made"]:
        with contextlib.suppress(OSError):  # somebody else uses it by now
            os.rmdir(path)
    os.unlink(SAVED)


def put_back(name, value):
    try:
        with open(f"/proc/sys/{name}", "w", encoding="ascii") as file:
            file.write(value)
    except OSError as error:
        print(f"cannot put back {name}={value}: {error.strerror}")
