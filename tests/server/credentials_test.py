#!/usr/bin/env python3
"""Credentials that code uses but cannot read: an outside service accepts every caller with the token; the sandbox
never has it, wherever it looks and whatever it asks for."""

import contextlib
import json
import os
import secrets
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from egress_test import pool, python  # noqa: E402
from harness import Server, main, wait_for  # noqa: E402
from openapi import Described  # noqa: E402
from service import Service  # noqa: E402


def egress_pool(service, *credentials, allow=(), warm=1):
    text = pool("e", "Egress", [service.authority, *allow], warm=warm)
    return text.replace("mode: Egress,", f"mode: Egress, credentials: {json.dumps(list(credentials))},")


def stored(service, **more):
    return dict({"host": service.authority, "scheme": "https" if service.tls else "http", "secret": "service-token"}, **more)


@contextlib.contextmanager
def secret_files(**values):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name, value in values.items():
            path = os.path.join(folder, *name.split("/"))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(value + "\n")
        yield folder


def serving(service, folder, *pools):
    args = ["--egress-exempt", "127.0.0.0/8", "--egress-secrets", folder]
    if service.tls:
        args += ["--egress-ca", service.ca]
    return Server(pools="---\n".join(pools), args=args, ready_within=300)


ASK = """
import json, sys, urllib.request, urllib.error
def ask(url, data=None, method=None, headers={}):
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, dict(e.headers), e.read().decode()
"""


def no_token(s, token, *answers):
    """Checks that the token is in no answer, log, file of the server, command line or environment."""
    for answer in answers:
        assert token not in json.dumps(answer), answer
    assert token not in s.log()
    for folder, _, files in os.walk(s.data):
        for name in files:
            if "rootfs" in folder or "images" in folder:
                continue
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                assert token.encode() not in file.read(), os.path.join(folder, name)
    assert token not in s.ops("/metrics").body.decode()


def used_not_read():
    """a script calls an authenticated service and can print the token nowhere: over TLS, and in plain HTTP"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as secure, Service(token, tls=False) as plain, secret_files(**{"service-token": token}) as folder:
        with serving(secure, folder, egress_pool(secure, stored(secure), stored(plain), allow=[plain.authority])) as s:
            workspace = s.open_workspace(pool="e")
            assert workspace["credentials"] == [{"host": service.authority, "scheme": scheme, "header": "Authorization",
                                                 "template": "Bearer {}", "secret": "service-token"}
                                                for service, scheme in ((secure, "https"), (plain, "http"))]
            for service in (secure, plain):
                done = python(s, workspace["id"], ASK + f"""
print(ask("{service.url}/hello"))
print(ask("{service.url}/hello", b"x" * 200_000))
status, headers, text = ask("{service.url}/echo?key=mine", headers={{"Authorization": "Bearer mine", "Accept-Encoding": "gzip"}})
print(status, headers, text)
print(ask("{service.url}/pieces"))
print(len(ask("{service.url}/big")[2]))
print(ask("{service.url}/hello", method="HEAD")[0], ask("{service.url}/hello", method="DELETE")[0])
print(ask("{service.url}/hello", method="TRACE")[0])
print(ask("{service.url}/zipped"), "Range" in ask("{service.url}/echo", headers={{"Range": "bytes=0-3", "authorization_": "x"}})[2])
import os
print(os.environ)
""", timeoutSeconds=60)
                assert done["status"] == "ok", done
                lines = done["stdout"].splitlines()
                assert lines[0].startswith("(200,") and "welcome 0 " in lines[0], done
                assert lines[1].startswith("(200,") and "welcome 200000 " in lines[1], done
                assert "Bearer " + "*" * len(token) in done["stdout"] and "Bearer mine" not in done["stdout"], done
                assert "token " + "*" * len(token) + " end" in done["stdout"], done
                assert "\n3000000\n200 200\n403\n(502, " in done["stdout"] and "encoded" in done["stdout"] and " False\n" in done["stdout"], done
                no_token(s, token, done)
            # Everything that /proc shows of the sandbox's own processes.
            sweep = s.run(workspace["id"], "cat /proc/*/environ /proc/*/cmdline /proc/mounts 2>/dev/null | tr '\\0' '\\n'; env; "
                                           "grep -rs hearth- /tmp /dev/shm /workspace /.hearth/run | head", timeoutSeconds=60)
            seen = s.get(f"/v1/workspaces/{workspace['id']}/egress").json
            no_token(s, token, sweep, workspace, s.get("/v1/pools/e").json, seen)
            kinds = [(e["kind"], e["decision"]) for e in seen["latest"]]
            described = Described(s.get("/openapi.json").json)
            described.conforms(seen, described.answer_of("getWorkspaceEgress"), "an answer of all kinds but mirror")
            assert {kind for kind, _ in kinds} == {"http", "https", "tunnel"}, kinds
            assert kinds.count(("https", "allowed")) == 8 and kinds.count(("http", "allowed")) == 8, kinds


def however_written():
    """the token comes back in no escape, over no line's end, in no charset and by no other protocol"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as service, secret_files(**{"service-token": token}) as folder:
        with serving(service, folder, egress_pool(service, stored(service))) as s:
            workspace = s.open_workspace(pool="e")["id"]
            done = python(s, workspace, ASK + f"""
import base64, html, quopri, re, urllib.parse
status, headers, text = ask("{service.url}/written")
print(status, len(text))
plain = text.replace("=\\r\\n", "").replace("\\\\\\n", "")
for read in (plain, text.replace("\\r", "").replace("\\n", ""), html.unescape(text), urllib.parse.unquote(text), quopri.decodestring(text.encode()).decode(),
             re.sub(r"[\\\\]u\\{{(\\w+)\\}}", lambda m: chr(int(m[1], 16)), text), text.encode().decode("unicode_escape", "replace")):
    print("hearth-" in read, base64.b64encode(read.encode()).decode())
for path in ("/wide", "/switched"):
    print(ask("{service.url}" + path, headers={{"Accept": "text/plain;charset=utf-16", "Accept-Charset": "utf-16"}}))
print(ask("{service.url}/echo", headers={{"Accept": "text/plain;charset=utf-16", "Accept-Charset": "utf-16"}})[2].lower().count("charset"))
""", timeoutSeconds=60)
            lines = done["stdout"].splitlines()
            assert lines[0].startswith("200 "), done
            assert [line.split()[0] for line in lines[1:8]] == ["False"] * 7, done
            assert lines[8].startswith("(502,") and "utf-16" in lines[8], lines
            assert lines[9].startswith("(502,") and "another protocol" in lines[9], lines
            assert lines[10] == "0", lines
            no_token(s, token, done)
            seen = s.get(f"/v1/workspaces/{workspace}/egress").json
            assert [e["decision"] for e in seen["latest"] if e["kind"] == "https"] == ["allowed", "switched", "charset", "allowed"], seen


def other_places():
    """basic, a header of another name and a parameter of the URL; the tenant's own of the same name is replaced"""
    token = "hearth-" + secrets.token_hex(12)
    places = [{"basic": "robot"}, {"header": "X-Api-Key"}, {"query": "key"}]
    with contextlib.ExitStack() as stack:
        services = [stack.enter_context(Service(token, tls=False)) for _ in places]
        folder = stack.enter_context(secret_files(**{"service-token": token}))
        credentials = [stored(service, **place) for service, place in zip(services, places)]
        text = egress_pool(services[0], *credentials, allow=[service.authority for service in services])
        s = stack.enter_context(serving(services[0], folder, text))
        workspace = s.open_workspace(pool="e")["id"]
        for service, place in zip(services, places):
            done = python(s, workspace, ASK + f"""
print(ask("{service.url}/echo?a=1&key=mine&b=2", headers={{"X-Api-Key": "mine"}}))
print(ask("{service.url}/away?c=3"))
""", timeoutSeconds=60)
            assert done["stdout"].count("(200,") == 2, (place, done)
            no_token(s, token, done)
        assert services[2].asked[0][1].startswith("/echo?a=1&b=2&key=hearth-"), services[2].asked


def of_a_claim():
    """a claim brings a value or names a secret of its tenant; a restart of the server keeps them, and nobody else has them"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as service, secret_files(**{"tenants/default/mine": token, "operators": token}) as folder:
        with serving(service, folder, egress_pool(service, warm=3)) as s:
            brought = s.open_workspace(pool="e", credentials=[{"host": service.authority, "value": token}])
            named = s.open_workspace(pool="e", credentials=[{"host": service.authority, "secret": "mine"}])
            without = s.open_workspace(pool="e")["id"]
            operators = s.open_workspace(pool="e", credentials=[{"host": service.authority, "secret": "operators"}])["id"]
            ask = ASK + f'print(ask("{service.url}/hello")[0])'
            assert brought["credentials"][0].get("value") is None
            for restarted in (False, True):
                if restarted:
                    s.kill9()
                    s.start()
                for workspace in (brought["id"], named["id"]):
                    done = python(s, workspace, ask, timeoutSeconds=60)
                    assert done["stdout"].strip() == "200", (restarted, done)
                refused = python(s, operators, ask + f'\nprint(ask("{service.url}/hello"))', timeoutSeconds=60)
                assert refused["stdout"].startswith("502\n") and "secret operators is not there" in refused["stdout"], refused
            # Without a credential there is no proxy between them, and the sandbox does not know the service's own
            # authority.
            plain = python(s, without, ask, timeoutSeconds=60)
            assert "CERTIFICATE_VERIFY_FAILED" in json.dumps(plain["error"]), plain
            no_token(s, token, brought, named)
            for name in os.listdir(os.path.join(s.data, "state")):
                if name.endswith(".db"):
                    with contextlib.closing(sqlite3.connect(os.path.join(s.data, "state", name))) as db:
                        assert token not in "\n".join(db.iterdump())


def rotated():
    """a secret that is replaced counts at the next request, one that has gone is told in words"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as service, secret_files(**{"service-token": "stale-" + token}) as folder:
        with serving(service, folder, egress_pool(service, stored(service))) as s:
            workspace = s.open_workspace(pool="e")["id"]
            ask = ASK + f'print(ask("{service.url}/hello"))'
            assert python(s, workspace, ask)["stdout"].startswith("(401,")
            with open(os.path.join(folder, "service-token"), "w") as out:
                out.write(token)
            assert python(s, workspace, ask)["stdout"].startswith("(200,")
            os.remove(os.path.join(folder, "service-token"))
            gone = python(s, workspace, ask)["stdout"]
            assert gone.startswith("(502,") and "the secret service-token is not there" in gone, gone


def only_there():
    """neither another host, nor another port, nor another name in a tunnel gets them; the certificate outside is verified"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as service, Service(token, tls=False, host="127.0.0.3") as other, secret_files(**{"service-token": token}) as folder:
        text = egress_pool(service, stored(service), allow=[other.authority, f"127.0.0.4:{service.port}"])
        with serving(service, folder, text) as s:
            workspace = s.open_workspace(pool="e")["id"]
            done = python(s, workspace, ASK + f"""
import socket, ssl
print(ask("{other.url}/hello")[0])
def tunnel(host, name):
    raw = socket.create_connection(("127.0.0.1", 3128), 10)
    raw.sendall(f"CONNECT {service.authority} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
    assert b" 200 " in raw.recv(1000)
    context = ssl.create_default_context()
    context.check_hostname = name is None
    try:
        with context.wrap_socket(raw, server_hostname=name or "{service.host}") as tls:
            tls.sendall(f"GET /echo HTTP/1.1\\r\\nHost: {{host}}\\r\\nConnection: close\\r\\n\\r\\n".encode())
            return tls.recv(100).decode().splitlines()[0]
    except OSError as e:
        return type(e).__name__
print(tunnel("{other.authority}", None))
print(tunnel("{service.authority}", None))
print(tunnel("{service.authority}", "elsewhere.example"))
""", timeoutSeconds=60)
            lines = done["stdout"].splitlines()
            assert lines[0] == "401" and " 421 " in lines[1] and " 200 " in lines[2] and "Error" in lines[3], done
            assert all(token not in json.dumps(asked) for asked in other.asked), other.asked
        # The service's certificate is from an authority that the server does not know.
        with Server(pools=egress_pool(service, stored(service)), ready_within=300,
                    args=("--egress-exempt", "127.0.0.0/8", "--egress-secrets", folder)) as s:
            asked = len(service.asked)
            done = python(s, s.open_workspace(pool="e")["id"], ASK + f'print(ask("{service.url}/hello"))')
            assert done["stdout"].startswith("(502,") and "is not trusted" in done["stdout"], done
            assert len(service.asked) == asked


def hanging():
    """an answer that breaks off, and a client that goes in the middle, leave nothing behind; a stop does not wait for them"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as service, secret_files(**{"service-token": token}) as folder:
        with serving(service, folder, egress_pool(service, stored(service))) as s:
            workspace = s.open_workspace(pool="e")["id"]
            done = python(s, workspace, ASK + f"""
try:
    print(ask("{service.url}/hang"))
except Exception as e:
    print(type(e).__name__)
print(ask("{service.url}/hello")[0])
""", timeoutSeconds=60)
            assert done["stdout"].splitlines()[1:] == ["200"] and "(200" not in done["stdout"], done
            s.run(workspace, f"timeout 1 python3 -c 'import urllib.request as u; u.urlopen(\"{service.url}/big\").read(10); "
                             "import time; time.sleep(9)' || true")
            assert s.call("DELETE", f"/v1/workspaces/{workspace}").status == 204
            wait_for("the connections to end", lambda: not established(s, service.port))


def established(s, port):
    """Returns the server's connections to the service."""
    found = []
    with open("/proc/net/tcp") as table:
        for line in table.readlines()[1:]:
            words = line.split()
            if words[3] == "01" and words[2].endswith(f":{port:04X}"):
                found.append(line)
    return found


def not_there():
    """a pool whose credential is not to be had says which and why, serves all the same, and says no more once the file is there"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as service, secret_files() as folder:
        def credentials(s):
            return {c["type"]: c for c in s.get("/v1/pools/e").json["status"]["conditions"]}["Credentials"]
        with serving(service, folder, egress_pool(service, stored(service))) as s:
            told = credentials(s)
            assert told["status"] == "False" and told["message"] == "secret service-token: no such file in egress.secrets", told
            assert s.open_workspace(pool="e")["id"]
            assert sum("pool.no_secret" in line for line in s.log().splitlines()) == 1, s.log()
            with open(os.path.join(folder, "service-token"), "w") as out:
                out.write(token + "\n")
            wait_for("the condition", lambda: s.call("PUT", "/v1/pools/e", s.get("/v1/pools/e").json).json and credentials(s)["status"] == "True", 90)
            assert token not in s.log()


def declared_wrong():
    """a credential that cannot work is refused with the place where it stands"""
    token = "hearth-" + secrets.token_hex(12)
    with Service(token) as service, secret_files(**{"service-token": token}) as folder:
        with serving(service, folder, egress_pool(service, stored(service))) as s:
            manifest = s.get("/v1/pools/e").json
            wrong = [({"host": "other.example", "secret": "a"}, "/host"), ({"host": service.authority, "value": token}, "/value"),
                     ({"host": service.authority}, "/secret"), ({"host": service.authority, "secret": "../a"}, "/secret"),
                     ({"host": service.authority, "secret": "a", "header": "Host"}, "/header"),
                     ({"host": service.authority, "secret": "a", "template": "x"}, "/template"),
                     ({"host": service.authority, "secret": "a", "basic": "b", "query": "c"}, "")]
            for credential, where in wrong:
                spec = {"template": dict(manifest["spec"]["template"])}
                spec["template"]["network"] = dict(spec["template"]["network"], credentials=[credential])
                answer = s.call("PUT", "/v1/pools/bad", {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool",
                                                         "metadata": {"name": "bad"}, "spec": spec})
                assert answer.status == 422 and f"/spec/template/network/credentials/0{where}\"" in json.dumps(answer.json), (credential, answer)
                assert token not in json.dumps(answer.json)
            for credential, status in (({"host": "other.example", "value": token}, 422), ({"host": service.authority, "value": "short"}, 400),
                                       ({"host": service.authority, "value": token}, 422), ({"host": service.authority, "value": "line\nline\n"}, 400)):
                answer = s.post("/v1/workspaces", {"pool": "e", "credentials": [credential]})
                assert answer.status == status and "/credentials" in json.dumps(answer.json), (credential, answer)
            assert s.post("/v1/workspaces", {"pool": "e", "network": "None", "credentials": [{"host": "a.example", "value": token}]}).status == 422


# These test only the server itself, so one runtime is enough.
for test in (however_written, other_places, rotated, only_there, hanging, not_there, declared_wrong):
    test.only = "oci"

if __name__ == "__main__":
    main("server", [used_not_read, however_written, other_places, of_a_claim, rotated, only_there, hanging, not_there, declared_wrong])
