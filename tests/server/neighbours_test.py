#!/usr/bin/env python3
# suite: seconds=110
"""Bad neighbours, black box, on real sandboxes of the python image: floods, children left behind, clients that do not
read, memory that runs out. Others beside them must not notice, and each answer must say what happened."""

import base64
import json
import os
import re
import signal
import struct
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Growth, Reader, Server, Shared, commands_with, growth_allowed, main, new_key, parent, pids, pool_yaml, wait_for  # noqa: E402

PREWARM = "  template:\n    prewarm: {languages: [python], imports: [numpy, pandas, matplotlib.pyplot], timeout: 60s}\n"
shared = Shared(pools=pool_yaml("python", image="python", memory="512Mi").replace("  template:\n", PREWARM, 1))

MIB = 1 << 20
# The bytes by which server and launcher may grow under a bad neighbour, whatever it does.
ALLOWED = growth_allowed(128 * MIB)
# Lines of 16 bytes that count up, so that each piece of them shows its place.
FIRST = 10 ** 14
FLOOD = f"seq {FIRST} 999999999999999 >&2 & exec seq {FIRST} 999999999999999"

MARK = re.compile(r"\[… (\d+) bytes were not kept …\]\n")
LINES_CUT = 4096  # head and tail of cut output lose up to this much: they end between two lines


def the_end():
    """the server that all these tests used ends and leaves nothing"""
    shared.end()


def execute(s, workspace, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", fields)
    assert answer.status == 200, answer
    return answer.json


def begin(s, workspace, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", dict(fields, background=True))
    assert answer.status == 202, answer
    return answer.json["id"]


def ended(s, execution, seconds=30):
    return wait_for("the end", lambda: (x := s.get(f"/v1/executions/{execution}").json)["status"] != "running" and x, seconds)


def make(s, workspace, language="python"):
    answer = s.post(f"/v1/workspaces/{workspace}/contexts", {"language": language})
    assert answer.status == 201, answer
    return answer.json["id"]


def fresh(s, workspace, code):
    """Runs the code until a waiting interpreter takes it: a burst may find none ready."""
    return wait_for("the zygote", lambda: (x := execute(s, workspace, code=code, language="python"))["interpreter"] == "zygote" and x)


class Neighbour:
    """A workspace with a context; `works` uses all of it once and checks the results."""

    def __init__(self, s):
        self.s, self.rounds = s, 0
        self.workspace = s.open_workspace()["id"]
        self.context = make(s, self.workspace)
        execute(s, self.workspace, code="n = 0", context=self.context)

    def works(self):
        self.rounds += 1
        assert self.s.run(self.workspace, "echo $((6 * 7))")["stdout"] == "42\n"
        out = execute(self.s, self.workspace, code="print(6 * 7)", language="python")
        assert (out["stdout"], out["stderr"]) == ("42\n", ""), out
        out = execute(self.s, self.workspace, code="n += 1\nprint(n)", context=self.context)
        assert (out["stdout"], out["contextKept"]) == (f"{self.rounds}\n", True), out
        path = f"/v1/workspaces/{self.workspace}/files/d/f{self.rounds % 4}"
        content = os.urandom(100_000)
        assert self.s.call("PUT", path, raw=content).status in (200, 201)
        assert self.s.get(path).body == content


def counted(begin, end):
    """Returns the bytes `begin` to `end` of the lines that count up."""
    lines = "".join(f"{n}\n" for n in range(FIRST + begin // 16, FIRST + end // 16 + 1))
    return lines[begin % 16:begin % 16 + end - begin]


def kept_of(text):
    """Returns head and tail of lines that count up, as they are on both sides of the mark."""
    head, _, tail = (MARK.split(text) + ["", ""])[:3]
    if tail and not counted(0, len(head)) == head:
        head = head[:-1]  # the mark has a line of its own
    assert head == counted(0, len(head)), f"the head is not whole: {head[:40]!r} to {head[-60:]!r}, then {tail[:40]!r}"
    return head, tail


def missing_from(text):
    """Returns how many bytes of the lines that count up are missing between head and tail of the kept text. Everything
    else must be there, in its place. Without a tail, because the other channel was faster at the end, only the mark
    knows."""
    head, tail = kept_of(text)
    if not tail:
        return sum(map(int, MARK.findall(text)))
    last = tail.rindex("\n")
    total = 16 * (int(tail[last - 15:last]) - FIRST + 1) + len(tail) - last - 1
    assert tail == counted(total - len(tail), total), "the tail is not whole"
    return total - len(head) - len(tail)


def server_and_launcher(s):
    return [s.process.pid] + s.launcher_pids()


def flood():
    """a program floods both channels: its neighbour works on, server and launcher do not grow, the answer keeps head and tail and counts the rest exactly"""
    with shared as s:
        neighbour, w = Neighbour(s), s.open_workspace()["id"]
        neighbour.works()
        growth = Growth(server_and_launcher(s))
        execution = begin(s, w, command=FLOOD, timeoutSeconds=4)
        while s.get(f"/v1/executions/{execution}").json["status"] == "running":
            neighbour.works()
        assert growth.most() < ALLOWED, growth.most()
        out = ended(s, execution)
        assert out["status"] == "timeout" and out["truncated"], out["status"]
        for channel in ("stdout", "stderr"):
            assert sum(map(int, MARK.findall(out[channel]))) == missing_from(out[channel]), channel
        kept = sum(len(part) for channel in ("stdout", "stderr") for part in kept_of(out[channel]))
        missing = missing_from(out["stdout"]) + missing_from(out["stderr"])
        assert MIB - 2 * LINES_CUT < kept <= MIB and out["droppedBytes"] == missing > MIB, (kept, missing, out["droppedBytes"])
        print(f"      {(kept + missing) >> 20} MiB beside {neighbour.rounds} rounds; grown by {growth.most() >> 10} KiB", flush=True)
        assert "seq" not in s.run(w, "ps -e -o args")["stdout"]
        assert execute(s, w, code="print(1)", language="python")["stdout"] == "1\n"


# Holds both channels, ignores every signal that it can, and goes on writing. The file shows that it is not stuck.
GHOST = """trap '' HUP INT QUIT TERM PIPE
while :; do echo GHOST; echo GHOST >&2; echo x >> "alive-$1"; sleep 0.1; done
"""
GHOSTS_BY = {
    "bash": "sh ghost.sh {0}a {1} & setsid sh ghost.sh {0}b {1} & (setsid sh ghost.sh {0}c {1} & exit) & wait $!; echo main",
    "python": "import os, subprocess, sys\n"
              "subprocess.Popen(['sh', 'ghost.sh', '{0}a', '{1}'])\n"
              "subprocess.Popen(['sh', 'ghost.sh', '{0}b', '{1}'], start_new_session=True)\n"
              "if (child := os.fork()) == 0:\n"
              "    os.setsid()\n"
              "    if os.fork() == 0: os.execvp('sh', ['sh', 'ghost.sh', '{0}c', '{1}'])\n"
              "    os._exit(0)\n"
              "os.waitpid(child, 0)\n"
              "print('main')",
    "javascript": "const {{ spawn }} = require('child_process');\n"
                  "for (const [name, detached] of [['a', false], ['b', true], ['c', true]])\n"
                  "  spawn('sh', ['ghost.sh', '{0}' + name, '{1}'], {{ stdio: 'inherit', detached }}).unref();\n"
                  "console.log('main');",
}
# Long enough for every ghost to write meanwhile.
NEXT = {"bash": "sleep 0.3; echo next", "python": "import time; time.sleep(0.3); print('next')",
        "javascript": "(async () => { await new Promise(r => setTimeout(r, 300)); console.log('next') })()"}


def without_ghosts(text):
    return text.replace("GHOST\n", "")


def left_behind():
    """children that outlive their program hold nobody up: its answer comes, they write into no other execution, and they end with their workspace"""
    with shared as s:
        neighbour, w = Neighbour(s), s.open_workspace()["id"]
        word = "ghost-" + new_key()
        assert s.call("PUT", f"/v1/workspaces/{w}/files/ghost.sh", raw=GHOST.encode()).status in (200, 201)
        for number, (language, code) in enumerate(GHOSTS_BY.items()):
            out = execute(s, w, code=code.format(number, word), language=language, timeoutSeconds=20)
            assert (out["status"], without_ghosts(out["stdout"]), without_ghosts(out["stderr"])) == ("ok", "main\n", ""), out
        names = [f"{n}{child}" for n in range(len(GHOSTS_BY)) for child in "abc"]

        def written():
            sizes = {i["path"]: i["size"] for i in s.get(f"/v1/workspaces/{w}/files?path=.").json["items"]}
            return [sizes.get(f"alive-{name}", 0) for name in names]

        before = wait_for("all ghosts", lambda: min(now := written()) > 0 and now)
        wait_for("all ghosts to go on", lambda: all(now > then for now, then in zip(written(), before)))
        for language, code in NEXT.items():  # later runs beside them contain nothing of theirs
            for where in ({"language": language}, {"context": make(s, w, language)}):
                out = execute(s, w, code=code, **where)
                assert (out["status"], out["stdout"], out["stderr"]) == ("ok", "next\n", ""), out
        neighbour.works()
        # A ghost that forks its next sleep is seen twice for that moment.
        wait_for("one process for each ghost", lambda: len(commands_with(word)) == len(names))
        assert s.call("DELETE", f"/v1/workspaces/{w}").status == 204
        wait_for("the end of all ghosts", lambda: not commands_with(word))
        neighbour.works()


def left_behind_by_a_context():
    """children that a context's code left behind hold it up neither, other contexts never hear of them, and they end with their context"""
    with shared as s:
        neighbour, w = Neighbour(s), s.open_workspace()["id"]
        assert s.call("PUT", f"/v1/workspaces/{w}/files/ghost.sh", raw=GHOST.encode()).status in (200, 201)
        for number, (language, code) in enumerate(GHOSTS_BY.items()):
            word = "ghost-" + new_key()
            context, other = make(s, w, language), make(s, w, language)
            out = execute(s, w, code=code.format(f"context{number}", word), context=context, timeoutSeconds=20)
            assert (out["status"], without_ghosts(out["stdout"]), without_ghosts(out["stderr"])) == ("ok", "main\n", ""), out
            assert out["contextKept"], out
            wait_for("all of its ghosts", lambda w=word: len(commands_with(w)) == 3)  # one is forked twice before it begins
            for where in ({"context": other}, {"language": language}):
                out = execute(s, w, code=NEXT[language], **where)
                assert (out["status"], out["stdout"], out["stderr"]) == ("ok", "next\n", ""), out
            out = execute(s, w, code=NEXT[language], context=context)  # its own channels are theirs too, as in any terminal
            assert (out["status"], without_ghosts(out["stdout"]), out["contextKept"]) == ("ok", "next\n", True), out
            assert s.call("DELETE", f"/v1/contexts/{context}").status == 204
            wait_for("the end of its ghosts", lambda w=word: not commands_with(w))
            assert s.call("DELETE", f"/v1/contexts/{other}").status == 204
        neighbour.works()


def pieces_of(events, begun=0):
    """Returns the pieces of a stream: place, channel and bytes of each. Checks that the ids leave no gap that is not
    counted."""
    pieces, last, end = [], begun, None
    for event in events:
        data = json.loads(event["data"])
        assert end is None, event
        if event["event"] == "exit":
            end = data
        elif event["event"] in ("stdout", "stderr"):
            content = data["text"].encode() if "text" in data else base64.b64decode(data["base64"])
            assert int(event["id"]) == last + data.get("droppedBytes", 0) + len(content), (last, event["id"])
            last = int(event["id"])
            pieces.append((last - len(content), event["event"], content))
    assert end, "the stream was cut"
    return pieces, end


def text_of(pieces, channel):
    return b"".join(content for _, where, content in pieces if where == channel).decode()


def unread():
    """clients that stop reading hold nobody up and cost bounded memory; what they missed comes in order or is counted"""
    with shared as s:
        neighbour, w = Neighbour(s), s.open_workspace()["id"]
        big = os.urandom(16 * MIB)
        assert s.call("PUT", f"/v1/workspaces/{w}/files/big", raw=big).status in (200, 201)
        neighbour.works()
        growth = Growth(server_and_launcher(s))
        flooder = begin(s, w, command=FLOOD, timeoutSeconds=4)
        events = f"/v1/executions/{flooder}/events"
        with Reader(s, events, buffer=4096) as stalled, Reader(s, f"/v1/workspaces/{w}/files/big", buffer=4096) as download:
            crowd = []
            try:
                assert stalled.begin() == download.begin() == 200
                for _ in range(200):
                    crowd.append(Reader(s, events, buffer=4096))
                    status = crowd[-1].begin()
                    assert status == 200, (len(crowd), status)
                while s.get(f"/v1/executions/{flooder}").json["status"] == "running":
                    neighbour.works()
                assert growth.most() < ALLOWED, growth.most()
            finally:
                for reader in crowd:
                    reader.close()
            pieces, end = pieces_of(stalled.events())
            assert download.body() == big
        assert end["status"] == "timeout", end["status"]
        missing = {channel: missing_from(end[channel]) for channel in ("stdout", "stderr")}
        assert end["droppedBytes"] == sum(missing.values()), (end["droppedBytes"], missing, len(end["stdout"]), len(end["stderr"]))
        assert text_of(pieces, "stdout").endswith(kept_of(end["stdout"])[1][-1000:])
        for _, channel, content in pieces:  # each piece has whole lines of its place, or says where it was cut
            assert channel in ("stdout", "stderr") and content
        for behind in (pieces[0], pieces[len(pieces) // 2], pieces[-1]):
            place = behind[0] + len(behind[2])
            with Reader(s, events, headers={"Last-Event-ID": str(place)}) as again:
                rest, same = pieces_of(again.events(), place)
            assert all(at >= place for at, _, _ in rest) and same == end
            assert b"".join(c for at, _, c in pieces if at >= place).endswith(b"".join(c for _, _, c in rest)[-65536:])
        print(f"      beside {neighbour.rounds} rounds; grown by {growth.most() >> 10} KiB", flush=True)


# More than any sandbox here may have; every page is touched.
GREEDY = "x = bytearray(900 << 20)\nprint(len(x))"


def out_of_memory():
    """a run that takes all memory is told as oom, alone; files and the other contexts keep what they had, and its own context's loss is told"""
    with shared as s:
        w = s.open_workspace()["id"]
        assert s.call("PUT", f"/v1/workspaces/{w}/files/kept", raw=b"kept").status in (200, 201)
        kept = {make(s, w, language): (first, then) for language, first, then in (
            ("python", "n = 41", "print(n + 1)"), ("javascript", "let n = 41", "console.log(n + 1)"), ("bash", "n=41", "echo $((n + 1))"))}
        for context, (first, _) in kept.items():
            assert execute(s, w, code=first, context=context)["status"] == "ok"
        greedy = make(s, w)
        for where in ({"language": "python"}, {"context": greedy}):
            out = execute(s, w, code="print('on', flush=True)\n" + GREEDY, timeoutSeconds=30, **where)
            assert (out["status"], out["signal"], out["stdout"]) == ("oom", "KILL", "on\n"), out
            assert out["contextKept"] is (False if "context" in where else None), out
            for context, (_, then) in kept.items():
                again = execute(s, w, code=then, context=context)
                assert (again["stdout"], again["contextKept"]) == ("42\n", True), again
            assert s.get(f"/v1/workspaces/{w}/files/kept").body == b"kept"
            assert execute(s, w, code="print(open('kept').read())", language="python")["stdout"] == "kept\n"
        gone = s.post(f"/v1/workspaces/{w}/executions", {"code": "1", "context": greedy})
        assert gone.status == 410 and gone.json["errorCode"] == "GONE", gone
        assert {c["id"] for c in s.get(f"/v1/workspaces/{w}/contexts").json["items"]} == set(kept)


def who_ran_out_of_memory():
    """a program whose child was killed for memory is not, nor is what was killed by other hands afterwards"""
    with shared as s:
        w = s.open_workspace()["id"]
        parent = s.run(w, f"python3 -c '{GREEDY}'; echo $?", timeoutSeconds=30)
        assert (parent["status"], parent["stdout"]) == ("ok", "137\n"), parent
        assert s.run(w, "kill -KILL $$")["status"] == "killed"
        late = s.run(w, f"python3 -c '{GREEDY}'; sleep 60", timeoutSeconds=3)
        assert late["status"] == "timeout", late
        assert s.run(w, "kill -KILL $$")["status"] == "killed"
        assert execute(s, w, code=GREEDY, language="python", timeoutSeconds=30)["status"] == "oom"


# Memory that belongs to no process. The zygote, with all that it has imported, is then the largest process. A run
# beside it would be killed first, like the zygote's children, so there is none until the zygote is gone.
FILL = """import os, time
zygote, files = "/proc/{zygote}", []
while os.path.exists(zygote):
    files.append(os.memfd_create("x"))
    os.write(files[-1], bytes(1 << 20))
for one in files[:128]:
    os.ftruncate(one, 0)
print("gone", flush=True)
time.sleep(30)
"""


def zygote_out_of_memory():
    """a zygote that is killed for memory costs no run: each is right, cold ones say so, and the zygote comes back"""
    with shared as s:
        w = s.open_workspace()["id"]
        find = "import os; print(os.getppid())"
        before = fresh(s, w, find)["stdout"]
        s.call("PUT", f"/v1/workspaces/{w}/files/fill.py", raw=FILL.format(zygote=before.strip()).encode())
        hog = begin(s, w, command="exec python3 -S fill.py", timeoutSeconds=60)
        wait_for("the zygote's end", lambda: s.get(f"/v1/executions/{hog}").json["stdout"] == "gone\n", 30)
        seen = [execute(s, w, code=find, language="python") for _ in range(4)]
        after = fresh(s, w, find)["stdout"]
        print(f"      {[(x['status'], x['interpreter']) for x in seen]}", flush=True)
        for out in seen:
            assert out["status"] == "ok" and out["interpreter"] in ("zygote", "cold"), out
        assert after != before, "it was never the zygote"
        assert s.call("DELETE", f"/v1/executions/{hog}").status < 300
        ended(s, hog)


# Sets its own score below the agent's before it asks for memory.
BELOW = ("touch started; while [ ! -e go ]; do sleep 0.1; done; echo {score} > /proc/$$/oom_score_adj\n"
         """exec awk 'BEGIN {{ s = "x"; while (1) s = s s }}'""")


def is_agent(pid, instance):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f, open(f"/proc/{pid}/cgroup", encoding="ascii") as g:
            return f.read().startswith(b"/.hearth/agent") and instance in g.read()
    except OSError:
        return False


def inside(pid, name):
    """Returns the path of a workspace file, as a process sees it."""
    return os.path.join("/proc", str(pid), "root", "workspace", name)


def state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return None


def agent_out_of_memory():
    """what runs when the kernel ends the agent for memory is told as oom, not as lost"""
    with Server() as s:
        w = s.open_workspace()["id"]
        with open("/proc/self/status", encoding="ascii") as f:
            bounding = next(int(line.split()[1], 16) for line in f if line.startswith("CapBnd:"))
        hungry = BELOW.format(score=900 if bounding >> 24 & 1 else 0)
        runs = [s.post(f"/v1/workspaces/{w}/executions", {"command": each, "background": True}).json["id"]
                for each in (hungry, "sleep 60")]
        wait_for("its start", lambda: s.get(f"/v1/workspaces/{w}/files/started").status == 200)
        # A stopped agent neither raises a score nor notices the end. Then it is killed, as the next process that the kernel would
        # take.
        def agents():  # a fork has the agent's name until it runs another program
            return [pid for pid in pids() if is_agent(pid, s.instance) and os.path.exists(inside(pid, "started"))]
        agent = wait_for("one agent", lambda: (found := agents()) and len(found) == 1 and found[0])
        os.kill(agent, signal.SIGSTOP)
        os.close(os.open(inside(agent, "go"), os.O_CREAT))
        wait_for("the kernel's kill", lambda: any(parent(pid) == agent and state(pid) == "Z" for pid in pids()), 60)
        os.kill(agent, signal.SIGKILL)
        for run in runs:
            told = wait_for("its end", lambda run=run: (e := s.get(f"/v1/executions/{run}").json)["status"] != "running" and e, 30)
            assert told["status"] == "oom", told
        assert s.get(f"/v1/workspaces/{w}").status == 410


# The README examples of earlier sandboxes, word for word.
HISTOGRAM = """
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
SINE = """
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
SALES = """
import pandas as pd
import matplotlib.pyplot as plt
df = pd.DataFrame({'城市': ['北京', '東京', '서울'], 'sales': [1, 2, 3]})
df.to_csv('sales_data.csv', index=False)
df.plot.bar(x='城市', title='销售 売上 판매')
plt.savefig('out/sales.png') if __import__('os').makedirs('out') is None else None
plt.show()
df
"""
OFFLINE = """
import errno, socket, urllib.error, urllib.request
print([name for _, name in socket.if_nameindex()])
for address in (('1.1.1.1', 53), ('10.0.0.1', 80), ('169.254.169.254', 80)):
    try: socket.create_connection(address, timeout=60)
    except OSError as e: print(errno.errorcode[e.errno])
try: urllib.request.urlopen('http://example.com', timeout=60)
except urllib.error.URLError as e: print(type(e.reason).__name__)
"""


def picture(png):
    """Returns width and height of a PNG, which must show more than one colour."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and png[12:16] == b"IHDR", png[:32]
    at, packed = 8, b""
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IDAT":
            packed += png[at + 8:at + 8 + size]
        at += 12 + size
    assert len(set(zlib.decompress(packed))) > 16, "an empty picture"
    return struct.unpack(">II", png[16:24])


def pictures_in(out):
    return [picture(base64.b64decode(r["mime"]["image/png"])) for r in out["results"] if "image/png" in r["mime"]]


def readme_examples():
    """the examples of the sandboxes before this one run as they stand, without a network: figures, tables, Chinese, Japanese and Korean"""
    with shared as s:
        w = s.open_workspace()["id"]
        files = f"/v1/workspaces/{w}/files"
        assert s.call("PUT", f"{files}/analysis.py", raw=HISTOGRAM.encode()).status in (200, 201)
        out = s.run(w, "python analysis.py", collect=["**"])
        assert (out["status"], out["stderr"]) == ("ok", ""), out
        assert "数据均值: " in out["stdout"] and out["stdout"].endswith("已保存直方图\n"), out
        assert [a["path"] for a in out["artifacts"]] == ["histogram.png"], out
        assert picture(s.get(f"{files}/histogram.png").body) == (800, 600)
        for where in ({"language": "python"}, {"context": make(s, w)}):
            out = execute(s, w, code=SINE, collect=["**"], **where)
            assert (out["status"], out["stdout"], out["stderr"]) == ("ok", "图表已生成\n", ""), out
            assert len(pictures_in(out)) == 1 and picture(s.get(f"{files}/sine_wave.png").body) == (1000, 600), out["results"]
            out = execute(s, w, code=SALES, collect=["**"], **where)
            assert (out["status"], out["stdout"], out["stderr"]) == ("ok", "", ""), out
            table = next(r["mime"] for r in out["results"] if r["main"])
            assert "<table" in table["text/html"] and "東京" in table["text/html"] and "서울" in table["text/plain"], table
            assert len(pictures_in(out)) == 1, out["results"]
            assert sorted(a["path"] for a in out["artifacts"]) == ["out/sales.png", "sales_data.csv"], out["artifacts"]
            assert s.get(f"{files}/sales_data.csv").body.decode().splitlines()[2] == "東京,2"
            assert s.run(w, "rm -r out")["status"] == "ok"
        offline = execute(s, w, code=OFFLINE, language="python", timeoutSeconds=30)
        assert offline["stdout"].split("\n") == ["['lo']"] + 3 * ["ENETUNREACH"] + ["gaierror", ""], offline


# Writes a line for each that it reads, to both channels in turn, so that only one order is possible.
ALTERNATING = "i=0; while read x; do i=$((i + 1)); if [ $((i % 2)) = 1 ]; then echo line $i; else echo line $i >&2; fi; done"


def order_and_terminal():
    """both channels come in the order they were written, over a connection that breaks in the middle too; a terminal can be resized"""
    with shared as s:
        w = s.open_workspace()["id"]
        execution = begin(s, w, command=ALTERNATING, stdinOpen=True, timeoutSeconds=60)
        seen, last = [], None

        def say(text, **fields):
            assert s.post(f"/v1/executions/{execution}/stdin{fields.get('query', '')}", raw=text).status < 300

        for rounds in (5, 7, 4):
            with Reader(s, f"/v1/executions/{execution}/events", {} if last is None else {"Last-Event-ID": last}) as reader:
                events = reader.events()
                for _ in range(rounds):
                    say(b"\n")
                    event = next(e for e in events if e["event"] != "started")
                    seen.append((event["event"], json.loads(event["data"])["text"]))
                    last = event["id"]
        assert seen == [("stderr" if i % 2 == 0 else "stdout", f"line {i}\n") for i in range(1, 17)], seen
        say(b"", query="?close=true")
        assert ended(s, execution)["status"] == "ok"
        assert s.post(f"/v1/executions/{execution}/resize", {"cols": 1, "rows": 1}).status == 409

        terminal = "stty size; read x; stty size; trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.1; done"
        execution = begin(s, w, command=terminal, stdinOpen=True, pty={"cols": 100, "rows": 30}, timeoutSeconds=60)
        said = lambda text: wait_for(text, lambda: text in s.get(f"/v1/executions/{execution}").json["stdout"])  # noqa: E731
        said("30 100")
        assert s.post(f"/v1/executions/{execution}/resize", {"cols": 90, "rows": 20}).status == 204
        say(b"\n")
        said("20 90")
        said("ready")
        say(b"\x03")
        out = ended(s, execution)
        assert (out["exitCode"], out["stderr"]) == (7, "") and "caught" in out["stdout"], out


def cpu_weight(s, sandbox):
    """Returns the sandbox's share of a busy processor, as a multiple of the ordinary one."""
    group = f"hearth-{s.instance}/hearth-{s.instance}-{sandbox.removeprefix('sb_')}"
    for file, ordinary in ((f"/sys/fs/cgroup/cpu/{group}/cpu.shares", 128), (f"/sys/fs/cgroup/{group}/cpu.weight", 12)):
        if os.path.exists(file):
            with open(file, encoding="ascii") as f:
                return int(f.read()) // ordinary
    raise AssertionError(f"{sandbox} has no weight")


def who_waits_goes_first():
    """a sandbox that waits for its claim goes before busy ones; whoever has claimed it does not, also behind a server killed at the claim"""
    with Server(pool_yaml()) as s:
        def waiting():
            return [x["id"] for x in s.get("/v1/pools/shell/sandboxes").json["items"] if x["phase"] == "Ready"]

        for sandbox in wait_for("a warm pool", lambda: len(w := waiting()) == 2 and w):
            assert cpu_weight(s, sandbox) == 32, sandbox
        mine = s.open_workspace()["sandboxId"]
        wait_for("the ordinary weight", lambda: cpu_weight(s, mine) == 1)
        mine = s.open_workspace()["sandboxId"]
        s.kill9()
        s.start()
        wait_for("the ordinary weight behind a restart", lambda: cpu_weight(s, mine) == 1)
        for sandbox in wait_for("a warm pool again", lambda: len(w := waiting()) == 2 and w):
            assert cpu_weight(s, sandbox) == 32, sandbox


who_waits_goes_first.only = "oci"  # docker's daemon has its own rules
agent_out_of_memory.only = "oci"  # docker reports no count of kills for an ended container


if __name__ == "__main__":
    try:
        main("server", [who_waits_goes_first, flood, left_behind, left_behind_by_a_context, unread, out_of_memory, who_ran_out_of_memory, zygote_out_of_memory,
                        agent_out_of_memory,
                        readme_examples, order_and_terminal, the_end])
    finally:
        shared.clean_up()
