#!/usr/bin/env python3
# suite: seconds=90
"""The packages of a pool's sandboxes: installed once, by a lock, shared read-only, there before any claim."""

import glob
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from harness import Server, main, pool_yaml, wait_for  # noqa: E402
from index import Index, wheel  # noqa: E402

WHEELS = [wheel("hearthfoo", requires=["hearthbar"]), wheel("hearthbar", "2.5")]
SHOW = "import hearthfoo, hearthbar; print(hearthfoo.version, hearthbar.version)"


def pool(name, packages, warm=1, prewarm="", network="None"):
    text = pool_yaml(name=name, image="python", warm=warm, memory="512Mi")
    more = f"    prewarm: {{packages: [{', '.join(packages)}]{prewarm}}}\n    network: {{mode: {network}}}\n"
    return text.replace("    resources:", more + "    resources:")


def server(index, *pools, **more):
    return Server(pools="---\n".join(pools), args=("--mirror-pypi", index.pypi), ready_within=300, **more)


def condition(s, name, kind="Prewarmed"):
    found = [c for c in s.get(f"/v1/pools/{name}").json["status"]["conditions"] if c["type"] == kind]
    return found[0] if found else {"status": "", "reason": "", "message": ""}


def installed(s, name, seconds=120):
    """Returns the pool's packages, after a sandbox that has them is warm."""
    wait_for(f"the packages of {name}", lambda: s.get(f"/v1/pools/{name}").json["status"].get("packages"), seconds)
    wait_for(f"a warm sandbox of {name}", lambda: s.get(f"/v1/pools/{name}").json["status"]["ready"] > 0, seconds)
    return s.get(f"/v1/pools/{name}").json["status"]["packages"]


def code(s, workspace, text, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", dict(fields, code=text, language="python"), timeout=120)
    assert answer.status == 200, answer
    return answer.json


def layers(s):
    return [os.path.basename(path) for path in glob.glob(os.path.join(s.data, "layers", "sha256-*"))]


def claims_have_them():
    """a claim in a pool without a network has the pool's packages, by shell, code, context and cold, and asks nobody for them"""
    with Index(WHEELS) as index, server(index, pool("p", ["hearthfoo"], prewarm=", languages: [python, sh], imports: [hearthfoo]")) as s:
        told = installed(s, "p")
        assert told["installed"] == {"hearthfoo": "1.0", "hearthbar": "2.5"}, told
        assert condition(s, "p")["status"] == "True", condition(s, "p")
        asked = len(index.asked)
        workspace = s.open_workspace(pool="p")
        assert workspace["network"] == "None" and workspace["claim"]["source"] == "warm", workspace
        id = workspace["id"]
        hot = code(s, id, "import sys; print('hearthfoo' in sys.modules)\n" + SHOW)
        assert hot["stdout"].split() == ["True", "1.0", "2.5"] and hot["interpreter"] == "zygote", hot
        cold = code(s, id, SHOW, env={"PYTHONHASHSEED": "1"})
        assert cold["stdout"].strip() == "1.0 2.5" and cold["interpreter"] == "cold", cold
        s.call("PUT", f"/v1/workspaces/{id}/files/file.py", raw=SHOW.encode())
        shell = s.run(id, "python3 file.py")
        assert shell["stdout"].strip() == "1.0 2.5", shell
        context = s.post(f"/v1/workspaces/{id}/contexts", {"language": "python"}).json["id"]
        assert code(s, id, SHOW, context=context)["stdout"].strip() == "1.0 2.5"
        own = s.run(id, "PYTHONPATH=/nowhere python3 file.py")
        assert "No module named" in own["stderr"], own
        # By this dill and others tell a package from the program's own code.
        assert code(s, id, "import hearthfoo; print(hearthfoo.__file__)")["stdout"].startswith("/.hearth/layer/site-packages/")
        assert len(index.asked) == asked, index.asked[asked:]
        lock = os.path.join(s.data, "state", "layers", told["lock"])
        with open(lock, encoding="utf-8") as f:
            lines = [line for line in f.read().splitlines() if not line.startswith("#")]
        assert [line.split(" --hash=sha256:")[0] for line in lines] == ["hearthbar==2.5", "hearthfoo==1.0"], lines
        assert s.run(id, "cat /.hearth/layer/site-packages/requirements.lock")["stdout"].splitlines() == lines


def once():
    """two pools with the same packages, and a restart, download them once; kill -9 in between loses nothing"""
    with Index(WHEELS) as index:
        with server(index, pool("p", ["hearthfoo"]), pool("q", ["hearthfoo"])) as s:
            assert installed(s, "p") == installed(s, "q")
            assert len(index.downloads()) == 2 and len(layers(s)) == 1, index.asked
            asked = len(index.asked)
            s.kill9()
            s.start()
            first = installed(s, "p")
            workspace = s.open_workspace(pool="q")["id"]
            assert code(s, workspace, SHOW)["stdout"].strip() == "1.0 2.5"
            s.stop()
            s.start()
            assert installed(s, "p") == first
            assert len(index.asked) == asked, index.asked[asked:]


def read_only():
    """tenant code changes nothing of what others share, and sees it as nobody's it could change"""
    attack = """
import os, ctypes
place = "/.hearth/layer/site-packages"
tries = {
    "write": lambda: open(place + "/hearthfoo/__init__.py", "a"),
    "create": lambda: open(place + "/evil.py", "w"),
    "remove": lambda: os.remove(place + "/hearthfoo/__init__.py"),
    "rename": lambda: os.rename(place + "/hearthfoo", place + "/other"),
    "chmod": lambda: os.chmod(place + "/hearthfoo/__init__.py", 0o777),
    "times": lambda: os.utime(place + "/hearthfoo/__init__.py"),
}
for name, attempt in tries.items():
    try:
        attempt()
        print("did", name)
    except OSError:
        pass
if ctypes.CDLL(None).mount(b"none", place.encode(), None, 32 | 4096, None) == 0:
    print("did remount")
print("tried", [line.split()[3].split(",")[0] for line in open("/proc/self/mounts") if " /.hearth/layer/site-packages " in line])
"""
    with Index(WHEELS) as index, server(index, pool("p", ["hearthfoo"])) as s:
        installed(s, "p")
        workspace = s.open_workspace(pool="p")["id"]
        done = code(s, workspace, attack)
        assert done["stdout"].strip() == "tried ['ro']", done
        tree = os.path.join(s.data, "layers", layers(s)[0])
        for folder, _, files in os.walk(tree):
            for name in files + ["."]:
                status = os.stat(os.path.join(folder, name))
                assert status.st_mode & 0o022 == 0, (folder, name, oct(status.st_mode))
                assert harness.on_docker() or status.st_uid == 0, (folder, name, status.st_uid)
        other = s.open_workspace(pool="p")["id"]
        assert code(s, other, SHOW)["stdout"].strip() == "1.0 2.5"


def own_packages_win():
    """what a tenant installs in a workspace comes before what the pool has"""
    wheels = [*WHEELS, wheel("hearthbar", "3.0")]
    with Index(wheels) as index, server(index, pool("m", ["hearthfoo", "hearthbar==2.5"], network="Mirror", prewarm=", languages: [python]")) as s:
        installed(s, "m")
        workspace = s.open_workspace(pool="m")["id"]
        assert code(s, workspace, SHOW)["stdout"].strip() == "1.0 2.5"
        done = s.run(workspace, f"pip install --quiet hearthbar==3.0 && python3 -c '{SHOW}'", timeoutSeconds=100)
        assert done["stdout"].strip() == "1.0 3.0", done
        hot = code(s, workspace, SHOW)
        assert hot["stdout"].strip() == "1.0 3.0", hot


def says_why():
    """packages that cannot be had are told in the pool's condition, and the rest of the server serves"""
    with Index(WHEELS) as index, server(index, pool("bad", ["hearth-nothing-here"], warm=0), pool("good", ["hearthfoo"])) as s:
        installed(s, "good")
        wait_for("a reason", lambda: condition(s, "bad")["reason"] == "PackagesFailed", 60)
        why = condition(s, "bad")
        assert why["status"] == "False" and "hearth-nothing-here: the index has no such package" in why["message"], why
        refused = s.call("PUT", "/v1/pools/x", {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "x"},
                                               "spec": {"template": {"image": "python", "prewarm": {"packages": ["../evil", "a @ file:///x"]}}}})
        assert refused.status == 422 and "/spec/template/prewarm/packages/1" in refused.body.decode(), refused
        none = s.get("/v1/sandboxes").json["items"]
        assert all(each["pool"] == "good" for each in none), none


def no_mirror():
    """without a mirror the condition says what to start the server with"""
    with Server(pools=pool("p", ["hearthfoo"], warm=0), ready_within=300) as s:
        wait_for("a reason", lambda: "--mirror-pypi" in condition(s, "p")["message"], 60)
        degraded = condition(s, "p", "Degraded")
        assert degraded["status"] == "True" and degraded["reason"] == "PackagesFailed" and "--mirror-pypi" in degraded["message"], degraded
        refused = s.post("/v1/workspaces", {"pool": "p"})
        assert refused.status == 503 and refused.json["errorCode"] == "POOL_DEGRADED" and "--mirror-pypi" in refused.json["detail"], refused
        table = subprocess.run([os.path.join(harness.BUILD, "hearth"), "get", "pools", "--url", s.url], capture_output=True, text=True, check=True)
        assert "WHY" in table.stdout and "--mirror-pypi" in table.stdout, table


def other_packages():
    """other packages replace the warm sandboxes when they are installed; what serves before goes on serving"""
    with Index(WHEELS) as index, server(index, pool("p", ["hearthbar"])) as s:
        before = installed(s, "p")
        index.delay = 0.5
        s.write_pools(pool("p", ["hearthfoo"]))
        spec = s.get("/v1/pools/p").json
        spec["spec"]["template"]["prewarm"]["packages"] = ["hearthfoo"]
        assert s.call("PUT", "/v1/pools/p", spec).status == 200
        meanwhile = s.open_workspace(pool="p")
        assert meanwhile["claim"]["source"] == "warm", meanwhile
        assert code(s, meanwhile["id"], "import hearthbar; print(hearthbar.version)")["stdout"].strip() == "2.5"
        wait_for("the new packages", lambda: s.get("/v1/pools/p").json["status"].get("packages", before) != before, 60)
        installed(s, "p")
        workspace = s.open_workspace(pool="p")["id"]
        assert code(s, workspace, SHOW)["stdout"].strip() == "1.0 2.5"


def killed_half_way():
    """kill -9 while packages are being installed leaves no builder and no half layer, and the next start makes them"""
    with Index(WHEELS, delay=2.0) as index, server(index, pool("p", ["hearthfoo"])) as s:
        s.stop()
        for path in glob.glob(os.path.join(s.data, "layers", "sha256-*")):
            os.rename(path, path.replace("sha256-", ".unfinished-"))  # like after a crash just before the last step
        for path in glob.glob(os.path.join(s.data, "state", "layers", "*.lock")):
            os.unlink(path)
        s.start(wait=0)
        s.wait_ready(60, "/healthz")
        asked = len(index.asked)
        wait_for("the builder at work", lambda: len(index.asked) > asked, 60)
        s.kill9()
        assert layers(s) == []
        index.delay = 0
        s.start()
        assert "swept=1" in s.log().rsplit("recovery.done", 1)[1].split("\n")[0], s.log()[-3000:]
        installed(s, "p")
        listed = s.get("/v1/sandboxes").json["items"]
        assert len(layers(s)) == 1 and all(each["pool"] == "p" for each in listed), listed
        assert os.listdir(os.path.join(s.data, "layers")) != [] and not glob.glob(os.path.join(s.data, "layers", ".unfinished-*"))
        workspace = s.open_workspace(pool="p")["id"]
        assert code(s, workspace, SHOW)["stdout"].strip() == "1.0 2.5"


def stopped_half_way():
    """a server that is stopped while packages are being installed ends soon and leaves nothing"""
    with Index(WHEELS, delay=60.0) as index:
        s = server(index, pool("p", ["hearthfoo"]))
        try:
            s.start(wait=0)
            wait_for("the builder at work", lambda: len(index.asked) > 0, 120)
            begin = time.monotonic()
            assert s.stop() == 0
            assert time.monotonic() - begin < 20 * harness.SLOWER
            assert not s.leftovers() and layers(s) == [], s.leftovers()
        finally:
            harness.clean_up(s)


def far_daemon():
    """a daemon that does not see this machine's files gets no layers, and the condition says so"""
    with Index(WHEELS) as index, server(index, pool("p", ["hearthfoo"], warm=0)) as s:
        wait_for("a reason", lambda: "mounted from this machine" in condition(s, "p")["message"], 60)


far_daemon.only, far_daemon.remote = "docker-remote", True


# These test only the server itself, so one runtime is enough.
for test in (once, own_packages_win, says_why, other_packages, stopped_half_way):
    test.only = "oci"

if __name__ == "__main__":
    main("server", [claims_have_them, once, read_only, own_packages_win, says_why, no_mirror, other_packages, killed_half_way,
                    stopped_half_way, far_daemon])
