#!/usr/bin/env python3
"""Damages the API server of the tests' own cluster.

    tests/cluster/fault.py INSTANCE kill|start|freeze|thaw|compact

kill ends it by SIGKILL, start brings it up again on the same data and waits until it answers, freeze and thaw are SIGSTOP and
SIGCONT, compact lets etcd forget all versions before now."""

import json
import os
import signal
import sys
import urllib.request

import control_plane
from instance import Instance


def etcd(instance, call, body):
    request = urllib.request.Request(f"{instance.url('etcd', 'http')}/v3/kv/{call}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def kill(instance):
    instance.stop("apiserver", signal.SIGKILL)


def start(instance):
    instance.restart("apiserver")
    control_plane.wait_for_api(instance)


def freeze(instance):
    os.kill(instance.pid("apiserver"), signal.SIGSTOP)


def thaw(instance):
    os.kill(instance.pid("apiserver"), signal.SIGCONT)


def compact(instance):
    now = etcd(instance, "range", {"key": "AA=="})["header"]["revision"]
    etcd(instance, "compaction", {"revision": now, "physical": True})


if __name__ == "__main__":
    {each.__name__: each for each in (kill, start, freeze, thaw, compact)}[sys.argv[2]](Instance(sys.argv[1]))
