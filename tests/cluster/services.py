"""Services: kube-proxy, and the API server at kubernetes.default for Pods. One on a machine: its firewall chains have fixed names."""

import json
import re
import subprocess

import binaries
import images
import node
from control_plane import gateway
from places import Trouble, run

TABLES = ("nat", "filter", "mangle")
POD_PORT = 6443


def start(instance):
    if instance.pid("proxy") is None:
        if chains("nat"):
            raise Trouble("another cluster's kube-proxy has its chains in this machine's firewall; take that one down first")
        instance.note("services", True)
        start_proxy(instance)
    if instance.pid("api-for-pods") is None:
        make_bridge(instance)
        instance.spawn("api-for-pods", "socat", f"TCP-LISTEN:{POD_PORT},bind={gateway(instance)},fork,reuseaddr",
                       f"TCP:127.0.0.1:{instance.state['ports']['api']}")
    instance.kubectl("apply", "-f", "-", input=json.dumps({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "kubernetes", "namespace": "default"},
        "subsets": [{"addresses": [{"ip": gateway(instance)}], "ports": [{"name": "https", "port": POD_PORT, "protocol": "TCP"}]}]}))
    instance.wait_for("kube-proxy has its rules", lambda: chains("nat"), 30, "proxy")


def start_proxy(instance):
    """Starts it without its settings for conntrack, which are read-only in many containers."""
    ports = instance.state["ports"]
    instance.spawn("proxy", binaries.path("kube-proxy"), f"--kubeconfig={instance.credentials('proxy')}", "--proxy-mode=iptables",
                   "--cluster-cidr=10.244.0.0/16", f"--hostname-override={node.NAME}", "--conntrack-max-per-core=0",
                   "--conntrack-tcp-timeout-established=0s", "--conntrack-tcp-timeout-close-wait=0s",
                   f"--healthz-bind-address=127.0.0.1:{ports['proxy_health']}", f"--metrics-bind-address=127.0.0.1:{ports['proxy_metrics']}")


def make_bridge(instance):
    """Lets a first Pod make the bridge, because socat needs the bridge's address."""
    def has_address():
        done = subprocess.run(["ip", "-4", "-o", "address", "show", "dev", instance.mark], capture_output=True, text=True, check=False)
        return gateway(instance) in done.stdout

    if not has_address():
        instance.kubectl("run", "bridge-maker", f"--image={images.BUSYBOX}", "--image-pull-policy=Never", "--restart=Never", "--", "true")
        instance.wait_for("the first Pod has made the bridge", has_address, 60, "kubelet")
        instance.kubectl("delete", "pod", "bridge-maker", "--wait=false")


def chains(table):
    """Returns Kubernetes' chains of a table of the firewall."""
    done = subprocess.run(["iptables-save", "-t", table], capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"^:(KUBE-[A-Z0-9-]+)", done.stdout, re.MULTILINE)))


def clean_up():
    """Takes every rule to such a chain out of the other chains, then the chains; other rules are untouched."""
    for table in TABLES:
        named = chains(table)
        if not named:
            continue
        rules = run("iptables-save", "-t", table).splitlines()
        lines = [f"-D{rule[2:]}" for rule in rules if re.match(r"-A (?!KUBE-).* -j KUBE-", rule)]
        lines += [f"-F {chain}" for chain in named] + [f"-X {chain}" for chain in named]
        run("iptables-restore", "--noflush", input="\n".join([f"*{table}", *lines, "COMMIT", ""]))
