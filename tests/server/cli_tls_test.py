#!/usr/bin/env python3
"""The command line behind a proxy with TLS, as servers are deployed: the real program, a certificate of the test's own
authority. Standard library and openssl only."""

import os
import socket
import ssl
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from authority import Authority  # noqa: E402
from harness import BUILD, SLOWER, Shared, main, pool_yaml  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")
shared = Shared(pools=pool_yaml(warm=1), args=("--allowed-hosts", "hearth.far.example"))


class Relay:
    """Accepts on a free port of loopback and carries bytes to `target`. `front` prepares the accepted connection, for
    TLS or a proxy's CONNECT, and may return another target."""

    def __init__(self, target, front=lambda connection: (connection, None)):
        self.target, self.front, self.asked = target, front, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.threads = [threading.Thread(target=self.accept, daemon=True)]
        self.threads[0].start()

    def accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.threads.append(threading.Thread(target=self.carry, args=(connection,), daemon=True))
            self.threads[-1].start()

    def carry(self, connection):
        try:
            near, target = self.front(connection)
            far = socket.create_connection(target or self.target)
        except OSError:
            connection.close()
            return

        def move(source, sink):
            try:
                while data := source.recv(65536):
                    sink.sendall(data)
            except OSError:
                pass
            for end in (near, far):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

        back = threading.Thread(target=move, args=(far, near), daemon=True)
        back.start()
        move(near, far)
        back.join()
        near.close()
        far.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def tls_front(files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return lambda connection: (context.wrap_socket(connection, server_side=True), None)


def hearth(*words, env=None):
    clean = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return subprocess.run([HEARTH, *words], capture_output=True, text=True, timeout=60 * SLOWER, check=False,
                          stdin=subprocess.DEVNULL, env=dict(clean, NO_COLOR="1", **(env or {})))


def encrypted():
    """commands speak https with a server whose authority is known by --ca-file, its variable, or the machine"""
    with shared as s, Authority() as authority:
        files = authority.certificate("right", "DNS:localhost,IP:127.0.0.1")
        with Relay(("127.0.0.1", s.port), tls_front(files)) as relay:
            for host in ("localhost", "127.0.0.1"):
                url = f"https://{host}:{relay.port}"
                ran = hearth("run", "--url", url, "--ca-file", authority.file, "--command", "echo seen")
                assert (ran.returncode, ran.stdout) == (0, "seen\n"), ran
            assert hearth("get", "pools", env={"HEARTH_URL": url, "HEARTH_CA_FILE": authority.file}).returncode == 0
            assert hearth("get", "pools", env={"HEARTH_URL": url, "SSL_CERT_FILE": authority.file}).returncode == 0
            # A second connection, for input, goes the same way.
            ran = subprocess.run([HEARTH, "run", "-i", "--command", "cat", "--url", url, "--ca-file", authority.file],
                                 input=b"typed", capture_output=True, timeout=60 * SLOWER, check=False)
            assert ran.stdout == b"typed", ran


def refused():
    """a certificate of an unknown authority, for another name or of another time is refused, and the message says which"""
    with shared as s, Authority() as authority:
        cases = [("right", "DNS:localhost", "2", None, "local issuer certificate"), ("other", "DNS:elsewhere.example", "2", authority.file, "not for localhost"),
                 ("old", "DNS:localhost", "-1", authority.file, "expired")]
        for name, subject, days, trusted, word in cases:
            files = authority.certificate(name, subject, days)
            with Relay(("127.0.0.1", s.port), tls_front(files)) as relay:
                flags = ["--ca-file", trusted] if trusted else []
                ran = hearth("get", "pools", "--url", f"https://localhost:{relay.port}", *flags)
                assert ran.returncode == 4 and "certificate" in ran.stderr and word in ran.stderr, (name, ran)
                assert "--ca-file" in ran.stderr, ran
        plain = hearth("get", "pools", "--url", f"https://localhost:{s.port}")
        assert plain.returncode == 4 and "refuses TLS" in plain.stderr, plain
        missing = hearth("get", "pools", "--url", "https://localhost:1", "--ca-file", "/nonexistent")
        assert missing.returncode == 2 and "--ca-file" in missing.stderr, missing


def proxied():
    """the proxies of the environment are used, by CONNECT for https, and never for this machine"""
    with shared as s, Authority() as authority:
        files = authority.certificate("far", "DNS:hearth.far.example")
        with Relay(("127.0.0.1", s.port), tls_front(files)) as server:
            heads = []

            def connect(connection):
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    piece = connection.recv(1)
                    if not piece:
                        raise OSError("closed")
                    head += piece
                heads.append(head.decode())
                if head.startswith(b"CONNECT "):
                    connection.sendall(b"HTTP/1.1 200 connected\r\n\r\n")
                    return connection, ("127.0.0.1", server.port)
                connection.sendall(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                raise OSError("refused")

            with Relay(None, connect) as proxy:
                via = {"HTTPS_PROXY": f"http://me:secret@127.0.0.1:{proxy.port}", "http_proxy": f"http://127.0.0.1:{proxy.port}"}
                ran = hearth("run", "--url", "https://hearth.far.example", "--ca-file", authority.file, "--command", "echo through", env=via)
                assert (ran.returncode, ran.stdout) == (0, "through\n"), ran
                assert heads[0].startswith("CONNECT hearth.far.example:443 ") and "Proxy-Authorization: Basic bWU6c2VjcmV0" in heads[0], heads
                heads.clear()
                ran = hearth("get", "pools", "--url", "http://hearth.far.example:81", env=via)
                assert ran.returncode == 1 and "403" in ran.stderr, ran
                assert heads[0].startswith("GET http://hearth.far.example:81/v1/pools"), heads
                heads.clear()
                assert hearth("get", "pools", "--url", s.url, env=via).returncode == 0 and not heads, heads
                ran = hearth("get", "pools", "--url", "https://hearth.far.example", env=dict(via, NO_PROXY=".example"))
                assert ran.returncode == 4 and not heads, (ran, heads)


def ends():
    """the server of these tests leaves nothing"""
    shared.end()


TESTS = [encrypted, refused, proxied, ends]
for test in TESTS:
    test.only = "oci"  # they test parts in front of any runtime

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        shared.clean_up()
