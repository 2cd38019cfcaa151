"""A registry on loopback that serves OCI layouts, read-only, over HTTP: as much of the distribution API as skopeo and
dockerd need for a pull."""

import contextlib
import http.server
import json
import os
import threading


class Registry:
    """`images` maps "repository:tag" to the folder of a layout. `place` is its HOST:PORT; `asked` counts GETs by their
    target: "manifests/1", "blobs/sha256:…". While `held` is set, only manifests are answered. With `moved`, blobs are
    at that URL; with `realm`, a token of that URL is required."""

    def __init__(self, images):
        self.images, self.asked, self.held, self.go = dict(images), {}, False, threading.Event()
        self.lock = threading.Lock()
        self.moved = self.realm = None
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self):
                registry.answer(self, False)

            def do_GET(self):
                registry.answer(self, True)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.place = f"127.0.0.1:{self.server.server_port}"

    def digest_of(self, name):
        with open(os.path.join(self.images[name], "index.json"), encoding="utf-8") as f:
            return json.load(f)["manifests"][0]["digest"]

    def find(self, repository, kind, what):
        """Returns the path of the requested file, its digest and type; None if it is not here."""
        layouts = [path for name, path in self.images.items() if name.rsplit(":", 1)[0] == repository]
        digest = what if what.startswith("sha256:") else None
        if kind == "manifests" and digest is None and f"{repository}:{what}" in self.images:
            digest = self.digest_of(f"{repository}:{what}")
        for layout in layouts if digest else []:
            path = os.path.join(layout, "blobs", "sha256", digest[7:])
            if os.path.exists(path):
                return path, digest, ("application/vnd.oci.image.manifest.v1+json" if kind == "manifests"
                                      else "application/octet-stream")
        return None

    def answer(self, request, with_body):
        parts = request.path.split("?")[0].strip("/").split("/")
        kind, what = (parts[-2], parts[-1]) if len(parts) > 3 else ("", "")
        found = self.find("/".join(parts[1:-2]), kind, what) if kind in ("manifests", "blobs") else None
        if with_body:
            with self.lock:
                key = f"{kind}/{what}"
                self.asked[key] = self.asked.get(key, 0) + 1
        if kind == "blobs" and self.held:
            self.go.wait(60)
        if self.realm and "Authorization" not in request.headers:
            return self.elsewhere(request, 401, "WWW-Authenticate", f'Bearer realm="{self.realm}",service="r"')
        if self.moved and kind == "blobs":
            return self.elsewhere(request, 307, "Location", self.moved + request.path)
        if parts == ["v2"] or found:
            body = b"{}"
            if found:
                with open(found[0], "rb") as f:
                    body = f.read()
            request.send_response(200)
            request.send_header("Docker-Distribution-Api-Version", "registry/2.0")
            request.send_header("Content-Type", found[2] if found else "application/json")
            if found:
                request.send_header("Docker-Content-Digest", found[1])
        else:
            body = json.dumps({"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}).encode()
            request.send_response(404)
            request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        with contextlib.suppress(OSError):  # the client may have gone
            if with_body:
                request.wfile.write(body)

    @staticmethod
    def elsewhere(request, status, field, value):
        request.send_response(status)
        request.send_header(field, value)
        request.send_header("Content-Length", "0")
        request.end_headers()

    def hold(self):
        self.held = True
        self.go.clear()

    def let_go(self):
        self.held = False
        self.go.set()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.let_go()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
