"""The cluster's own authority, a certificate for each part, and a kubeconfig for each user."""

import base64
import json
import os

from places import run, write

DAYS = "365"
USERS = {  # subjects, as Kubernetes reads them: CN is the user, O its groups
    "admin": "/O=system:masters/CN=admin",
    "controllers": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "kubelet": "/O=system:nodes/CN=system:node:localhost",
    "proxy": "/CN=system:kube-proxy",
}
SERVICE_NAMES = "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def make(folder, server, addresses):
    """Makes all of them in `folder`/pki, and `folder`/USER.kubeconfig for the API server at the URL `server`. `addresses`:
    the API server's addresses besides those of the loopback. Does nothing if they exist already."""
    pki = f"{folder}/pki"
    if os.path.exists(f"{pki}/complete"):
        return
    os.makedirs(pki, mode=0o700, exist_ok=True)
    run("openssl", "req", "-x509", *EC, "-days", DAYS, "-keyout", f"{pki}/ca.key", "-out", f"{pki}/ca.crt", "-subj", "/CN=kubernetes-ca",
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    others = "".join(f",IP:{address}" for address in addresses)
    signed(pki, "apiserver", "/CN=kube-apiserver", f"IP:127.0.0.1,DNS:localhost{others},{SERVICE_NAMES}")
    signed(pki, "front", "/CN=front-proxy-client")
    for user, subject in USERS.items():
        signed(pki, user, subject, "DNS:localhost,IP:127.0.0.1" if user == "kubelet" else "")
        write_kubeconfig(folder, user, server)
    # RSA: the tokens of service accounts are RS256, like those of most clusters.
    run("openssl", "genrsa", "-out", f"{pki}/sa.key", "2048")
    run("openssl", "rsa", "-in", f"{pki}/sa.key", "-pubout", "-out", f"{pki}/sa.pub")
    write(f"{pki}/complete", "")


def signed(pki, name, subject, alternatives=""):
    run("openssl", "req", *EC, "-keyout", f"{pki}/{name}.key", "-out", f"{pki}/{name}.csr", "-subj", subject)
    usage = "basicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n"
    write(f"{pki}/{name}.ext", usage + (f"subjectAltName={alternatives}\n" if alternatives else ""))
    run("openssl", "x509", "-req", "-in", f"{pki}/{name}.csr", "-CA", f"{pki}/ca.crt", "-CAkey", f"{pki}/ca.key", "-CAcreateserial",
        "-days", DAYS, "-out", f"{pki}/{name}.crt", "-extfile", f"{pki}/{name}.ext")


def write_kubeconfig(folder, user, server):
    """Writes one file with all it needs, like the files of kind. JSON is YAML."""
    def data(name):
        with open(f"{folder}/pki/{name}", "rb") as file:
            return base64.b64encode(file.read()).decode()

    write(f"{folder}/{user}.kubeconfig", json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "hearth-test",
        "clusters": [{"name": "hearth-test", "cluster": {"server": server, "certificate-authority-data": data("ca.crt")}}],
        "users": [{"name": user, "user": {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")}}],
        "contexts": [{"name": "hearth-test", "context": {"cluster": "hearth-test", "user": user}}]}, indent=1) + "\n", mode=0o600)
