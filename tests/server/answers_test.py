#!/usr/bin/env python3
"""Long answers, black box: clients that never read them or read them late, and the memory that the server holds
meanwhile."""

import hashlib
import json
import os
import selectors
import socket
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Growth, Reader, Server, growth_allowed, main, on_docker, pool_yaml  # noqa: E402

MIB = 1 << 20
# The bound holds for any output and any number of clients that do not read.
ALLOWED = growth_allowed(80 * MIB)
CROWD = 40
CONTROL = "head -c {0} /dev/zero | tr '\\0' '\\001'"


class Late:
    """A GET that is not read until take() is called. Its body is reported as a hash."""

    def __init__(self, s, path, headers):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", s.port))
        lines = [f"GET {path} HTTP/1.0", "Host: localhost"] + [f"{k}: {v}" for k, v in headers.items()]
        self.socket.sendall("\r\n".join(lines + ["", ""]).encode())
        self.head, self.hash, self.size = b"", hashlib.sha256(), 0
        self.socket.recv(1, socket.MSG_PEEK)  # the answer has begun: a tenant must not exceed its share at once

    def take(self, some):
        if b"\r\n\r\n" not in self.head:
            self.head += some
            _, mark, some = self.head.partition(b"\r\n\r\n")
            if not mark:
                return
            assert self.head.startswith(b"HTTP/1.1 200 "), self.head[:200]
        self.hash.update(some)
        self.size += len(some)


def read_all(late):
    """Reads all of them at once, each to its end. Returns (bytes, hash) of each."""
    with selectors.DefaultSelector() as selector:
        for each in late:
            each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)
            selector.register(each.socket, selectors.EVENT_READ, each)
        while selector.get_map():
            ready = selector.select(60)
            assert ready, f"{len(selector.get_map())} answers stand still"
            for key, _ in ready:
                some = key.fileobj.recv(MIB)
                if some:
                    key.data.take(some)
                else:
                    selector.unregister(key.fileobj)
    return [(each.size, each.hash.hexdigest()) for each in late]


def token(s, tenant, role, headers=None):
    made = s.post("/v1/tokens", {"name": f"{tenant}-{role}", "tenant": tenant, "role": role}, headers=headers)
    assert made.status == 201, made
    return {"Authorization": "Bearer " + made.json["token"]}


def program(s, who, workspace, command):
    answer = s.post(f"/v1/workspaces/{workspace}/executions",
                    {"command": command, "outputLimitBytes": 16 * MIB, "timeoutSeconds": 60}, headers=who)
    assert answer.status == 200, answer
    return answer.json


def unread_answers():
    """the longest answers, read late or never by a crowd, cost the server some KiB each; everybody else is answered, and who reads gets every byte"""
    with Server(pools=pool_yaml()) as s:
        root = token(s, "ops", "admin")
        try:
            storm(s, root)
        finally:
            s.post("/v1/drain", headers=root)
            s.stop()
        if not on_docker():  # docker has no launcher that removes it; a later start does
            assert not os.path.exists(f"/run/hearth/{s.instance}")


def storm(s, root):
    red, blue = token(s, "red", "user", root), token(s, "blue", "user", root)
    operator = token(s, "red", "operator", root)
    w = s.post("/v1/workspaces", {}, headers=red).json["id"]
    other = s.post("/v1/workspaces", {}, headers=blue).json["id"]
    growth = Growth([s.process.pid])
    # Read at once: 96 MiB of JSON.
    large = program(s, red, w, CONTROL.format(16 * MIB))
    assert large["stdout"] == "\1" * 16 * MIB and large["droppedBytes"] == 0
    at_once = growth.most()
    assert at_once < ALLOWED, at_once
    ids = [program(s, red, w, CONTROL.format(4 * MIB))["id"] for _ in range(3)]
    paths = [f"/v1/executions/{ids[i % 3]}" for i in range(CROWD)]
    paths += [f"/v1/executions/{ids[i % 3]}/events?since={4 * MIB}" for i in range(CROWD)]
    paths += [f"/v1/executions/{large['id']}", f"/v1/executions/{large['id']}/events", f"/v1/workspaces/{w}/executions?output=true"]
    never = [Late(s, path, red) for path in paths[::4]]
    late = [Late(s, path, red) for path in paths]
    try:
        until, rounds = time.monotonic() + 5, 0
        while time.monotonic() < until:
            begin = time.monotonic()
            answer = s.post(f"/v1/workspaces/{other}/executions", {"command": "echo $((6 * 7))"}, headers=blue)
            assert answer.status == 200 and answer.json["stdout"] == "42\n", answer
            assert s.get("/v1/pools", headers=operator).status == 200
            assert time.monotonic() - begin < 5
            rounds += 1
        unread = growth.most()
        assert unread < ALLOWED, (at_once, unread)
        got = read_all(late)
        assert growth.most() < ALLOWED, (at_once, unread, growth.most())
    finally:
        for each in never + late:
            each.socket.close()
    for i, path in enumerate(paths[:3]):  # one of each kind is checked; the others must be equal
        whole = s.get(path, headers=red)
        assert whole.json["stdout"] == "\1" * 4 * MIB and whole.json["stderr"] == "" and not whole.json["truncated"]
        same = (len(whole.body), hashlib.sha256(whole.body).hexdigest())
        assert all(each == same for each in got[i:CROWD:3]), got[i:CROWD:3]
        with Reader(s, paths[CROWD + (i - CROWD) % 3], headers=red) as again:
            events = list(again.events())
            assert [e["event"] for e in events] == ["exit"] and json.loads(events[0]["data"])["stdout"] == "\1" * 4 * MIB
    for i in range(CROWD, 2 * CROWD):
        assert got[i] == got[CROWD + (i - CROWD) % 3]
    assert got[2 * CROWD][0] > 6 * 16 * MIB and got[2 * CROWD + 1][0] > 2 * 6 * 16 * MIB
    assert 4 * MIB * 6 < got[-1][0] < 6 * MIB * 6  # a list contains at most 4 MiB of output
    print(f"      {len(never) + len(late)} clients beside {rounds} rounds; grown by {at_once >> 20} MiB for one who reads,"
          f" {unread >> 20} MiB while nobody reads, {growth.most() >> 20} MiB in all", flush=True)


unread_answers.only = "oci"  # it tests only the server itself

if __name__ == "__main__":
    main("server", [unread_answers])
