#!/usr/bin/env python3
# suite: seconds=200
"""Packages of an execution: absent ones are installed before it runs, as a part of it, and replace the modules that
interpreters were warmed with."""

import base64
import contextlib
import glob
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402
from egress_test import mirrored, pool, python, server  # noqa: E402
from harness import chosen, main, new_key, note, sse_events, wait_for  # noqa: E402
from index import Index, tarball, wheel  # noqa: E402

WHEELS = [wheel("hearthfoo", requires=["hearthbar"]), wheel("hearthfoo", "2.0"), wheel("hearthbar", "2.5"), wheel("hearthbaz"),
          wheel("xmltodict", "0.9"), wheel("beautifulsoup4", "4.99", module="bs4")]


def post(s, target, status=200, headers=None, **fields):
    answer = s.post(target, fields, headers=headers or {}, timeout=120 * harness.SLOWER)
    assert answer.status == status, answer
    return answer.json


def ended(s, execution):
    def look():
        seen = s.get(f"/v1/executions/{execution}").json
        return seen if seen["status"] != "running" else None
    return wait_for("the execution's end", look, 60)


def every_way():
    """packages of an execution are there before it runs, on every way to run one, and cost no index once they are there"""
    show = "import hearthfoo, hearthbar; print(hearthfoo.version, hearthbar.version)"
    with Index(WHEELS, [tarball("hearth-left")]) as index, server(pool("m", "Mirror", warm=3), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        here = f"/v1/workspaces/{workspace}/executions"
        assert python(s, workspace, "1")["status"] == "ok"  # this starts the interpreters that wait ahead
        first = post(s, here, code=show, language="python", packages=["hearthfoo==1.0"])
        assert first["status"] == "ok" and first["stdout"] == "1.0 2.5\n" and first["stderr"] == "", first
        assert first["installed"] == {"hearthfoo": "1.0"} and "notInstalled" not in first, first
        assert first["interpreter"] == "zygote" and 0 < first["installMs"] <= first["durationMs"], first
        assert s.get(f"/v1/executions/{first['id']}").json["installed"] == first["installed"]
        assert [e["id"] for e in s.get(here).json["items"]][:-1] == [first["id"]]

        asked = len(index.asked)
        again = post(s, here, code=show, language="python", packages=["hearthfoo >= 0.5", "hearthbar"])
        assert again["stdout"] == "1.0 2.5\n" and again["installed"] == {"hearthfoo": "1.0", "hearthbar": "2.5"}, again
        assert len(index.asked) == asked, index.asked[asked:]
        upgraded = post(s, here, code=show, language="python", packages=["hearthfoo==2.0"])
        assert upgraded["stdout"] == "2.0 2.5\n", upgraded
        plain = post(s, here, code=show, language="python")
        assert plain["stdout"] == "2.0 2.5\n" and "installed" not in plain and plain["interpreter"] == "zygote", plain

        command = post(s, here, command="cat; python3 -c 'import hearthbaz; print(hearthbaz.version)'", stdin="in ", packages=["hearthbaz"])
        assert command["stdout"] == "in 1.0\n" and command["installed"] == {"hearthbaz": "1.0"}, command
        node = post(s, here, code="console.log(require('hearth-left'))", language="node", packages=["hearth-left"])
        assert node["stdout"] == "42\n" and node["installed"] == {"hearth-left": "1.0.0"}, node

        other = s.open_workspace(pool="m")["id"]
        context = post(s, f"/v1/workspaces/{other}/contexts", 201, language="python")["id"]
        there = f"/v1/workspaces/{other}/executions"
        post(s, there, code="x = 5", context=context)
        kept = post(s, there, code="import hearthbar; print(x, hearthbar.version)", context=context, packages=["hearthbar"])
        assert kept["stdout"] == "5 2.5\n" and kept["interpreter"] == "context" and kept["contextKept"], kept

        shot = post(s, "/v1/executions", pool="m", code=show, packages=["hearthfoo==1.0"])
        assert shot["stdout"] == "1.0 2.5\n" and shot["installed"] and shot["claim"]["source"] in ("warm", "queued", "cold"), shot
        begun = post(s, "/v1/executions", 202, pool="m", code=show, packages=["hearthfoo==1.0"], background=True)
        assert begun["status"] == "running" and "installed" not in begun, begun
        assert ended(s, begun["id"])["stdout"] == "1.0 2.5\n"

        connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=120)
        with contextlib.closing(connection):
            connection.request("POST", "/v1/executions", json.dumps({"pool": "m", "code": show, "packages": ["hearthfoo", "hearthbar"]}),
                               {"Content-Type": "application/json", "Accept": "text/event-stream"})
            events = [(e["event"], json.loads(e["data"])) for e in sse_events(line.decode() for line in connection.getresponse())]
        assert [kind for kind, _ in events] == ["started", "stdout", "exit"], events
        assert events[-1][1]["installed"] == {"hearthbar": "2.5", "hearthfoo": "2.0"}, events[-1]


def fails_in_words():
    """where packages cannot be had the code does not run, and the execution says why"""
    with Index(WHEELS) as index, server(pool("m", "Mirror"), pool("n", "None", warm=0), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        here = f"/v1/workspaces/{workspace}/executions"
        failed = post(s, here, command="echo ran", packages=["hearthbar", "hearth-nothing"])
        assert failed["status"] == "failed" and failed["exitCode"] is None and failed["stdout"] == "", failed
        assert failed["error"]["name"] == "PackageError", failed
        assert failed["error"]["message"] == "hearth-nothing: the index has no such package, or no release of it that fits", failed
        assert "No matching distribution" in failed["error"]["traceback"] and failed["installed"] == {}, failed
        assert s.get(f"/v1/executions/{failed['id']}").json["error"] == failed["error"]
        for specs, fields in ((["--index-url=http://x"], {}), (["./x"], {}), (["@scope/x"], {"code": "1", "language": "python"}),
                              (["numpy==2"], {"code": "1", "language": "node"})):
            answer = s.post(here, dict({"command": "true"} if not fields else {}, packages=["hearthbar", *specs], **fields))
            assert answer.status == 400 and "/packages/1" in json.dumps(answer.json), answer
        answer = s.post(here, {"command": "true", "autoPackages": True})
        assert answer.status == 400 and "/autoPackages" in json.dumps(answer.json), answer
        for target, fields in ((f"/v1/workspaces/{s.open_workspace(pool='n')['id']}/executions", {}), ("/v1/executions", {"pool": "n"})):
            absent = post(s, target, **fields, command="echo ran", packages=["pip", "hearthbar"])
            assert absent["status"] == "failed" and absent["stdout"] == "", absent
            assert absent["error"]["message"].startswith("hearthbar: this workspace has no way to a package index"), absent
            there = post(s, target, **fields, command="echo ran", packages=["pip"])
            assert there["status"] == "ok" and there["stdout"] == "ran\n" and "pip" in there["installed"], there

        index.delay = 30
        late = post(s, here, command="echo ran", packages=["hearthfoo==2.0"], timeoutSeconds=2)
        assert late["status"] == "timeout" and late["stdout"] == "", late
        assert late["error"]["message"] == "the time limit ended it while packages were being installed", late
        begun = post(s, here, 202, command="echo ran", packages=["hearthbaz"], background=True)
        wait_for("the download", lambda: any("hearthbaz" in path for path in index.downloads()), 60)
        begin = time.monotonic()
        assert s.call("DELETE", f"/v1/executions/{begun['id']}").status == 204
        killed = ended(s, begun["id"])
        assert killed["status"] == "killed" and killed["stdout"] == "" and time.monotonic() - begin < 10, killed
        assert s.run(workspace, "pgrep -c pip")["stdout"].strip() == "0"


def pip_by_hand():
    """pip in a pool without an index says what Hearth offers, and never how to break the image; in one with an index it installs"""
    with Index(WHEELS) as index, server(pool("m", "Mirror"), pool("n", "None"), args=mirrored(index)) as s:
        refused = s.run(s.open_workspace(pool="n")["id"], "python3 -m pip install hearthbar")
        assert refused["status"] == "failed", refused
        for words in ("This Python belongs to the image", "the network of the pool is Mirror or Egress", "pip list", "--no-index"):
            assert words in refused["stderr"], refused["stderr"]
        assert "break-system-packages" not in refused["stdout"] + refused["stderr"], refused["stderr"]
        there = s.open_workspace(pool="m")["id"]
        assert s.run(there, "python3 -m pip install hearthbar")["status"] == "ok"
        assert s.run(there, "python3 -c 'import hearthbar; print(hearthbar.version)'")["stdout"] == "2.5\n"


def larger_than_tmp():
    """a package larger than /tmp installs, by Hearth and by hand, leaves nothing else, and where there is no room the reason says where"""
    with Index([wheel("hearthbig", size=17 << 20)]) as index, server(pool("m", "Mirror", warm=3), args=mirrored(index)) as s:
        show = "import hearthbig; print(hearthbig.version)"
        assert int(s.run(s.open_workspace(pool="m")["id"], "df -m --output=size /tmp | tail -1")["stdout"]) == 16
        workspace = s.open_workspace(pool="m")["id"]
        assert s.run(workspace, "mkdir .hearth-packages-killed.held; echo x > .hearth-packages-killed.held/x")["status"] == "ok"
        done = post(s, f"/v1/workspaces/{workspace}/executions", code=show, language="python", packages=["hearthbig"])
        assert done["status"] == "ok" and done["stdout"] == "1.0\n" and done["artifacts"] == [], done
        assert s.run(workspace, "ls -A")["stdout"] == ".local\n"

        there = s.open_workspace(pool="m")["id"]
        by_hand = s.run(there, "python3 -m pip install -q hearthbig && ls -A . .cache /tmp", timeoutSeconds=100)
        assert by_hand["status"] == "ok" and "pip-tmp" not in by_hand["stdout"], by_hand
        assert python(s, there, show)["stdout"] == "1.0\n"

        small = s.open_workspace(pool="m")["id"]
        assert s.run(small, "head -c 30M /dev/zero > mine")["status"] == "ok"
        failed = post(s, f"/v1/workspaces/{small}/executions", code=show, language="python", packages=["hearthbig"])
        assert failed["status"] == "failed" and "the workspace's disk is full (" in failed["error"]["message"], failed
        assert s.run(small, "ls -A")["stdout"].split()[-1] == "mine", failed


def larger_than_tmp_npm():
    """an npm package larger than /tmp installs, by Hearth, which leaves nothing else, and by hand"""
    big = tarball("hearth-big", code="module.exports = 42 // " + base64.b64encode(random.Random(1).randbytes(17 << 20)).decode())
    show = "node -e \"console.log(require('hearth-big'))\""
    with Index([], [big]) as index, server(pool("m", "Mirror", warm=2), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        done = post(s, f"/v1/workspaces/{workspace}/packages", manager="npm", install=["hearth-big"], waitSeconds=60)
        assert done["status"] == "done", done
        seen = s.run(workspace, f"{show}; ls -A . /tmp")
        assert seen["stdout"].startswith("42\n") and not re.search(r"npm$|hearth", seen["stdout"], re.MULTILINE), seen

        there = s.open_workspace(pool="m")["id"]
        by_hand = s.run(there, f"npm install --loglevel error hearth-big >&2 && {show}; ls -A /tmp", timeoutSeconds=100)
        assert by_hand["stdout"].startswith("42\n") and "npm" not in by_hand["stdout"] and by_hand["artifacts"] == [], by_hand


def no_index():
    """what is there needs no index; what is absent is named, with what an operator does about it, before pip or npm is asked"""
    with server(pool("m", "Mirror"), pool("n", "None")) as s:
        conditions = {c["type"]: c for c in s.get("/v1/pools/m").json["status"]["conditions"]}
        assert conditions["Mirrored"]["status"] == "False" and "--mirror-pypi" in conditions["Mirrored"]["message"], conditions
        assert sum("pool.no_mirror" in line for line in s.log().splitlines()) == 1, s.log()
        manifest = {"apiVersion": "hearth.dev/v1alpha1", "kind": "SandboxPool", "metadata": {"name": "late"},
                    "spec": {"template": {"image": "python", "network": {"mode": "Mirror"}}, "warm": {"min": 0}}}
        late = s.call("PUT", "/v1/pools/late", manifest)
        assert "--mirror-npm" in json.dumps(late.json["status"]["conditions"]) and late.body.endswith(b"}\n"), late
        for name, words in (("m", {"auto": "no Python index is mirrored: start hearth serve with --mirror-pypi",
                                   "npm": "no npm registry is mirrored: start hearth serve with --mirror-npm"}),
                            ("n", {"auto": "this workspace has no way to a package index"})):
            workspace = s.open_workspace(pool=name)["id"]
            for manager, why in words.items():
                done = post(s, f"/v1/workspaces/{workspace}/packages", manager=manager, install=["pip", "hearth-nothing"] if manager == "auto" else ["left"],
                            waitSeconds=60)
                assert done["status"] == "failed", done
                last = done["packages"]["hearth-nothing" if manager == "auto" else "left"]
                assert last["state"] == "failed" and last["error"].startswith(why), done
                assert manager == "npm" or done["packages"]["pip"]["state"] == "installed", done
            done = post(s, f"/v1/workspaces/{workspace}/packages", install=["pip"], waitSeconds=60)
            assert done["status"] == "done" and done["packages"]["pip"]["state"] == "installed", done
            for text, status in (("pip\n", "done"), ("pip\n-r other.txt\n", "failed"), ("pip\nhearth-nothing\n", "failed")):
                assert s.call("PUT", f"/v1/workspaces/{workspace}/files/requirements.txt", raw=text.encode()).status < 300
                done = post(s, f"/v1/workspaces/{workspace}/packages", **{"from": "requirements.txt"}, waitSeconds=60)
                assert done["status"] == status, (text, done)
            ran = post(s, f"/v1/workspaces/{workspace}/executions", code="import pip; print(1)", language="python", autoPackages=True)
            assert ran["status"] == "ok" and ran["stdout"] == "1\n", ran
            failed = post(s, f"/v1/workspaces/{workspace}/executions", code="import xmltodict", language="python", autoPackages=True)
            assert failed["status"] == "failed" and failed["error"]["message"].startswith("xmltodict: " + words["auto"]), failed


def once():
    """an Idempotency-Key installs and runs once, while it is installed, afterwards, and over a crash of the server"""
    with Index(WHEELS) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        here, key = f"/v1/workspaces/{workspace}/executions", {"Idempotency-Key": new_key()}
        fields = {"command": "echo ran >> ran; cat ran", "packages": ["hearthbar"], "background": True, "stdin": ""}
        index.delay = 4
        first = post(s, here, 202, headers=key, **fields)
        assert post(s, here, 202, headers=key, **fields)["id"] == first["id"]
        wait_for("the download", lambda: index.downloads(), 60)
        s.kill9()
        s.start()
        assert post(s, here, 202, headers=key, **fields)["id"] == first["id"]
        # Its install lost the way out with the server, so it may have failed; but it has ended, and only once.
        seen = ended(s, first["id"])
        assert (seen["status"], seen["stdout"]) in (("ok", "ran\n"), ("failed", "")), seen
        assert seen["status"] == "ok" or seen["error"]["name"] == "PackageError", seen
        changed = s.post(here, dict(fields, packages=["hearthbaz"]), headers=key)
        assert changed.status == 422, changed


def imports():
    """autoPackages installs what Python code imports and does not find, where its distribution is known, and runs nothing to find out"""
    code = """
import json, hearthlocal, xmltodict
import foo_nobody_knows.bar
from bs4 import x
try:
    import cupy
except ImportError:
    cupy = None
"""
    local = "open('executed', 'a').write('x')"
    with Index(WHEELS) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        for name in ("hearthlocal.py", "imports.py", "tempfile.py"):
            assert s.call("PUT", f"/v1/workspaces/{workspace}/files/{name}", raw=local.encode()).status in (200, 201, 204)
        done = python(s, workspace, "print(1)\n" + code, autoPackages=True)
        assert done["installed"] == {"beautifulsoup4": "4.99", "xmltodict": "0.9"}, done
        assert done["notInstalled"] == {"foo_nobody_knows": "no distribution is known for import foo_nobody_knows; name it in packages"}, done
        assert done["stdout"] == "1\n" and done["error"]["name"] == "ModuleNotFoundError", done
        assert s.run(workspace, "cat executed")["stdout"] == "x", "only the run itself imports it"
        assert sorted(path.split("/")[2] for path in index.asked if "simple" in path) == ["beautifulsoup4", "xmltodict"], index.asked
        asked = len(index.asked)
        broken = python(s, workspace, "import xmltodict\nthis is no code", autoPackages=True)
        assert broken["error"]["name"] == "SyntaxError" and broken["installed"] == {}, broken
        fine = python(s, workspace, "import xmltodict; print(xmltodict.version)", autoPackages=True, packages=["xmltodict==0.9"])
        assert fine["stdout"] == "0.9\n" and len(index.asked) == asked, fine


def tables():
    """imports are found by reading alone, but for those the code can do without, and each known one is of one distribution with a plain name"""
    folder = os.path.join(harness.REPO, "pool", "agent", "drivers", "packages")
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    import imports as finder
    read = {"import a, b.c as d\nfrom e.f import g": {"a", "b", "e"},
            "from . import x\nfrom .y import z": set(),
            "def f():\n    import a\nclass C:\n    import b": {"a", "b"},
            "try:\n    import a\nexcept ImportError:\n    import b\nelse:\n    import c\nfinally:\n    import d": {"b", "c", "d"},
            "try:\n    import a\nexcept (KeyError, ModuleNotFoundError):\n    pass": set(),
            "try:\n    import a\nexcept:\n    pass": set(),
            "try:\n    import a\nexcept OSError:\n    pass": {"a"},
            "if TYPE_CHECKING:\n    import a\nelse:\n    import b": {"b"},
            "if typing.TYPE_CHECKING:\n    import a": set(),
            "no code": set(), "": set(), "\0": set(), "-" * 100_000 + "1": set(), "import a" + "\n" * 9: {"a"}}
    for code, names in read.items():
        assert finder.imported(code) == names, (code[:80], finder.imported(code))
    assert finder.missing("import os, json, nobody_knows_it, sys, _ast") == ([], {
        "nobody_knows_it": "no distribution is known for import nobody_knows_it; name it in packages"})
    with open(os.path.join(folder, "distributions.json"), encoding="utf-8") as f:
        known = json.load(f)
    assert len(known["same"]) == len(set(known["same"])) and not set(known["same"]) & set(known["renamed"])
    for name, distribution in [*known["renamed"].items(), *((n, n) for n in known["same"])]:
        assert name.isidentifier() and name not in sys.stdlib_module_names, name
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", distribution), distribution


tables.only = "oci"


def newer_than_warm():
    """a package that a sandbox was warmed with and that was upgraded is the new one, in a cold interpreter, and says so; others stay warm"""
    warm = pool("m", "Mirror").replace("  template:\n", "  template:\n    prewarm: {languages: [python], imports: [numpy], timeout: 60s}\n", 1)
    with Index([*WHEELS, wheel("numpy", "99.0", code="__version__ = '99.0'\n")]) as index, server(warm, args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        here = f"/v1/workspaces/{workspace}/executions"
        show = "import numpy, sys; print(numpy.__version__)"
        old = python(s, workspace, show)
        assert old["interpreter"] == "zygote" and old["stdout"] != "99.0\n", old
        beside = post(s, here, code="import hearthbaz, numpy; print(numpy.__version__)", packages=["hearthbaz"])
        assert beside["interpreter"] == "zygote" and beside["stdout"] == old["stdout"], beside
        new = post(s, here, code=show, packages=["numpy==99.0"])
        assert new["stdout"] == "99.0\n" and new["interpreter"] == "cold" and new["installed"] == {"numpy": "99.0"}, new
        later = python(s, workspace, show)
        assert later["stdout"] == "99.0\n" and later["interpreter"] == "cold", later
        context = post(s, f"/v1/workspaces/{workspace}/contexts", 201, language="python", env={"A": "1"})["id"]
        for _ in range(2):
            kept = post(s, here, code="import numpy, os; print(numpy.__version__, os.environ['A'], os.getcwd())", context=context)
            assert kept["stdout"] == "99.0 1 /workspace\n" and kept["interpreter"] == "context" and kept["contextKept"], kept
        assert s.run(workspace, "pip uninstall -y numpy")["exitCode"] == 0
        back = python(s, workspace, show)
        assert back["stdout"] == old["stdout"] and back["interpreter"] == "zygote", back


def hearth_run():
    """hearth run and the tool run take packages as REST does"""
    with Index(WHEELS) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        def run(*words):
            return subprocess.run([os.path.join(harness.BUILD, "hearth"), "run", "--url", s.url, "--pool", "m", *words],
                                  capture_output=True, text=True, timeout=120 * harness.SLOWER, check=False)
        done = run("-l", "python", "--packages", "hearthfoo==1.0", "--packages", "hearthbaz", "-c", "import hearthfoo, hearthbaz; print(hearthfoo.version)")
        assert done.stdout == "1.0\n" and done.stderr == "" and done.returncode == 0, done
        done = run("-l", "python", "--auto-packages", "-c", "import xmltodict; print(xmltodict.version); import nobody_knows_it")
        assert done.stdout == "0.9\n" and "name it in packages" in done.stderr and done.returncode == 1, done
        done = run("--packages", "hearth-nothing", "--command", "echo ran")
        assert done.stdout == "" and "no such package" in done.stderr and done.returncode == 1, done
        from ondemand_test import mcp
        said = mcp(s, "run", {"pool": "m", "code": "import hearthbaz; print(hearthbaz.version)", "packages": ["hearthbaz"]})
        text = said["content"][0]["text"]
        assert not said.get("isError") and "Packages: hearthbaz 1.0" in text and "1.0" in text.partition("stdout")[2], said
        said = mcp(s, "run", {"pool": "m", "code": "import nobody_knows_it", "auto_packages": True})
        assert "no distribution is known for import nobody_knows_it" in said["content"][0]["text"], said


def hearth_packages():
    """hearth packages and the tool packages install, check and list as REST does, say why not, and refuse what makes no sense"""
    with Index(WHEELS) as index, server(pool("m", "Mirror"), args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]

        def packages(*words):
            done = subprocess.run([os.path.join(harness.BUILD, "hearth"), "packages", *words, "--url", s.url],
                                  capture_output=True, text=True, timeout=120 * harness.SLOWER, check=False)
            rows = [line.split() for line in done.stdout.splitlines()]
            return done, {row[0]: " ".join(row[1:]) for row in rows if row}
        done, table = packages("install", workspace, "hearthfoo==1.0")
        assert done.returncode == 0 and table == {"PACKAGE": "STATE VERSION WHY", "hearthfoo": "installed 1.0 -"}, done
        done, table = packages("check", workspace, "hearthfoo", "hearthbar", "hearthbaz")
        assert done.returncode == 0 and [table[n] for n in ("hearthfoo", "hearthbar", "hearthbaz")] == ["installed 1.0 -", "installed 2.5 -", "absent - -"], done
        done, table = packages("list", workspace)
        assert table["hearthfoo"] == "installed 1.0 -" and table["hearthbar"] == "installed 2.5 -" and "hearthbaz" not in table, done
        assert s.call("PUT", f"/v1/workspaces/{workspace}/files/requirements.txt", raw=b"hearthbaz\nhearthbar\n").status < 300
        done, table = packages("install", workspace, "--from", "requirements.txt", "-o", "json")
        assert done.returncode == 0 and json.loads(done.stdout)["packages"]["hearthbaz"]["version"] == "1.0", done
        done, table = packages("install", workspace, "hearth-nothing", "xmltodict")
        assert done.returncode == 1 and table["hearth-nothing"].startswith("failed - the index has no such package"), done
        assert table["xmltodict"] == "failed - not installed because others failed", done
        done, _ = packages("install", workspace, "--from", "nothing.txt")
        assert done.returncode == 1 and "nothing.txt cannot be read" in done.stderr, done
        for words, said in ((("instal", workspace, "x"), "did you mean install?"), (("list", workspace, "x"), "list takes no names"),
                            (("install", workspace), "which packages?"), (("check", workspace, "--from", "x"), "--from is for install"),
                            (("install",), "")):
            done, _ = packages(*words)
            assert done.returncode == 2 and said in done.stderr and done.stdout == "", done
        done, _ = packages("list", "ws_" + "0" * 32)
        assert done.returncode == 3 and "no workspace ws_" in done.stderr and done.stdout == "", done

        from ondemand_test import mcp
        other = s.open_workspace(pool="m")["id"]

        def tool(error=False, **fields):
            said = mcp(s, "packages", dict(fields, workspace_id=other, wait_s=60))
            assert said.get("isError", False) == error, said
            return said["content"][0]["text"]
        assert tool(install=["hearthfoo==1.0"]) == "hearthfoo: installed 1.0"
        assert tool(check=["hearthbar", "hearthbaz"]).splitlines() == ["hearthbar: installed 2.5", "hearthbaz: absent"]
        listed = tool().splitlines()
        assert "hearthbar: installed 2.5" in listed and "hearthfoo: installed 1.0" in listed, listed
        failed = tool(error=True, install=["hearth-nothing"])
        assert "hearth-nothing: failed (the index has no such package" in failed and "run_status run_id=ex_" in failed, failed
        assert s.call("PUT", f"/v1/workspaces/{other}/files/main.py", raw=b"# /// script\n# dependencies = ['hearthbaz']\n# ///\n").status < 300
        assert tool(**{"from": "main.py"}) == "hearthbaz: installed 1.0"
        assert "cannot be read" in tool(error=True, **{"from": "nothing.txt"})


def login():
    """the login in an index's URL reaches the index alone: no sandbox, no log and no answer has it"""
    with Index([wheel("hearthfoo", requires=["hearthbar"]), wheel("hearthbar", "2.5")], login="who:hush-hush") as index, \
            server(pool("m", "Mirror"), args=("--mirror-pypi", index.pypi)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        done = s.run(workspace, "pip install hearthfoo && pip download -d x hearth-nothing; env; curl -s http://127.0.0.1:3128/pypi/simple/hearthfoo/", timeoutSeconds=100)
        assert "Successfully installed hearthbar-2.5 hearthfoo-1.0" in done["stdout"], done
        shown = [json.dumps(done), s.log(), json.dumps(s.get(f"/v1/workspaces/{workspace}/egress").json), json.dumps(s.get("/v1/capabilities").json),
                 json.dumps(s.get("/v1/pools/m").json), json.dumps(s.get("/v1/events").json), s.ops("/metrics").body.decode()]
        assert not [text for text in shown if "hush-hush" in text or "who:" in text], shown


uv = None  # the path of uv


def find_uv(folder):
    """Returns the uv that HEARTH_TEST_UV names, an installed one, or one that pip gets from its index; None if there is
    none."""
    if given := os.environ.get("HEARTH_TEST_UV") or shutil.which("uv"):
        return given
    pip = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "15", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
           "--dest", folder, "uv"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(pip, capture_output=True, timeout=300, check=False)
    for each in glob.glob(os.path.join(folder, "uv-*.whl")):
        with zipfile.ZipFile(each) as archive:
            for name in archive.namelist():
                if name.endswith("/scripts/uv"):
                    return archive.extract(name, folder)
    return None


def uv_installs():
    """uv installs packages unchanged in a Mirror pool"""
    roomy = pool("m", "Mirror").replace("workspace: 64Mi", "workspace: 256Mi").replace("tmp: 16Mi", "tmp: 64Mi")
    with Index(WHEELS) as index, server(roomy, args=mirrored(index)) as s:
        workspace = s.open_workspace(pool="m")["id"]
        with open(uv, "rb") as f:
            put = s.call("PUT", f"/v1/workspaces/{workspace}/files/bin/uv", raw=f.read(), headers={"X-File-Mode": "0755"}, timeout=120)
        assert put.status in (200, 201, 204), put
        done = s.run(workspace, "bin/uv venv -q .venv && bin/uv pip install -q hearthfoo==1.0 && "
                                ".venv/bin/python -c 'import hearthfoo, hearthbar; print(hearthfoo.version, hearthbar.version)'", timeoutSeconds=100)
        assert done["stdout"] == "1.0 2.5\n", done
        assert sorted(index.downloads()) == ["/files/hearthbar-2.5-py3-none-any.whl", "/files/hearthfoo-1.0-py3-none-any.whl"], index.asked
        seen = s.get(f"/v1/workspaces/{workspace}/egress").json
        assert seen["refused"] == 0 and all(e["kind"] == "mirror" for e in seen["latest"]), seen
        missing = s.run(workspace, "bin/uv pip install -q hearth-nothing", timeoutSeconds=100)
        assert missing["exitCode"] != 0 and "hearth-nothing" in missing["stderr"], missing


def uv_downloads_once():
    """uv gets what a wheel needs without downloading it, by its metadata file or a range, and then the wheel once"""
    size = 3_000_000
    roomy = pool("m", "Mirror", warm=2).replace("workspace: 64Mi", "workspace: 256Mi").replace("tmp: 16Mi", "tmp: 64Mi")
    name = "hearthbig-1.0-py3-none-any.whl"
    for html_only in (False, True):
        for metadata in (True, False):
            with Index([wheel("hearthbig", size=size)], html_only=html_only, metadata=metadata) as index, server(roomy, args=mirrored(index)) as s:
                for _ in range(2):
                    workspace = s.open_workspace(pool="m")["id"]
                    with open(uv, "rb") as f:
                        put = s.call("PUT", f"/v1/workspaces/{workspace}/files/bin/uv", raw=f.read(), headers={"X-File-Mode": "0755"}, timeout=120)
                    assert put.status in (200, 201, 204), put
                    done = s.run(workspace, "bin/uv venv -q .venv && bin/uv pip install -q hearthbig && "
                                            ".venv/bin/python -c 'import hearthbig; print(hearthbig.version)'", timeoutSeconds=100)
                    assert done["stdout"] == "1.0\n", done
                    # A request is noted when its last bytes are sent, so uv may have gone on.
                    seen = wait_for("the whole wheel's entry", lambda: (x := s.get(f"/v1/workspaces/{workspace}/egress").json)
                                    and sum(e["receivedBytes"] for e in x["latest"]) >= size and x)
                    asked = [(e["destination"], e["status"]) for e in seen["latest"]][::-1]
                    part = (f"pypi:{name}.metadata" if metadata else f"pypi:{name}", 200 if metadata else 206)
                    assert asked.count((f"pypi:{name}", 200)) == (1 if metadata else 2) and part in asked, asked
                    received = sum(e["receivedBytes"] for e in seen["latest"])
                    assert received < 1.1 * size, (received, seen)
                wanted = [f"/files/{name}"] if not metadata else [f"/files/{name}", f"/files/{name}.metadata"]
                assert sorted(index.downloads()) == wanted, index.asked


def bursts():
    """many executions at once with packages, in one workspace and in several, all get theirs"""
    with Index(WHEELS) as index, server(pool("m", "Mirror", warm=3), args=mirrored(index)) as s:
        places = [s.open_workspace(pool="m")["id"] for _ in range(3)]
        outcomes = []

        def one(i):
            name = ("hearthbaz", "hearthbar", "xmltodict")[i % 3]
            outcomes.append(python(s, places[i % 3], f"import {name}; print({name}.version)", packages=[name], timeoutSeconds=100))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [o["status"] for o in outcomes] == ["ok"] * 9, outcomes


# These test only the server itself, so one runtime is enough.
for test in (every_way, fails_in_words, pip_by_hand, once, imports, newer_than_warm, hearth_run, hearth_packages, uv_installs, uv_downloads_once, login, bursts):
    test.only = "oci"

if __name__ == "__main__":
    tests = [every_way, fails_in_words, pip_by_hand, larger_than_tmp, larger_than_tmp_npm, no_index, once, tables, imports, newer_than_warm, hearth_run, hearth_packages, login, bursts]
    with tempfile.TemporaryDirectory(prefix="hearth-uv-") as scratch:
        if chosen(uv_installs) or chosen(uv_downloads_once):
            uv = find_uv(scratch)
            if uv:
                tests += [uv_installs, uv_downloads_once]
            else:
                note("uv's tests are left out: uv is not installed, and pip gets it nowhere; HEARTH_TEST_UV may name its program")
        main("server", tests)
