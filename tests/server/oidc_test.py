#!/usr/bin/env python3
# suite: seconds=70 needs=node
"""Tokens of an independent OpenID Connect issuer (oidc-provider, from npm), and forged ones."""

import base64
import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, SLOWER, Server, free_port, main, npm_ci, pool_yaml, wait_for  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "oidc")
CLAIMS = {"alice": {"tenant": "acme"}, "bob": {"tenant": "beta"}, "olga": {"tenant": "acme", "groups": ["staff", "ops"]}, "root": {"tenant": "acme", "groups": "admins"}, "nobody": {}}
ISSUER = """issuers:
- issuer: URL
  audience: hearth
  tenantClaim: /tenant
  roles: [{claim: /groups, value: ops, role: operator}, {claim: /groups, value: admins, role: admin}]
"""


def part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def parts(token):
    return [json.loads(base64.urlsafe_b64decode(one + "==")) for one in token.split(".")[:2]]


class Issuer:
    def __init__(self, algorithm="RS256"):
        self.port, self.env = free_port(), dict(os.environ, ISSUER_CLAIMS=json.dumps(CLAIMS), ISSUER_ALGORITHM=algorithm)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        npm_ci(FOLDER)
        self.start()
        return self

    def start(self):
        self.process = subprocess.Popen(["node", "issuer.mjs"], cwd=FOLDER, env=dict(self.env, ISSUER_PORT=str(self.port)), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout.readline().strip() == str(self.port)

    def stop(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def rotate(self):
        self.process.stdin.write("rotate\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def ask(self, path, fields=None, who=None):
        request = urllib.request.Request(self.url + path, data=urllib.parse.urlencode(fields).encode() if fields else None)
        if who:
            request.add_header("Authorization", "Basic " + base64.b64encode(f"{who}:secret-{who}".encode()).decode())
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def token(self, who, audience="hearth"):
        return self.ask("/token", {"grant_type": "client_credentials", "scope": "run", "resource": f"urn:{audience}"}, who)["access_token"]


OPERATOR = "a-token-of-the-operator-of-this-test"


@contextlib.contextmanager
def serving(issuer, file=ISSUER, static=True):
    """Yields a server that accepts the issuer's tokens and, if `static`, one of its own."""
    tokens = f"tokens: [{{name: ops, role: admin, sha256: {hashlib.sha256(OPERATOR.encode()).hexdigest()}}}]\n"
    server = Server(pools=pool_yaml(warm=2), config=tokens if static else None)
    server.extra += ["--oidc", os.path.join(server.data, "issuers.yaml"), "--audit-log", os.path.join(server.data, "audit.log")]
    with open(os.path.join(server.data, "issuers.yaml"), "w", encoding="utf-8") as f:
        f.write(file.replace("URL", issuer.url))
    end = OPERATOR if static else issuer.token("root")
    with server:
        try:
            yield server
        finally:
            server.token = end


def ask(server, token, method="GET", path="/v1/workspaces", body=None):
    return server.call(method, path, body, headers={"Authorization": f"Bearer {token}"} if token else None)


def taken(server, token, **options):
    """Returns the answer after the issuer's keys have been read."""
    answers = []

    def there():
        answers.append(ask(server, token, **options))
        return answers[-1].status != 503

    wait_for("the issuer's keys", there, 20)
    return answers[-1]


def reasons(server):
    with open(os.path.join(server.data, "audit.log"), encoding="utf-8") as f:
        return [each["reason"] for each in map(json.loads, f) if "reason" in each]


def mapped():
    """who an issuer's token is, and what it may do, follows from its claims; without a token nobody is let in"""
    for algorithm in ("RS256", "ES256"):
        with Issuer(algorithm) as issuer, serving(issuer, static=algorithm == "RS256") as s:
            alice, bob, olga = (issuer.token(who) for who in ("alice", "bob", "olga"))
            made = taken(s, alice, method="POST", body={})
            assert made.status == 201, made
            workspace = f"/v1/workspaces/{made.json['id']}"
            ran = ask(s, alice, "POST", f"{workspace}/executions", {"command": "echo by alice"})
            assert ran.json["stdout"] == "by alice\n", ran
            assert ask(s, bob, path=workspace).status == 404
            assert [each["id"] for each in ask(s, alice).json["items"]] == [made.json["id"]] and ask(s, bob).json["items"] == []
            assert ask(s, alice, path="/v1/sandboxes").status == 403 and ask(s, olga, path="/v1/sandboxes").status == 200
            assert ask(s, olga, "DELETE", workspace).status == 204
            assert ask(s, olga, "POST", "/v1/tokens", {"name": "n", "tenant": "acme", "role": "user"}).status == 403
            made = ask(s, issuer.token("root"), "POST", "/v1/tokens", {"name": "n", "tenant": "acme", "role": "admin"})
            assert made.status == 201, made
            assert ask(s, None).status == 401
            hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).encode()
            mcp = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            assert s.call("POST", "/mcp", raw=hello, headers=mcp).status == 401
            assert s.call("POST", "/mcp", raw=hello, headers=dict(mcp, Authorization=f"Bearer {alice}")).status == 200
            with open(os.path.join(s.data, "audit.log"), encoding="utf-8") as f:
                lines = [json.loads(line) for line in f]
            assert any(each["operation"] == "createWorkspace" and each["tenant"] == "acme" and each["token"] == f"oidc:{issuer.url[7:]}#alice" for each in lines), lines


def found_by_clients():
    """an MCP client of others finds the issuer by itself: from the challenge, over the documents, to a token for this server"""
    with Issuer() as issuer:
        server = serving(issuer, static=True)
        with server as s:
            s.stop()
            with open(os.path.join(s.data, "issuers.yaml"), "w", encoding="utf-8") as f:
                f.write(ISSUER.replace("URL", issuer.url).replace("audience: hearth", f"audience: [hearth, {s.url}/mcp]"))
            s.extra += ["--public-url", s.url + "/"]
            s.start()
            refusal = s.get("/v1/workspaces")
            place = f"{s.url}/.well-known/oauth-protected-resource/mcp"
            assert refusal.status == 401 and refusal.headers["www-authenticate"] == f'Bearer resource_metadata="{place}"', refusal.headers
            wrong = ask(s, "a.b.c")
            assert wrong.headers["www-authenticate"].endswith(', error="invalid_token"'), wrong.headers
            for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
                told = s.get(path).json
                assert told["resource"] == s.url + "/mcp" and told["authorization_servers"] == [issuer.url], told
            taken(s, issuer.token("alice"))  # the keys are there
            done = subprocess.run(["node", os.path.join(FOLDER, "client.mjs")], capture_output=True, text=True, check=False,
                                  timeout=120 * SLOWER, env={**os.environ, "HEARTH_URL": s.url, "CLIENT": "alice", "SECRET": "secret-alice", "ISSUER": issuer.url})
            assert done.returncode == 0 and "hello alice" in done.stdout, (done, s.log()[-2000:])
            s.stop()
            s.extra = s.extra[:-2]
            s.start()
            assert s.get("/.well-known/oauth-protected-resource").status in (401, 404)
            assert s.get("/v1/workspaces").headers["www-authenticate"] == "Bearer"


def refused():
    """forged tokens, and those for others, are refused in the same words; the audit log has the reasons"""
    with Issuer() as issuer, Issuer() as other, serving(issuer) as s:
        good = issuer.token("alice")
        assert taken(s, good).status == 200
        head, claims = parts(good)
        signature = good.split(".")[2]
        public = issuer.ask("/jwks")["keys"][0]

        def forged(header=None, body=None, sign=lambda text: signature):
            text = part(json.dumps(header or head).encode()) + "." + part(json.dumps(body or claims).encode())
            return f"{text}.{sign(text)}"

        def hmac_with(key):
            return lambda text: part(hmac.new(key, text.encode(), hashlib.sha256).digest())

        cases = [(issuer.token("alice", "elsewhere"), "jwt_audience"), (issuer.token("nobody"), "jwt_tenant"), (other.token("alice"), "jwt_issuer"),
                 (forged(body=dict(claims, tenant="beta")), "jwt_signature"), (forged(body=dict(claims, exp=claims["exp"] + 9999)), "jwt_signature"),
                 (forged(dict(head, alg="none"), sign=lambda _: ""), "jwt_algorithm"), (forged(dict(head, alg="None")), "jwt_algorithm"),
                 (forged(dict(head, alg="HS256"), sign=hmac_with(json.dumps(public).encode())), "jwt_algorithm"),
                 (forged(dict(head, alg="HS256"), sign=hmac_with(base64.urlsafe_b64decode(public["n"] + "=="))), "jwt_algorithm"),
                 (forged(dict(head, alg="ES256")), "jwt_key"), (forged(dict(head, jwk=public)), "jwt_header"),
                 (forged(dict(head, jku=f"{other.url}/jwks")), "jwt_header"), (forged(dict(head, crit=["exp"])), "jwt_header"),
                 ("a.b.c", "jwt_malformed"), (good + ".x", None), (good[:-9], "jwt_signature")]
        words = set()
        for token, _ in cases:
            answer = ask(s, token)
            assert answer.status == 401, (token, answer)
            words.add((answer.json["detail"], answer.json.get("hint")))
        said = {reason for _, reason in cases if reason}
        wait_for("the audit log", lambda: set(reasons(s)) >= said, 10)
        assert set(reasons(s)) == said, set(reasons(s)) ^ said
        assert len(words) == 2, words  # one for texts that are no issuer's tokens at all
        assert not any(reason in str(words) for reason in said), words
        assert ask(s, good).status == 200


def keys_change():
    """new keys are found when a token names one; those of before go; with the issuer away its tokens stay good, but not for a new server"""
    with Issuer() as issuer, serving(issuer) as s:
        before = issuer.token("alice")
        assert taken(s, before).status == 200
        issuer.rotate()
        after = issuer.token("alice")
        wait_for("the new key", lambda: ask(s, after).status == 200, 45)
        assert ask(s, before).status == 401
        issuer.stop()
        assert ask(s, after).status == 200
        s.stop()
        s.start()
        answer = ask(s, after)
        assert answer.status == 503 and answer.headers.get("retry-after"), answer
        assert "oidc.keys_not_read" in s.log() and issuer.url in s.log()


def wrong_file():
    """a file of issuers that cannot be used stops the start, and every fault in it is named"""
    with Issuer() as issuer:
        server = Server(pools=pool_yaml())
        path = os.path.join(server.data, "issuers.yaml")
        for text, said in (("issuers:\n- issuer: http://login.example\n  tenant: a\n", ("/issuers/0/issuer", "https", "/issuers/0/audience")),
                           ("issuers: [", ("issuers.yaml",)), (ISSUER.replace("URL", issuer.url) + "  caFile: /none\n", ("/none",))):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            failed = subprocess.run([os.path.join(BUILD, "hearth"), "serve", "--data-dir", server.data, "--oidc", path, "--listen",
                                     f"127.0.0.1:{server.port}", "--ops-listen", f"127.0.0.1:{server.ops_port}"],
                                    capture_output=True, text=True, timeout=60 * SLOWER, check=False)
            assert failed.returncode != 0 and all(word in failed.stderr for word in said), failed.stderr
        server.start()
        server.stop()


for test in (mapped, found_by_clients, refused, keys_change, wrong_file):
    test.only = "oci"

if __name__ == "__main__":
    main("server", [mapped, found_by_clients, refused, keys_change, wrong_file])
