#!/usr/bin/env python3
"""The REST contract against its own description: every example of openapi.json is sent to a live server, and so are
thousands of malformed variants made from its schemas. Each answer must be documented there, and the server must be as
healthy afterwards as before. The seed is printed; HEARTH_SEED=N runs the same again. Standard library only."""

import http.client
import io
import json
import os
import random
import socket
import sys
import tarfile
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from egress_test import mirrored, pool  # noqa: E402
from gpu_machine import Machine, uuid  # noqa: E402
from harness import SLOWER, Server, main, pool_yaml, wait_for  # noqa: E402
from index import Index, wheel  # noqa: E402
from openapi import Described  # noqa: E402

SEED = int(os.environ.get("HEARTH_SEED", random.SystemRandom().randrange(1 << 30)))
BUDGET = 15 * SLOWER  # seconds of malformed requests
# The statuses of the front before any operation is known.
BEFORE = {400, 404, 405, 408, 411, 413, 414, 417, 431, 501, 505}
NO_BODY = {204, 304}
NO_SANDBOXES = {"min": 0, "max": 1}  # for a pool that needs no sandbox
LEAST = 5  # malformed bodies of each operation that has one


class Contract:
    """A live server, its document, and one living thing of each kind that a path can name."""

    def __init__(self, server):
        self.s = server
        made = server.post("/v1/tokens", {"name": "contract", "role": "admin"})
        assert made.status == 201, made
        self.auth = {"Authorization": "Bearer " + made.json["token"]}
        server.drain = lambda: server.post("/v1/drain", headers=self.auth)
        described = Described(server.get("/openapi.json").json)
        self.operations, self.resolve, self.conforms = described.operations, described.resolve, described.conforms
        self.connection = None
        self.sent = 0
        self.workspace = self.ok("POST", "/v1/workspaces", {"maxLifetimeSeconds": 3000}, 201)["id"]
        self.ids = {"workspace": self.workspace, "pool": "python", "name": "a.txt", "path": "a.txt", "tenant": "shop", "uuid": uuid(0)}
        wait_for("its GPU", lambda: self.ok("GET", "/v1/gpus")["items"])
        self.offline = self.ok("POST", "/v1/workspaces", {"maxLifetimeSeconds": 3000, "network": "None"}, 201)["id"]
        self.spare()
        self.ok("PUT", f"/v1/workspaces/{self.workspace}/files/plot.png", b"png")
        self.ok("PUT", f"/v1/workspaces/{self.workspace}/files/a.txt", b"0123456789")
        self.refresh()

    def refresh(self):
        """Replaces the things that a request may have ended."""
        w = self.workspace
        listed = self.ok("GET", f"/v1/workspaces/{w}/executions?limit=1000")["items"]
        if not any(x["id"] == self.ids.get("execution") and x["status"] == "running" for x in listed):
            self.ids["execution"] = self.ok("POST", f"/v1/workspaces/{w}/executions",
                                            {"argv": ["sleep", "600"], "pty": {"cols": 80, "rows": 24}, "background": True}, 202)["id"]
        contexts = {x["id"] for x in self.ok("GET", f"/v1/workspaces/{w}/contexts")["items"]}
        if self.ids.get("context") not in contexts:
            for one in contexts:
                self.ok("DELETE", f"/v1/contexts/{one}")
            self.ids["context"] = self.ok("POST", f"/v1/workspaces/{w}/contexts", {"language": "python"}, 201)["id"]
        mine = self.ok("GET", f"/v1/workspaces/{w}")
        self.ids["sandbox"] = mine["sandboxId"]
        self.ids["token"] = self.ok("GET", "/v1/tokens")["items"][0]["id"]
        self.ok("PUT", f"/v1/workspaces/{w}/files/a.txt", b"0123456789")
        self.ok("PUT", "/v1/quotas/shop", {"workspaces": 10})
        link = self.ok("POST", f"/v1/workspaces/{w}/links", {"path": "a.txt"}, 201)["url"]
        self.link = urllib.parse.urlsplit(link).path.split("/")[3]

    def spare(self):
        """Declares a pool that requests may change and end."""
        self.ok("PUT", "/v1/pools/spare", {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "spare"},
                                           "spec": {"template": {"image": "shell"}, "warm": NO_SANDBOXES}})

    def instead(self, operation):
        """Returns the path names for malformed requests that would harm the living thing or take long."""
        return {"putPool": {"pool": "spare"}, "patchPool": {"pool": "spare"}, "managePackages": {"workspace": self.offline}}.get(operation["operationId"])

    def ok(self, method, target, body=None, status=None):
        got, _, text = self.send(method, target, body)
        assert got == status or (status is None and got < 300), (method, target, got, text)
        return json.loads(text) if text and text[:1] in b"{[" else text

    def send(self, method, target, body=None, headers=None, auth=True):
        """Sends a request over one connection, which is kept as long as the server keeps it."""
        headers = dict(headers or {})
        if auth:
            headers.setdefault("Authorization", self.auth["Authorization"])
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        for attempt in (1, 2):
            kept = self.connection is not None
            if not kept:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.s.port, timeout=30 * SLOWER)
            try:
                try:
                    self.connection.request(method, target, body=body, headers=headers)
                except (BrokenPipeError, ConnectionResetError):
                    if kept:
                        raise
                answer = self.connection.getresponse()
                text = answer.read()
                self.sent += 1
                if answer.will_close:
                    self.connection.close()
                    self.connection = None
                return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                self.connection.close()
                self.connection = None
                if not kept or attempt == 2:
                    raise
        raise AssertionError("not reached")

    def raw(self, data, seconds=20):
        """Sends bytes as they are on a connection of their own. Returns the status, head and body, or None if nothing
        came."""
        with socket.create_connection(("127.0.0.1", self.s.port), timeout=seconds * SLOWER) as c:
            try:
                c.sendall(data)
                c.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = http.client.HTTPResponse(c)
            try:
                answer.begin()
                self.sent += 1
                return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
            except (http.client.HTTPException, ConnectionError):
                return None

    def target(self, path, operation, other=None):
        """Returns the path with its names filled in by living things."""
        for parameter in operation.get("parameters", []):
            if parameter["in"] != "path":
                continue
            name = parameter["name"]
            value = (other or {}).get(name) or (self.link if path.startswith("/v1/links/") and name == "token" else self.ids[name])
            path = path.replace("{" + name + "}", urllib.parse.quote(value, safe="/" if name == "path" else ""))
        return path

    def check(self, operation, what, answer, also=()):
        """Checks that the answer is one that the operation documents, in the form that it documents."""
        status, headers, text = answer
        documented = {int(code) for code in operation["responses"]} | set(also)
        where = (operation["operationId"], what, status, text[:300])
        assert status in documented, ("not documented", where)
        assert status != 500, ("the server failed", where)
        assert headers.get("x-request-id", "").startswith("req_"), where
        if status >= 400 and what[0] != "HEAD":
            assert headers.get("content-type", "").startswith("application/problem+json"), where
            problem = json.loads(text)
            assert problem["status"] == problem["code"] == status and problem["errorCode"].isupper(), where
            assert problem["requestId"] == headers["x-request-id"] and problem["title"] and "type" in problem, where
        if status in (429, 503):
            assert int(headers["retry-after"]) >= 1, where
        if status in NO_BODY:
            assert text == b"", where
        if status < 300 and "application/json" in headers.get("content-type", "") and operation["operationId"] != "getOpenApi":
            self.conforms(json.loads(text), operation["responses"][str(status)]["content"]["application/json"]["schema"], where)

    def forget(self, operation, answer):
        """Ends the things that a request may have made."""
        status, headers, text = answer
        if status != 201:
            return
        location = headers.get("location", "")
        if operation["operationId"] in ("createWorkspace", "createContext", "createToken", "createPool") and location:
            self.send("DELETE", location)
        if operation["operationId"] == "createWorkspaces":
            for one in json.loads(text)["items"]:
                self.send("DELETE", f"/v1/workspaces/{one['id']}")

    def workspaces(self):
        return [x["id"] for x in self.ok("GET", "/v1/workspaces?limit=1000")["items"]]


def example_bodies(operation):
    body = operation.get("requestBody")
    if body is None:
        return [(None, None)]
    found = []
    for media, content in body["content"].items():
        values = [one["value"] for one in content.get("examples", {}).values()]
        if "example" in content:
            values.append(content["example"].encode())
        found += [(media, value) for value in values]
    if not body.get("required", False):
        found.append((None, None))
    return found


def examples(c):
    """every example of openapi.json is answered as the document says"""
    missing, tried = [], 0
    last = ("deleteWorkspace", "destroySandbox", "deleteContext", "killExecution", "deleteToken", "deletePool", "drainPool", "drainAll")
    order = sorted(c.operations, key=lambda x: x[2]["operationId"] in last)
    for method, path, operation in order:
        name = operation["operationId"]
        if name == "drainAll":  # it leaves all pools empty: the server's end sends it
            continue
        for media, body in example_bodies(operation):
            c.refresh()
            target = c.target(path, operation)
            if name in last:
                target = disposable(c, name, target)
            if name == "followExecution":  # follows an ended execution, so that the stream ends
                target = target.replace(c.ids["execution"], c.ok("POST", f"/v1/workspaces/{c.workspace}/executions", {"command": "true"})["id"])
            if name == "writeArchive":
                media, body = "application/x-tar", archive()
            text = json.dumps(body) if body is not None and not isinstance(body, bytes) else body
            if isinstance(text, str):
                text = text.replace("cx_5f0c2c9a3d1e4b7f8a6b5c4d3e2f1a0b", c.ids["context"]).encode()
            answer = c.send(method, target, text, {"Content-Type": media} if media else {})
            c.check(operation, (method, target, body), answer)
            # Only these may be refused as they stand: the pool is there already, nothing runs in the context, the GPU is not condemned.
            may = {"createPool": (409,), "interruptContext": (409,), "scrubGpu": (409,)}
            assert answer[0] < 400 or answer[0] in may.get(name, ()), ("an example is refused", name, body, answer)
            if name == "signalExecution":  # it ends a little later, and the next example wants one that runs
                wait_for("its end", lambda: c.ok("GET", "/v1/executions/" + c.ids["execution"])["status"] != "running")
            if name == "moveFile":
                c.ok("PUT", f"/v1/workspaces/{c.workspace}/files/a.txt", b"0123456789")
            c.forget(operation, answer)
            tried += 1
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                if "example" not in parameter and path != "/v1/links/{token}/{name}":
                    missing.append((name, parameter["name"]))
                continue
            tried += query_examples(c, method, path, operation, parameter) if method == "GET" else 0
        for status, response in operation["responses"].items():
            for media, content in response.get("content", {}).items():
                if media != "application/json" or name in ("getOpenApi", "getRoot"):
                    continue
                if "example" not in content:
                    missing.append((name, status))
                else:
                    c.conforms(content["example"], content["schema"], (name, "its own example"))
    assert not missing, f"without an example: {missing}"
    print(f"      {tried} examples of {len(c.operations)} operations", flush=True)


def archive():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        entry = tarfile.TarInfo("unpacked/note.txt")
        entry.size = 4
        t.addfile(entry, io.BytesIO(b"note"))
    return out.getvalue()


def query_examples(c, method, path, operation, parameter):
    schema = c.resolve(parameter["schema"])
    schema = c.resolve(schema["items"]) if schema.get("type") == "array" else schema
    values = schema.get("enum") or [schema[k] for k in ("default", "minimum", "maximum") if k in schema] + schema.get("examples", [])
    if operation["operationId"] == "followExecution":
        values = []
    for value in values:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        target, headers = c.target(path, operation), {}
        if parameter["in"] == "query":
            target += "?" + urllib.parse.urlencode({parameter["name"]: text})
        else:
            headers[parameter["name"]] = text
        answer = c.send(method, target, None, headers)
        c.check(operation, (method, target, text), answer)
        assert answer[0] < 400, ("an example is refused", target, answer)
    return len(values)


def disposable(c, name, target):
    """Returns another thing in place of the one that all tests use."""
    w = c.workspace
    if name == "deleteWorkspace":
        return target.replace(w, c.ok("POST", "/v1/workspaces", {}, 201)["id"])
    if name == "destroySandbox":
        ready = wait_for("a warm sandbox", lambda: [x["id"] for x in c.ok("GET", "/v1/pools/python/sandboxes")["items"] if x["phase"] == "Ready"])
        return target.replace(c.ids["sandbox"], ready[0])
    if name in ("deletePool", "drainPool"):
        c.spare()
        return target.replace("/python", "/spare")
    if name == "deleteToken":
        return target.replace(c.ids["token"], c.ok("POST", "/v1/tokens", {"name": "spare"}, 201)["id"])
    return target


# --- malformed ----------------------------------------------------------------------------------------------------------

WRONG = [None, True, -1, 0, 2**63, 10**30, 1e308, 0.5, "", " ", "\0", "a\0b", "x" * 5000, "../../etc/passwd", "\ud800", "💥" * 40, [], {}, [[]],
         [None], {"a": {"b": {"c": []}}}, ["x"] * 2000, {str(i): i for i in range(500)}]
RAW_BODIES = [b"", b" ", b"{", b"}", b"[]", b"null", b"nul", b"0", b'"text"', b"{}{}", b'{"a":1,"a":2}', b'{"a":1e999}', b'{"a":01}', b'{"a":NaN}',
              b"{'a':1}", b'{"a":"\xff\xfe"}', b'{"a":"\xc0\x80"}', b'{"a":"\xed\xa0\x80"}', b'{"a":"\\ud800"}', b'{"a":"\\u0000"}', b'{"\\u0000":1}',
              b"\xef\xbb\xbf{}", '{"a":1}'.encode("utf-16"), '{"a":1}'.encode("utf-32"), b"[" * 20000, b'{"a":' * 5000 + b"1" + b"}" * 5000,
              b'{"a":' + b"9" * 30000 + b"}", b'{"a":-' + b"0." + b"1" * 30000 + b"}", b'{"a":"' + b"x" * 300000 + b'"}', b'{"a":1,}', b'{"a":1}//',
              b"\x00" * 100, b"<xml/>", b"--boundary\r\n", bytes(range(256))]
MEDIA = ["application/json; charset=utf-16", "text/plain", "application/xml", "", "application/json;", "APPLICATION/JSON", "a" * 5000, "application/json, text/plain"]
PATHS = ["%", "%zz", "%00", "%ff%fe", "..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", ".", "%20", "%0d%0aX:%20y", "a" * 3000, "ws_" + "0" * 32,
         "ws_" + "g" * 32, "WS_1", "%F0%9F%92%A5", "null", "-1", "*", "{workspace}", "a%2Fb"]
HEADERS = {"Idempotency-Key": ["", " ", "x" * 256, "a b", "\x7f", "ü", "ok"], "If-Match": ["", "x", '"', '"x"', "*", "W/\"1\"", '"' + "9" * 400 + '"'],
           "If-None-Match": ["*", '"', ", ,", '"x", W/"y"'], "Range": ["bytes=", "bytes=5-1", "bytes=-0", "bytes=99999999999999999999-", "lines=1-2",
           "bytes=0-0,2-3", "x"], "Prefer": ["wait=", "wait=-1", "wait=x", "wait=0", "wait=99999999999999999999", "respond-async", ";;=,"],
           "Last-Event-ID": ["x", "-1", "99999999999999999999999", ""], "X-File-Mode": ["", "999", "abc", "-1", "07777777", "0x1ff"],
           "Accept": ["*/*;q=9", "application/xml", "", ",", "x" * 4000], "Authorization": ["", "Bearer", "Bearer ", "Basic eDp4", "Bearer x y", "Bearer " + "x" * 5000,
           "Bearer \xff"], "Content-Encoding": ["gzip", "x"], "traceparent": ["00-0-0-00", "x" * 500], "Content-Type": MEDIA}
QUERIES = ["?", "?&", "?=", "?x", "?x=1", "?limit=x", "?limit=-1", "?limit=0", "?limit=99999999999999999999", "?limit=1&limit=2", "?limit=", "?cursor=%00",
           "?cursor=%ff", "?cursor=" + "A" * 900, "?cursor=x", "?path=%00", "?path=%ff", "?path=" + "a/" * 2500, "?path=..", "?path=", "?recursive=maybe",
           "?recursive=1", "?label=x", "?label==", "?label=" + "a" * 300 + "=b", "?since=x", "?since=-1", "?close=yes", "?%zz=1", "?limit=%31",
           "?type=" + "x" * 101, "?pool=UPPER", "?" + "a=1&" * 300]


def sample(c, schema, depth=0):
    """Returns a small value that fits."""
    schema = c.resolve(schema)
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: sample(c, schema["properties"][name], depth + 1) for name in schema.get("required", [])}
    return {"array": [], "integer": schema.get("minimum", 1), "number": schema.get("minimum", 1), "boolean": False}.get(kind, "x" * schema.get("minLength", 1))


def mutants(c, schema, base, rng):
    """Yields bodies that differ from a good one in one place, made from the schema."""
    schema = c.resolve(schema)
    properties = schema.get("properties", {})
    for name, inner in properties.items():
        for wrong in rng.sample(WRONG, 5):
            yield dict(base, **{name: wrong})
        inner = c.resolve(inner)
        for key, value in (("minimum", -1), ("maximum", 1)):
            if key in inner:
                yield dict(base, **{name: inner[key] + value})
        if "maxLength" in inner:
            yield dict(base, **{name: "x" * (inner["maxLength"] + 1)})
        if "maxItems" in inner:
            yield dict(base, **{name: [sample(c, inner["items"])] * (inner["maxItems"] + 1)})
        if inner.get("type") == "array":
            yield dict(base, **{name: [rng.choice(WRONG)]})
        if inner.get("properties"):
            for below in mutants(c, inner, {k: sample(c, v) for k, v in inner["properties"].items() if k in inner.get("required", [])}, rng):
                yield dict(base, **{name: below})
        elif isinstance(inner.get("additionalProperties"), dict):
            yield dict(base, **{name: {rng.choice(["", "\0", "a" * 300, "ü", "1", "A=B"]): rng.choice(WRONG)}})
    for name in schema.get("required", []):
        yield {k: v for k, v in base.items() if k != name}
    for name in ("unknown", "", "__proto__", "\0", "x" * 2000):
        yield dict(base, **{name: 1})


def media_of(operation):
    return next(iter(operation["requestBody"]["content"])) if "requestBody" in operation else None


def good_json(operation):
    """Returns the first example, changed for the targets that `instead` names."""
    good = next(iter(operation["requestBody"]["content"]["application/json"]["examples"].values()))["value"]
    if operation["operationId"] in ("putPool", "patchPool"):
        good = dict(good, spec=dict(good["spec"], warm=NO_SANDBOXES))
    if operation["operationId"] == "putPool":
        good["metadata"] = {"name": "spare"}
    return good


def good_bytes(operation):
    """Returns the body of a request that is malformed elsewhere."""
    media = media_of(operation)
    return json.dumps(good_json(operation)).encode() if media == "application/json" else b"x" if media else None


def variants(c, method, path, operation, rng):
    """Yields malformed requests of one operation: (target, body, headers)."""
    target = c.target(path, operation, c.instead(operation))
    body, media = operation.get("requestBody"), media_of(operation)
    if media == "application/json":
        schema, good = body["content"][media]["schema"], good_json(operation)
        for one in mutants(c, schema, good, rng):
            yield target, json.dumps(one).encode("utf-8", "surrogatepass"), {"Content-Type": media}
        text = json.dumps(good)
        first = json.dumps(next(iter(good), "x"))
        doubled = "{" + f"{first}: 1, " + text[1:] if good else '{"a":1,"a":1}'
        for raw in RAW_BODIES + [doubled.encode(), text.encode() + b" x", text.encode("utf-16-le"), text[:-1].encode()]:
            yield target, raw, {"Content-Type": media}
        for kind in MEDIA:
            yield target, text.encode(), {"Content-Type": kind}
    elif body is None and method in ("POST", "DELETE", "PATCH"):
        for raw in rng.sample(RAW_BODIES, 3):
            yield target, raw, {"Content-Type": "application/json"}
    sent = good_bytes(operation)
    own = {"Content-Type": media} if media else {}
    names = [p["name"] for p in operation.get("parameters", []) if p["in"] == "path"]
    for name in names:
        for bad in PATHS:
            yield path_with(c, path, operation, name, bad), sent, own
    for query in QUERIES:
        yield target + query, sent, own
    for parameter in operation.get("parameters", []):
        if parameter["in"] == "query":
            for wrong in ("", "x", "%00", "%ff", "-1", "1e5", "a" * 1100, "true&" + parameter["name"] + "=true"):
                yield f"{target}?{parameter['name']}={wrong}", sent, own
    for header, values in HEADERS.items():
        for value in values:
            yield target, sent, dict(own, **{header: value})
    yield target, sent, dict(own, **{"X-Long": "y" * 70000})
    yield target, sent, dict(own, **{f"X-{i}": "y" for i in range(300)})


def path_with(c, path, operation, name, text):
    marker = "MARKER"
    return c.target(path, operation, {name: marker}).replace(marker, text)


# Good requests of these operations end what others need, or take long. Only requests that cannot succeed are sent.
CAREFUL = {"drainAll", "drainPool", "deleteWorkspace", "destroySandbox", "deleteToken", "deletePool", "killExecution", "deleteContext"}


def harmless(c, operation, target, headers, method):
    """Returns whether the request may be sent: it must not really do what these operations do."""
    name = operation["operationId"]
    if name in ("followExecution", "listEvents") and ("event-stream" in headers.get("Accept", "") or name == "followExecution"):
        return c.ids["execution"] not in target  # a stream that does not end
    if name not in CAREFUL:
        return True
    living = [c.ids[k] for k in ("workspace", "execution", "context", "sandbox", "token")] + ["/pools/python", "/v1/drain"]
    return not any(one in target for one in living)


def malformed(c):
    """malformed requests of every operation get documented answers, and the server stays as it was"""
    print(f"      seed {SEED}", flush=True)
    rng = random.Random(SEED)
    before = sorted(c.workspaces())
    pools = sorted(x["metadata"]["name"] for x in c.ok("GET", "/v1/pools")["items"])
    plan = []
    for method, path, operation in c.operations:
        cases = [(method, path, operation, case) for case in variants(c, method, path, operation, rng)]
        rng.shuffle(cases)
        plan.append(cases)
    end, statuses, sent = time.monotonic() + BUDGET, {}, 0
    bodies = {operation["operationId"]: 0 for _, _, operation in c.operations if "requestBody" in operation}
    # In turns, so that each operation gets its share of the time.
    while any(plan) and (time.monotonic() < end or min(bodies.values()) < LEAST):
        for cases in plan:
            for method, path, operation, (target, body, headers) in [cases.pop() for _ in range(min(8, len(cases)))]:
                if not harmless(c, operation, target, headers, method):
                    continue
                status = one(c, operation, method, target, body, headers)
                statuses[status] = statuses.get(status, 0) + 1
                sent += 1
                if media_of(operation) and (body != good_bytes(operation) or media_of(operation) != "application/json"):
                    bodies[operation["operationId"]] += 1
        c.refresh()
    left = sum(len(cases) for cases in plan)
    print(f"      {sent} malformed requests, {left} more not sent; {dict(sorted(statuses.items()))}", flush=True)
    assert sent > 300, "too few to say anything"
    assert min(bodies.values()) >= LEAST, f"too few bodies of some operations: {bodies}"
    wait_for("no workspace but those of before", lambda: sorted(c.workspaces()) == before, 20)
    assert sorted(x["metadata"]["name"] for x in c.ok("GET", "/v1/pools")["items"]) == pools
    assert c.s.process.poll() is None and "http.handler_failed" not in c.s.log(), c.s.log()[-3000:]


def one(c, operation, method, target, body, headers):
    try:
        answer = c.send(method, target, body, headers)
    except (ValueError, UnicodeError):  # http.client refuses to send it, so it goes as bytes
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body or b'')}", "Connection: close"]
        lines += [f"{k}: {v}" for k, v in dict(c.auth, **headers).items()]
        answer = c.raw("\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + (body or b""))
        assert answer, ("no answer at all", method, target, headers)
    # A changed path belongs to another operation, or to none.
    other = any(mark in target for mark in ("%", "..", "*", "/./")) or target.endswith("/.") or "//" in target or len(target) > 2000
    also = set(BEFORE) if other or len(str(headers)) > 4000 else {400}
    if "Authorization" in headers:
        also |= {401}
    if other and answer[0] < 300:
        return answer[0]
    c.check(operation, (method, target[:200], (body or b"")[:200], {k: v[:100] for k, v in headers.items()}), answer, also)
    c.forget(operation, answer)
    if operation["operationId"] in ("writeFile", "makeDirectory", "moveFile", "writeArchive") and answer[0] < 300:
        c.ok("PUT", f"/v1/workspaces/{c.workspace}/files/a.txt", b"0123456789")
    return answer[0]


def wire(c):
    """what is no proper HTTP is refused or cut off, and the next request is answered"""
    good = f"GET /v1/capabilities HTTP/1.1\r\nHost: localhost\r\nAuthorization: {c.auth['Authorization']}\r\n"
    for head in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01", b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
                 (good + "Content-Length: x\r\n\r\n").encode(), (good + "Content-Length: -1\r\n\r\n").encode(),
                 (good + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab").encode(), (good + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n").encode(),
                 (good + "Transfer-Encoding: gzip\r\n\r\n").encode(), (good + "Host: other\r\n\r\n").encode(), (good + " folded: x\r\n\r\n").encode(),
                 (good + "a b: c\r\n\r\n").encode(), (good + "X: \x01\r\n\r\n").encode(), good.replace("Host: localhost\r\n", "").encode() + b"\r\n",
                 ("POST /v1/executions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").encode(),
                 b"GET " + b"/a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        answer = c.raw(head)
        if answer:
            assert 400 <= answer[0] < 506 and answer[0] != 500, (head[:100], answer)
        c.ok("GET", "/v1/capabilities")


def contract():
    """the REST contract: every example of openapi.json, malformed variants of every operation, and what is no HTTP"""
    pools = "---\n".join([pool("python", "Mirror", warm=3), pool_yaml("shell", warm=1)]).replace("1h", "4h")
    # The package of the example.
    with (Index([wheel("six")]) as index, Machine() as machine,
          Server(pools, args=("--default-pool", "python", *mirrored(index), *machine.args), env=machine.env, ready_within=120) as s):
        c = Contract(s)
        for part in (examples, malformed, wire):
            begin = time.monotonic()
            part(c)
            print(f"      {part.__name__}: {c.sent} requests so far, {time.monotonic() - begin:.1f} s", flush=True)
        c.ok("GET", f"/v1/workspaces/{c.workspace}")


contract.only = "oci"  # it tests parts in front of any runtime

if __name__ == "__main__":
    main("server", [contract])
