#!/usr/bin/env python3
"""Code in a fresh interpreter that was forked ahead, on real sandboxes: it must behave like `python3 FILE`, or say that
it ran cold."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Server, main, pool_yaml  # noqa: E402

IMPORTS = "[json, numpy]"
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


def warm_python():
    text = pool_yaml("python", image="python", warm=1, memory="512Mi")
    return text.replace("  template:\n", f"  template:\n    prewarm: {{languages: [python], imports: {IMPORTS}}}\n", 1)


def without_folder(result):
    """Removes an intended difference: the file of the program is in another folder."""
    return {**result, "stderr": re.sub(r"[^\s\"']*/main\.py", "main.py", result["stderr"])}


def plain(server, workspace, snippet, **fields):
    assert server.call("PUT", f"/v1/workspaces/{workspace}/files/main.py", raw=snippet.encode()).status < 300
    return without_folder(run_argv(server, workspace, ["python3", "main.py"], **fields))


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
        for part in (same_as_an_interpreter, descriptors, nothing_stays, zygote_lost, deadline, other_languages):
            part(s)


if __name__ == "__main__":
    main("server", [forked_interpreters])
