#!/usr/bin/env python3
# suite: seconds=150 needs=hearth-bench
"""Cases of the docker runtime only: a daemon that restarts, dies or hangs, images of the daemon's own, and the
confinement of its containers. Each test has its own daemon, which it may end."""

import contextlib
import datetime
import glob
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, IMAGES, Dockerd, Server, main, pool_yaml, wait_for  # noqa: E402
import harness  # noqa: E402


@contextlib.contextmanager
def daemon(*args, wrapper=()):
    before, harness.dockerd = harness.dockerd, Dockerd(args, harness.on_remote_docker(), wrapper)
    try:
        yield harness.dockerd.start()
    finally:
        harness.dockerd.close()
        harness.dockerd = before


def pool(s, name="shell"):
    return s.get(f"/v1/pools/{name}").json["status"]


def degraded(s, name="shell"):
    return any(c["type"] == "Degraded" and c["status"] == "True" for c in pool(s, name)["conditions"])


def restart(sign):
    with daemon() as d, Server() as s:
        w = s.open_workspace()["id"]
        assert s.run(w, "echo hi")["stdout"] == "hi\n"
        d.stop(sign)
        if sign == signal.SIGTERM:  # a killed daemon leaves its containers to the next one
            # The containers have ended, but only the daemon can report it. Until then, they just do not answer.
            wait_for("the silence", lambda: s.post(f"/v1/workspaces/{w}/touch").status in (410, 503), 5)
        assert s.get("/v1/pools").status == 200
        d.start()
        gone = wait_for("the loss", lambda: (x := s.get(f"/v1/workspaces/{w}")).status == 410 and x, 5)
        assert gone.json["reason"] == "lost", gone
        wait_for("the refill", lambda: pool(s)["ready"] == 2, 60)
        w = s.open_workspace()["id"]
        assert s.run(w, "echo again")["stdout"] == "again\n"


def daemon_restarts():
    """when dockerd restarts, claims are silent at once, lost within 5 s of its word, and the pool is filled again"""
    restart(signal.SIGTERM)


def daemon_killed():
    """when dockerd is killed and started again, the same holds"""
    restart(signal.SIGKILL)


def daemon_hangs():
    """a daemon that hangs degrades the pool and hangs nobody; what is claimed works on, and the pool comes back"""
    with daemon() as d, Server() as s:
        w = s.open_workspace()["id"]
        def phases():
            return sorted(x["phase"] for x in s.get("/v1/pools/shell/sandboxes").json["items"])
        wait_for("the refill", lambda: phases() == ["Claimed", "Ready", "Ready"], 30)
        os.kill(d.process.pid, signal.SIGSTOP)
        try:
            s.open_workspace()
            s.open_workspace()
            begin = time.monotonic()
            assert s.run(w, "echo hi")["stdout"] == "hi\n"
            for path in ("/v1/pools", "/v1/workspaces", f"/v1/workspaces/{w}"):
                assert s.get(path).status == 200
            assert s.ops("/healthz").status == 200
            assert time.monotonic() - begin < 2, "the server waits for the daemon"
            begin = time.monotonic()
            answer = s.get("/v1/capabilities")
            assert answer.status in (503, 504), answer
            assert time.monotonic() - begin < 8
            wait_for("Degraded", lambda: degraded(s), 90)
        finally:
            os.kill(d.process.pid, signal.SIGCONT)
        wait_for("the refill", lambda: pool(s)["ready"] >= 2, 120)


def import_image(d, name, changes):
    """Imports an image into the daemon: a busybox, with the settings of a hostile or careless image."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as t:
        for blob in glob.glob(os.path.join(IMAGES, "shell", "blobs", "sha256", "*")):
            with contextlib.suppress(tarfile.ReadError), tarfile.open(blob) as layer:
                busybox = next(m for m in layer if m.name.endswith("bin/busybox"))
                content = layer.extractfile(busybox)
                busybox.name = "bin/busybox"
                t.addfile(busybox, content)
        for applet in ("sh", "ls", "cat", "id", "touch", "ps", "sleep"):
            link = tarfile.TarInfo("bin/" + applet)
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            t.addfile(link)
        info = tarfile.TarInfo("data/secret")
        info.size = 2
        t.addfile(info, io.BytesIO(b"x\n"))
    args = ["docker", "-H", d.socket, "import"]
    for change in changes:
        args += ["--change", change]
    subprocess.run(args + ["-", name], input=tar.getvalue(), check=True, stdout=subprocess.DEVNULL)


def image_of_the_daemon():
    """an image that only the daemon has makes a pool; its entrypoint, health check, user and volumes do nothing"""
    with daemon() as d:
        import_image(d, "outside:1", ['ENTRYPOINT ["/bin/touch", "/workspace/entry"]', 'HEALTHCHECK --interval=1s CMD touch /workspace/health',
                                      "VOLUME /data", "USER 0", "WORKDIR /data", "ENV LD_PRELOAD=/x.so"])
        with Server(pools=pool_yaml("outside", "outside:1")) as s:
            w = s.open_workspace()["id"]
            out = s.run(w, "sleep 2; ls /workspace /data; id -u; touch /data/x 2>/dev/null && echo written; echo $LD_PRELOAD")
            assert out["stdout"].split() == ["/data:", "/workspace:", "1000"], out
            assert not d.items("/volumes")["Volumes"]
            missing = s.call("PUT", "/v1/pools/other", raw=pool_yaml("other", "nowhere:2").encode(),
                             headers={"Content-Type": "application/yaml"})
            if missing.status < 300:
                wait_for("Degraded", lambda: degraded(s, "other"), 30)


def shut_in():
    """containers have no capabilities, no network, no writable root, our filter, and read-only mounts only"""
    with daemon() as d, Server() as s:
        w = s.open_workspace()
        found = [c for c in d.items("/containers/json") if c["Labels"].get("dev.hearth.sandbox") == w["sandboxId"]]
        assert len(found) == 1, found
        c = d.items(f"/containers/{found[0]['Id']}/json")
        host = c["HostConfig"]
        assert host["CapDrop"] == ["ALL"] and not host["CapAdd"] and not host["Privileged"], host
        assert host["ReadonlyRootfs"] and host["NetworkMode"] == "none" and host["LogConfig"]["Type"] == "none", host
        assert host["Memory"] == host["MemorySwap"] == 128 << 20 and host["PidsLimit"] == 128, host
        assert any(o.startswith("seccomp={") for o in host["SecurityOpt"]), host["SecurityOpt"]
        assert all(not m["RW"] for m in c["Mounts"]), c["Mounts"]
        out = s.run(w["id"], "cat /proc/self/status; ls /sys /.hearth/start; cat /proc/1/oom_score_adj /proc/self/oom_score_adj")["stdout"]
        for line in ("CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp_filters:\t2"):
            assert line in out, (line, out)
        agent, tenant = (int(x) for x in out.split()[-2:])
        assert agent <= 900 and tenant == 1000, out  # the kernel kills the tenant's processes first
        twice = subprocess.run(["docker", "-H", d.socket, "create", "--name", c["Name"][1:], c["Image"], "/bin/sh"],
                               capture_output=True, text=True, check=False)
        assert twice.returncode != 0 and "already in use" in twice.stderr, twice


def doctor(env, *args):
    """Returns the findings of `hearth doctor` by name."""
    done = subprocess.run([os.path.join(BUILD, "hearth"), "doctor", "--json", *args], env=dict(os.environ, **env),
                          capture_output=True, text=True, check=False)
    return {c["name"]: c for c in json.loads(done.stdout)["checks"]}


def chosen_by_itself():
    """where runc cannot be driven and a daemon answers, docker is chosen, and doctor says why"""
    with daemon() as d:
        why = doctor(d.env, "--oci-runtime", "no-such-runc")
        assert why["runtime"]["message"].startswith("docker: there is no no-such-runc"), why["runtime"]
        assert why["docker"]["level"] == "ok", why
        assert why["docker-agent"]["message"].startswith("bind: "), why
        with Server(runtime="auto", env={"DOCKER_HOST": d.socket}, args=["--oci-runtime", "no-such-runc"]) as s:
            assert s.get("/v1/capabilities").json["runtime"] == "docker"


def same_container():
    """bench against docker runs its commands in the workspace's own container and says so"""
    with daemon() as d, Server(pools=pool_yaml(warm=1)) as s:
        done = subprocess.run([os.path.join(BUILD, "hearth-bench"), "--url", s.url, "--against", "docker", "--only", "shell,file",
                               "--rounds", "5", "--json", "--allow-busy"], env=dict(os.environ, **d.env), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done
        report = json.loads(done.stdout)
        shell = next(o for o in report["operations"] if o["name"] == "shell")
        assert report["dockerContainer"] == "same" and shell["docker"]["samples"] == 5 and shell["ratioP50"] > 1, report
        assert "files are left out on Docker's side" in done.stderr, done
        print(f"      shell: {shell['hearth']['p50Ms']:.1f} ms, docker exec in the same container {shell['docker']['p50Ms']:.1f} ms")
        assert len(d.items("/containers/json")) <= 2, "a container of the bench is left"


def other_clock():
    """a daemon whose machine was started at another time does not disturb lifetimes, also after kill -9 and without a server"""
    shifted = ["unshare", "--time", "--boottime", "100000"]
    with open("/proc/uptime", encoding="ascii") as f:
        here = float(f.read().split()[0])
    there = float(subprocess.run([*shifted, "cut", "-d ", "-f1", "/proc/uptime"], capture_output=True, text=True, check=True).stdout)
    assert there - here > 99_000, "this kernel gives a program no clock of its own"

    def seconds_to(text):
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() - time.time()
    with daemon(wrapper=shifted) as d, Server() as s:
        w = s.open_workspace(maxLifetimeSeconds=900)
        assert 890 < seconds_to(w["expiresAt"]) < 901, w
        out = s.run(w["id"], "cut -d. -f1 /proc/uptime")
        assert int(out["stdout"]) - here > 99_000, out  # the clocks do differ
        e = s.get(f"/v1/executions/{out['id']}").json
        assert -60 < seconds_to(e["startedAt"]) <= 0.1, e
        time.sleep(2.5)  # by now the agent would have ended itself
        assert s.run(w["id"], "echo alive")["stdout"] == "alive\n"
        short = s.open_workspace(maxLifetimeSeconds=6)
        s.kill9()
        s.start()
        again = s.get(f"/v1/workspaces/{w['id']}").json
        assert abs(seconds_to(again["expiresAt"]) - seconds_to(w["expiresAt"])) < 0.5, (again, w)
        s.kill9()
        wait_for("the short one's own end", lambda: not [c for c in d.items("/containers/json")
                                                         if c["Labels"]["dev.hearth.sandbox"] == short["sandboxId"]], 20)
        s.start()
        assert s.run(w["id"], "echo alive")["stdout"] == "alive\n"


def hides(folder):
    """Returns a command that runs another one in a mount namespace where this folder is empty."""
    return ["unshare", "--mount", "--propagation", "slave", "sh", "-c",
            f'mkdir -p "{folder}" && mount -t tmpfs none "{folder}" && exec "$@"', "sh"]


def other_files():
    """a daemon that does not see our files gets the agent in a volume; server and doctor say so; the volume goes with the last sandbox"""
    with daemon(wrapper=hides("/run/hearth")) as d, Server() as s:
        told = doctor(d.env, "--runtime", "docker", "--data-dir", "/run/hearth")  # it looks in this folder
        assert told["docker-agent"]["message"] == "copy: the daemon does not see this machine's files", told
        assert not glob.glob("/run/hearth/hearth-probe-*")
        assert "mode=copy" in s.log() and "does not see this machine's files" in s.log(), s.log()[-2000:]
        names = [v["Name"] for v in d.items("/volumes")["Volumes"]]
        assert len(names) == 1 and names[0].startswith(f"hearth-{s.instance}-agent-"), names
        w = s.open_workspace()["id"]
        assert s.run(w, "echo hi")["stdout"] == "hi\n"
        assert s.call("PUT", f"/v1/workspaces/{w}/files/f", raw=b"x" * 300_000).status in (200, 201)
        assert s.get(f"/v1/workspaces/{w}/files/f").body == b"x" * 300_000
        s.drain()
        wait_for("the volume's end", lambda: not d.items("/volumes")["Volumes"])


def copied_agent_shut_in():
    """with the agent in a volume nothing of this machine is mounted, only root may use the relays' folder, and relays end with their server"""
    with daemon() as d, Server() as s:
        w = s.open_workspace()
        found = [c for c in d.items("/containers/json") if c["Labels"].get("dev.hearth.sandbox") == w["sandboxId"]]
        c = d.items(f"/containers/{found[0]['Id']}/json")
        assert all(m["Type"] in ("volume", "tmpfs") for m in c["Mounts"]), c["Mounts"]
        assert [m["RW"] for m in c["Mounts"] if m["Type"] == "volume"] == [False], c["Mounts"]
        assert not c["HostConfig"]["Binds"] and c["HostConfig"]["CapDrop"] == ["ALL"], c["HostConfig"]
        out = s.run(w["id"], "ls -ln /.hearth/start; for p in /proc/[0-9]*; do grep -Eh '^(Uid|CapEff|NoNewPrivs|Seccomp):' $p/status; done")
        assert "srw-------" in out["stdout"] and "socket" not in out["stdout"], out
        assert {line for line in out["stdout"].splitlines() if line.startswith("CapEff")} == {"CapEff:\t0000000000000000"}, out
        assert "NoNewPrivs:\t0" not in out["stdout"] and "Seccomp:\t0" not in out["stdout"], out
        s.call("PUT", f"/v1/workspaces/{w['id']}/files/f", raw=b"x")  # this needs one more relay
        s.kill9()
        s.start()
        wait_for("the end of old relays", lambda: s.run(w["id"], "ps -o args | grep -c '[h]earth/agent --relay'")["stdout"] == "1\n")


TESTS = [daemon_restarts, daemon_killed, daemon_hangs, image_of_the_daemon, shut_in, chosen_by_itself, other_files, same_container]
for test in TESTS:
    test.only = "docker"
daemon_restarts.remote = True
for test in [copied_agent_shut_in, other_clock]:
    TESTS.append(test)
    test.only, test.remote = "docker-remote", True

if __name__ == "__main__":
    main("server", TESTS)
