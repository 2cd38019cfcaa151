"""Package indexes on loopback: a simple repository for pip and a registry for npm, with packages made on the spot.
They count requests and lie on demand. Standard library only."""

import base64
import contextlib
import hashlib
import http.server
import io
import json
import tarfile
import threading
import time
import zipfile


def wheel(name, version="1.0", code="", size=0, requires=(), module=None):
    """Returns a wheel with one module; `size`: more bytes, which do not compress."""
    module = module or name
    out = io.BytesIO()
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {r}\n" for r in requires)
    with zipfile.ZipFile(out, "w") as z:
        z.writestr(f"{module}/__init__.py", code or f"version = {version!r}\n")
        if size:
            z.writestr(f"{module}/data", hashlib.shake_128(name.encode()).digest(size))
        z.writestr(f"{info}/METADATA", metadata)
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")
    return f"{name}-{version}-py3-none-any.whl", out.getvalue()


def sdist(name, version="1.0", backend=None):
    """Returns the same package without a wheel, so that a client has to build it; `backend`: the code that does, in place of setuptools."""
    out = io.BytesIO()
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    project = '[build-system]\nrequires = ["setuptools"]\n'
    if backend:
        project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text in (("PKG-INFO", metadata), ("pyproject.toml", project), ("backend.py", backend or "")):
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text)
            t.addfile(entry, io.BytesIO(text.encode()))
    return f"{name}-{version}.tar.gz", out.getvalue()


def tarball(name, version="1.0.0", code="module.exports = 42\n", dependencies=None):
    out = io.BytesIO()
    manifest = {"name": name, "version": version, "main": "index.js", "dependencies": dependencies or {}}
    with tarfile.open(fileobj=out, mode="w:gz") as t:
        for path, text in (("package.json", json.dumps(manifest)), ("index.js", code)):
            entry = tarfile.TarInfo("package/" + path)
            entry.size = len(text)
            t.addfile(entry, io.BytesIO(text.encode()))
    return manifest, out.getvalue()


SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"


class Index:
    """Use as a context. `asked` holds each requested path in order, `heads` those of HEAD. `moved`: the URL that files
    are redirected to, as a prefix of their paths; /elsewhere leads back here. Project pages are JSON for clients that
    accept it, unless `html_only`. `metadata`: wheels have metadata files (PEP 658). `login`: "USER:PASSWORD" that every
    request must have."""

    def __init__(self, wheels=(), tarballs=(), delay=0.0, html_only=False, moved=None, metadata=False, login=None):
        self.asked, self.heads, self.delay, self.html_only, self.moved, self.login = [], [], delay, html_only, moved, login
        self.files, self.projects, self.packages, self.lies, self.away = {}, {}, {}, {}, False
        for filename, content in wheels:
            self.files[f"/files/{filename}"] = content
            if metadata:
                with zipfile.ZipFile(io.BytesIO(content)) as z:
                    name = next(name for name in z.namelist() if name.endswith(".dist-info/METADATA"))
                    self.files[f"/files/{filename}.metadata"] = z.read(name)
            self.projects.setdefault(filename.split("-")[0], []).append(filename)
        for manifest, content in tarballs:
            file = f"/npm/{manifest['name']}/-/{manifest['name']}-{manifest['version']}.tgz"
            self.files[file] = content
            self.packages.setdefault(manifest["name"], []).append((manifest, file, content))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        if not self.away:
            self.leave()

    def leave(self):
        """Makes the index unreachable: nobody listens, and a kept connection stays silent."""
        self.away = True
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def pypi(self):
        return f"http://{self.login + '@' if self.login else ''}127.0.0.1:{self.port}/simple/"

    @property
    def npm(self):
        return f"http://127.0.0.1:{self.port}/npm/"

    def downloads(self):
        return [path for path in self.asked if path in self.files]

    def lie_about(self, path, content):
        """Serves other bytes than those whose hash the index names."""
        self.lies[path] = content

    def project(self, name, accept):
        names = self.projects[name]
        hashes = {n: hashlib.sha256(self.files[f"/files/{n}"]).hexdigest() for n in names}
        told = {n: hashlib.sha256(self.files[f"/files/{n}.metadata"]).hexdigest() for n in names if f"/files/{n}.metadata" in self.files}
        # Absolute, if there is a login: such an index does not write it into its pages.
        files = f"http://127.0.0.1:{self.port}/files" if self.login else "../../files"
        if SIMPLE_JSON in accept and not self.html_only:
            return SIMPLE_JSON, json.dumps({"meta": {"api-version": "1.0"}, "name": name, "files": [
                {"filename": n, "url": f"{files}/{n}", "hashes": {"sha256": hashes[n]},
                 **({"core-metadata": {"sha256": told[n]}} if n in told else {})} for n in names]})
        return "text/html", "<!DOCTYPE html><body>" + "".join(
            f'<a href="{files}/{n}#sha256={hashes[n]}"' + (f' data-dist-info-metadata="sha256={told[n]}"' if n in told else "") + f">{n}</a>" for n in names)

    def packument(self, name):
        versions = {}
        for manifest, file, content in self.packages[name]:
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
            dist = {"tarball": f"http://127.0.0.1:{self.port}{file}", "integrity": integrity}
            versions[manifest["version"]] = dict(manifest, dist=dist)
        return "application/json", json.dumps({"name": name, "dist-tags": {"latest": list(versions)[-1]}, "versions": versions})

    def answer(self, path, accept):
        if path in self.files:
            time.sleep(self.delay)
            return "application/octet-stream", self.lies.get(path, self.files[path])
        parts = path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2 and parts[1] in self.projects:
            return self.project(parts[1], accept)
        if parts[0] == "npm" and len(parts) == 2 and parts[1] in self.packages:
            return self.packument(parts[1])
        return None

    def handler(self):
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                index.heads.append(self.path)
                content = index.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.send_header("Content-Length", str(len(content or b"")))
                self.end_headers()

            def do_GET(self):
                if index.login and self.headers.get("Authorization") != "Basic " + base64.b64encode(index.login.encode()).decode():
                    self.send_response(401)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if index.away:
                    self.close_connection = True
                    return
                if index.moved and self.path in index.files:  # like an index whose files are on another host
                    self.send_response(302)
                    self.send_header("Location", index.moved + self.path)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.path = self.path.removeprefix("/elsewhere")
                index.asked.append(self.path)
                found = index.answer(self.path, self.headers.get("Accept", ""))
                kind, body = found or ("text/plain", "nothing here")
                body = body.encode() if isinstance(body, str) else body
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # the client may have gone
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler
