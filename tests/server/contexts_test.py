#!/usr/bin/env python3
"""Contexts, rich results and prewarm, black box, on real sandboxes of the python image."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, SLOWER, Shared, main, new_key, pool_yaml, sse_events, wait_for  # noqa: E402


def python_pool(name="python", imports="[]", command="[]", **fields):
    prewarm = f"    prewarm: {{languages: [python], imports: {imports}, command: {command}, timeout: 60s}}\n"
    text = pool_yaml(name=name, image="python", memory="512Mi", **fields)
    head, mark, tail = text.partition("  warm:")
    return head + prewarm + mark + tail


POOLS = "---\n".join([python_pool(),
                      python_pool("plots", imports="[numpy, pandas, matplotlib.pyplot]", warm=1),
                      python_pool("told", imports="[json, no_such_module]", command="[sh, -c, echo made > made]", warm=1)])
shared = Shared(pools=POOLS, args=("--default-pool", "python"))


def the_end():
    """the server that all these tests used ends and leaves nothing"""
    shared.end()


def problem(answer, status, code):
    assert answer.status == status, answer
    assert answer.json["errorCode"] == code, answer.json
    return answer.json


def make(s, workspace, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/contexts", dict({"language": "python"}, **fields))
    assert answer.status == 201, answer
    return answer.json["id"]


def code(s, workspace, text, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", dict(fields, code=text, language="python"), timeout=120)
    assert answer.status == 200, answer
    return answer.json


def begin(s, workspace, text, **fields):
    """Starts code in the background and waits until it has printed something."""
    answer = s.post(f"/v1/workspaces/{workspace}/executions",
                    dict(fields, code=text, language="python", background=True))
    assert answer.status == 202, answer
    execution = answer.json["id"]
    wait_for("the start", lambda: s.get(f"/v1/executions/{execution}").json["stdout"])
    return execution


def ended(s, execution):
    return wait_for("the end", lambda: (x := s.get(f"/v1/executions/{execution}").json)["status"] != "running" and x)


def main_result(out):
    found = [r["mime"] for r in out["results"] if r["main"]]
    assert len(found) == 1, out["results"]
    return found[0]


def variables_survive():
    """variables and imports survive in a context, not outside of it; several contexts are apart; a restart clears one"""
    with shared as s:
        w = s.open_workspace()["id"]
        a, b = make(s, w), make(s, w, cwd="/tmp", env={"WHO": "b"})
        first = code(s, w, "import math\nx = 41\ndef f(): return x + 1", context=a)
        assert (first["status"], first["interpreter"], first["context"], first["contextKept"]) == ("ok", "context", a, True), first
        assert code(s, w, "print(f(), math.floor(2.5))", context=a)["stdout"] == "42 2\n"
        assert code(s, w, "import os; print(os.getcwd(), os.environ['WHO'])", context=b)["stdout"] == "/tmp b\n"
        other = code(s, w, "print(x)", context=b)
        assert other["status"] == "failed" and other["error"]["name"] == "NameError" and other["contextKept"], other
        fresh = code(s, w, "print(x)")
        assert fresh["error"]["name"] == "NameError" and fresh["interpreter"] in ("zygote", "cold"), fresh
        assert fresh["context"] is None and fresh["contextKept"] is None, fresh
        listed = s.get(f"/v1/workspaces/{w}/contexts").json["items"]
        assert {c["id"] for c in listed} == {a, b} and all(c["executionId"] is None for c in listed), listed
        assert s.post(f"/v1/contexts/{a}/restart").status == 200
        assert code(s, w, "x", context=a)["error"]["name"] == "NameError"
        assert s.call("DELETE", f"/v1/contexts/{a}").status == 204
        assert s.call("DELETE", f"/v1/contexts/{a}").status == 204
        problem(s.get(f"/v1/contexts/{a}"), 410, "GONE")
        problem(s.post(f"/v1/workspaces/{w}/executions", {"code": "1", "context": a}), 410, "GONE")
        problem(s.get("/v1/contexts/cx_" + "0" * 32), 404, "NOT_FOUND")
        problem(s.post("/v1/executions", {"code": "1", "context": b}), 400, "INVALID_ARGUMENT")
        problem(s.post(f"/v1/workspaces/{w}/executions", {"code": "1", "context": b, "cwd": "/tmp"}), 400, "INVALID_ARGUMENT")
        for _ in range(7):
            make(s, w)
        problem(s.post(f"/v1/workspaces/{w}/contexts", {"language": "python"}), 429, "QUOTA_EXCEEDED")


def by_name_and_key():
    """a name or a key finds the same context again"""
    with shared as s:
        w = s.open_workspace()["id"]
        path = f"/v1/workspaces/{w}/contexts"
        first = s.post(path, {"name": "main"})
        again = s.post(path, {"name": "main"})
        assert (first.status, again.status) == (201, 200) and first.json["id"] == again.json["id"], (first, again)
        key = {"Idempotency-Key": new_key()}
        keyed = s.post(path, {"language": "python"}, headers=key)
        repeat = s.post(path, {"language": "python"}, headers=key)
        assert keyed.json["id"] == repeat.json["id"] and repeat.headers["idempotency-replayed"] == "true", repeat
        problem(s.post(path, {"language": "python", "cwd": "/tmp"}, headers=key), 422, "IDEMPOTENCY_MISMATCH")


def interrupt_keeps_state():
    """an interrupt stops the code and keeps the state; a busy context is 409"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        problem(s.post(f"/v1/contexts/{c}/interrupt"), 409, "CONFLICT")
        for way in ("interrupt", "signal"):
            execution = begin(s, w, f"way = '{way}'\nprint('on', flush=True)\nwhile True: pass", context=c)
            assert s.get(f"/v1/contexts/{c}").json["executionId"] == execution
            busy = problem(s.post(f"/v1/workspaces/{w}/executions", {"code": "1", "context": c}), 409, "CONFLICT")
            assert "interrupt" in busy["hint"], busy
            if way == "interrupt":
                assert s.post(f"/v1/contexts/{c}/interrupt").status == 204
            else:
                assert s.post(f"/v1/executions/{execution}/signal", {"signal": "INT"}).status == 204
            out = ended(s, execution)
            assert out["status"] == "failed" and out["error"]["name"] == "KeyboardInterrupt" and out["contextKept"], out
            assert code(s, w, "print(way)", context=c)["stdout"] == way + "\n"


def interrupts_reach_every_cell():
    """an interrupt ends a cell and keeps the state, whatever an earlier cell or its libraries did to the signal, and whatever runs; one that comes between cells ends nothing"""
    with shared as s:
        w = s.open_workspace(pool="plots")["id"]
        c = make(s, w)
        spoilt = {
            "at the default in C": "import ctypes; l = ctypes.CDLL(None); l.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]; l.signal(2, None)",
            "ignored": "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
            "the default": "signal.signal(signal.SIGINT, signal.SIG_DFL)",
            "a handler": "signal.signal(signal.SIGINT, lambda *a: print('mine'))",
            "blocked": "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])",
            "a thread": "import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        }
        long = ["import time; time.sleep(60)", "while True: pass", "import subprocess; subprocess.run(['sleep', '60'])",
                "import numpy as np\nwhile True: np.ones((300, 300)) @ np.ones((300, 300))"]
        for number, (what, text) in enumerate(spoilt.items()):
            assert code(s, w, f"kept = {number}\n{text}", context=c)["status"] == "ok", what
            execution = begin(s, w, "print('on', flush=True)\n" + long[number % len(long)], context=c)
            assert s.post(f"/v1/contexts/{c}/interrupt").status == 204
            out = ended(s, execution)
            assert (out["status"], out["error"] and out["error"]["name"], out["contextKept"]) == ("failed", "KeyboardInterrupt", True), (what, out)
            assert code(s, w, "print(kept)", context=c)["stdout"] == f"{number}\n", what
        pid = code(s, w, "import os; print(os.getpid())", context=c)["stdout"].strip()
        for _ in range(3):
            assert s.run(w, f"kill -INT {pid}")["status"] == "ok"
            out = code(s, w, "print(kept)", context=c)
            assert (out["stdout"], out["contextKept"]) == (f"{number}\n", True), out


def exits_end_the_cell():
    """sys.exit(), exit() and quit() end the cell with their status, and the context keeps its variables"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        code(s, w, "import sys, atexit; x = 1; atexit.register(print, 'not yet')", context=c)
        for text, status, said in (("sys.exit(0)", 0, ""), ("exit()", 0, ""), ("quit(2)", 2, ""), ("raise SystemExit", 0, ""),
                                   ("sys.exit('why')", 1, "why\n"), ("sys.exit(300)", 44, "")):
            out = code(s, w, f"x += 1\nprint('before')\n{text}\nprint('never')", context=c)
            expected = ("ok" if status == 0 else "failed", status, "before\n", said, None, True)
            assert (out["status"], out["exitCode"], out["stdout"], out["stderr"], out["error"], out["contextKept"]) == expected, (text, out)
        assert code(s, w, "print(x)", context=c)["stdout"] == "7\n"


def cells_as_in_a_notebook():
    """cells share variables of every kind, `_`, future features and settings, may be silent, warn again and keep standard input"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)

        def cell(text):
            out = code(s, w, text, context=c)
            assert out["status"] == "ok", out
            return out

        def shown(text):
            return main_result(cell(text))["text/plain"]

        cell("import asyncio, contextvars, decimal\nv = contextvars.ContextVar('v', default=0)\nawait asyncio.sleep(0)")
        cell("v.set(7); decimal.getcontext().prec = 5")
        assert cell("await asyncio.sleep(0); print(v.get(), decimal.Decimal(1) / 3)")["stdout"] == "7 0.33333\n"
        cell("await asyncio.sleep(0); v.set(8)")
        assert shown("v.get()") == "8"
        assert shown("_ + 1") == "9" and shown("_ * 2") == "18"
        assert cell("[1, 2];")["results"] == [] and cell("print(1);  # silent")["results"] == [] and shown("'a;b'") == "'a;b'"
        cell("from __future__ import annotations")
        cell("def f(x: Nowhere): pass")
        for text in ("import warnings; warnings.warn('w')", "pass; warnings.warn('w')"):
            assert "UserWarning: w" in cell(text)["stderr"], text
        cell("async def m(): pass")
        for name, text in (("k", "async def k(): pass\nk()"), ("m", "m()")):
            shown(text)
            assert cell("2")["stderr"].startswith(f"sys:1: RuntimeWarning: coroutine '{name}' was never awaited\n"), text
        assert shown("await asyncio.sleep(0, 4)") == "4" and shown("await asyncio.sleep(0, 5)\n") == shown("_") == "5"
        for text in ("import sys; sys.path.clear(); sys.meta_path.clear()\n1 / 0", "1 / 0"):
            assert f"line {text.count(chr(10)) + 1}, in <module>\n    1 / 0\n    ~~^~~\n" in code(s, w, text, context=c)["stderr"], text
        assert shown("5") == "5"
        for leave in ("exit()", "quit()"):
            cell(leave)
            assert shown("import sys; sys.stdin.closed") == "False", leave


def ends_that_raise():
    """what a program's hook, error, stream or timer raises while a cell ends neither ends the context nor is it silent"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        code(s, w, "kept = 1", context=c)
        for text, status, words in (
                ("import sys; sys.excepthook = lambda *a: sys.exit(42)\n1/0", 42, ""),
                ("def hook(*a): raise KeyboardInterrupt\nsys.excepthook = hook\n1/0", 1, "Error in sys.excepthook"),
                ("sys.excepthook = sys.__excepthook__\nclass E(Exception):\n def __str__(self): raise SystemExit(3)\nraise E()", 1, "E: <exception str() failed>"),
                ("class T:\n def __str__(self): raise ValueError\nraise SystemExit(T())", 1, ""),
                ("import os; os.getpid = lambda: 1", 0, ""),
                ("import signal\ndef late(*a): raise TimeoutError('late')\nsignal.signal(signal.SIGALRM, late)\n"
                 "_ = signal.setitimer(signal.ITIMER_REAL, 0.2)", 0, "")):
            out = code(s, w, text, context=c)
            assert out["exitCode"] == status and words in out["stderr"], (text, out)
            assert code(s, w, "kept", context=c)["exitCode"] == 0, text
        time.sleep(0.4)
        after = code(s, w, "kept", context=c)
        assert main_result(after)["text/plain"] == "1" and "TimeoutError: late" in after["stderr"], after


def results_of_threads():
    """results that threads show at once, and those that an interrupt or a timer breaks into, come whole or not at all"""
    with shared as s:
        w = s.open_workspace()["id"]
        big = "class B:\n def __init__(self, n): self.n = n\n def _repr_markdown_(self): return 'x' * self.n\n"
        run = code(s, w, big + "from concurrent.futures import ThreadPoolExecutor\n"
                   "with ThreadPoolExecutor(8) as pool: list(pool.map(display, [B(90_000) for _ in range(20)]))")
        assert run["status"] == "ok" and len(run["results"]) + run["droppedResults"] == 20, (run["status"], len(run["results"]), run["droppedResults"])
        timed = code(s, w, big + "import signal\ndef late(*a): raise TimeoutError('late')\nsignal.signal(signal.SIGALRM, late)\n"
                     "signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
                     "try:\n while True: display(B(3_000_000))\nexcept TimeoutError: print('end')", timeoutSeconds=20)
        assert timed["status"] == "ok" and timed["stdout"] == "end\n", timed["status"]
        c = make(s, w)
        execution = begin(s, w, big + "kept = 1\nprint('begun', flush=True)\nwhile True: display(B(3_000_000))", context=c, timeoutSeconds=20)
        time.sleep(0.3)
        assert s.post(f"/v1/contexts/{c}/interrupt").status == 204
        assert ended(s, execution)["error"]["name"] == "KeyboardInterrupt"
        assert main_result(code(s, w, "kept", context=c))["text/plain"] == "1"


def ctrl_c_of_a_command():
    """the first Ctrl-C of `hearth run` in a context interrupts and keeps the variables, a second one ends the context"""
    with shared as s:
        w = s.open_workspace()["id"]
        environment = dict(os.environ, HEARTH_URL=s.url, NO_COLOR="1")

        def begun(text):
            words = [os.path.join(BUILD, "hearth"), "run", "-w", w, "--context", "nb", "-l", "python", "-c", text]
            return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

        assert begun("x = 5").wait(60 * SLOWER) == 0
        for text, signals, left in (("", 1, "5\n"), ("import signal; signal.signal(2, signal.SIG_IGN)\n", 2, "None\n")):
            run = begun(text + "import time; print('begun', flush=True); time.sleep(60)")
            assert run.stdout.readline() == "begun\n"
            for _ in range(signals):
                run.send_signal(signal.SIGINT)
                assert signals == 2 or any("once more ends the context" in line for line in iter(run.stderr.readline, ""))  # before or after the traceback
                time.sleep(0.5)
            said = run.communicate(timeout=60 * SLOWER)
            assert run.returncode == 130, (run.returncode, said)
            kept = begun("print(globals().get('x'))")
            assert kept.communicate(timeout=60 * SLOWER)[0] == left, (signals, said)


def deadline_says_what_it_did():
    """the deadline interrupts the context's run and says whether the state survived"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w)
        out = code(s, w, "x = 1\nimport time\nprint('on', flush=True)\ntime.sleep(60)", context=c, timeoutSeconds=1)
        assert (out["status"], out["stdout"], out["contextKept"]) == ("timeout", "on\n", True), out
        assert code(s, w, "print(x)", context=c)["stdout"] == "1\n"
        stubborn = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)"
        out = code(s, w, stubborn, context=c, timeoutSeconds=1)
        assert (out["status"], out["contextKept"]) == ("timeout", False), out
        problem(s.post(f"/v1/workspaces/{w}/executions", {"code": "1", "context": c}), 410, "GONE")
        dying = make(s, w)
        out = code(s, w, "import os; os._exit(3)", context=dying)
        assert out["status"] != "ok" and out["contextKept"] is False, out


def survives_the_server():
    """kill -9 of the server keeps contexts, their state, and what they run"""
    with shared as s:
        w = s.open_workspace()["id"]
        c = make(s, w, name="main", cwd="/tmp")
        code(s, w, "x = 7", context=c)
        execution = begin(s, w, "import time\nprint('on', flush=True)\ntime.sleep(4)\nx += 1\nx", context=c)
        s.kill9()
        s.start()
        again = wait_for("what it runs", lambda: (x := s.get(f"/v1/contexts/{c}").json)["executionId"] and x)
        assert (again["name"], again["cwd"], again["executionId"]) == ("main", "/tmp", execution), again
        out = ended(s, execution)
        assert main_result(out)["text/plain"] == "8" and out["context"] == c and out["interpreter"] == "context", out
        assert code(s, w, "print(x)", context=c)["stdout"] == "8\n"
        assert s.post(f"/v1/workspaces/{w}/contexts", {"name": "main", "language": "python"}).json["id"] == c


def results():
    """the last value, dicts as JSON, figures as PNG, tables as HTML, exceptions with the user's lines"""
    with shared as s:
        w = s.open_workspace(pool="plots")["id"]
        for where in ({}, {"context": make(s, w)}):
            assert main_result(code(s, w, "1 + 1", **where))["text/plain"] == "2"
            assert code(s, w, "x = 1", **where)["results"] == []
            assert code(s, w, "None", **where)["results"] == []
            value = main_result(code(s, w, "{'a': [1, 'é', None]}", **where))
            assert value["application/json"] == {"a": [1, "é", None]} and "é" in value["text/plain"], value
            figure = code(s, w, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('标题')\nplt.show()\nprint('after')", **where)
            images = [r["mime"]["image/png"] for r in figure["results"] if "image/png" in r["mime"]]
            assert len(images) == 1 and base64.b64decode(images[0]).startswith(b"\x89PNG"), figure
            assert figure["stdout"] == "after\n", figure
            left_open = code(s, w, "import matplotlib.pyplot as plt\nplt.figure(); plt.plot([1])\nplt.figure(); plt.plot([2]);", **where)
            assert sum("image/png" in r["mime"] for r in left_open["results"]) == 2, left_open["results"]
            table = main_result(code(s, w, "import pandas as pd\npd.DataFrame({'a': [1, 2]})", **where))
            assert "<table" in table["text/html"] and "a" in table["text/plain"], table
            bad = code(s, w, "def inner():\n    raise ValueError('né')\ninner()", **where)
            error = bad["error"]
            assert bad["status"] == "failed" and (error["name"], error["message"]) == ("ValueError", "né"), bad
            assert "line 2" in error["traceback"] and "/.hearth" not in error["traceback"], error


BUNDLE = """import base64
class Bundle:
    def __init__(self, **forms):
        self.forms = {kind.replace('_', '/', 1).replace('__', '.').replace('_', '+'): form for kind, form in forms.items()}
    def __repr__(self):
        return 'a bundle'
    def _repr_mimebundle_(self, include=None, exclude=None):
        return self.forms
"""


def forms_that_do_not_fit():
    """a form that does not fit is left out with its reason, and the others of its result stay"""
    png = "base64.encodebytes(b'\\x89PNG' + bytes(200)).decode()"
    with shared as s:
        w = s.open_workspace(pool="plots")["id"]
        for where in ({}, {"context": make(s, w)}):
            def shown(text):
                out = code(s, w, BUNDLE + text, **where)
                assert out["droppedResults"] == 0 and len(out["results"]) == 1, (text, out["droppedResults"], out["results"])
                result = out["results"][0]
                assert result["mime"]["text/plain"], result
                return result
            assert len(shown("{str(i): i for i in range(1001)}")["mime"]["application/json"]) == 1001
            deep = shown("x = 1\nfor _ in range(20): x = [x]\nx")["mime"]["application/json"]
            assert json.dumps(deep) == "[" * 20 + "1" + "]" * 20, deep
            assert shown(f"Bundle(image_png={png})")["mime"]["image/png"].isascii()
            for text in ("list(range(100_001))", "[2**64]", "[10**309]", "{'a\\0b': 1}",
                         "Bundle(application_vnd__x__v1_json={'y': [float('nan')]}, text_html='<b>')",
                         "Bundle(text_x='evil', text_html='<b>')", "Bundle(image_png='no base64!', text_html='<b>')"):
                result = shown(text)
                assert ("text/html" in result["mime"]) == ("text_html" in text), (text, result)
                assert not {"application/json", "image/png", "text/x"} & set(result["mime"]), (text, result)
            assert "2**64" in repr(shown("[2**63, '2**64']")["mime"]["application/json"])
            named = shown("[b'\\xd6\\xd0'.decode('utf-8', 'surrogateescape')]")
            assert "\\udcd6" in named["mime"]["text/plain"], named
            error = code(s, w, "raise ValueError('\\udcff')", **where)["error"]
            assert error and error["name"] == "ValueError" and error["message"] == "\\udcff", error


def output_between_two_runs():
    """what threads and jobs of a context print and show between two runs comes with the second one, or is counted"""
    with shared as s:
        w = s.open_workspace(pool="python")["id"]
        c = make(s, w)

        def late(text):
            code(s, w, "import os, subprocess, threading, time\n" + text, context=c)
            wait_for("the late output", lambda: s.call("HEAD", f"/v1/workspaces/{w}/files/there").status == 200)
            s.call("DELETE", f"/v1/workspaces/{w}/files/there")
            return code(s, w, "print('now')", context=c)

        out = late("def tell():\n    print('late', flush=True)\n    open('there', 'w').close()\n"
                   "_ = threading.Timer(0.3, tell).start()")
        assert (out["stdout"], out["droppedBytes"]) == ("late\nnow\n", 0), out
        out = late("def show():\n    display(42)\n    display('two')\n    open('there', 'w').close()\n"
                   "_ = threading.Timer(0.3, show).start()")
        assert [r["mime"]["text/plain"] for r in out["results"]] == ["42", "'two'"], out
        out = late("_ = subprocess.Popen(['sh', '-c', 'sleep 0.3; echo job >&2; touch there'])")
        assert (out["stdout"], out["stderr"]) == ("now\n", "job\n"), out
        assert code(s, w, "print('again')", context=c)["stdout"] == "again\n"
        out = late("_ = subprocess.Popen(['sh', '-c', 'sleep 0.3; seq 1 200000; touch there'])")
        lines = out["stdout"].splitlines()
        mark = [line for line in lines if line.startswith("[")]
        assert lines[0] == "1" and lines[-2:] == ["200000", "now"] and len(mark) == 1, (lines[:2], lines[-2:], mark)
        numbers = [int(line) for line in lines[:-1] if line != mark[0]]
        steps = [b for a, b in zip(numbers, numbers[1:]) if b != a + 1]
        assert len(steps) == 1 and out["truncated"], steps
        kept = sum(len(str(n)) + 1 for n in numbers)
        everything = sum(len(str(n)) + 1 for n in range(1, 200_001))
        assert out["droppedBytes"] == everything - kept, (out["droppedBytes"], everything - kept)


def results_stream():
    """results come as SSE in order with the output, and resuming finds each place, also after kill -9"""
    with shared as s:
        w = s.open_workspace()["id"]
        text = "print('one', flush=True)\n{'k': 1}"
        answer = s.call("POST", f"/v1/workspaces/{w}/executions", {"code": text, "language": "python"},
                        headers={"Accept": "text/event-stream"})
        events = list(sse_events(answer.body.decode().split("\n")))
        names = [e["event"] for e in events]
        assert names == ["started", "stdout", "result", "exit"], names
        ids = [int(e["id"]) for e in events]
        assert ids == sorted(set(ids)), ids
        assert json.loads(events[2]["data"])["mime"]["application/json"] == {"k": 1}, events
        execution = json.loads(events[-1]["data"])["id"]

        def names_after(event):
            body = s.get(f"/v1/executions/{execution}/events", headers={"Last-Event-ID": str(event)}).body.decode()
            return [line[7:] for line in body.split("\n") if line.startswith("event: ")]

        for _ in range(2):
            assert names_after(ids[1]) == ["result", "exit"]
            assert names_after(ids[2]) == ["exit"]
            s.kill9()
            s.start()


def contexts_side_by_side():
    """several contexts of one workspace work at the same time"""
    with shared as s:
        w = s.open_workspace()["id"]
        contexts = [make(s, w) for _ in range(4)]
        outs = {}

        def work(number, context):
            code(s, w, f"mine = {number}", context=context)
            outs[number] = code(s, w, "import time; time.sleep(0.5); print(mine)", context=context)["stdout"]

        threads = [threading.Thread(target=work, args=item) for item in enumerate(contexts)]
        begun = time.monotonic()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert outs == {n: f"{n}\n" for n in range(4)}, outs
        assert time.monotonic() - begun < 20


# Runs first: a restarted server knows of a prewarm only after it has made a sandbox itself.
def prewarm():
    """a pool's imports are warm before the first claim; one that fails is told; its command has run"""
    with shared as s:
        wait_for("the pool", lambda: s.get("/v1/pools/told").json["status"]["ready"] >= 1, 60)
        conditions = {c["type"]: c for c in s.get("/v1/pools/told").json["status"]["conditions"]}
        assert conditions["Prewarmed"]["status"] == "False", conditions
        assert "no_such_module" in conditions["Prewarmed"]["message"], conditions
        w = s.open_workspace(pool="told")["id"]
        out = code(s, w, "import sys; print('json' in sys.modules); print(open('made').read())")
        assert out["stdout"] == "True\nmade\n\n" and out["interpreter"] == "zygote", out
        cold = code(s, w, "print(1)", env={"PYTHONHASHSEED": "0"})
        assert cold["interpreter"] == "cold", cold


if __name__ == "__main__":
    try:
        main("server", [prewarm, variables_survive, by_name_and_key, interrupt_keeps_state, interrupts_reach_every_cell, exits_end_the_cell,
                        cells_as_in_a_notebook, ends_that_raise, results_of_threads, ctrl_c_of_a_command,
                        deadline_says_what_it_did, survives_the_server, results, forms_that_do_not_fit, output_between_two_runs, results_stream,
                        contexts_side_by_side, the_end])
    finally:
        shared.clean_up()
