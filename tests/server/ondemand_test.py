#!/usr/bin/env python3
"""Claims that name an image: found by each of its names, given a pool of their own if none has it, fetched from a
registry on loopback, refused with the allowed ones, and collected when nobody needs it."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from harness import IMAGES, Server, main, on_docker, pool_yaml, wait_for  # noqa: E402
from image_test import busybox, entry, hearth, images, inspect, link, save  # noqa: E402
from registry import Registry  # noqa: E402

KEEP = 3600


def config(registry=None, allow=(), keep=KEEP, sandboxes=5, wait=60):
    out = f"images:\n  onDemand: {{maxSandboxes: {sandboxes}, keepSeconds: {keep}, waitSeconds: {wait}, allow: {json.dumps(list(allow))}}}\n"
    return out + (f"  insecureRegistries: ['{registry.place}']\n" if registry else "")


def small(path, tag, text, **more):
    """Writes an archive with a shell and one file that tells images apart."""
    return save(path, tag, [entry("bin/busybox", busybox()), link("bin/sh", "busybox"), entry("which", text)],
                config={"Env": ["PATH=/bin"], **more})


def layout(path, text, **more):
    """Writes the same image as an OCI layout."""
    archive = small(path + ".tar", None, text, **more)
    subprocess.run(["skopeo", "--insecure-policy", "copy", "--quiet", "docker-archive:" + archive, f"oci:{path}:latest"], check=True)
    return path


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="hearth-ondemand-") as path:
        os.chmod(path, 0o711)
        yield path


def refused(s, image, status, *says):
    answer = s.post("/v1/workspaces", {"image": image})
    assert answer.status == status, (image, answer)
    for text in says:
        assert text in json.dumps(answer.json, ensure_ascii=False), (image, text, answer.json)
    return answer


def declare(s, name, image, warm):
    return s.call("PUT", f"/v1/pools/{name}", {
        "apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": name},
        "spec": {"template": {"image": image, "allowTags": ":" in image}, "warm": {"min": warm}}})


def close(s, workspace):
    assert s.call("DELETE", f"/v1/workspaces/{workspace}").status in (200, 202, 204)


def docker(*words, check=True):
    return subprocess.run(["docker", "-H", harness.dockerd.socket, *words], check=check, capture_output=True, text=True).stdout


def tags_of_daemon():
    return set(docker("images", "--format", "{{.Repository}}:{{.Tag}}").split())


def fetched():
    """an image without a pool is fetched, becomes a cold workspace that tells its stages, and is like every other one"""
    with scratch() as tmp:
        with Registry({"team/a:1": layout(f"{tmp}/a", "a", WorkingDir="/srv", User="nobody", Entrypoint=["/bin/false"])}) as r:
            with Server(pools=pool_yaml(warm=1), config=config(r, [r.place + "/team/*:*"])) as s:
                image = r.place + "/team/a:1"
                w = s.open_workspace(image=image)
                claim = w["claim"]
                assert claim["source"] == "cold" and claim["pullMs"] > 0 and claim["createMs"] > 0, claim
                stages = sum(v for k, v in claim.items() if k.endswith("Ms") and k != "totalMs")
                assert stages <= claim["totalMs"] * 1.02 and stages > claim["totalMs"] * 0.5, claim
                assert s.run(w["id"], "cat /which; id -u; pwd")["stdout"] == "a1000\n/workspace\n"
                assert w["limits"]["pids"] == 128 and w["network"] == "None", w  # like the default pool
                pool = s.get(f"/v1/pools/{w['pool']}").json
                assert pool["metadata"]["onDemand"] == image and pool["spec"]["template"]["image"].startswith("sha256:"), pool
                # Again, by tag and by digest: without a request to the registry.
                asked = dict(r.asked)
                for name in (image, f"{r.place}/team/a@{r.digest_of('team/a:1')}"):
                    again = s.open_workspace(image=name)
                    assert again["claim"]["source"] == "cold" and "pullMs" not in again["claim"], again
                    assert again["pool"] == w["pool"]
                    close(s, again["id"])
                assert r.asked == asked, (asked, r.asked)
                out = s.post("/v1/executions", {"command": "cat /which", "image": image}).json
                assert out["stdout"] == "a" and out["claim"]["source"] == "cold", out
                # A claim gets this pool only if it asks for the image, and nobody may declare the pool.
                assert s.open_workspace()["pool"] == "shell"
                put = s.call("PUT", f"/v1/pools/{w['pool']}", {k: pool[k] for k in ("apiVersion", "kind", "metadata", "spec")})
                assert put.status == 422 and "are reserved for the server" in put.body.decode(), put
                metrics = s.ops("/metrics").body.decode()
                for stage in ("pull", "create", "warm", "bind"):
                    line = next(x for x in metrics.splitlines() if f'stage="{stage}"' in x and w["pool"] in x and "_count" in x)
                    assert float(line.split()[-1]) > 0, line
                assert any(e["type"] == "image.fetched" for e in s.get("/v1/events?limit=1000").json["items"])
                s.kill9()
                s.start()
                assert s.run(w["id"], "cat /which")["stdout"] == "a"
                assert s.get(f"/v1/pools/{w['pool']}").json["metadata"]["onDemand"] == image
                assert s.open_workspace(image=image)["pool"] == w["pool"]
                s.drain()
                assert s.get(f"/v1/workspaces/{w['id']}").status == 410


def together():
    """claims that want the same image at once share one fetch, and together get no more sandboxes than allowed"""
    with scratch() as tmp, Registry({"b:1": layout(f"{tmp}/b", "b"), "c:1": layout(f"{tmp}/c", "c")}) as r:
        with Server(pools=pool_yaml(warm=0), config=config(r, [r.place + "/*:*"], sandboxes=4)) as s:
            answers = []
            r.hold()
            threads = [threading.Thread(target=lambda: answers.append(s.post("/v1/workspaces", {"image": r.place + "/b:1"})))
                       for _ in range(4)]
            for t in threads:
                t.start()
            wait_for("the fetch", lambda: any(k.startswith("blobs/") for k in r.asked), 30)
            r.let_go()
            for t in threads:
                t.join()
            assert [a.status for a in answers] == [201] * 4, answers
            blobs = {k: n for k, n in r.asked.items() if k.startswith("blobs/")}
            assert blobs and all(n == 1 for n in blobs.values()), r.asked
            late = []
            t = threading.Thread(target=lambda: late.append(s.post("/v1/workspaces", {"image": r.place + "/c:1"})))
            t.start()
            wait_for("a waiting claim", lambda: any(p["status"]["waiting"] for p in s.get("/v1/pools").json["items"]), 30)
            assert len(s.get("/v1/sandboxes").json["items"]) == 4
            close(s, answers[0].json["id"])
            t.join()
            assert late[0].status == 201 and late[0].json["claim"]["queueMs"] > 0, late


def refusals():
    """what is not allowed, not there, not reachable or not usable is refused with what to do about it"""
    with scratch() as tmp, Registry({"ok:1": layout(f"{tmp}/ok", "ok")}) as r:
        if not on_docker():
            bad = save(f"{tmp}/bad.tar", None, [entry("bin/busybox", busybox()), link("dev", "/host")])
            subprocess.run(["skopeo", "--insecure-policy", "copy", "--quiet", "docker-archive:" + bad, f"oci:{tmp}/bad:latest"], check=True)
            r.images["bad:1"] = f"{tmp}/bad"
        with Server(pools=pool_yaml(warm=1), config=config(r, [r.place + "/*:*", "127.0.0.1:1/*:*"])) as s:
            refused(s, "python:3.9-slim", 422, "not allowed", f"{r.place}/*:*", "shell (pool shell)")
            refused(s, r.place + "/ok:2", 422, r.place + "/ok:2")
            refused(s, "127.0.0.1:1/ok:1", 503, "cannot be reached")
            refused(s, f"{r.place}/ok@sha256:{'0' * 64}", 422, "registry")
            refused(s, "sha256:" + "0" * 64, 422)
            if not on_docker():
                refused(s, r.place + "/bad:1", 422, "/dev is a link")
            missing = s.post("/v1/workspaces", {"image": r.place + "/ok:1", "language": "python"})
            assert missing.status == 422 and "available languages: sh" in missing.json["hint"], missing
            # A model gets the same answer.
            said = mcp(s, "workspace_open", {"image": "python:3.9-slim"})
            assert said["isError"] and "not allowed" in said["content"][0]["text"] and r.place + "/*:*" in said["content"][0]["text"], said
            assert r.place in mcp(s, "pool_list", {})["content"][0]["text"]
            said = mcp(s, "run", {"image": r.place + "/ok:1", "command": "cat /which"})
            assert not said.get("isError") and "ok" in said["content"][0]["text"], said
        with Server(pools=pool_yaml(warm=1)) as s:
            refused(s, r.place + "/ok:1", 422, "images.onDemand")


def inside_out():
    """what a reference, a redirect or a token service points to is not reached where it is inside; an exemption lets it"""
    name = socket.gethostname()
    try:
        here = socket.gethostbyname(name)
    except OSError:
        here = ""
    if not here.startswith("127."):
        print("      without a name for this machine that means its loopback", flush=True)
        return
    with scratch() as tmp, Registry({"ok:1": layout(f"{tmp}/ok", "ok")}) as r, Registry({"ok:1": f"{tmp}/ok"}) as other:
        named = r.place.replace("127.0.0.1", name)
        patterns = [r.place + "/*:*", named + "/*:*", "127.1:5000/*:*"]
        insecure = f"  insecureRegistries: {json.dumps([r.place, named])}\n"
        text = config(None, patterns) + insecure
        with Server(pools=pool_yaml(warm=0), config=text) as s:
            refused(s, named + "/ok:1", 422, "not fetched from", "egress.exempt")
            refused(s, "127.1:5000/ok:1", 422, "usual spelling")
            assert not r.asked and "denied_address" in s.log(), r.asked
            if not on_docker():  # the daemon makes its own connections
                for place, told in ((other.place, ""), (other.place.replace("127.0.0.1", name), "not fetched from"),
                                    ("169.254.169.254", "not fetched from")):
                    for point in ("moved", "realm"):
                        setattr(r, point, f"http://{place}")
                        answer = s.post("/v1/workspaces", {"image": r.place + "/ok:1"})
                        assert answer.status in (422, 503) and told in answer.body.decode(), (place, point, answer)
                        setattr(r, point, None)
                        time.sleep(5.2)  # a failure is repeated for this time
                assert not other.asked, other.asked
            w = s.open_workspace(image=r.place + "/ok:1")
            assert s.run(w["id"], "cat /which")["stdout"] == "ok"
        with Server(pools=pool_yaml(warm=0), config=text, args=["--egress-exempt", "127.0.0.0/8"]) as s:
            if on_docker():
                return
            r.moved = f"http://{other.place.replace('127.0.0.1', name)}"
            w = s.open_workspace(image=named + "/ok:1")
            assert s.run(w["id"], "cat /which")["stdout"] == "ok" and any(k.startswith("blobs/") for k in other.asked), other.asked


def mcp(s, tool, arguments):
    """Returns the result of one tool call."""
    headers = {"Accept": "application/json, text/event-stream"}
    hello = s.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}, headers=headers)
    if "mcp-session-id" in hello.headers:
        headers["Mcp-Session-Id"] = hello.headers["mcp-session-id"]
    headers["MCP-Protocol-Version"] = "2025-06-18"
    s.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=headers)
    body = s.post("/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                           "params": {"name": tool, "arguments": arguments}}, headers=headers).body.decode()
    if not body.startswith("{"):
        body = next(line[6:] for line in reversed(body.splitlines()) if line.startswith("data: ") and '"id":2' in line.replace(" ", ""))
    return json.loads(body)["result"]


def slow():
    """a claim that waits too long for its image is told to come back, the fetch goes on behind it, and a stop does not wait"""
    with scratch() as tmp, Registry({"slow:1": layout(f"{tmp}/slow", "slow")}) as r:
        with Server(pools=pool_yaml(warm=0), config=config(r, [r.place + "/*:*"], wait=1)) as s:
            r.hold()
            answer = refused(s, r.place + "/slow:1", 503, "is not ready yet")
            assert int(answer.headers["retry-after"]) >= 1, answer
            r.let_go()
            wait_for("the image", lambda: s.post("/v1/workspaces", {"image": r.place + "/slow:1"}).status == 201, 30)
        with Server(pools=pool_yaml(warm=0), config=config(r, [r.place + "/*:*"])) as s:
            if on_docker():
                docker("rmi", "-f", *docker("images", "-q", "hearth/ondemand").split())
            r.hold()
            answers = []
            t = threading.Thread(target=lambda: answers.append(s.post("/v1/workspaces", {"image": r.place + "/slow:1"})))
            before = dict(r.asked)
            t.start()
            wait_for("the fetch", lambda: r.asked != before, 30)
            begin = time.monotonic()
            s.stop()
            print(f'      stopped in {time.monotonic() - begin:.1f} s', flush=True)
            assert time.monotonic() - begin < 20 * harness.SLOWER
            t.join()
            assert answers[0].status == 503, answers
            r.let_go()
            s.start()
            assert s.open_workspace(image=r.place + "/slow:1")["claim"]["source"] == "cold"


def collected():
    """an unused image that a claim brought goes with its pool, and one that somebody else has stays"""
    with scratch() as tmp, Registry({"d:1": layout(f"{tmp}/d", "d"), "e:1": layout(f"{tmp}/e", "e")}) as r:
        with Server(pools=pool_yaml(warm=0), config=config(r, [r.place + "/*:*"], keep=2)) as s:
            before = tags_of_daemon() if on_docker() else set()  # other tests share the daemon
            w = s.open_workspace(image=r.place + "/d:1")
            e = s.open_workspace(image=r.place + "/e:1")
            def here(text):
                if on_docker():
                    return any(text in x for x in docker("images", "--digests", "-a").splitlines())
                try:
                    return any(inspect(s, n)["reference"] == f"{r.place}/{text}:1" for n in images(s))
                except AssertionError:  # it was removed during the check
                    return True
            time.sleep(4)
            assert s.run(w["id"], "cat /which")["stdout"] == "d", "a used one stays"
            if on_docker():
                docker("tag", f"{r.place}/e@{r.digest_of('e:1')}", "mine:1")
            else:
                hearth(s, "import", os.path.join(s.data, "images", next(n for n in images(s) if inspect(s, n)["reference"] == r.place + "/e:1")),
                       "--name", "mine")
            close(s, w["id"])
            close(s, e["id"])
            wait_for("the end of the pools", lambda: [p["metadata"]["name"] for p in s.get("/v1/pools").json["items"]] == ["shell"], 30)
            wait_for("the image's end", lambda: not here("/d" if on_docker() else "d"), 30)
            if on_docker():
                wait_for("the end of our tags", lambda: not any(x.startswith("hearth/ondemand") for x in tags_of_daemon() - before), 30)
                assert "mine:1" in tags_of_daemon() - before
                assert not [n for n in os.listdir(os.path.join(s.data, "docker-images")) if "@" in n or n.startswith("ondemand:")]
                docker("rmi", "mine:1")
            else:
                assert "mine" in images(s) and not any(n.startswith("ondemand-") for n in images(s)), images(s)


def by_every_name():
    """a pool is found by its image's name, its reference in every spelling, and by digest"""
    with scratch() as tmp, Server(pools=pool_yaml(warm=0)) as s:
        hearth(s, "import", small(f"{tmp}/x.tar", "python:3.9-slim", "x"), "--name", "x", "--pool", "x")
        image = inspect(s, "x")
        wait_for("the pool", lambda: s.get("/v1/pools/x").json["status"]["ready"] >= 1, 30)
        names = ["x", "python:3.9-slim", "docker.io/library/python:3.9-slim", image["digest"], "python@" + image["digest"],
                 "x@" + image["digest"]]
        if on_docker():
            docker_name = docker("import", "--change", "ENV A=1", small(f"{tmp}/y.tar", None, "y"), "team/y:1").strip()
            put = declare(s, "y", "team/y:1", warm=0)
            assert put.status == 201, put
            for name in ("team/y:1", "docker.io/team/y:1", docker_name):
                answer = s.post("/v1/workspaces", {"image": name, "pool": "y"})
                assert not (answer.status == 422 and "has image" in answer.json["detail"]), (name, answer)
        for name in names:
            w = s.open_workspace(image=name)
            assert w["pool"] == "x", (name, w)
            close(s, w["id"])
        for name in ("python", "python:3.9", "python@sha256:" + "0" * 64, "sha256:" + "0" * 64):
            assert s.post("/v1/workspaces", {"image": name}).status == 422, name


def local():
    """an image that is here without a pool needs no registry"""
    with scratch() as tmp, Server(pools=pool_yaml(warm=0), config=config(None, ["python:*", "shell:*"])) as s:
        hearth(s, "import", small(f"{tmp}/x.tar", "python:3.9-slim", "x"), "--name", "x")
        for name in ("python:3.9-slim", "x", inspect(s, "x")["digest"]):
            w = s.open_workspace(image=name)
            assert w["claim"]["source"] == "cold" and "pullMs" not in w["claim"] and w["pool"].startswith("ondemand-"), w
            assert s.run(w["id"], "cat /which")["stdout"] == "x"
            close(s, w["id"])
        hearth(s, "import", small(f"{tmp}/y.tar", "other:1", "y"), "--name", "y")
        refused(s, "y", 422, "not allowed", "python:*")
        refused(s, "other:1", 422, "not allowed")


def old_tags():
    """what Docker was given for an image that was replaced goes when nobody uses it; a user's images never do"""
    with scratch() as tmp, Server(pools=pool_yaml(warm=0)) as s:
        hearth(s, "import", small(f"{tmp}/1.tar", "v:1", "old"), "--name", "v", "--pool", "v")
        wait_for("the pool", lambda: s.get("/v1/pools/v").json["status"]["ready"] >= 1, 30)
        old = "hearth/v:" + inspect(s, "v")["digest"][7:19]
        assert old in tags_of_daemon()
        w = s.open_workspace(image="v")["id"]
        docker("import", small(f"{tmp}/u.tar", None, "user"), "hearth/v:mine")
        hearth(s, "import", small(f"{tmp}/2.tar", "v:1", "new"), "--name", "v")
        new = "hearth/v:" + inspect(s, "v")["digest"][7:19]
        s.stop()
        s.start()  # it collects at its start
        wait_for("the new image", lambda: new in tags_of_daemon(), 30)
        time.sleep(1)
        assert old in tags_of_daemon() and s.run(w, "cat /which")["stdout"] == "old", "a live workspace keeps its image"
        close(s, w)
        wait_for("its end", lambda: all(x["workspaceId"] != w for x in s.get("/v1/sandboxes").json["items"]), 30)
        s.stop()
        s.start()
        wait_for("the old tag's end", lambda: old not in tags_of_daemon(), 30)
        assert {new, "hearth/v:mine"} <= tags_of_daemon(), tags_of_daemon()
        docker("rmi", "hearth/v:mine")


def stored_wrong():
    """a pool whose stored manifest is refused does not stop the server: it is Degraded, and can be mended"""
    with Server(pools=pool_yaml(warm=1)) as s:
        put = declare(s, "old", "shell", warm=1)
        assert put.status == 201, put
        s.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(s.data, "state", "hearth.db"))) as db:
            db.execute("""UPDATE pools SET document = replace(document, '"image":"shell"', '"image":"shell:1"') WHERE name = 'old'""")
            db.commit()
        s.start()
        def conditions():
            return {c["type"]: c for c in s.get("/v1/pools/old").json["status"]["conditions"]}
        told = wait_for("Degraded", lambda: conditions().get("Degraded"))
        assert told["status"] == "True" and told["reason"] == "SpecRefused" and "allowTags" in told["message"], told
        assert s.post("/v1/workspaces", {"pool": "old"}).status == 503
        assert s.open_workspace()["pool"] == "shell"
        assert declare(s, "old", "shell", warm=1).status == 200
        wait_for("the pool", lambda: s.get("/v1/pools/old").json["status"]["ready"] == 1, 30)


def disk_full():
    """a fetch that fills the disk says so and leaves nothing"""
    with scratch() as tmp:
        data = os.path.join(tmp, "data")
        os.makedirs(data)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m,mode=711", "tmpfs", data], check=True)
        try:
            archive = save(f"{tmp}/big.tar", None, [entry("bin/sh", busybox())] + [entry(f"f{i}", os.urandom(1 << 20)) for i in range(160)])
            subprocess.run(["skopeo", "--insecure-policy", "copy", "--quiet", "docker-archive:" + archive, f"oci:{tmp}/big:latest"], check=True)
            with Registry({"big:1": f"{tmp}/big"}) as r, Server(pools=pool_yaml(warm=0), data_dir=data, config=config(r, [r.place + "/*:*"])) as s:
                refused(s, r.place + "/big:1", 507, "disk")
                left = [n for folder in ("images", "rootfs") for n in os.listdir(os.path.join(data, folder))]
                assert not any(n.startswith(("ondemand", ".unfinished")) or n.endswith(".import") for n in left), left
        finally:
            subprocess.run(["umount", data], check=True)


old_tags.only = "docker"
disk_full.only = "oci"

if __name__ == "__main__":
    main("server", [fetched, together, refusals, inside_out, slow, collected, by_every_name, local, old_tags, stored_wrong, disk_full])
