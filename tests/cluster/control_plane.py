"""etcd, the API server, the controllers and the scheduler, all on loopback."""

import http.client
import json
import ssl
import urllib.request

import binaries
import certificates

SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"  # the API server's, for Pods


def gateway(instance):
    """Returns the node's address in the network of its Pods."""
    return f"10.244.{instance.state['number']}.1"


def start_api(instance):
    certificates.make(instance.folder, instance.url("api"), [SERVICE_ADDRESS, gateway(instance)])
    if instance.pid("etcd") is None:
        start_etcd(instance)
    if instance.pid("apiserver") is None:
        instance.spawn("apiserver", *api_command(instance))
    wait_for_api(instance)


def start_etcd(instance):
    client, peer = instance.url("etcd", "http"), instance.url("etcd_peer", "http")
    instance.spawn("etcd", "etcd", "--name=t", f"--data-dir={instance.folder}/etcd",
                   f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=t={peer}", "--unsafe-no-fsync")


def api_command(instance):
    pki = f"{instance.folder}/pki"
    return [
        binaries.path("kube-apiserver"), f"--etcd-servers={instance.url('etcd', 'http')}",
        "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={instance.state['ports']['api']}", "--insecure-port=0",
        "--endpoint-reconciler-type=none",  # it refuses to publish an address of the loopback
        f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={pki}/ca.crt",
        f"--service-account-key-file={pki}/sa.pub", f"--service-account-signing-key-file={pki}/sa.key",
        "--service-account-issuer=https://kubernetes.default.svc", "--api-audiences=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        # Logs and exec dial the kubelet, which is on loopback: by the node's name, not by its address.
        "--kubelet-preferred-address-types=Hostname", f"--kubelet-client-certificate={pki}/admin.crt",
        f"--kubelet-client-key={pki}/admin.key", f"--kubelet-certificate-authority={pki}/ca.crt",
        # Without these the controllers and the scheduler log errors.
        f"--requestheader-client-ca-file={pki}/ca.crt", "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User", f"--proxy-client-cert-file={pki}/front.crt", f"--proxy-client-key-file={pki}/front.key",
    ]


def request(instance, method, path, body=None, kind="application/json"):
    """Returns the body of the API server's answer to its administrator. Raises OSError if it refuses or is away."""
    pki = f"{instance.folder}/pki"
    context = ssl.create_default_context(cafile=f"{pki}/ca.crt")
    context.load_cert_chain(f"{pki}/admin.crt", f"{pki}/admin.key")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(instance.url("api") + path, data, {"Content-Type": kind}, method=method)
    with opener.open(asked, timeout=5) as answer:
        return answer.read()


def api_answers(instance):
    try:
        return request(instance, "GET", "/readyz") == b"ok"
    except (OSError, http.client.HTTPException):
        return False


def wait_for_api(instance):
    instance.wait_for("the API server is ready", lambda: api_answers(instance), 90, "apiserver")


def start_controllers(instance):
    """Starts them without the leader election: with it, they end whenever the API server stalls."""
    pki = f"{instance.folder}/pki"
    if instance.pid("controllers") is None:
        instance.spawn("controllers", binaries.path("kube-controller-manager"), *as_user(instance, "controllers"),
                       f"--service-account-private-key-file={pki}/sa.key", f"--root-ca-file={pki}/ca.crt", "--use-service-account-credentials=true",
                       f"--cluster-signing-cert-file={pki}/ca.crt", f"--cluster-signing-key-file={pki}/ca.key",
                       "--horizontal-pod-autoscaler-sync-period=5s")
    if instance.pid("scheduler") is None:
        # It starts as many Pods a second as it can: its own limit is 50 calls a second.
        instance.spawn("scheduler", binaries.path("kube-scheduler"), *as_user(instance, "scheduler"), "--kube-api-qps=1000", "--kube-api-burst=1000")


def as_user(instance, user):
    file = instance.credentials(user)
    return [f"--kubeconfig={file}", f"--authentication-kubeconfig={file}", f"--authorization-kubeconfig={file}", "--bind-address=127.0.0.1",
            f"--secure-port={instance.state['ports'][user]}", "--port=0", "--leader-elect=false"]


def stop(instance):
    """Ends the clients first, so that nobody logs errors about a server that is away."""
    for name in ("scheduler", "controllers", "apiserver", "etcd"):
        instance.stop(name)
