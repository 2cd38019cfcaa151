"""A receiver of OTLP over HTTP that stands on OpenTelemetry's own messages, run by traces_test.py in an environment that has
them. It prints its port. POST /MODE/v1/traces takes spans as MODE says: ok, refuse (400), busy (503 twice, then ok), partial
(one span is rejected), small (413 for more than four spans), slow (never answers in time). GET /spans is what it has, GET /requests how it was asked."""

import gzip
import json
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

spans, requests, lock = [], [], threading.Lock()


def value(any_value):
    return getattr(any_value, any_value.WhichOneof("value"))


def attributes(pairs):
    return {each.key: value(each.value) for each in pairs}


def refuse_unknown(message):
    """What the messages have no name for would pass unread."""
    assert len(UnknownFieldSet(message)) == 0, message
    for field, each in message.ListFields():
        if field.message_type:
            for part in each if isinstance(each, Sequence) else [each]:
                refuse_unknown(part)


def decode(body):
    request = service.ExportTraceServiceRequest()
    request.ParseFromString(body)
    refuse_unknown(request)
    return request


def shown(request):
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield {
                    "resource": attributes(of_resource.resource.attributes), "scope": of_scope.scope.name,
                    "trace": span.trace_id.hex(), "span": span.span_id.hex(), "parent": span.parent_span_id.hex(),
                    "state": span.trace_state, "name": span.name, "kind": span.kind, "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano, "attributes": attributes(span.attributes),
                    "events": {each.name: each.time_unix_nano for each in span.events},
                    "links": [[each.trace_id.hex(), each.span_id.hex()] for each in span.links],
                    "failed": span.status.code == 2, "why": span.status.message}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, each in headers.items():
            self.send_header(name.replace("_", "-"), each)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with lock:
            self.answer(200, json.dumps(spans if self.path == "/spans" else requests).encode(), Content_Type="application/json")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mode = self.path.removeprefix("/").split("/")[0]
        with lock:
            requests.append({"path": self.path, "headers": {name.lower(): each for name, each in self.headers.items()}})
            times = sum(each["path"] == self.path for each in requests)
        if mode == "refuse":
            return self.answer(400)
        if mode == "busy" and times < 3:
            return self.answer(503, Retry_After="1")
        if mode == "slow":
            time.sleep(60)
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        kind = self.headers["Content-Type"]
        found = list(shown(decode(body)))
        if mode == "small" and len(found) > 4:
            return self.answer(413)
        with lock:
            spans.extend(found)
        response = service.ExportTraceServiceResponse()
        if mode == "partial":
            response.partial_success.rejected_spans = 1
            response.partial_success.error_message = "one is too many"
        self.answer(200, response.SerializeToString(), Content_Type=kind)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()  # to the end of whoever began it
