#!/usr/bin/env python3
"""Traces of a real server, read by OpenTelemetry's own messages: what belongs to a claim, how spans are sent, and what happens
when they cannot be. Exemplars, read by a real Prometheus."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from collector import Collector, program  # noqa: E402
from environments import environment  # noqa: E402
from harness import BUILD, Server, free_port, main, note, record, wait_for  # noqa: E402
from prometheus import prometheus  # noqa: E402

# suite: seconds=60 needs=hearth-fake
HERE = os.path.dirname(os.path.abspath(__file__))
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PACKAGES = os.path.join(HERE, "traces/packages.txt")
ACCEPTED = {"Accept": "application/json, text/event-stream"}
QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "50"}
WHO = {"OTEL_SERVICE_NAME": "desk", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test%20one"}
ALL = os.environ.get("HEARTH_TEST_CLIENTS") == "all"


def asked(trace=TRACE, sampled=True):
    return {"traceparent": f"00-{trace}-{CALLER}-0{int(sampled)}"}


class Receiver:
    def __enter__(self):
        python = environment("traces", PACKAGES)
        self.process = subprocess.Popen([python, os.path.join(HERE, "traces/receiver.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def get(self, what):
        with urllib.request.urlopen(f"{self.url}/{what}", timeout=10) as answer:
            return json.load(answer)

    def environment(self, mode="ok", **more):
        return {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": f"{self.url}/{mode}", **more}

    def spans(self, trace=None):
        return [each for each in self.get("spans") if trace in (None, each["trace"])]

    def named(self, *names, trace=TRACE):
        """Returns a span of each of these names, after all of them have come."""
        def found():
            last = {each["name"]: each for each in self.spans(trace)}
            return all(name in last for name in names) and [last[name] for name in names]
        try:
            return wait_for(f"the spans {names}", found, 20)
        except AssertionError as e:
            raise AssertionError(f"{e}; there are {sorted((each['name'], each['trace']) for each in self.spans())}") from e


def series(s, name):
    return sum(float(line.rsplit(" ", 1)[1]) for line in s.ops("/metrics").body.decode().splitlines() if line.startswith(name))


def parts(*spans):
    """Checks that each span is a part of the one before, in time too."""
    for outer, inner in zip(spans, spans[1:]):
        assert inner["parent"] == outer["span"] and inner["trace"] == outer["trace"], (outer, inner)
        assert outer["start"] <= inner["start"] <= inner["end"], (outer, inner)


def whole_claim(receiver, s):
    """Makes a claim with an execution, and checks all spans that the receiver must have of them."""
    before = time.time_ns()
    w = s.post("/v1/workspaces", {}, headers=asked()).json
    done = s.post(f"/v1/workspaces/{w['id']}/executions", {"command": "echo $TRACEPARENT; exit 3"}, headers=asked()).json
    assert s.call("DELETE", f"/v1/workspaces/{w['id']}", headers=asked("1" * 32)).status == 204
    request, claimed, bind, execution, asked_for = receiver.named(
        "POST /v1/workspaces", "claim", "bind", "execution", "POST /v1/workspaces/{workspace}/executions")
    assert request["parent"] == CALLER and request["kind"] == 2 and not request["failed"], request
    parts(request, claimed, bind)
    assert before <= request["start"] <= bind["end"] <= time.time_ns(), (before, request)
    assert claimed["end"] == bind["end"] <= request["end"], (request, claimed)
    known = {"hearth.pool": w["pool"], "hearth.tenant": "default", "hearth.workspace.id": w["id"], "hearth.sandbox.id": w["sandboxId"]}
    assert known.items() <= claimed["attributes"].items() and claimed["attributes"]["hearth.claim.source"] == "warm", claimed
    web = request["attributes"]
    assert web["http.request.method"] == "POST" and web["http.response.status_code"] == 201 and web["http.route"] == "/v1/workspaces", web
    assert web["url.path"] == "/v1/workspaces" and web["url.scheme"] == "http" and web["client.address"] == "127.0.0.1", web
    parts(asked_for, execution)
    assert execution["attributes"]["process.exit.code"] == 3 and execution["attributes"]["hearth.execution.id"] == done["id"], execution
    assert execution["start"] <= execution["events"]["started"] <= execution["events"]["first output"] <= execution["end"], execution
    assert done["stdout"] == f"00-{TRACE}-{execution['span']}-01\n", (done, execution)
    [reclaim] = receiver.named("reclaim", trace="1" * 32)
    assert reclaim["links"] == [[TRACE, claimed["span"]]] and reclaim["attributes"]["hearth.reclaim.reason"] == "deleted", reclaim
    [look] = wait_for("its reconcile", lambda: [each for each in receiver.spans() if each["attributes"].get("hearth.reconcile.name") == w["sandboxId"]
                                                and each["links"] == [["1" * 32, reclaim["span"]]]])
    assert look["name"] == "reconcile sandbox" and not look["parent"], look
    everything = receiver.spans()
    assert len({each["span"] for each in everything}) == len(everything)
    for each in everything:
        assert each["resource"]["service.name"] == "desk" and each["resource"]["deployment.environment"] == "test one", each
        assert each["start"] <= each["end"] and each["scope"] == "hearth", each


def claim():
    """a claim is one trace in its caller's: request, claim with its stages, execution with its first output; end and reconcile are linked to it"""
    with Receiver() as receiver, Server(env=receiver.environment(**WHO)) as s:
        whole_claim(receiver, s)


def restart():
    """a trace outlives kill -9 of the server: what ends a workspace later is linked to its claim, and its executions are parts of it"""
    with Receiver() as receiver, Server(env=receiver.environment()) as s:
        w = s.post("/v1/workspaces", {}, headers=asked()).json["id"]
        e = s.post(f"/v1/workspaces/{w}/executions", {"command": "sleep 3; echo late", "background": True}, headers=asked()).json["id"]
        [claimed] = receiver.named("claim")
        s.kill9()
        s.start()
        wait_for("the execution", lambda: s.get(f"/v1/executions/{e}").json["status"] == "ok", 30)
        [execution] = receiver.named("execution")
        assert execution["parent"] == claimed["span"] and execution["attributes"]["hearth.execution.id"] == e, execution
        assert s.call("PATCH", f"/v1/workspaces/{w}", {"idleTimeoutSeconds": 1}).status == 200
        [reclaim] = wait_for("the end", lambda: [each for each in receiver.spans() if each["name"] == "reclaim"], 30)
        assert reclaim["links"] == [[TRACE, claimed["span"]]] and not reclaim["parent"] and reclaim["attributes"]["hearth.reclaim.reason"] == "idle", reclaim


def failures():
    """a failed request's span says why by OpenTelemetry's names; a refused one is no failure of the server; a query is in none"""
    with Receiver() as receiver, Server(env=receiver.environment(), runtime="fake") as s:
        assert s.get(f"/v1/workspaces/ws_{'0' * 32}?wait=secret", headers=asked()).status == 400
        assert s.call("BREW", "/v1/workspaces", headers=asked("2" * 32)).status == 405
        assert s.get("/nowhere", headers=asked("3" * 32)).status == 404
        [missing] = receiver.named("GET /v1/workspaces/{workspace}")
        assert missing["attributes"]["hearth.error.code"] == "INVALID_ARGUMENT" and not missing["failed"], missing
        other, = wait_for("the unknown method", lambda: receiver.spans("2" * 32))
        assert other["name"].split()[0] == "HTTP" and other["attributes"]["http.request.method"] == "_OTHER", other
        nowhere, = wait_for("the unknown path", lambda: receiver.spans("3" * 32))
        assert nowhere["name"] == "GET" and "http.route" not in nowhere["attributes"], nowhere
        assert s.post("/v1/workspaces", {"pool": "none"}, headers=asked("4" * 32)).status == 404
        [refused] = receiver.named("claim", trace="4" * 32)
        assert refused["failed"] and refused["why"] == "NOT_FOUND", refused
        assert "secret" not in json.dumps(receiver.spans())


def foreign():
    """what anybody may send does no harm: bytes that are no text, long texts, and links that give a right are in no span; a batch that is too large is sent in parts"""
    with Receiver() as receiver, Server(env=receiver.environment(), runtime="fake") as s:
        head = f"GET /v1/pools HTTP/1.1\r\nHost: localhost\r\nUser-Agent: \xff\xfe{'x' * 4000}\r\ntraceparent: {asked()['traceparent']}\r\nConnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", s.port)) as client:
            client.sendall(head.encode("latin-1"))
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        [odd] = receiver.named("GET /v1/pools")
        assert odd["attributes"]["user_agent.original"].startswith("\ufffd\ufffdx") and len(odd["attributes"]["user_agent.original"]) < 1100, odd
        for path in ("/v1/links/s3cret/name", "/v1/%6cinks/s3cret", "/v1/links/s3cret"):
            s.get(path, headers=asked("8" * 32))
        wait_for("the links", lambda: len(receiver.spans("8" * 32)) == 3)
        assert "s3cret" not in json.dumps(receiver.spans())
    with Receiver() as receiver, Server(env=receiver.environment("small", OTEL_BSP_SCHEDULE_DELAY="1000"), runtime="fake") as s:
        for _ in range(20):
            s.get("/v1/pools", headers=asked())
        wait_for("all of them", lambda: len(receiver.spans(TRACE)) == 20)


def sampled():
    """the caller's decision counts; without one the sampler's; what is not recorded costs no message, and its trace goes on all the same"""
    with Receiver() as receiver, Server(env=receiver.environment(OTEL_TRACES_SAMPLER="parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG="0.5"), runtime="fake") as s:
        assert s.get("/v1/pools", headers=asked(sampled=False)).status == 200
        for _ in range(100):
            s.get("/v1/pools")
        s.get("/v1/pools", headers=asked("5" * 32))
        receiver.named("GET /v1/pools", trace="5" * 32)
        others = [each for each in receiver.spans() if each["trace"] != "5" * 32]
        assert 20 < len(others) < 80, len(others)  # of 100, at a half: beyond 6 sigma on either side
        assert not receiver.spans(TRACE)
    with Server(runtime="fake") as s:  # it sends nothing
        s.post("/v1/workspaces", {}, headers=asked())
        assert TRACE not in s.ops("/metrics", headers={"Accept": "application/openmetrics-text"}).body.decode()
    with Receiver() as receiver, Server(env=receiver.environment(OTEL_TRACES_SAMPLER="always_off")) as s:
        told = s.post("/v1/executions", {"command": "echo [$TRACEPARENT]"}, headers=asked()).json
        assert told["stdout"] == "[]\n" and told["traceId"] == TRACE, told
        assert receiver.get("requests") == []


def sending():
    """gzip and headers, as the variables say; a busy receiver is asked again after the time it names; a span that it rejects is counted"""
    for more in ({"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
                 {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=a%20b, x-other=c"}):
        with Receiver() as receiver, Server(env=receiver.environment("busy", **more), runtime="fake") as s:
            s.get(f"/v1/workspaces/ws_{'0' * 32}", headers={**asked(), "tracestate": "vendor=1,other=2"})
            [span] = receiver.named("GET /v1/workspaces/{workspace}")
            assert span["state"] == "vendor=1,other=2" and span["attributes"]["http.response.status_code"] == 404, span
            heads = [each["headers"] for each in receiver.get("requests")]
            assert len(heads) == 3, heads
            assert heads[0]["content-type"] == "application/x-protobuf", heads
            assert heads[0].get("content-encoding") == ("gzip" if "gzip" in str(more) else None), heads
            assert (heads[0].get("x-key"), heads[0].get("x-other")) == (("a b", "c") if "x-key" in str(more) else (None, None)), heads
            wait_for("the count", lambda: series(s, "hearth_spans_exported_total") >= 1)
            assert series(s, "hearth_spans_dropped_total") == 0
            assert "trace.not_sent" in s.log() and "trace.sent_again" in s.log()
    with Receiver() as receiver, Server(env=receiver.environment("partial"), runtime="fake") as s:
        s.get("/v1/pools", headers=asked())
        wait_for("the rejected one", lambda: series(s, 'hearth_spans_dropped_total{reason="refused"}') >= 1)
        assert "one is too many" in s.log()


def unreachable():
    """without a receiver, with one that refuses and with one that hangs the server serves on: spans are dropped, counted by reason and told of once"""
    def dropped(s, reason):
        text = s.ops("/metrics").body.decode()
        return float(text.split(f'hearth_spans_dropped_total{{reason="{reason}"}} ')[1].split("\n")[0])
    with Receiver() as receiver:
        for url, reason in ((f"http://127.0.0.1:{free_port()}", "unreachable"), (f"{receiver.url}/refuse", "refused"), (f"{receiver.url}/slow", "unreachable")):
            env = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": "300", "OTEL_BSP_EXPORT_TIMEOUT": "1000"}
            with Server(env=env, runtime="fake") as s:
                for _ in range(20):
                    assert s.get("/v1/pools").status == 200
                wait_for(f"spans that are {reason}", lambda: dropped(s, reason) >= 20, 20)
                assert s.log().count("trace.not_sent") <= 2, s.log()
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"{receiver.url}/slow", "OTEL_BSP_MAX_QUEUE_SIZE": "10", "OTEL_BSP_SCHEDULE_DELAY": "60000"}
        with Server(env=env, runtime="fake") as s:
            for _ in range(50):
                assert s.get("/v1/pools").status == 200
            assert dropped(s, "queue_full") >= 20, s.ops("/metrics").body


def farewell():
    """what waits is sent at the end of the server, and a receiver that hangs does not keep the server from ending"""
    with Receiver() as receiver:
        with Server(env=receiver.environment(OTEL_BSP_SCHEDULE_DELAY="60000"), runtime="fake") as s:
            s.get("/v1/pools", headers=asked())
            assert receiver.spans() == []
        assert [each["name"] for each in receiver.spans(TRACE)] == ["GET /v1/pools"]
        with Server(env=receiver.environment("slow", OTEL_BSP_SCHEDULE_DELAY="60000"), runtime="fake") as s:
            s.get("/v1/pools", headers=asked())
            begin = time.monotonic()
            s.stop()
            assert time.monotonic() - begin < 30, "the end waits for the receiver"


def variables():
    """a variable of OpenTelemetry's that cannot be used stops the start with its name and what it may be; a secret in one is not shown"""
    for name, value, words in [("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", ["http/protobuf", "4318"]), ("OTEL_TRACES_SAMPLER", "often", ["always_on"]),
                               ("OTEL_TRACES_SAMPLER_ARG", "2", ["0 to 1"]), ("OTEL_BSP_MAX_QUEUE_SIZE", "none", ["number"]),
                               ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", ["gzip"]), ("OTEL_TRACES_EXPORTER", "zipkin", ["otlp"]),
                               ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317", ["http"]), ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret", ["="])]:
        env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_SAMPLER": "traceidratio", name: value}
        done = subprocess.run([os.path.join(BUILD, "hearth-fake"), "--listen", f"127.0.0.1:{free_port()}"], capture_output=True, text=True, timeout=20, env=env, check=False)
        said = done.stdout + done.stderr
        assert done.returncode not in (0, None) and name in said and all(word in said for word in words) and "s3cret" not in said, (name, done)
    for off in ({"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": ""}):
        with Server(env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", **QUICK, **off}, runtime="fake") as s:
            assert s.get("/v1/pools", headers=asked()).status == 200
            assert "trace." not in s.log().replace("trace=", ""), s.log()


def tools():
    """a call of MCP is a span by its names, in the trace that its _meta carries, linked to its HTTP request; an error of the tool is told as one"""
    def call(s, id, tool, arguments, meta):
        hello = s.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}, headers=ACCEPTED)
        session = {"Mcp-Session-Id": hello.headers["mcp-session-id"]} if "mcp-session-id" in hello.headers else {}
        body = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}}
        s.post("/mcp", body, headers={**asked("6" * 32), **ACCEPTED, **session, "MCP-Protocol-Version": "2025-06-18"})
    with Receiver() as receiver, Server(env=receiver.environment()) as s:
        call(s, 7, "run", {"command": "echo hi"}, asked())
        call(s, 8, "run", {"command": "echo hi", "workspace_id": "ws_" + "0" * 32}, asked("7" * 32))
        run, claimed = receiver.named("tools/call run", "claim")
        known = {"mcp.method.name": "tools/call", "gen_ai.tool.name": "run", "gen_ai.operation.name": "execute_tool", "jsonrpc.request.id": "7",
                 "mcp.protocol.version": "2025-06-18", "network.transport": "tcp"}
        assert known.items() <= run["attributes"].items() and run["parent"] == CALLER and run["kind"] == 2 and not run["failed"], run
        [web] = receiver.named("POST /mcp", trace="6" * 32)
        assert run["links"][0][0] == web["trace"], (run, web)
        parts(run, claimed)
        [failed] = receiver.named("tools/call run", trace="7" * 32)
        assert failed["failed"] and failed["attributes"]["error.type"] == "tool_error", failed


def exemplars():
    """OpenMetrics has the trace of a slow claim beside its bucket: a real Prometheus reads it there, and keeps the exemplar"""
    with Receiver() as receiver, Server(env=receiver.environment(), runtime="fake") as s:
        s.post("/v1/workspaces", {}, headers=asked())
        answer = s.ops("/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
        text = answer.body.decode()
        assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0") and text.endswith("# EOF\n"), answer.headers
        [line] = [each for each in text.splitlines() if TRACE in each and each.startswith("hearth_claim_duration_seconds_bucket")]
        assert f'# {{trace_id="{TRACE}",span_id="' in line, line
        assert "# TYPE hearth_claims counter" in text and "# TYPE process_cpu_seconds counter" in text and "\nhearth_claims_total{" in text
        plain = s.ops("/metrics").body.decode()
        assert TRACE not in plain and "# EOF" not in plain
        assert "# EOF" not in s.ops("/metrics", headers={"Accept": "application/openmetrics-text;q=0, text/plain"}).body.decode()
        with prometheus(s) as get:
            found = wait_for("the exemplar", lambda: get("query_exemplars", query="hearth_claim_duration_seconds_bucket", start=0, end=9999999999), 40)
            told = [each["labels"] for series in found for each in series["exemplars"]]
            [claimed] = receiver.named("claim")
            assert {"trace_id": TRACE, "span_id": claimed["span"]} in told, found
            [sample] = get("query", query='hearth_claims_total{result="ok",source="warm"}')["result"]
            assert sample["value"][1] == "1", sample


def collector():
    """OpenTelemetry's own Collector takes a claim's spans in each compression, refuses none, and sends on what was meant"""
    for compression in ("none", "gzip"):
        how = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_COMPRESSION": compression}
        with Receiver() as receiver, Collector(program(ALL), f"{receiver.url}/ok") as between:
            with Server(env={**QUICK, **WHO, **how, "OTEL_EXPORTER_OTLP_ENDPOINT": between.url}) as s:
                whole_claim(receiver, s)
                settled(receiver, between, s)


def settled(receiver, between, s):
    """Waits until all spans that the server has sent are received and forwarded. Checks that none was refused."""
    def equal():
        numbers = [series(s, "hearth_spans_exported_total"), between.count("receiver_accepted_spans"), between.count("exporter_sent_spans"), len(receiver.spans())]
        return numbers[0] and len(set(numbers)) == 1
    wait_for("as many spans everywhere", equal)
    assert between.count("receiver_refused_spans") == 0 and series(s, "hearth_spans_dropped_total") == 0
    assert between.complaints() == [], between.complaints()
    assert "trace.not_sent" not in s.log(), s.log()


TESTS = [claim, restart, failures, foreign, sampled, sending, unreachable, farewell, variables, tools, exemplars]
for each in TESTS:
    each.only = "oci"  # they choose the runtime themselves where it matters

if __name__ == "__main__":
    try:
        environment("traces", PACKAGES)
    except OSError as e:
        for each in TESTS:
            record("skip", "server", f"{each.__doc__} (OpenTelemetry's messages cannot be had: {e})")
        sys.exit(0)
    try:
        program(ALL)
        TESTS.append(collector)
    except OSError as e:
        note(f"what OpenTelemetry's own Collector makes of the traces is not tried: {e}")
    main("server", TESTS)
