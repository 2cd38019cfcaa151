"""Identities from the cluster: Hearth accepts tokens of its ServiceAccounts, and nothing else of theirs."""

import base64
import json
import os
import tempfile

from harness import Server, pool_yaml, wait_for
from session import NAMESPACE, kubectl, own_cluster, session


def token_of(account, audience, namespace=NAMESPACE, seconds=600):
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": [audience], "expirationSeconds": seconds}}
    answer = session.cluster.kubectl("create", "--raw", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", "-f", "-", input=json.dumps(asked))
    return json.loads(answer)["status"]["token"]


def service_accounts():
    """a ServiceAccount's token for Hearth is its namespace's tenant; one for the API server is refused, and so is a changed one"""
    own_cluster("api")
    cluster, other = session.cluster, f"{NAMESPACE}-other"
    issuer = json.loads(cluster.kubectl("get", "--raw", "/.well-known/openid-configuration"))["issuer"]
    cluster.kubectl("create", "namespace", other)
    try:
        for namespace, account in ((NAMESPACE, "worker"), (NAMESPACE, "reader"), (other, "worker")):
            cluster.kubectl("-n", namespace, "create", "serviceaccount", account)
        kubectl("create", "clusterrolebinding", f"{NAMESPACE}-issuer", "--clusterrole=system:service-account-issuer-discovery",
                f"--serviceaccount={NAMESPACE}:reader")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            kubeconfig = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
            server = kubeconfig["clusters"][0]["cluster"]
            with open(f"{folder}/ca.crt", "wb") as f:
                f.write(base64.b64decode(server["certificate-authority-data"]))
            with open(f"{folder}/token", "w", encoding="ascii") as f:
                f.write(token_of("reader", issuer))
            with open(f"{folder}/issuers.json", "w", encoding="utf-8") as f:
                json.dump({"issuers": [{
                    "issuer": issuer, "audience": "hearth", "tenantClaim": "/kubernetes.io/namespace", "tenantPrefix": "k8s.",
                    "keysUrl": f"{server['server']}/openid/v1/jwks", "caFile": f"{folder}/ca.crt", "tokenFile": f"{folder}/token",
                    "roles": [{"claim": "/sub", "value": f"system:serviceaccount:{NAMESPACE}:reader", "role": "admin"}]}]}, f)
            with Server(pools=pool_yaml(warm=2), runtime="fake", args=["--oidc", f"{folder}/issuers.json"]) as s:
                def ask(token, method="GET", path="/v1/workspaces"):
                    return s.call(method, path, {} if method == "POST" else None, headers={"Authorization": f"Bearer {token}"})

                mine, theirs = token_of("worker", "hearth"), token_of("worker", "hearth", other)
                wait_for("the cluster's keys", lambda: ask(mine).status != 503, 20)
                made = ask(mine, "POST")
                assert made.status == 201, (made, s.log()[-2000:])
                path = f"/v1/workspaces/{made.json['id']}"
                assert ask(mine, path=path).status == 200 and ask(theirs, path=path).status == 404
                s.token = token_of("reader", "hearth")
                assert s.get("/v1/sandboxes").status == 200 and ask(mine, path="/v1/sandboxes").status == 403
                assert ask(token_of("worker", issuer)).status == 401, "a token for the API server was taken"
                assert ask(mine[:-6] + "AAAAAA").status == 401
    finally:
        cluster.kubectl("delete", "namespace", other, "--wait=false")
        cluster.kubectl("delete", "clusterrolebinding", f"{NAMESPACE}-issuer", "--ignore-not-found")


CASES = [service_accounts]
