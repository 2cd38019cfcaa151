"""An outside service that requires a token, by HTTP or HTTPS on a loopback address. It keeps its requests. Standard
library and openssl only."""

import base64
import gzip
import hashlib
import http.server
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
import urllib.parse


class Service:
    """`token`, `basic` and `key` are accepted; `asked` keeps (method, target, headers)."""

    def __init__(self, token, tls=True, host="127.0.0.2"):
        self.token, self.tls, self.host = token, tls, host
        self.asked = []
        self.folder = tempfile.mkdtemp(prefix="hearth-service-")
        self.ca = os.path.join(self.folder, "ca.pem")

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer((self.host, 0), self.handler())
        self.server.handle_error = lambda *_: None  # a client that does not trust it, or disconnects
        self.port = self.server.server_address[1]
        if self.tls:
            self.certify()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(os.path.join(self.folder, "server.pem"), os.path.join(self.folder, "server.key"))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
        shutil.rmtree(self.folder)

    @property
    def authority(self):
        return f"{self.host}:{self.port}"

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://{self.authority}"

    def certify(self):
        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
                "-subj", "/CN=test authority", "-days", "2")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "server.key", "-out", "server.csr",
                "-subj", "/CN=service")
        with open(os.path.join(self.folder, "ext"), "w") as out:
            out.write(f"subjectAltName=IP:{self.host}\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                "-extfile", "ext", "-out", "server.pem")
        os.chmod(self.folder, 0o755)

    def handler(outer):  # noqa: N805
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def let_in(self):
                query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
                basic = base64.b64encode(f"robot:{outer.token}".encode()).decode()
                return (self.headers.get_all("Authorization") in ([f"Bearer {outer.token}"], [f"Basic {basic}"])
                        or self.headers.get_all("X-Api-Key") == [outer.token] or query.get("key") == [outer.token])

            def reply(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                outer.asked.append((self.command, self.path, dict(self.headers)))
                path = urllib.parse.urlsplit(self.path).path
                if not self.let_in():
                    return self.send(401, b"who are you\n")
                if path == "/echo":  # returns all that it received
                    everything = f"{self.command} {self.path}\n{self.headers}".encode()
                    return self.send(200, everything, {"X-Seen": self.headers.get("Authorization", "-")})
                if path == "/pieces":  # the token in pieces, without a length
                    self.send_response(200)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for piece in ["token ", *outer.token, " end\n"]:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece.encode()))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                    return None
                if path == "/zipped":  # whatever the client accepts
                    return self.send(200, gzip.compress(outer.token.encode()), {"Content-Encoding": "gzip"})
                if path == "/written":  # as careful servers write it
                    token, half = outer.token, len(outer.token) // 2
                    ways = ["\\x%02x", "\\u{%x}", "\\%03o", "&#%d", "&#x%X", "=%02X", "\\u%04x", "%%%02X"]
                    lines = ["".join(way % ord(c) for c in token) for way in ways]
                    lines += [token[:half] + end + token[half:] for end in ("\n", "\r\n", "=\r\n", "\\\n")]
                    return self.send(200, "\n\n".join(lines).encode(), {"Content-Type": "text/plain; charset=UTF-8"})
                if path == "/wide":  # whatever charset the client accepts
                    asked = f"{self.headers}".lower()
                    return self.send(200, outer.token.encode("utf-16"), {"Content-Type": f"text/plain; charset=utf-16; asked={'charset' in asked}"})
                if path == "/switched":
                    self.send_response(101)
                    self.send_header("Upgrade", "mine")
                    self.end_headers()
                    self.wfile.write(outer.token.encode())
                    self.close_connection = True
                    return None
                if path == "/away":
                    return self.send(302, b"", {"Location": f"/echo?{urllib.parse.urlsplit(self.path).query}"})
                if path == "/big":
                    return self.send(200, b"x" * 3_000_000)
                if path == "/hang":  # announces content, then sends none
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b"begun")
                    self.wfile.flush()
                    self.close_connection = True
                    return None
                return self.send(200, f"welcome {len(body)} {hashlib.sha256(body).hexdigest()}\n".encode())

            do_GET = do_POST = do_PUT = do_DELETE = do_TRACE = reply

            def do_HEAD(self):
                self.send(200 if self.let_in() else 401, b"12345")

            def send(self, status, body, headers=()):
                self.send_response(status)
                for name, value in dict(headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        return Handler
