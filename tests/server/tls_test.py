#!/usr/bin/env python3
# suite: seconds=60
"""The server's own TLS, with independent clients: curl, openssl and Python's. Certificates come from the tests' own
authority."""

import concurrent.futures
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from authority import Authority  # noqa: E402
from harness import BUILD, SLOWER, Server, main, pool_yaml, wait_for  # noqa: E402

HEARTH = os.path.join(BUILD, "hearth")


def serving(authority, **fields):
    return Server(pools=pool_yaml(warm=2), tls=authority, **fields)


def curl(s, path, *words):
    return subprocess.run(["curl", "-sS", "--cacert", s.tls.file, *words, s.url + path], capture_output=True, timeout=60 * SLOWER, check=False)


def any_client():
    """curl, the command line and an MCP call get over TLS what they get without; links say https"""
    with Authority() as authority, serving(authority) as s:
        said = curl(s, "/v1/pools")
        assert said.returncode == 0 and json.loads(said.stdout)["items"], said
        ran = subprocess.run([HEARTH, "run", "-i", "--url", s.url, "--ca-file", authority.file, "--command", "cat"], input=b"typed",
                             capture_output=True, timeout=60 * SLOWER, check=False)
        assert (ran.returncode, ran.stdout) == (0, b"typed"), ran
        call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        said = curl(s, "/mcp", "-H", "Content-Type: application/json", "-H", "Accept: application/json, text/event-stream", "-d", call)
        assert b'"serverInfo"' in said.stdout, said
        workspace = s.open_workspace()["id"]
        assert s.call("PUT", f"/v1/workspaces/{workspace}/files/a.txt", raw=b"linked").status in (200, 201)
        link = s.post(f"/v1/workspaces/{workspace}/links", {"path": "a.txt"}).json["url"]
        assert link.startswith("https://"), link
        assert curl(s, link.removeprefix(s.url)).stdout == b"linked"
        assert s.url in s.log() or "https://" in s.log()


def whole():
    """large files and long output arrive whole, both ways, and a stream comes as it is written"""
    with Authority() as authority, serving(authority) as s:
        workspace = s.open_workspace()["id"]
        content = os.urandom(1 << 20) * 40
        assert s.call("PUT", f"/v1/workspaces/{workspace}/files/big", raw=content).status in (200, 201)
        assert s.call("GET", f"/v1/workspaces/{workspace}/files/big").body == content
        begun = s.post(f"/v1/workspaces/{workspace}/executions", {
            "argv": ["sh", "-c", "echo first; sleep 2; head -c 3000000 /dev/zero | tr '\\0' x; echo last"], "background": True, "outputLimitBytes": 8 << 20})
        assert begun.status == 202, begun
        reader = subprocess.Popen(["curl", "-sSN", "--cacert", authority.file, "-H", "Accept: text/event-stream",
                                   f"{s.url}/v1/executions/{begun.json['id']}/events"], stdout=subprocess.PIPE)
        early = b""
        while b"first" not in early:
            piece = os.read(reader.stdout.fileno(), 65536)
            assert piece, early
            early += piece
        assert b"last" not in early, early
        rest = reader.stdout.read()
        assert reader.wait(60) == 0 and b"last" in rest and rest.count(b"x") >= 3_000_000, len(rest)


def refused():
    """what is no TLS, an old version, and a file that the server cannot use are refused, in words where somebody reads them"""
    with Authority() as authority, serving(authority) as s:
        with socket.create_connection(("127.0.0.1", s.port), timeout=20) as plain:
            plain.sendall(b"GET /v1/pools HTTP/1.1\r\nHost: x\r\n\r\n")
            said = plain.recv(1000)
            assert said.startswith(b"HTTP/1.1 400 ") and b"use a https:// URL" in said and plain.recv(1) == b"", said
        old = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{s.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
                             input=b"", capture_output=True, timeout=30, check=False)
        assert old.returncode != 0, old
        key = f"{authority.folder}/server.key"
        s.stop()
        os.chmod(key, 0)
        for words, said in ((s.extra[:2], "--tls-cert without --tls-key"), (["--tls-cert", "/none", *s.extra[2:]], "/none: No such file")):
            failed = subprocess.run([HEARTH, "serve", "--data-dir", s.data, "--listen", f"127.0.0.1:{s.port}", *words],
                                    capture_output=True, text=True, timeout=60 * SLOWER, check=False)
            assert failed.returncode != 0 and said in failed.stderr, failed.stderr
        os.chmod(key, 0o644)


def renewed_under_load():
    """certificates are renewed while clients come and go, and none of their requests fails; a broken one is not taken"""
    with Authority() as authority, serving(authority) as s:
        done, counted, lock = threading.Event(), [0], threading.Lock()

        def client():
            while not done.is_set():
                assert s.get("/v1/pools").status == 200
                with lock:
                    counted[0] += 1

        def shown():
            with socket.create_connection(("127.0.0.1", s.port), timeout=20) as raw, s.trusting.wrap_socket(raw, server_hostname="localhost") as tls:
                return tls.getpeercert()["serialNumber"]

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            clients = [threads.submit(client) for _ in range(4)]
            try:
                seen = {shown()}
                for _ in range(5):
                    s.renew_certificate()
                    wait_for("the new certificate", lambda: shown() not in seen, 20)
                    seen.add(shown())
                before = shown()
                with open(f"{authority.folder}/server.pem", "w", encoding="ascii") as f:
                    f.write("nonsense")
                wait_for("the log", lambda: "tls.not_reloaded" in s.log(), 20)
                assert shown() == before
            finally:
                done.set()
            for each in clients:
                each.result()
        assert counted[0] > 50, counted
        assert "hearth_tls_certificate_expiry_timestamp_seconds" in s.ops("/metrics").body.decode()


def silent_clients():
    """clients that begin and say nothing keep nobody out, and are let go"""
    with Authority() as authority, serving(authority) as s:
        def descriptors():
            return len(os.listdir(f"/proc/{s.process.pid}/fd"))

        before = descriptors()
        silent = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(400)]
        half = ssl.create_default_context(cafile=authority.file)
        for each in silent[:200]:
            each.setblocking(False)
            try:
                half.wrap_socket(each, server_hostname="localhost", do_handshake_on_connect=False).do_handshake()
            except ssl.SSLWantReadError:
                pass
        begin = time.monotonic()
        assert s.get("/v1/pools").status == 200
        assert time.monotonic() - begin < 5 * SLOWER
        wait_for("their end", lambda: descriptors() <= before + 20, 30)
        for each in silent:
            each.close()


for test in (any_client, whole, refused, renewed_under_load, silent_clients):
    test.only = "oci"

if __name__ == "__main__":
    main("server", [any_client, whole, refused, renewed_under_load, silent_clients])
