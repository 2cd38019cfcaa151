#!/usr/bin/env python3
# suite: seconds=55
"""Code in a fresh interpreter that was forked ahead, on real sandboxes: it must behave like `python3 FILE`, or say that
it ran cold."""

import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, pool_yaml  # noqa: E402

IMPORTS = {"python": "[json, numpy, rlcompleter]", "pandas": "[pandas, concurrent.futures.thread]"}
CHANNEL = "900"  # carries results and the end: out of the way, closed on exec
# Each is run as `code` and as a file by `python3`; what they print and how they end must be the same.
SNIPPETS = [
    "print(1)",
    "print('héllo', '漢字', '\\U0001f600')",
    "import sys; print(sys.argv[1:], sys.flags.optimize, sys.flags.utf8_mode, sys.dont_write_bytecode)",
    "import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stdin.encoding, sys.stdout.encoding)",
    "import sys; print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile())",
    "import sys; print(sys.path[0], sys.prefix, sys.executable, sys.version)",
    "import sys; sys.stdout.write('no newline')",
    "import sys; sys.stderr.write('err\\n'); print('out')",
    "import sys; sys.exit(3)",
    "import sys; sys.exit('a message')",
    "raise SystemExit",
    "import os; os._exit(9)",
    "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "import os; print(os.getcwd(), os.getuid(), os.getgid(), os.getppid() > 0, os.umask(0))",
    "import os; print(sorted(k for k in os.environ if not k.startswith('HEARTH')))",
    "import os; print(os.environ['PATH'], os.environ['HOME'], os.environ.get('A'))",
    "import os; print(os.getpid() == os.getsid(0))",
    "import os; print(os.open('/dev/null', os.O_RDONLY))",
    "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE))",
    "import signal; print([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)])",
    "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending())",
    "import threading; print(threading.active_count(), threading.current_thread().name, threading.main_thread() is threading.current_thread())",
    "import threading, time; threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start(); print('first')",
    "import threading; l = threading.Lock(); l.acquire(); print(l.locked())",
    "import atexit; atexit.register(print, 'one'); atexit.register(print, 'two'); print('body')",
    "f = open('f.txt', 'w'); f.write('kept'); print('x')",
    "import gc; print(gc.isenabled(), gc.get_threshold())",
    "import locale; print(locale.getpreferredencoding(), locale.setlocale(locale.LC_CTYPE, None))",
    "import time, os; os.environ['TZ'] = 'Asia/Tokyo'; time.tzset(); print(time.tzname)",
    "import decimal; print(decimal.getcontext().prec)",
    "import multiprocessing as m; q = m.Queue(); p = m.Process(target=q.put, args=(5,)); p.start(); print(q.get()); p.join()",
    "import subprocess; print(subprocess.run(['sh', '-c', 'echo child; exit 4'], capture_output=True))",
    "import subprocess, os; print(subprocess.run(['env'], capture_output=True, text=True).stdout.count('HEARTH_CHANNEL'))",
    "import concurrent.futures as c\nwith c.ThreadPoolExecutor(2) as e: print(list(e.map(abs, [-1, -2])))",
    "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 7\nprint(asyncio.run(f()))",
    "import warnings; warnings.warn('w'); print(len(warnings.filters) > 0)",
    "import logging; logging.warning('logged')",
    "import numpy as np; print(np.arange(6).reshape(2, 3) @ np.ones(3), np.__version__)",
    "import numpy as np; a = np.random.default_rng(1); print(a.integers(0, 9, 4)); np.random.seed(2); print(np.random.rand())",
    "import json, re, math, collections; print(json.dumps({'a': [1, None]}), math.pi)",
    "print(input())",
    "import tempfile; t = tempfile.mkdtemp(); print(t.startswith('/tmp/'))",
    "print(__name__, __doc__, __package__, __spec__)",
]
# With these, a run is cold or behaves the same; the second value says which must be cold.
ENVIRONMENTS = [
    ({}, False),
    ({"A": "b c", "TZ": "Asia/Shanghai"}, False),
    ({"PYTHONOPTIMIZE": "2"}, True),
    ({"OMP_NUM_THREADS": "7"}, True),
    ({"LC_ALL": "C"}, True),
]


# Prints all that modules show of their state. `VARYING` is of each process its own; a fork leaves out of `_shutdown_locks`
# what `threading._shutdown` does not wait for either.
STATE = r"""
import asyncio, atexit, concurrent.futures.process, concurrent.futures.thread, gc, json, logging, multiprocessing.context
import multiprocessing.process, multiprocessing.util, os, random, signal, sys, tempfile, threading, time, types, uuid, warnings, weakref
VARYING = {"ident", "_ident", "_native_id", "_startTime", "authkey", "_inst", "_active", "_shutdown_locks", "argv", "orig_argv", "meta_path"}
def shape(value, depth=0):
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return repr(value)
    if hasattr(value, "locked") and not isinstance(value, type):
        return [kind.__name__, value.locked()]
    if depth < 4 and isinstance(value, dict):
        return {str(shape(k, 4)): "..." if k in VARYING else shape(v, depth + 1) for k, v in value.items()}
    if depth < 4 and isinstance(value, (list, tuple)):
        return [shape(v, depth + 1) for v in value]
    if depth < 4 and isinstance(value, (set, frozenset, weakref.WeakSet)):
        return sorted(str(shape(v, 4)) for v in value)
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return getattr(value, "__qualname__", kind.__name__)
    inside = getattr(value, "__dict__", None)
    return [kind.__qualname__, shape(inside, depth + 1) if inside and depth < 3 else None]
state = {}
for module in (threading, concurrent.futures.thread, concurrent.futures.process, logging, multiprocessing.process, sys,
               multiprocessing.util, multiprocessing.context, asyncio.events, random, tempfile, uuid, warnings, weakref):
    for name, value in vars(module).items():
        if not name.startswith("__") and name not in VARYING | {"modules", "path_importer_cache"}:
            state[module.__name__ + "." + name] = shape(value)
state["atexit"] = atexit._ncallbacks()
state["signal"] = [str(signal.getsignal(n)) for n in signal.valid_signals()]
state["mask"] = [str(signal.pthread_sigmask(signal.SIG_BLOCK, [])), str(signal.sigpending()), signal.set_wakeup_fd(-1)]
state["gc"] = [gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.garbage), len(gc.callbacks)]
state["interpreter"] = [sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile(), len(sys._current_frames())]
state["thread"] = [threading.active_count(), threading.main_thread().native_id == threading.get_native_id() == os.getpid(),
                   threading.main_thread().ident == threading.get_ident(), threading.main_thread().is_alive()]
state["logging started"] = abs(time.time() - logging._startTime) < 10
state["loop"] = str(asyncio._get_running_loop())
state["references"] = weakref.getweakrefcount(threading.current_thread())
state["descriptors"] = {n: [os.get_inheritable(int(n)), os.get_blocking(int(n))] for n in os.listdir("/proc/self/fd")
                        if os.path.exists("/proc/self/fd/" + n)}
print(json.dumps(state))
"""
# Programs that leave work to other threads and to their end. Each is run as `code`, as a one shot, cold, and by `python3 -u FILE`.
ENDS = [
    "from concurrent.futures import ThreadPoolExecutor as E\nprint(list(E(2).map(abs, [-1, -2])))",
    "import concurrent.futures as c\np = c.ProcessPoolExecutor(2)\nprint(list(p.map(abs, [-1, -2])))",
    "import asyncio\nprint(asyncio.run(asyncio.to_thread(abs, -3)))",
    "import concurrent.futures as c, time\nc.ThreadPoolExecutor(1).submit(lambda: (time.sleep(.3), print('late')))\nprint('first')",
    "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.5), print('late'))).start()",
    "import threading, time\nthreading.Thread(target=lambda: (time.sleep(9), print('late')), daemon=True).start()",
    "import threading, time, atexit\natexit.register(lambda: print('exit', threading.main_thread().is_alive()))\n"
    "threading._register_atexit(print, 'before the threads')\n"
    "threading.Thread(target=lambda: (time.sleep(.2), print('thread'))).start()\nprint('body')",
    "import multiprocessing as m\nprint(m.get_context('fork').Pool(2).map(abs, [-1, -2]))",
    "import multiprocessing as m, time\nm.get_context('fork').Process(target=lambda: (time.sleep(.3), print('late'))).start()\nprint('first')",
    "import atexit\natexit.register(print, 'one')\natexit.register(lambda: print('two', sys.modules['__main__'].x))\nimport sys\nx = 1",
    "import logging, logging.handlers\nh = logging.handlers.MemoryHandler(99, target=logging.StreamHandler())\n"
    "logging.root.addHandler(h)\nlogging.error('kept until the end')",
    "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'finalized')\nprint('body')",
    "class A:\n    def __init__(self, n): self.n = n\n    def __del__(self): print('end of', self.n, x)\nx = 'with globals'\na, b = A(1), A(2)\nb.b = b",
    "class A:\n    def __del__(self):\n        import json.tool\na = A()",
    "async def f(): pass\nc = f()",
    "def g():\n    try: yield\n    finally: print('closed')\ni = g()\nnext(i)",
    "import tempfile, os\nd = tempfile.TemporaryDirectory()\nprint(os.path.isdir(d.name))",
    "import sys\nsys.stdout = open('told.txt', 'w')\nprint('lost?')\nsys.__stdout__.write('x')",
    "import gzip\nf = gzip.open('kept.gz', 'wt')\nf.write('kept')",
    "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__, sys.last_type.__name__)\n1 / 0",
    "import atexit, sys\natexit.register(lambda: print(sys.last_value))\nraise SystemExit(5)\n",
    "import atexit\natexit.register(lambda: [].pop())\nprint('body')",
    "import os, sys\npid = os.fork()\nif pid == 0:\n    print('child')\n    sys.exit(3)\nprint(os.waitpid(pid, 0)[1] >> 8)\nprint('parent done')",
    "import os\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nprint('child' if pid == 0 else 'parent')",
    "import os, sys\npid = os.fork()\nif pid == 0:\n    raise SystemExit('text')\nprint(os.waitpid(pid, 0)[1] >> 8)",
    "import os\npid = os.fork()\nif pid == 0:\n    os._exit(4)\nprint(os.waitpid(pid, 0)[1] >> 8)",
    "import os, atexit\natexit.register(lambda: print('exit', os.getpid() == me))\nme = os.getpid()\nif os.fork(): os.wait()",
    "import os\nf = open('forked.txt', 'w')\npid = os.fork()\nif pid == 0:\n    f.write('of the child')\nelse:\n    os.wait()\n    print(open('forked.txt').read())",
    "import os, pty\npid, fd = pty.fork()\nif pid == 0:\n    print('on a terminal', os.isatty(1))\nelse:\n    said = b''\n    while not said.endswith(b'\\n'):\n        said += os.read(fd, 99)\n    print(said, os.waitpid(pid, 0)[1])",
    "import os, threading\ndef f():\n    pid = os.fork()\n    if pid: print(os.waitpid(pid, 0)[1])\n    else: print('in a thread')\n"
    "t = threading.Thread(target=f)\nt.start()\nt.join()\nprint('joined')",
    "import os, sys\npid = os.fork()\nif pid == 0:\n    pid = os.fork()\n    if pid == 0:\n        print('grandchild')\n        sys.exit(7)\n"
    "    print(os.waitpid(pid, 0)[1] >> 8)\n    sys.exit(6)\nprint(os.waitpid(pid, 0)[1] >> 8)",
    "import os, ctypes, time\npid = ctypes.CDLL(None).fork()\nif pid:\n    os.waitpid(pid, 0)\nprint('child' if pid == 0 else 'parent')",
    "import os, threading\nif os.fork() == 0:\n    threading.Thread(target=print, args=('thread of a child',)).start()\nelse:\n    os.wait()",
    "import os, signal\npid = os.fork()\nif pid == 0:\n    raise KeyboardInterrupt\nprint(os.waitpid(pid, 0)[1])",
]


def warm_python():
    pools = []
    for name, imports in IMPORTS.items():
        text = pool_yaml(name, image="python", warm=1, memory="512Mi")
        pools.append(text.replace("  template:\n", f"  template:\n    prewarm: {{languages: [python], imports: {imports}}}\n", 1))
    return "---\n".join(pools)


def without_folder(result):
    """Removes an intended difference: the file of the program is in another folder."""
    return {**result, "stderr": re.sub(r"[^\s\"']*/main\.py", "main.py", result["stderr"])}


def plain(server, workspace, snippet, flags=(), **fields):
    assert server.call("PUT", f"/v1/workspaces/{workspace}/files/main.py", raw=snippet.encode()).status < 300
    return without_folder(run_argv(server, workspace, ["python3", *flags, "main.py"], **fields))


def run_argv(server, workspace, argv, **fields):
    answer = server.post(f"/v1/workspaces/{workspace}/executions", {"argv": argv, **fields})
    assert answer.status == 200, answer
    return answer.json


def run_code(server, workspace, code, **fields):
    answer = server.post(f"/v1/workspaces/{workspace}/executions",
                         {"code": code, "language": "python", **fields})
    assert answer.status == 200, answer
    return answer.json


def fresh(server, workspace, code, **fields):
    """Runs the code until a waiting interpreter takes it: a burst may find none ready."""
    for _ in range(100):
        result = run_code(server, workspace, code, **fields)
        if result["interpreter"] == "zygote":
            return result
        time.sleep(0.05)
    raise AssertionError(f"never from the zygote: {result}")


def same_as_an_interpreter(s):
    """what code prints, returns and leaves is what python3 FILE does, for many programs and environments, or it ran cold"""
    w = s.open_workspace(pool="python")["id"]
    for snippet in SNIPPETS:
        expected = plain(s, w, snippet, stdin="line\n")
        got = without_folder(fresh(s, w, snippet, stdin="line\n"))
        for key in ("stdout", "stderr", "exitCode", "signal", "status"):
            assert got[key] == expected[key], (snippet, key, got, expected)
    for env, cold in ENVIRONMENTS:
        for snippet in SNIPPETS[:7]:
            expected = plain(s, w, snippet, env=env)
            got = without_folder(run_code(s, w, snippet, env=env) if cold else fresh(s, w, snippet, env=env))
            assert got["interpreter"] == ("cold" if cold else "zygote"), (env, got)
            for key in ("stdout", "stderr", "exitCode"):
                if env.get("PYTHONOPTIMIZE") and "sys.path" in snippet:
                    continue
                assert got[key] == expected[key], (env, snippet, key, got, expected)


def state_of_an_interpreter(s):
    """nothing of what a child did before its program shows in threading, concurrent.futures, atexit, logging, multiprocessing, asyncio, signal, gc, weakref, sys and descriptors"""
    for pool, imports in IMPORTS.items():
        w = s.open_workspace(pool=pool)["id"]
        code = f"import {imports.strip('[]')}\n{STATE}"
        expected = json.loads(plain(s, w, code)["stdout"])
        expected["descriptors"][CHANNEL] = [False, True]
        ran = fresh(s, w, code)
        assert ran["status"] == "ok", ran
        got = json.loads(ran["stdout"])
        differing = {key: (expected.get(key), got.get(key)) for key in expected.keys() | got.keys() if expected.get(key) != got.get(key)}
        assert not differing, (pool, differing)


def shown(result):
    """Returns the output and the end of a program, without addresses and the source that an ending interpreter cannot read."""
    texts = [re.sub("^    .*\n", "", re.sub(" at 0x[0-9a-f]+>", " at 0x0>", result[key]), flags=re.MULTILINE)
             for key in ("stdout", "stderr")]
    return [*texts, result["exitCode"], result["signal"], result["status"]]


def ends(s):
    """threads, exit functions, objects and forked children end as those of python3, with and without pandas ahead, in runs, one shots and cold interpreters"""
    w = s.open_workspace(pool="pandas")["id"]
    for snippet in ENDS:
        expected = shown(plain(s, w, snippet, ["-u"]))
        ran = {"fresh": fresh(s, w, snippet), "cold": run_code(s, w, snippet, env={"LC_ALL": "C.UTF-8"})}
        one_shot = s.post("/v1/executions", {"code": snippet, "language": "python", "pool": "pandas"})
        ran["one shot"] = one_shot.json
        assert ran["cold"]["interpreter"] == "cold", ran["cold"]
        for way, result in ran.items():
            assert shown(without_folder(result)) == expected, (way, snippet, result, expected)
            assert (result["error"] is None) == ("1 / 0" not in snippet), (way, snippet, result)
    assert run_argv(s, w, ["cat", "told.txt"])["stdout"] == "lost?\n"
    assert run_argv(s, w, ["gzip", "-dc", "kept.gz"])["stdout"] == "kept"


def forks_in_a_context(s):
    """a child that a cell forks ends as a process of its own; the context goes on with its variables, and one interpreter answers"""
    w = s.open_workspace(pool="pandas")["id"]
    for env in ({}, {"LC_ALL": "C.UTF-8"}):
        made = s.post(f"/v1/workspaces/{w}/contexts", {"language": "python", "env": env})
        assert made.status == 201, made
        context = made.json["id"]
        assert run_code(s, w, "import os, sys, time\nme = os.getpid()", context=context)["status"] == "ok"
        for number, (child, shows, status) in enumerate((
                ("sys.exit(3)", "", 3), ("pass", "", 0), ("1 / 0", "ZeroDivisionError", 1), ("os._exit(4)", "", 4), ("sys.exit('text')", "text", 1))):
            code = (f"n = {number}\npid = os.fork()\nif pid == 0:\n    n = 'child'\n    {child}\nelse:\n"
                    "    print(os.waitpid(pid, 0)[1] >> 8)\n    print('parent done')")
            out = run_code(s, w, code, context=context)
            assert (out["status"], out["stdout"], out["contextKept"]) == ("ok", f"{status}\nparent done\n", True), (child, out)
            assert shows in out["stderr"] and out["error"] is None, (child, out)
            assert run_code(s, w, "print(n, os.getpid() == me)", context=context)["stdout"] == f"{number} True\n", child
        slow = run_code(s, w, "if os.fork() == 0:\n    time.sleep(.3)\n    open('slow', 'w').write('kept')", context=context)
        assert slow["status"] == "ok", slow
        assert run_code(s, w, "os.wait()\nprint(open('slow').read())", context=context)["stdout"] == "kept\n"
        assert run_code(s, w, "print(n)", context=context)["stdout"] == "4\n"
        threads = run_code(s, w, ENDS[0], context=context)
        assert threads["stdout"] == "[1, 2]\n", threads
        terminal = run_code(s, w, "import pty\npid, fd = pty.fork()\nif pid == 0: sys.exit(5)\nprint(os.waitpid(pid, 0)[1] >> 8)", context=context)
        assert (terminal["status"], terminal["stdout"], terminal["contextKept"]) == ("ok", "5\n", True), terminal


def variables_read_ahead(s):
    """a run whose variables a module imported ahead has read with other values is cold, and sees what they do"""
    w = s.open_workspace(pool="pandas")["id"]
    look = "import pandas; print(pandas.options.future.infer_string)"
    for value, expected in (("0", "False\n"), ("1", "True\n")):
        env = {"PANDAS_FUTURE_INFER_STRING": value}
        ran = run_code(s, w, look, env=env)
        assert (ran["interpreter"], ran["stdout"]) == ("cold", expected), ran
        context = s.post(f"/v1/workspaces/{w}/contexts", {"language": "python", "env": env}).json["id"]
        assert run_code(s, w, look, context=context)["stdout"] == expected
    fresh(s, w, look, env={"UNREAD": "1"})


VARIABLES = """
import os
os.environ.setdefault("BY_DEFAULT", "made")
os.environ["ALWAYS"] = "made"
os.environ["CHANGED"] = os.environ["CHANGED"] + " and made"
os.environ.pop("REMOVED")
"""
# Prepares a zygote whose environment is the first given, and prints for each whether it runs cold and else what it finds.
PREPARED = """
import sys; sys.path.append("/.hearth/python")
import json, os, zygote, hearth_interpreter as interpreter
given = [dict(BASE, **each) for each in json.loads(sys.argv[1])]
os.environ.clear(); os.environ.update(given[0])
prepared = object.__new__(zygote.Zygote)
prepared.generators, prepared.say = None, lambda *_: None
prepared.wake_write = os.open("/dev/null", os.O_WRONLY | os.O_NONBLOCK)
prepared.prepare(["made"])
for each in given:
    entries = sorted(f"{name}={value}".encode() for name, value in each.items())
    head = b"\\0".join([b"0", b"run", b".", b"main.py", b"", b"%d" % len(entries), *entries, b""])
    if os.fork() == 0:
        interpreter.set_environment(entries)
        print(json.dumps(None if interpreter.differs(head) else dict(os.environ)), flush=True)
        os._exit(0)
    os.wait()
"""


def main_kept_ahead(s):
    """a module imported ahead that keeps __main__, as rlcompleter and dill do, has the program's in a run and in a context"""
    w = s.open_workspace(pool="python")["id"]
    look = "import rlcompleter, sys\nx = 5\nprint(rlcompleter.__main__ is sys.modules['__main__'], rlcompleter.__main__.x, sorted(vars(rlcompleter.__main__)))"
    expected = plain(s, w, look)["stdout"]
    assert expected.startswith("True 5 "), expected
    for _ in range(2):
        assert fresh(s, w, look)["stdout"] == expected
    context = s.post(f"/v1/workspaces/{w}/contexts", {"language": "python"}).json["id"]
    assert run_code(s, w, "y = 1\n" + look.replace(", sorted(vars(rlcompleter.__main__))", ""), context=context)["stdout"] == "True 5\n"
    assert run_code(s, w, "print(rlcompleter.__main__.y)", context=context)["stdout"] == "1\n"


def variables_set_ahead(s):
    """what a module imported ahead sets, changes and removes in the environment is so in each run, as in one that imports it itself"""
    w = s.open_workspace(pool="python")["id"]
    assert s.call("PUT", f"/v1/workspaces/{w}/files/made.py", raw=VARIABLES.encode()).status in (200, 201)
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_CTYPE": "C.UTF-8", "CHANGED": "known", "REMOVED": "known"}
    given = [{}, {"OTHER": "1"}, {"ALWAYS": "own"}, {"OTHER": "1", "ALWAYS": "made"}, {"BY_DEFAULT": "own"}, {"CHANGED": "own"}, {"REMOVED": "own"}]
    script = PREPARED.replace("BASE", repr(base))
    prepared = run_argv(s, w, ["python3", "-c", script, json.dumps(given)])
    found = [json.loads(line) for line in prepared["stdout"].splitlines()]
    look = "import json, os, sys; os.environ.clear(); os.environ.update(json.loads(sys.argv[1])); import made; print(json.dumps(dict(os.environ)))"
    expected = [json.loads(run_argv(s, w, ["python3", "-c", look, json.dumps(dict(base, **each))])["stdout"]) for each in given]
    assert found == [*expected[:4], None, None, None], (found, expected, prepared["stderr"])


def descriptors(s):
    """a fresh interpreter has no descriptor but those of python3 and its channel, which no program that it starts has; also where all are taken"""
    w = s.open_workspace(pool="python")["id"]
    look = "import os; print(*sorted(os.listdir('/proc/self/fd')))"
    plain = run_argv(s, w, ["python3", "-c", look])["stdout"].split()
    for result in (fresh(s, w, look), run_code(s, w, look, env={"PYTHONOPTIMIZE": "2"})):
        assert result["stdout"].split() == sorted(plain + [CHANNEL]), (result, plain)
    child = fresh(s, w, "import subprocess; print(subprocess.run(['ls', '/proc/self/fd'], capture_output=True, text=True).stdout)")
    assert CHANNEL not in child["stdout"].split(), child
    greedy = fresh(s, w, "import os\ntry:\n    while True: os.dup(0)\nexcept OSError as e: print(e.strerror, flush=True)\n"
                         "if os.fork() == 0:\n    import time; time.sleep(0.2); os._exit(0)")
    assert (greedy["status"], greedy["stdout"]) == ("ok", "Too many open files\n"), greedy


def nothing_stays(s):
    """nothing of a run is seen by the next, no random number comes twice, and no run reaches the zygote"""
    w = s.open_workspace(pool="python")["id"]
    fresh(s, w, "import json, builtins, os; json.mine = 1; builtins.mine = 2; os.environ['MINE'] = '3'")
    seen = fresh(s, w, "import json, builtins, os; print(hasattr(json, 'mine'), hasattr(builtins, 'mine'), 'MINE' in os.environ)")
    assert seen["stdout"] == "False False False\n", seen
    numbers = [fresh(s, w, "import random, uuid, secrets, numpy as np; print(random.random(), uuid.uuid4(), secrets.token_hex(4), np.random.rand())")["stdout"].split()
               for _ in range(6)]
    for column in zip(*numbers):
        assert len(set(column)) == len(column), numbers
    attack = fresh(s, w, "import os\nz = os.getppid()\nfor f in ('mem', 'environ', 'maps', 'fd/3'):\n"
                         "    try: open(f'/proc/{z}/{f}', 'rb').read(1); print('OPEN', f)\n"
                         "    except OSError as e: print(type(e).__name__)\n"
                         "print(open(f'/proc/{z}/cmdline').read().count('zygote.py'))")
    assert "OPEN" not in attack["stdout"] and attack["stdout"].endswith("1\n"), attack
    marked = fresh(s, w, "import resource, os\n"
                         "for pid in (0, os.getppid()):\n"
                         "    try: resource.prlimit(pid, 10, (5, 5)); print('MOVED')\n"
                         "    except (PermissionError, OSError): print('kept')")
    assert marked["stdout"] == "kept\nkept\n", marked


GENERATORS = """
import random, numpy as np
class Own(random.Random):
    def seed(self, seed=None): super().seed(seed)
plain, own, again = random.Random(), Own(), random.Random(3)
again.seed()
generator, legacy, bits = np.random.default_rng(), np.random.RandomState(), np.random.SFC64()
legacy.randn()
one, two = map(np.random.default_rng, np.random.SeedSequence().spawn(2))
fixed, late, numbers, old = random.Random(5), random.Random(), np.random.default_rng(4), np.random.RandomState(3)
late.seed(7)
random.seed(9)
def unseeded():
    return [plain.random(), own.random(), again.random(), generator.random(), legacy.randn(), np.random.Generator(bits).random(),
            one.random(), two.random(), generator.spawn(1)[0].random(), np.random.rand()]
def seeded():
    return [fixed.random(), late.random(), numbers.random(), old.random(), random.random()]
"""


DRAWN = """
import sys; sys.path.append("/.hearth/python")
import hearth_generators, json, os
generators = hearth_generators.Generators()
import made
generators.settle()
for _ in range(3):
    if os.fork() == 0:
        generators.reseed()
        print(json.dumps([made.unseeded(), made.seeded()]), flush=True)
        os._exit(0)
    os.wait()
"""


def random_numbers(s):
    """a generator that a module made without a seed has numbers of its own in each child; one that it has seeded has those of python3"""
    w = s.open_workspace(pool="python")["id"]
    assert s.call("PUT", f"/v1/workspaces/{w}/files/made.py", raw=GENERATORS.encode()).status in (200, 201)
    drawn = run_argv(s, w, ["python3", "-c", DRAWN])
    children = [json.loads(line) for line in drawn["stdout"].splitlines()]
    assert len(children) == 3, drawn
    for position, numbers in enumerate(zip(*[unseeded for unseeded, _ in children])):
        assert len(set(numbers)) == 3, (position, numbers)
    expected = json.loads(run_argv(s, w, ["python3", "-c", "import json, made; print(json.dumps(made.seeded()))"])["stdout"])
    assert all(seeded == expected for _, seeded in children), (expected, children)


def zygote_lost(s):
    """a killed, stopped or starved zygote costs nobody a run: it is done cold, and the zygote comes back"""
    w = s.open_workspace(pool="python")["id"]
    for signal_number in (9, 19):
        hit = fresh(s, w, f"import os; os.kill(os.getppid(), {signal_number}); print('hit')")
        assert hit["status"] == "ok" and hit["stdout"] == "hit\n", hit
        for _ in range(4):
            assert run_code(s, w, "print(2)")["stdout"] == "2\n"
        assert fresh(s, w, "print(3)")["stdout"] == "3\n"


def deadline(s):
    """the deadline ends every process that code in a forked interpreter has started"""
    w = s.open_workspace(pool="python")["id"]
    slow = fresh(s, w, "import subprocess, time\nsubprocess.Popen(['setsid', 'sh', '-c', 'sleep 66 & sleep 66'])\n"
                       "print('on', flush=True)\ntime.sleep(60)", timeoutSeconds=1)
    assert slow["status"] == "timeout" and slow["stdout"] == "on\n", slow
    assert "sleep" not in s.run(w, "ps -ef")["stdout"]
    memory = run_code(s, w, "x = 'a' * (1 << 34)")
    assert memory["status"] in ("failed", "oom"), memory


def other_languages(s):
    """JavaScript, TypeScript and bash: errors with their own lines, and contexts"""
    w = s.open_workspace(pool="python")["id"]

    def run(language, code, **fields):
        answer = s.post(f"/v1/workspaces/{w}/executions", {"code": code, "language": language, **fields})
        assert answer.status == 200, answer
        return answer.json

    plain = run("javascript", "console.log([1, 2].map(x => x * 2), __filename.endsWith('main.js'))")
    assert plain["stdout"] == "[ 2, 4 ] true\n", plain
    bad = run("javascript", "function f() {\n  throw new TypeError('bad');\n}\nf();")
    assert (bad["exitCode"], bad["error"]["name"], bad["error"]["message"]) == (1, "TypeError", "bad"), bad
    assert "/.hearth/" not in bad["error"]["traceback"] and "main.js:2" in bad["error"]["traceback"], bad
    typed = run("typescript", "interface P { x: number }\nconst p: P = { x: 42 };\nconsole.log(p.x as number);")
    assert typed["stdout"] == "42\n", typed
    assert run("typescript", "const x: = 1")["exitCode"] != 0
    assert run("bash", "x=(a b); echo ${x[1]}")["stdout"] == "b\n"
    for language, first, second, shown, forever in (
            ("javascript", "let n = 20; function f() { return n * 2 }", "n = 21; f()", "42", "while (true) {}"),
            ("bash", "n=20; cd /usr; f() { echo $((n * 2)) $PWD; }", "n=21; f", None, "while :; do :; done")):
        made = s.post(f"/v1/workspaces/{w}/contexts", {"language": language})
        assert made.status == 201, made
        context = made.json["id"]
        assert run(language, first, context=context)["status"] == "ok"
        out = run(language, second, context=context)
        assert out["interpreter"] == "context" and out["contextKept"], out
        assert out["stdout"] == ("" if shown else "42 /usr\n"), out
        if shown:
            assert out["results"][0]["mime"]["text/plain"] == shown, out
        slow = run(language, forever, context=context, timeoutSeconds=1)
        assert slow["status"] == "timeout" and slow["contextKept"], slow
        assert run(language, second, context=context)["status"] == "ok"


def forked_interpreters():
    """code in forked interpreters: as python3 FILE does it, or cold and said so; nothing stays; a lost zygote costs no run; the deadline reaches all; other languages"""
    with Server(warm_python(), ready_within=300) as s:  # one for all: its image takes longer to unpack than they run
        for part in (same_as_an_interpreter, state_of_an_interpreter, ends, forks_in_a_context, random_numbers, variables_read_ahead,
                     variables_set_ahead, main_kept_ahead, descriptors, nothing_stays, zygote_lost, deadline, other_languages):
            part(s)


if __name__ == "__main__":
    main("server", [forked_interpreters])
