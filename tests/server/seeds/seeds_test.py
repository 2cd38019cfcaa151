#!/usr/bin/env python3
# suite: seconds=140
"""The four systems that came before, by plain HTTP: every example of their READMEs with its own arguments, every tool
with the keys of its results, and what went wrong in them. TABLE.md says which row of theirs is shown where."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from egress_test import mirrored, pool  # noqa: E402
from harness import Server, Shared, main, pool_yaml, wait_for  # noqa: E402
from index import Index, wheel  # noqa: E402
from libraries_test import real_mirror, roomy_pool  # noqa: E402

PNG = b"\x89PNG\r\n\x1a\n"

# What S0's second example needs of the package that it installs: enough to run its lines as they are.
TENSORFLOW = '''
import contextlib
__version__ = "2.99"
class config:
    list_physical_devices = staticmethod(lambda kind: [])
device = lambda name: contextlib.nullcontext()
constant = list
matmul = lambda a, b: [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]
'''
WHEELS = [wheel("hearthfoo", requires=["hearthbar"]), wheel("hearthfoo", "2.0"), wheel("hearthbar", "2.5"),
          wheel("hearthslow"), wheel("tensorflow", "2.99", code=TENSORFLOW)]

# One server without a network for sandboxes, one with packages and no more.
offline = Shared(pools=pool("python", "None", warm=3), args=("--compat", "s1"))
index = Index(WHEELS)
packaged = Shared(pools=pool("python", "Mirror", warm=3), args=mirrored(index))


def tool(s, seed, tool_name, status=200, /, headers=None, **arguments):
    answer = s.post(f"/compat/{seed}/tools/{tool_name}", arguments, headers=headers, timeout=600)
    assert answer.status == status, (tool_name, answer)
    return answer.json


def fetch(s, url):
    """A link of an answer, with nothing but itself."""
    parts = urllib.parse.urlsplit(url)
    assert f"{parts.scheme}://{parts.netloc}" == s.url, url
    return s.get(url[len(s.url):])


def put(s, url, raw):
    answer = s.call("PUT", url[len(s.url):], raw=raw)
    assert answer.status == 200, answer
    return answer.json


def keys(value, *names, more=()):
    assert list(value)[:len(names)] == list(names) and set(value) - set(names) <= set(more), value
    return value


# --- S1 ---------------------------------------------------------------------------------------------------------------

S1_CODE = """
import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 10, 100)
y = np.sin(x)

plt.figure(figsize=(10, 6))
plt.plot(x, y)
plt.title('Sine Wave')
plt.savefig('sine_wave.png')
plt.show()

print("图表已生成")
"""
RUN_MORE = ("error", "status", "duration_ms", "truncated")
S1_RUN = ("stdout", "stderr", "exit_code", "files", "file_links", "machine_file_links")


def s1_readme():
    """S1: the three steps of the README by POST /mcp/tools and GET /sandbox/file give the sine wave, offline"""
    with offline as s:
        made = s.call("POST", "/mcp/tools/create_sandbox")  # as requests.post(url): no body, no Content-Type
        assert made.status == 200, made
        sandbox = keys(made.json, "sandbox_id", "sandbox_name", "name", "status")["sandbox_id"]
        assert made.json["status"] == "active" and made.json["name"], made.json
        ran = s.post("/mcp/tools/execute_python_code", {"sandbox_id": sandbox, "code": S1_CODE}, timeout=120)
        assert ran.status == 200, ran
        result = keys(ran.json, *S1_RUN, more=RUN_MORE)
        assert result["stdout"] == "图表已生成\n" and result["stderr"] == "" and result["exit_code"] == 0, result
        assert result["files"] == ["sine_wave.png"] and result["file_links"] == result["machine_file_links"], result
        by_link = fetch(s, result["file_links"][0])
        file = s.get(f"/sandbox/file?sandbox_id={sandbox}&file_path=/app/results/sine_wave.png")
        assert file.status == 200 and file.body.startswith(PNG) and file.body == by_link.body, (file, by_link)
        assert file.headers["content-disposition"] == 'attachment; filename="sine_wave.png"', file.headers
        assert s.get("/docs").status == 200
        assert not [line for line in S1_CODE.splitlines() if len(line) > 10 and line in s.log()], "the log has code"


def s1_tools():
    """S1: names, lists, packages, terminal commands with pipes, and uploads, each with the seed's keys"""
    with packaged as s:
        made = tool(s, "s1", "create_sandbox", name="mine")
        sandbox = made["sandbox_id"]
        assert made["sandbox_name"] == made["name"] == "mine", made
        assert "mine" in tool(s, "s1", "create_sandbox", 409, name="mine")["detail"]
        unnamed = [tool(s, "s1", "create_sandbox", name=None) for _ in range(2)]
        assert len({each["name"] for each in unnamed}) == 2, unnamed
        listed = tool(s, "s1", "list_sandboxes")
        assert len(listed) == 3, listed
        one = next(each for each in listed if each["name"] == "mine")
        keys(one, "sandbox_id", "sandbox_short_id", "name", "status", "image", "created", "last_used")
        assert one["sandbox_id"] == sandbox and one["image"] == "python" and one["status"] == "running", one
        assert one["sandbox_short_id"] in sandbox, one

        # Twice at once, one of them in a version that is not there: the other is still told of.
        done = tool(s, "s1", "install_packages_in_sandbox", sandbox_id=sandbox, package_names=["hearthfoo==1.0", "hearthbar"])
        keys(done, "status", "message", "complete", "success", "end_time", "packages")
        assert done["status"] == "success" and done["complete"] is True and done["success"] is True, done
        assert done["packages"] == ["hearthfoo==1.0", "hearthbar"] and "hearthfoo 1.0" in done["message"], done
        failed = tool(s, "s1", "install_packages_in_sandbox", sandbox_id=sandbox, package_names=["hearthnothing"])
        keys(failed, "status", "message", "stderr", "complete", "success", "end_time", "packages")
        assert failed["status"] == "failed" and failed["success"] is False and failed["stderr"], failed
        assert "hearthnothing: the index has no such package" in failed["message"], failed
        seen = tool(s, "s1", "check_packages_installation_status", sandbox_id=sandbox, package_names=["hearthbar", "hearthnothing", "numpy"])
        keys(seen, "status", "message", "packages")
        assert seen["packages"]["hearthbar"] == {"installed": True, "version": "2.5"}, seen
        assert seen["packages"]["hearthnothing"] == {"installed": False} and seen["packages"]["numpy"]["installed"], seen
        code = "import hearthfoo, hearthbar; print(hearthfoo.version, hearthbar.version)"
        assert tool(s, "s1", "execute_python_code", sandbox_id=sandbox, code=code)["stdout"] == "1.0 2.5\n"

        said = tool(s, "s1", "execute_terminal_command", sandbox_id=sandbox, command="printf 'b\\na\\n' | sort && pwd > where; cat where")
        assert said == {"stdout": "a\nb\n/workspace\n", "stderr": "", "exit_code": 0}, said
        said = tool(s, "s1", "execute_terminal_command", sandbox_id=sandbox, command="echo no >&2; exit 7")
        assert said == {"stdout": "", "stderr": "no\n", "exit_code": 7}, said
        assert tool(s, "s1", "execute_terminal_command", sandbox_id=sandbox, command="id -u")["stdout"] != "0\n"
        wrong = tool(s, "s1", "execute_python_code", sandbox_id=sandbox, code="1/0")
        assert wrong["exit_code"] == 1 and "ZeroDivisionError" in wrong["stderr"] and wrong["status"] == "failed", wrong

        told = tool(s, "s1", "upload_file_to_sandbox", 400, sandbox_id=sandbox, local_file_path="/etc/passwd")
        assert "cannot reach" in told["detail"], told
        url = next(word for word in told["hint"].split() if word.startswith("http"))
        put(s, url, b"x,y\n")
        assert tool(s, "s1", "execute_terminal_command", sandbox_id=sandbox, command="cat passwd")["stdout"] == "x,y\n"

        nested = tool(s, "s1", "execute_python_code", sandbox_id=sandbox, code=(
            "import os; os.makedirs('a/b', exist_ok=True)\nfor n in ('a/b/x y.csv', 'z.csv'): open(n, 'w').write('1,2')"))
        assert sorted(nested["files"]) == ["a/b/x y.csv", "z.csv"], nested
        assert [fetch(s, url).body for url in nested["file_links"]] == [b"1,2", b"1,2"], nested
        named = "/sandbox/file?" + urllib.parse.urlencode({"sandbox_name": "mine", "file_path": "a/b/x y.csv"})
        assert s.get(named).body == b"1,2"
        big = tool(s, "s1", "execute_python_code", sandbox_id=sandbox, code="open('big', 'wb').write(b'x' * 3_000_000)")
        assert big["files"] == ["big"], big
        assert s.get(f"/sandbox/file?sandbox_id={sandbox}&file_path=/app/results/big").body == b"x" * 3_000_000


def s1_reset():
    """S1: its reset is an operator's drain, which ends the sandboxes of all and fills the pool again; a changed limit replaces what is warm"""
    with tenants() as (s, red, blue):
        root = s.root
        used = [tool(s, "s1", "create_sandbox", headers=who)["sandbox_id"] for who in (red, blue)]
        assert s.post("/v1/pools/python/drain", headers=red).status == 403
        assert tool(s, "s1", "execute_terminal_command", headers=red, sandbox_id=used[0], command="echo on")["stdout"] == "on\n"

        def warm():
            items = s.get("/v1/sandboxes", headers=root).json["items"]
            ready = {x["id"] for x in items if x["phase"] == "Ready"}
            return ready if len(ready) == s.get("/v1/pools/python", headers=root).json["spec"]["warm"]["min"] else None

        before = wait_for("the pool", warm, 60)
        ended = s.post("/v1/pools/python/drain", headers=root)
        assert ended.status == 200, ended
        for who, sandbox in zip((red, blue), used):
            assert s.post("/compat/s1/tools/execute_python_code", {"sandbox_id": sandbox, "code": "1"}, headers=who).status == 410
        after = wait_for("the pool again", warm, 60)
        assert not before & after
        declared = s.get("/v1/pools/python", headers=root)
        pool_ = {k: declared.json[k] for k in ("apiVersion", "kind", "metadata", "spec")}
        pool_["spec"]["template"].setdefault("resources", {})["memory"] = "300Mi"
        changed = s.call("PUT", "/v1/pools/python", pool_, headers=root)
        assert changed.status == 200, changed
        wait_for("new sandboxes", lambda: (new := warm()) and not new & after, 60)
        limited = tool(s, "s1", "create_sandbox", headers=red)["sandbox_id"]
        assert s.get(f"/v1/workspaces/{limited}", headers=red).json["limits"]["memoryBytes"] == 300 << 20


def s1_errors():
    """S1: what cannot be is a problem in precise words: no such tool, argument, sandbox, name or file"""
    with offline as s:
        sandbox = tool(s, "s1", "create_sandbox")["sandbox_id"]
        assert "create_sandbox" in tool(s, "s1", "destroy_all", 404)["hint"]
        assert s.post("/compat/s9/tools/x", {}).status == 404
        assert "sandbox_id is required" in tool(s, "s1", "execute_python_code", 400, code="1")["hint"]
        assert "allowed: sandbox_id, code" in tool(s, "s1", "execute_python_code", 400, sandbox_id=sandbox, code="1", timeout=3)["hint"]
        assert "a string" in tool(s, "s1", "execute_python_code", 400, sandbox_id=7, code="1")["hint"]
        assert tool(s, "s1", "execute_python_code", 404, sandbox_id="ws_" + 32 * "0", code="1")["errorCode"] == "NOT_FOUND"
        assert s.call("POST", "/mcp/tools/list_sandboxes", raw=b"{}", headers={"Content-Type": "text/plain"}).status == 400
        assert s.call("POST", "/mcp/tools/list_sandboxes", raw=b"{", headers={"Content-Type": "application/json"}).status == 400
        assert s.call("GET", "/mcp/tools/list_sandboxes").status == 405
        # No network: what the image has is installed, anything else is refused and says why.
        have = tool(s, "s1", "install_packages_in_sandbox", sandbox_id=sandbox, package_names=["numpy", "matplotlib"])
        assert have["status"] == "success" and "numpy 2." in have["message"], have
        lack = tool(s, "s1", "install_packages_in_sandbox", sandbox_id=sandbox, package_names=["numpy==99", "hearthfoo"])
        assert lack["status"] == "failed" and "Mirror" in lack["message"] and "the image has 2." in lack["message"], lack
        for where, status in (("sandbox_id=" + sandbox, 400), (f"sandbox_id={sandbox}&file_path=none", 404), ("file_path=x", 400),
                              ("sandbox_name=nobody&file_path=x", 404), (f"sandbox_id={sandbox}&file_path=.", 409)):
            assert s.get("/sandbox/file?" + where).status == status, where


# --- S0 ---------------------------------------------------------------------------------------------------------------

S0_CODE = """
import numpy as np
import matplotlib.pyplot as plt

# 生成随机数据
data = np.random.randn(1000)
print(f"数据均值: {data.mean():.4f}")
print(f"数据标准差: {data.std():.4f}")

# 保存直方图
plt.figure(figsize=(8, 6))
plt.hist(data, bins=30)
plt.title('正态分布直方图')
plt.savefig('histogram.png')
print("已保存直方图")
"""
S0_GPU_CODE = """
import tensorflow as tf
print("TensorFlow版本:", tf.__version__)
print("可用GPU:", tf.config.list_physical_devices('GPU'))

# 简单GPU测试
with tf.device('/GPU:0'):
    a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    b = tf.constant([[5.0, 6.0], [7.0, 8.0]])
    c = tf.matmul(a, b)
    print("计算结果:", c)
"""


def s0_histogram(s, network):
    response = keys(tool(s, "s0", "sandbox_initialize"), "success", "container_id", "workspace_id", "workspace_path", "mode", more=("message",))
    container_id, workspace_id = response["container_id"], response["workspace_id"]
    assert response["success"] is True and response["mode"] == "persistent" and response["workspace_path"] == "/workspace", response
    assert s.get(f"/v1/workspaces/{workspace_id}").json["network"] == network
    both = {"container_id": container_id, "workspace_id": workspace_id}
    written = tool(s, "s0", "write_file_sandbox", **both, file_name="analysis.py", file_contents=S0_CODE)
    assert written == {"success": True, "file_path": "/workspace/analysis.py"}, written
    tool(s, "s0", "write_file_sandbox", **both, file_name="requirements.txt", file_contents="numpy\nmatplotlib\n")
    result = tool(s, "s0", "sandbox_exec", **both, commands=["python analysis.py"])
    assert result["success"] is True and len(result["results"]) == 1, result
    one = keys(result["results"][0], "command", "exit_code", "stdout", "stderr", "success")
    assert one["exit_code"] == 0 and one["success"] is True and one["command"] == "python analysis.py", result
    lines = one["stdout"].splitlines()
    assert lines[0].startswith("数据均值: ") and lines[1].startswith("数据标准差: ") and lines[2] == "已保存直方图", one
    assert "Glyph" not in one["stderr"], one  # the title's characters are in a font
    # This server's disk is not the caller's: a link instead, or the bridge (tests/unit/api/mcp).
    told = tool(s, "s0", "copy_file_from_sandbox", 400, **both, container_src_path="histogram.png", local_dest_path="./output/histogram.png")
    url = next(word for word in told["hint"].split() if word.startswith("http"))
    picture = fetch(s, url)
    assert picture.status == 200 and picture.body.startswith(PNG), picture
    plain = keys(tool(s, "s0", "copy_file_from_sandbox", **both, container_src_path="histogram.png"), "success", "local_path", "file_size", "url")
    assert plain["file_size"] == len(picture.body) and fetch(s, plain["url"]).body == picture.body, plain
    assert tool(s, "s0", "clean_workspace", **both) == {"success": True, "message": "destroyed"}
    assert tool(s, "s0", "clean_workspace", **both) == {"success": True, "message": "already gone"}
    assert tool(s, "s0", "sandbox_stop", container_id=container_id) == {"success": True, "message": "already gone"}


def s0_readme():
    """S0: the README's histogram with Chinese text, without a network and with one, up to clean_workspace"""
    with offline as s:
        s0_histogram(s, "None")
    with packaged as s:
        before = len(index.asked)
        s0_histogram(s, "Mirror")
        assert len(index.asked) == before, index.asked[before:]  # the image has both


def s0_dependencies():
    """S0: the README's second example runs as written: requirements.txt is installed before Python starts, no other time"""
    with packaged as s:
        response = tool(s, "s0", "sandbox_initialize")
        both = {"container_id": response["container_id"], "workspace_id": response["workspace_id"]}
        tool(s, "s0", "write_file_sandbox", **both, file_name="gpu_test.py", file_contents=S0_GPU_CODE)
        tool(s, "s0", "write_file_sandbox", **both, file_name="requirements.txt", file_contents="tensorflow\n")
        before = len(index.downloads())
        assert tool(s, "s0", "sandbox_exec", **both, commands=["ls", "echo python"])["results"][0]["stdout"] == "gpu_test.py\nrequirements.txt\n"
        assert len(index.downloads()) == before
        result = tool(s, "s0", "sandbox_exec", **both, commands=["python gpu_test.py"])
        assert result["results"][0]["stdout"] == ("TensorFlow版本: 2.99\n可用GPU: []\n计算结果: [[19.0, 22.0], [43.0, 50.0]]\n"), result
        assert result["installed"] == {"tensorflow": "2.99"}, result
        tool(s, "s0", "write_file_sandbox", **both, file_name="requirements.txt", file_contents="# some\nhearthbar >= 2  # why\n\n")
        again = tool(s, "s0", "sandbox_exec", **both, commands=["cd /tmp && X=1 python3 -c 'import hearthbar; print(hearthbar.version)'"])
        assert again["results"][0]["stdout"] == "2.5\n", again
        tool(s, "s0", "write_file_sandbox", **both, file_name="requirements.txt", file_contents="hearthnothing\n")
        failed = tool(s, "s0", "sandbox_exec", **both, commands=["echo one", "python -V"])
        assert failed["success"] is False and failed["results"] == [] and "hearthnothing" in failed["error"], failed
        tool(s, "s0", "write_file_sandbox", **both, file_name="requirements.txt", file_contents="--index-url http://x/\n")
        assert "--index-url" in tool(s, "s0", "sandbox_exec", 400, **both, commands=["python -V"])["detail"]


def s0_tensorflow():
    """S0: the README's second example runs with the real tensorflow of the index, only where HEARTH_TEST_PACKAGES=all"""
    with Server(pools=roomy_pool(), args=real_mirror(), ready_within=300) as s:
        response = tool(s, "s0", "sandbox_initialize")
        both = {"container_id": response["container_id"], "workspace_id": response["workspace_id"]}
        tool(s, "s0", "write_file_sandbox", **both, file_name="gpu_test.py", file_contents=S0_GPU_CODE)
        tool(s, "s0", "write_file_sandbox", **both, file_name="requirements.txt", file_contents="tensorflow\n")
        began = time.monotonic()
        result = tool(s, "s0", "sandbox_exec", **both, commands=["python gpu_test.py"])
        seconds = time.monotonic() - began
        lines = result["results"][0]["stdout"].splitlines()
        print(f"      after {seconds:.0f} s:", *lines, sep="\n      ")
        assert lines[0] == f"TensorFlow版本: {result['installed']['tensorflow']}" and lines[1] == "可用GPU: []", result
        assert lines[2:] == ["计算结果: tf.Tensor(", "[[19. 22.]", " [43. 50.]], shape=(2, 2), dtype=float32)"], result


# KEEP leaves a mark wherever a neighbour might come across it, and LOOK tells where it saw it.
LOOK = """
import ctypes, glob, os, socket, sys
mark, seen = sys.argv[1], []
for place in ("/workspace", "/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~")):
    for name in glob.glob(place + "/*"):
        if os.path.isfile(name) and name != __file__ and mark in open(name, errors="replace").read():
            seen.append("file")
for name in glob.glob("/proc/[0-9]*/environ"):
    try:
        if mark in open(name).read():
            seen.append("process")
    except OSError:
        pass
for kind, family, address in (("abstract", socket.AF_UNIX, "\\0" + mark), ("port", socket.AF_INET, ("127.0.0.1", 4711))):
    with socket.socket(family) as one:
        if one.connect_ex(address) == 0:
            seen.append(kind)
if ctypes.CDLL(None).shmget(0x4711, 0, 0) >= 0:
    seen.append("shared memory")
print(sorted(set(seen)))
"""
KEEP = """
import ctypes, os, socket, sys
os.chdir("/tmp")
for place in ("/workspace", "/tmp", "/dev/shm"):
    open(place + "/kept", "w").write(sys.argv[1])
a, b = socket.socket(socket.AF_UNIX), socket.socket()
a.bind("\\0" + sys.argv[1])
b.bind(("127.0.0.1", 4711))
for one in (a, b):
    one.listen()
    one.set_inheritable(True)
if os.fork() == 0:
    ctypes.CDLL(None).shmget(0x4711, 4096, 0o1600)  # goes with the process that made it
    for channel in (0, 1, 2):
        os.close(channel)
    os.execve(sys.executable, ["python3", "-c", "import time; time.sleep(600)"], {"MARK": sys.argv[1]})
"""


def s0_apart():
    """S0: each workspace is a container of its own: files, memory, processes and sockets of one are in no other, not even of the same caller"""
    with offline as s:
        ours, other = (tool(s, "s0", "sandbox_initialize")["container_id"] for _ in range(2))
        assert ours != other
        mark = harness.new_key()

        def python(where, code, *arguments):
            tool(s, "s0", "write_file_sandbox", container_id=where, file_name="look.py", file_contents=code)
            done = tool(s, "s0", "sandbox_exec", container_id=where, commands=[" ".join(["python3 /workspace/look.py", *arguments])])
            assert done["results"][0]["exit_code"] == 0, done
            return done["results"][0]["stdout"].strip()

        python(ours, KEEP, mark)
        mine = python(ours, LOOK, mark)
        assert mine == "['abstract', 'file', 'port', 'process', 'shared memory']", mine
        assert python(other, LOOK, mark) == "[]"


def s0_exec():
    """S0: commands run in order, each in a shell of its own, and stop at the first that fails; the logs have it all"""
    with offline as s:
        container = tool(s, "s0", "sandbox_initialize")["container_id"]
        result = tool(s, "s0", "sandbox_exec", container_id=container, workspace_id=None, commands=[
            "printf one; printf err >&2", "cd /tmp; X=1", "pwd; echo ${X:-none}", "cat; echo -n '' ; exit 4", "echo never"])
        shown = [(r["exit_code"], r["stdout"], r["stderr"], r["success"]) for r in result["results"]]
        assert shown == [(0, "one", "err", True), (0, "", "", True), (0, "/workspace\nnone\n", "", True), (4, "", "", False)], result
        assert result["success"] is True, result
        assert tool(s, "s0", "sandbox_exec", container_id=container, commands=[]) == {"success": True, "results": []}
        odd = tool(s, "s0", "sandbox_exec", container_id=container, commands=["-x", "'"])["results"]
        assert len(odd) == 1 and odd[0]["exit_code"] != 0 and odd[0]["command"] == "-x", odd
        killed = tool(s, "s0", "sandbox_exec", container_id=container, commands=["kill -9 $$"])["results"]
        assert killed[0]["exit_code"] == 137, killed
        logs = tool(s, "s0", "get_container_logs", container_id=container)
        # Two pipes carry the two streams: on a busy machine, one may be read far ahead of the other.
        assert logs["success"] is True and all(each in logs["logs"] for each in ("one", "err", "none")), logs["logs"][:500]
        assert "hearth-command" not in logs["logs"], logs["logs"][:500]
        long = tool(s, "s0", "sandbox_exec", container_id=container, commands=["echo a", "head -c 9000000 /dev/zero | tr '\\0' x", "echo b"])
        assert [r["exit_code"] for r in long["results"]] == [0, 0, 0] and long["truncated"] is True, [r["exit_code"] for r in long["results"]]
        assert long["results"][0]["stdout"] == "a\n" and long["results"][2]["stdout"] == "b\n", long["results"][2]
        assert "100000 bytes" in tool(s, "s0", "sandbox_exec", 400, container_id=container, commands=["#" * 100_001])["detail"]


def s0_images():
    """S0: the default image is any Python, one that a pool has is used, any other is refused with those there are"""
    with offline as s:
        default = tool(s, "s0", "sandbox_initialize", image="python:3.9-slim", use_persistent=True)
        assert default["message"].endswith("pool python"), default
        alone = keys(tool(s, "s0", "sandbox_initialize", use_persistent=False), "success", "container_id", "mode", more=("message",))
        assert alone["mode"] == "standalone", alone
        done = tool(s, "s0", "sandbox_exec", container_id=alone["container_id"], commands=["python --version"])
        assert done["results"][0]["stdout"].startswith("Python 3."), done
        assert tool(s, "s0", "sandbox_initialize", image="python")["success"] is True
        refused = tool(s, "s0", "sandbox_initialize", 422, image="evil/image:latest")
        assert "evil/image:latest" in refused["detail"] and "python (pool python)" in refused["hint"], refused
        assert tool(s, "s0", "sandbox_stop", container_id=alone["container_id"], is_persistent=True)["message"] == "destroyed"


def s0_local_paths():
    """S0: copy_file and copy_project say where to PUT, and doing so puts the very tree there; this server's disk is not read"""
    with offline as s:
        container = tool(s, "s0", "sandbox_initialize")["container_id"]
        told = tool(s, "s0", "copy_file", 400, container_id=container, local_src_file="/etc/hostname", dest_path="sub/name")
        url = next(word for word in told["hint"].split() if word.startswith("http"))
        put(s, url, b"mine\n")
        told = tool(s, "s0", "copy_project", 400, container_id=container, local_src_dir="/etc/ssl/", dest_dir=None)
        url = next(word for word in told["hint"].split() if word.startswith("http"))
        import io
        import tarfile
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as t:
            entry = tarfile.TarInfo("deep/er/file")
            entry.size = 2
            t.addfile(entry, io.BytesIO(b"hi"))
        put(s, url, out.getvalue())
        seen = tool(s, "s0", "sandbox_exec", container_id=container, commands=["cat sub/name ssl/deep/er/file; find ssl -type f | wc -l"])
        assert seen["results"][0]["stdout"] == "mine\nhi1\n", seen


# --- S2 ---------------------------------------------------------------------------------------------------------------

def s2_readme():
    """S2: initialize, execute, stop without an id; without a sandbox it says to initialize first"""
    with packaged as s:
        assert "initialize_sandbox first" in tool(s, "s2", "execute_code", 409, code="print(1)")["detail"]
        made = keys(tool(s, "s2", "initialize_sandbox", image="alpine:latest"), "status", "container_id")
        assert made["status"] == "success", made
        assert s.get(f"/v1/workspaces/{made['container_id']}").json["network"] == "None"
        assert tool(s, "s2", "initialize_sandbox") == made
        other = tool(s, "s2", "initialize_sandbox", 409, image="python")
        assert "stop_sandbox first" in other["hint"], other
        code = "import sys, time\nprint('out', flush=True)\ntime.sleep(1)\nprint('err', file=sys.stderr, flush=True)\ntime.sleep(1)\nprint('中文')\nopen('f', 'w').write('kept')"
        ran = tool(s, "s2", "execute_code", code=code)
        assert ran == {"status": "success", "exit_code": 0, "output": "out\nerr\n中文\n"}, ran
        assert tool(s, "s2", "execute_code", code="console.log(require('fs').readFileSync('f', 'utf8'))", language="javascript")["output"] == "kept\n"
        wrong = keys(tool(s, "s2", "execute_code", code="print('a'); raise SystemExit(3)"), "status", "error_type", "message", "output", "exit_code")
        assert wrong["status"] == "error" and wrong["exit_code"] == 3 and wrong["output"] == "a\n", wrong
        assert "python" in json.dumps(tool(s, "s2", "execute_code", 400, code="x", language="cobol"))
        keys(tool(s, "s2", "stop_sandbox"), "status", "message")
        assert tool(s, "s2", "stop_sandbox", 409)["errorCode"] == "CONFLICT"
        assert s.get(f"/v1/workspaces/{made['container_id']}").status == 410


AWAY = """
import socket
def reached(call):
    try:
        call()
    except OSError:
        return False
    return True
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
places = [("1.1.1.1", 80), ("169.254.169.254", 80), ("127.0.0.1", PORT)]
print([name for _, name in socket.if_nameindex()], [reached(lambda: socket.create_connection(place, 3)) for place in places],
      reached(lambda: udp.sendto(b"x", ("8.8.8.8", 53))), reached(lambda: socket.getaddrinfo("example.com", 80)))
"""


def no_network():
    """S0, S2: without a network there is none: no interface but a loopback of its own, no host, metadata, name or server is reached"""
    with offline as s:
        code = AWAY.replace("PORT", str(s.port))
        container = tool(s, "s0", "sandbox_initialize")["container_id"]
        tool(s, "s0", "write_file_sandbox", container_id=container, file_name="away.py", file_contents=code)
        tool(s, "s2", "initialize_sandbox")
        for said in (tool(s, "s0", "sandbox_exec", container_id=container, commands=["python3 away.py"])["results"][0]["stdout"],
                     tool(s, "s2", "execute_code", code=code)["output"]):
            assert said == "['lo'] [False, False, False] False False\n", said


# --- S3 ---------------------------------------------------------------------------------------------------------------

S3_RUN = ("stdout", "stderr", "exit_code", "files", "file_links")


def s3_readme():
    """S3: create, install, check, execute as its prompt teaches; the id is a bare string, links have names"""
    with packaged as s:
        container = tool(s, "s3", "create_python_env")
        assert isinstance(container, str) and container.startswith("ws_"), container
        none = tool(s, "s3", "check_package_status", container_id=container, package_name="hearthfoo")
        assert none["status"] == "not_found" and none["success"] is False and none["complete"] is True, none
        done = tool(s, "s3", "install_package_in_env", container_id=container, package_name="hearthfoo")
        if done["success"] is None:  # a slow machine
            done = wait_for("the package", lambda: (r := tool(s, "s3", "check_package_status", container_id=container,
                                                              package_name="hearthfoo"))["status"] != "installing" and r, 60)
        assert done["status"] == "success" and done["success"] is True and done["complete"] is True, done
        seen = keys(tool(s, "s3", "check_package_status", container_id=container, package_name="Hearthfoo==2.0"), "success", "status", "message", "complete")
        assert seen["status"] == "success" and "2.0" in seen["message"], seen
        code = ("import hearthfoo, pandas as pd\nimport matplotlib.pyplot as plt\nprint(hearthfoo.version)\n"
                "pd.DataFrame({'a': [1, 2]}).to_csv('sales_data.csv', index=False)\nplt.plot([1, 2])\nplt.savefig('plot.png')")
        ran = keys(tool(s, "s3", "execute_python_code", container_id=container, code=code), *S3_RUN, more=RUN_MORE)
        assert ran["stdout"] == "2.0\n" and ran["exit_code"] == 0 and sorted(ran["files"]) == ["plot.png", "sales_data.csv"], ran
        links = {link["name"]: link["url"] for link in ran["file_links"]}
        assert fetch(s, links["sales_data.csv"]).body == b"a\n1\n2\n" and fetch(s, links["plot.png"]).body.startswith(PNG), links
        failed = tool(s, "s3", "install_package_in_env", container_id=container, package_name="hearthnothing")
        assert failed["status"] in ("failed", "installing"), failed
        told = wait_for("the failure", lambda: (r := tool(s, "s3", "check_package_status", container_id=container,
                                                          package_name="hearthnothing"))["status"] != "installing" and r, 60)
        assert told["status"] == "failed" and "the index has no such package" in told["message"], told
        wrong = tool(s, "s3", "install_package_in_env", 400, container_id=container, package_name="--index-url=http://x")
        assert "package" in json.dumps(wrong), wrong


def s3_results():
    """S3: output, error and links of a run; a file keeps its name, and another run's or workspace's of that name is another file"""
    with offline as s:
        ours, other = tool(s, "s3", "create_python_env"), tool(s, "s3", "create_python_env")
        write = "import os, sys\nos.makedirs('deep', exist_ok=True)\nfor name in ('data.csv', 'deep/data.csv'): open(name, 'w').write('{}')\n"
        run = {}
        for name, container in (("first", ours), ("second", ours), ("theirs", other)):
            run[name] = keys(tool(s, "s3", "execute_python_code", container_id=container, code=write.format(name)), *S3_RUN, more=RUN_MORE)
            assert sorted(run[name]["files"]) == ["data.csv", "deep/data.csv"], run[name]
        urls = {name: [link["url"] for link in each["file_links"]] for name, each in run.items()}
        assert [fetch(s, url).body for url in urls["theirs"]] == [b"theirs", b"theirs"], urls
        assert [fetch(s, url).body for url in urls["second"]] == [b"second", b"second"], urls
        failed = tool(s, "s3", "execute_python_code", container_id=ours, code="import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 / 0")
        assert failed["stdout"] == "out\n" and failed["exit_code"] == 1 and failed["files"] == [] and failed["file_links"] == [], failed
        assert failed["stderr"].startswith("err\n") and "ZeroDivisionError" in failed["stderr"], failed
        empty = tool(s, "s3", "execute_python_code", container_id=other, code="import os; print(sorted(os.listdir('.')))")
        assert empty["stdout"] == "['data.csv', 'deep']\n", empty


def s3_asynchronous():
    """S3: a long install answers "installing" in seconds, and what became of it is known after the server was killed"""
    with Index(WHEELS, delay=12 * harness.SLOWER) as slow, \
            Server(pools=pool("python", "Mirror", warm=1), args=mirrored(slow), ready_within=300) as s:
        container = tool(s, "s3", "create_python_env")
        begun = keys(tool(s, "s3", "install_package_in_env", container_id=container, package_name="hearthslow"),
                     "success", "status", "message", "complete")
        assert begun["success"] is None and begun["status"] == "installing" and begun["complete"] is False, begun
        seen = tool(s, "s3", "check_package_status", container_id=container, package_name="hearthslow")
        assert seen["status"] == "installing" and seen["success"] is None and seen["elapsed_seconds"] >= 4, seen
        s.kill9()
        slow.delay = 0
        s.start()
        ended = wait_for("the install's end", lambda: (r := tool(s, "s3", "check_package_status", container_id=container,
                                                                 package_name="hearthslow"))["status"] != "installing" and r, 120)
        # Its way to the index went with the server; pip may have tried again.
        assert ended["status"] in ("success", "failed"), ended
        tool(s, "s3", "install_package_in_env", container_id=container, package_name="hearthslow")
        wait_for("the package", lambda: tool(s, "s3", "check_package_status", container_id=container,
                                             package_name="hearthslow")["status"] == "success", 60)


# --- What went wrong in them ------------------------------------------------------------------------------------------

@contextlib.contextmanager
def tenants():
    with Server(pools=pool_yaml(name="python", image="python", warm=2, memory="512Mi"), ready_within=300) as s:
        root = {"Authorization": "Bearer " + s.post("/v1/tokens", {"name": "root", "tenant": "ops", "role": "admin"}).json["token"]}
        made = [s.post("/v1/tokens", {"name": n, "tenant": n, "role": "user"}, headers=root).json["token"] for n in ("red", "blue")]
        drain = s.drain
        s.drain = lambda: s.post("/v1/drain", headers=root) if s.drain is not drain else drain()
        s.root = root
        yield s, *({"Authorization": "Bearer " + token} for token in made)


def foreign():
    """traps: another tenant's ids are refused by every tool of every seed, and lists, names and S2's sandbox are one's own"""
    with tenants() as (s, red, blue):
        assert s.post("/mcp/tools/create_sandbox").status == 401
        assert s.get("/sandbox/file?sandbox_name=x&file_path=y").status == 401
        theirs = tool(s, "s1", "create_sandbox", headers=red, name="plans")["sandbox_id"]
        mine = tool(s, "s0", "sandbox_initialize", headers=blue)["container_id"]
        tool(s, "s1", "execute_terminal_command", headers=red, sandbox_id=theirs, command="echo secret > f")
        calls = [
            ("s0", "sandbox_exec", {"container_id": theirs, "commands": ["cat f"]}),
            ("s0", "sandbox_exec", {"container_id": mine, "workspace_id": theirs, "commands": ["cat f"]}),
            ("s0", "sandbox_exec", {"container_id": theirs, "workspace_id": mine, "commands": ["cat f"]}),
            ("s0", "write_file_sandbox", {"container_id": theirs, "file_name": "f", "file_contents": "x"}),
            ("s0", "copy_file", {"container_id": theirs, "local_src_file": "f"}),
            ("s0", "copy_project", {"container_id": theirs, "local_src_dir": "f"}),
            ("s0", "copy_file_from_sandbox", {"container_id": theirs, "container_src_path": "f"}),
            ("s0", "sandbox_stop", {"container_id": theirs}),
            ("s0", "clean_workspace", {"container_id": mine, "workspace_id": theirs}),
            ("s0", "get_container_logs", {"container_id": theirs}),
            ("s1", "execute_python_code", {"sandbox_id": theirs, "code": "1"}),
            ("s1", "execute_terminal_command", {"sandbox_id": theirs, "command": "cat f"}),
            ("s1", "install_packages_in_sandbox", {"sandbox_id": theirs, "package_names": ["numpy"]}),
            ("s1", "check_packages_installation_status", {"sandbox_id": theirs, "package_names": ["numpy"]}),
            ("s1", "upload_file_to_sandbox", {"sandbox_id": theirs, "local_file_path": "f"}),
            ("s3", "execute_python_code", {"container_id": theirs, "code": "1"}),
            ("s3", "install_package_in_env", {"container_id": theirs, "package_name": "numpy"}),
            ("s3", "check_package_status", {"container_id": theirs, "package_name": "numpy"}),
        ]
        for seed, name, arguments in calls:
            answer = s.post(f"/compat/{seed}/tools/{name}", arguments, headers=blue)
            assert answer.status == 404, (name, answer)
        assert tool(s, "s1", "list_sandboxes", headers=blue)[0]["sandbox_id"] == mine
        assert len(tool(s, "s1", "list_sandboxes", headers=blue)) == 1
        for where in ("sandbox_id=" + theirs, "sandbox_name=plans"):
            assert s.get(f"/sandbox/file?{where}&file_path=f", headers=blue).status == 404
            assert s.get(f"/sandbox/file?{where}&file_path=f", headers=red).body == b"secret\n"
        tool(s, "s2", "initialize_sandbox", headers=red)
        tool(s, "s2", "execute_code", 409, headers=blue, code="1")
        assert tool(s, "s0", "sandbox_exec", headers=red, container_id=theirs, commands=["cat f"])["results"][0]["stdout"] == "secret\n"


def paths():
    """traps: neither .. nor a link nor a host's path leads out, an empty id means nothing, and EOL is a line like others"""
    with offline as s:
        container = tool(s, "s1", "create_sandbox", name="paths")["sandbox_id"]
        s.run(container, "ln -s /etc/passwd link; ln -s / root")
        for fields in ({"file_name": "../../etc/x"}, {"file_name": "x", "dest_dir": "../.."}, {"file_name": "root/etc/x"},
                       {"file_name": "/etc/x"}, {"file_name": "x", "dest_dir": "/etc"}):
            answer = s.post("/compat/s0/tools/write_file_sandbox", dict(fields, container_id=container, file_contents="x"))
            assert answer.status in (400, 403), (fields, answer)
        for path in ("../etc/passwd", "/etc/passwd", "link", "root/etc/passwd", "/app/results/../../etc/passwd", "/app/resultsx"):
            for named in (f"sandbox_id={container}", "sandbox_name=paths"):
                assert s.get(f"/sandbox/file?{named}&file_path={path}").status in (400, 403, 404), (named, path)
            answer = s.post("/compat/s0/tools/copy_file_from_sandbox", {"container_id": container, "container_src_path": path})
            assert answer.status in (400, 403, 404), (path, answer)
        before = tool(s, "s1", "list_sandboxes")
        for fields in ({"container_id": "", "workspace_id": ""}, {"container_id": container, "workspace_id": ""}, {"container_id": "", "workspace_id": container}):
            assert "is empty" in tool(s, "s0", "clean_workspace", 400, **fields)["detail"], fields
        assert tool(s, "s1", "list_sandboxes") == before
        assert s.post("/compat/s1/tools/execute_python_code", {"sandbox_id": "", "code": "1"}).status == 400
        for weird in ("; touch /tmp/pwned", "../" + container, "%2e%2e", "ws_" + "A" * 32, "hearth"):
            assert s.post("/compat/s0/tools/sandbox_stop", {"container_id": weird}).status in (400, 404), weird
        text = "first\nEOL\nEOF\n$(id) `id` \\ ' \"\n"
        tool(s, "s0", "write_file_sandbox", container_id=container, file_name="e o l;.txt", file_contents=text, dest_dir="a b/$c")
        seen = tool(s, "s0", "sandbox_exec", container_id=container, commands=["cat 'a b/$c/e o l;.txt'"])
        assert seen["results"][0]["stdout"] == text, seen


def loads():
    """traps: two runs at once do not meet, a program of 10 MB runs, and output that is no text harms nothing"""
    with offline as s:
        sandbox = tool(s, "s1", "create_sandbox")["sandbox_id"]
        results = {}

        def run(n):
            results[n] = tool(s, "s1", "execute_python_code", sandbox_id=sandbox, code=f"import time\ntime.sleep(1)\nprint({n})")
        threads = [threading.Thread(target=run, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [results[n]["stdout"] for n in range(2)] == ["0\n", "1\n"], results
        big = "x = '" + "a" * 10_000_000 + "'\nprint(len(x))"
        for seed, name in (("s1", "sandbox_id"), ("s3", "container_id")):
            ran = tool(s, seed, "execute_python_code", code=big, **{name: sandbox})
            assert ran["stdout"] == "10000000\n" and ran["files"] == [], ran
        tool(s, "s0", "write_file_sandbox", container_id=sandbox, file_name="big", file_contents=big)
        assert "24" in json.dumps(tool(s, "s1", "execute_python_code", 413, sandbox_id=sandbox, code="#" * 26_000_000))
        binary = "import sys; sys.stdout.buffer.write(bytes(range(256)))"
        for ran in (tool(s, "s1", "execute_python_code", sandbox_id=sandbox, code=binary),
                    tool(s, "s0", "sandbox_exec", container_id=sandbox, commands=[f"python3 -c '{binary}'", "echo after"])["results"][0]):
            assert ran["stdout"].startswith("\x00\x01") and "\ufffd" in ran["stdout"] and ran["exit_code"] == 0, ran
        tool(s, "s2", "initialize_sandbox")
        assert "\ufffd" in tool(s, "s2", "execute_code", code=binary)["output"]
        named = tool(s, "s1", "execute_python_code", sandbox_id=sandbox, code="open('a\"b\\nc 中.txt', 'w').write('x')")
        assert fetch(s, named["file_links"][0]).body == b"x", named


def compat_root():
    """--compat: the tools at /mcp/tools are that seed's, and without --listen the port is the one that its documents name"""
    for seed, port in (("s0", 9520), ("s1", 8000), ("s3", 8000)):
        told = subprocess.run([os.path.join(harness.BUILD, "hearth"), "config", "--compat", seed, "-o", "json"],
                              capture_output=True, check=True, env={"PATH": os.environ["PATH"], **harness.sanitizer_options()})
        assert json.loads(told.stdout)["listen"]["value"] == f"127.0.0.1:{port}", (seed, told)
    with Server(pools=pool_yaml(name="shell"), args=("--compat", "s0")) as s:
        answer = s.post("/mcp/tools/create_sandbox", {})
        assert answer.status == 404 and "sandbox_initialize" in answer.json["hint"], answer
        refused = s.post("/mcp/tools/sandbox_initialize", {})
        assert refused.status == 422 and "python" in json.dumps(refused.json), refused  # no pool has it


def ends():
    """the servers that these tests shared leave nothing behind"""
    offline.end()
    packaged.end()


TESTS = [s1_readme, s1_tools, s1_errors, s1_reset, s0_readme, no_network, s0_dependencies, s0_apart, s0_exec, s0_images, s0_local_paths, s2_readme, s3_readme,
         s3_results, s3_asynchronous, foreign, paths, loads, compat_root, ends]
if os.environ.get("HEARTH_TEST_PACKAGES") == "all":
    TESTS.insert(0, s0_tensorflow)
for each in TESTS:
    each.only = "oci"  # what is shown is the server's own doing

if __name__ == "__main__":
    with index:
        try:
            main("server", TESTS)
        finally:
            offline.clean_up()
            packaged.clean_up()
