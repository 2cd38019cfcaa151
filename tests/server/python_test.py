#!/usr/bin/env python3
# suite: seconds=50
"""A Python program in Hearth is what `python3 main.py` makes of it: its file, its frames, its errors, the modules it
finds. Compared with that command in the same sandbox: in a forked interpreter, in a cold one, as a one shot; and a
context with what a notebook does."""

import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Shared, main, pool_yaml  # noqa: E402

COLD = {"PYTHONHASHSEED": "0"}  # acts at an interpreter's start
ZYGOTE = "  template:\n    prewarm: {languages: [python], imports: [json, decimal, multiprocessing]}\n"
python = Shared(pools=pool_yaml("python", image="python", memory="512Mi").replace("  template:\n", ZYGOTE, 1))

PROGRAMS = {
    "file": [
        "import os, sys, __main__\nprint(os.path.isabs(__file__), os.path.basename(__file__), __main__.__file__ == os.path.abspath(sys.argv[0]) == __file__)",
        "print(open(__file__).read())\nx = 'é\u2028'  # all of it",
        "import sys; print(sys.argv[1:], sys.orig_argv[-1:] == sys.argv, sys.path[0])",
        "import os, sys; os.mkdir('inner'); os.chdir('inner'); print(sys.path[0]); os.rmdir('../inner')",
        "print(sorted(globals()), __annotations__, __cached__, __spec__, __package__, type(__loader__))",
        "import inspect\n\n\ndef f():\n    return 7  # here\n\n\nclass A:\n    x = 1\nprint(inspect.getsource(f), inspect.getsource(A), inspect.getsourcelines(f)[1])",
        "import linecache; print(repr(linecache.getline(__file__, 2)))\n'second'; x = 1",
        "import runpy, sys\nif __name__ == '__main__': print(runpy.run_path(__file__)['x'])\nx = 5",
        "import pickle\ndef f(): return 3\nprint(pickle.loads(pickle.dumps(f))())",
        "import subprocess, sys\nif len(sys.argv) == 1: print(subprocess.run([sys.executable, __file__, 'again'], capture_output=True, text=True).stdout)\nelse: print('child', sys.argv[1:])",
    ],
    "processes": [
        "import multiprocessing as m\ndef square(x): return x * x\nif __name__ == '__main__':\n    m.set_start_method('spawn')\n    with m.Pool(2) as p: print(p.map(square, [1, 2, 3]))",
        "import multiprocessing as m\ndef square(x): return x * x\nif __name__ == '__main__':\n    with m.get_context('forkserver').Pool(2) as p: print(p.map(square, [1, 2, 3]))",
        "import multiprocessing as m, os\nif __name__ == '__main__':\n    q = m.get_context('spawn').Process(target=print, args=(os.getcwd(),)); q.start(); q.join(); print(q.exitcode)",
        "import concurrent.futures as c, multiprocessing as m, os\ndef f(x): return x, os.getcwd()\nif __name__ == '__main__':\n"
        "    with c.ProcessPoolExecutor(1, mp_context=m.get_context('spawn')) as e: print(list(e.map(f, [1])))",
    ],
    "frames": [
        "import traceback; traceback.print_stack()",
        "import inspect, sys; print(len(inspect.stack()), sys._getframe().f_back)",
        "import sys\ntry: sys._getframe(1)\nexcept ValueError as e: print(e)",
        "import warnings\nwarnings.warn('one')\nwarnings.warn('two', stacklevel=2)\ndef f(): warnings.warn('three', stacklevel=2)\nf()",
        "import logging; logging.warning('w', stack_info=True)\nlogging.getLogger().findCaller()",
        "import faulthandler, sys; faulthandler.dump_traceback(sys.stdout, all_threads=False)",
        "import sys\ndef f(n):\n    global d\n    d = n; f(n + 1)\ntry: f(1)\nexcept RecursionError as e: print(d, e)",
        "import sys\nseen = set()\nsys.setprofile(lambda f, e, a: seen.add(f.f_code.co_filename.split('/')[-1]))\ndef g(): return 1\ng()\nsys.setprofile(None); print(seen)",
        "import sys\nsys.settrace(lambda f, e, a: print(e, f.f_code.co_name))\ndef g(): return 1\nx = g()",
        "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\n1 / 0",
        "import cProfile, pstats, io\np = cProfile.Profile(); p.enable(); sum([1]); p.disable()\nprint(len(p.getstats()))",
        "import tracemalloc; tracemalloc.start(9)\nx = [1] * 1000\nprint(len(tracemalloc.get_object_traceback(x)))",
        "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T'); t.start(); t.join()",
        "class A:\n    def __del__(self): 1 / 0\na = A(); del a",
        "import sys, traceback\ndef hook(*args): traceback.print_stack(file=sys.stdout); print(len(traceback.extract_tb(args[2])))\nsys.excepthook = hook\n1 / 0",
    ],
    "errors": [
        "def f(n): return f(n + 1)\nf(1)",
        "import sys; sys.setrecursionlimit(60)\n1 / 0",
        "import sys; sys.setrecursionlimit(5)\n1 / 0",
        "import sys; sys.stderr = None\n1 / 0",
        "import sys; sys.excepthook = lambda *a: 1 / 0\nraise KeyError(3)",
        "import sys; sys.excepthook = lambda t, v, b: print('hook', t, v, b.tb_lineno, b.tb_next)\nraise KeyError(3)",
        "import sys; del sys.excepthook\nraise KeyError(3)",
        "import builtins; builtins.print = builtins.str = builtins.compile = None\nraise ValueError('x')",
        "print = str = sys = len = None\nraise ValueError('x')",
        "x = '\x0c\x1c\x85\u2028'\ny = 3\n1 / 0  # \u2029 here",
        "\x0c\nx = 1\r\n1 / 0  # after a form feed\r\n",
        "if True:\n\tx = 1\n\t1 / 0",
        "\ufeffprint('é')\n1 / 0",
        "# coding: nothing\nprint(1)",
        "x = (\n1 +\n", "if 1:\nprint(1)", "x = 'abc", "def f():\n\tx\n        y", "def f(:\n  pass", "print 1", "x = 5 5", "print(f'{1 / 0}')",
        "print(1)\nreturn 2", "from __future__ import nothing", "nonlocal x",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('x')",
        "e = ValueError('x'); e.add_note('one'); e.add_note('two\\nthree'); raise e",
        "raise ExceptionGroup('g', [ValueError(1), ExceptionGroup('h', [TypeError(2)])])",
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E('x')",
        "raise ValueError('\\udcff')",
        "import no_such_module", "import sys; sys.exit('bye')", "import sys; sys.exit(3)", "raise SystemExit",
        "import asyncio\nasync def f(): 1 / 0\nasyncio.run(f())", "assert 1 == 2, 'no'", "raise KeyboardInterrupt",
    ],
}
# A file of each of these names lies in the workspace: the program takes it where python3 does.
NAMES = ("json token traceback re linecache importlib enum types functools random os numpy socket select signal warnings _json"
         " decimal multiprocessing threading hearth_program").split()
SHADOWED = [
    "import sys\nimport NAME\nprint(getattr(NAME, 'MINE', None))\n{'a': 1}",
    "import inspect, logging, warnings\nwarnings.warn('x')\n1 / 0",
]


def execution(s, workspace, **fields):
    answer = s.post(f"/v1/workspaces/{workspace}/executions", fields, timeout=120)
    assert answer.status == 200, answer
    return answer.json


def run(s, workspace, code, **fields):
    return execution(s, workspace, code=code, language="python", **fields)


def fresh(s, workspace, code):
    """Runs the code until a waiting interpreter takes it: a burst may find none ready."""
    for _ in range(100):
        result = run(s, workspace, code)
        if result["interpreter"] == "zygote":
            return result
        time.sleep(0.05)
    raise AssertionError(f"never from the zygote: {result}")


def put(s, workspace, path, text):
    assert s.call("PUT", f"/v1/workspaces/{workspace}/files/{path}", raw=text.encode()).status < 300


def plain(s, workspace, code, **fields):
    put(s, workspace, "main.py", code)
    result = execution(s, workspace, argv=["python3", "-B", "main.py"], **fields)
    s.call("DELETE", f"/v1/workspaces/{workspace}/files/main.py")
    return result


def said(result):
    """Returns the answer of a run without addresses and without the folder of its file."""
    def same(text):
        return re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"[^\s\"'(]*/main\.py", "main.py", text))
    return {**{key: same(result[key]) for key in ("stdout", "stderr")}, **{key: result[key] for key in ("exitCode", "signal", "status")}}


def compare(s, programs):
    w = s.open_workspace(pool="python")["id"]
    for code in programs:
        expected = said(plain(s, w, code))
        for way, result in (("fresh", fresh(s, w, code)), ("cold", run(s, w, code, env=COLD))):
            assert said(result) == expected, f"{way}, {code!r}:\n{said(result)}\ninstead of\n{expected}"
            if expected["stderr"].strip() and expected["status"] == "failed" and "SystemExit" not in code and "exit(" not in code:
                assert result["error"], (way, code, result)


def has_its_file():
    """a program has a __file__ that reads as its code; inspect, linecache, pickle and its own children find it; nothing of it is in the workspace"""
    with python as s:
        compare(s, PROGRAMS["file"])
        w = s.open_workspace(pool="python")["id"]
        run(s, w, "open('made', 'w')", collect=["**"])
        listed = s.get(f"/v1/workspaces/{w}/files?path=.&recursive=true").json
        assert [entry["path"] for entry in listed["items"]] == ["made"], listed
        shot = s.post("/v1/executions", {"pool": "python", "language": "python", "code": "print(open(__file__).read())"}).json
        assert shot["stdout"] == "print(open(__file__).read())\n", shot


def processes():
    """multiprocessing with spawn and forkserver works with functions of the program, and starts in its folder"""
    with python as s:
        compare(s, PROGRAMS["processes"])


def frames():
    """no frame of Hearth's is in a stack, a warning, a tracer or the recursion's depth"""
    with python as s:
        compare(s, PROGRAMS["frames"])


def errors():
    """uncaught errors are said as python3 says them, with the right lines, whatever the program has broken"""
    with python as s:
        compare(s, PROGRAMS["errors"])


def encodings():
    """a comment that names an encoding is true: é stays é, in the program and in tracebacks"""
    with python as s:
        w = s.open_workspace(pool="python")["id"]
        for name, text in (("latin-1", "é"), ("cp1252", "€"), ("gbk", "漢"), ("utf-8", "漢"), ("utf-8-sig", "é")):
            code = f"# -*- coding: {name} -*-\nprint('{text}', len('{text}'), open(__file__, encoding='{name}').read()[-2:])\nraise ValueError('{text}')  # {text}"
            for result in (fresh(s, w, code), run(s, w, code, env=COLD)):
                assert result["stdout"] == f"{text} 1  {text}\n", (name, result)
                assert f"raise ValueError('{text}')  # {text}" in result["stderr"] and f"ValueError: {text}\n" in result["stderr"], (name, result)


def shadows():
    """a file of the workspace with the name of a module is found where python3 finds it, and Hearth itself needs none of them"""
    with python as s:
        for name in NAMES:
            w = s.open_workspace(pool="python")["id"]
            put(s, w, f"{name}.py", "MINE = 1\n")
            for code in SHADOWED:
                code = code.replace("NAME", name)
                expected = said(plain(s, w, code))
                result, cold = run(s, w, code), run(s, w, code, env=COLD)
                for got in (result, cold):
                    assert said(got) == expected, (name, code, got["interpreter"], said(got), expected)
                    assert bool(got["error"]) == (expected["status"] == "failed"), (name, code, got)
                if expected["status"] == "ok":
                    assert result["results"][0]["mime"]["application/json"] == {"a": 1}, (name, result)
            context = s.post(f"/v1/workspaces/{w}/contexts", {"language": "python"}).json["id"]
            cell = run(s, w, f"import {name}\nprint(getattr({name}, 'MINE', None))\n[1]", context=context)
            assert cell["stdout"] == said(plain(s, w, SHADOWED[0].replace("NAME", name)))["stdout"], (name, cell)
            failed = run(s, w, "x = 1\nx = 1 / 0", context=context)
            assert failed["contextKept"] and failed["error"]["name"] == "ZeroDivisionError", (name, failed)
            assert "\n    x = 1 / 0\n        ~~^~~\n" in failed["stderr"], (name, failed)
            assert cell["results"][0]["mime"]["application/json"] == [1], (name, cell)
            s.call("DELETE", f"/v1/workspaces/{w}")
        w = s.open_workspace(pool="python")["id"]
        put(s, w, "enum/__init__.py", "MINE = 2\n")
        put(s, w, "select/note", "no package")
        assert run(s, w, "import enum; print(enum.MINE)")["stdout"] == "2\n"
        assert run(s, w, "import select; print(select.__spec__.origin)", env={"PYTHONSAFEPATH": "1"})["stdout"] != "", "with PYTHONSAFEPATH"


def make(s, workspace):
    made = s.post(f"/v1/workspaces/{workspace}/contexts", {"language": "python"})
    assert made.status == 201, made
    return made.json["id"]


def notebook():
    """a context takes what notebooks take: await at the top, a loop that goes on, code indented as a whole, display; tracebacks and inspect quote its cells"""
    with python as s:
        w = s.open_workspace(pool="python")["id"]
        c = make(s, w)

        def cell(code):
            return run(s, w, code, context=c)

        def value(code):
            result = cell(code)
            shown = [each["mime"]["text/plain"] for each in result["results"] if each["main"]]
            assert result["status"] == "ok" and len(shown) == 1, (code, result)
            return shown[0]

        assert value("import asyncio\nq = asyncio.Queue()\nawait q.put(4)\nawait q.get()") == "4"
        assert value("task = asyncio.create_task(asyncio.sleep(0.01, 7))\nawait task") == "7"
        assert value("async def numbers():\n    yield 5\nasync for x in numbers():\n    pass\nx") == "5"
        assert value("asyncio.run(asyncio.sleep(0, 9))") == "9"
        assert value("await asyncio.sleep(0, 8)") == "8"
        failed = cell("async def g(): 1 / 0\nawait g()")
        assert re.findall(r'File "([^"]+)", line (\d+)', failed["error"]["traceback"]) == [("cell 6", "2"), ("cell 6", "1")], failed
        assert value("    a = 1\n    if a:\n        b = '''x\n  y'''\n    b") == "'x\\n  y'"
        assert "line 2" in cell("  a = 1\n  a / 0")["error"]["traceback"]
        assert cell("def f(n):\n    # \u2028\x0c here\n    return 1 / n")["status"] == "ok"
        late = cell("f(0)")
        assert "return 1 / n\n" in late["error"]["traceback"] and 'File "cell 9", line 3, in f' in late["error"]["traceback"], late
        assert "    return 1 / n" in cell("import inspect; print(inspect.getsource(f))")["stdout"]
        assert value("import inspect; len(inspect.stack())") == "1"
        shown = cell("display(1, {'a': 2})\nh = display('x', display_id=True)\nh.update('y')\ndisplay({'text/html': '<b>', 'text/plain': 'b'}, raw=True)")
        assert [each["mime"].get("text/html", each["mime"]["text/plain"]) for each in shown["results"]] == ["1", "{'a': 2}", "'x'", "'y'", "<b>"], shown
        assert value("'__file__' in globals()") == "False"
        assert value("# coding: latin-1\n'é'") == "'é'"
        put(s, w, "jobs.py", "import os\ndef square(x): return x * x, os.getcwd()\n")
        spawned = value("import multiprocessing as m, jobs\nwith m.get_context('spawn').Pool(1) as p: r = p.map(jobs.square, [3])\nr")
        assert spawned == "[(9, '/workspace')]", spawned
        assert cell("import builtins; builtins.str = builtins.len = builtins.print = builtins.isinstance = builtins.compile = None")["status"] == "ok"
        assert cell("1 / 0")["error"]["name"] == "ZeroDivisionError"
        assert value("[2]") == "[2]"
        assert cell("import sys; sys.stdout = None; sys.stderr = None; sys.setrecursionlimit(40)")["status"] == "ok"
        assert cell("1 / 0")["error"]["name"] == "ZeroDivisionError"
        assert value("[3]") == "[3]"


def lines_of_notebooks():
    """lines that only notebooks take are refused with the way to do it here; a program that awaits at its top learns of asyncio.run"""
    with python as s:
        w = s.open_workspace(pool="python")["id"]
        c = make(s, w)
        for code, way in (("x = 1\n%matplotlib inline", "leave it out"), ("!pip install x", "`packages`"), ("%pip install x", "`packages`"),
                          ("y = !ls -l", "`command`"), ("%%bash\nls", "`command`"), ("?print", "help(print)"), ("print?", "help(print)"),
                          ("%time f()", "timeit"), ("%cd /", "os.chdir"), ("%anything", "write it in Python")):
            for where in ({}, {"context": c}, {"env": COLD}):
                error = run(s, w, code, **where)["error"]
                assert error["name"] == "SyntaxError" and way in error["message"] and "IPython" in error["traceback"], (code, where, error)
        for code in ("await f()", "async with f(): pass", "async for x in f(): pass", "y = [x async for x in f()]"):
            error = run(s, w, code)["error"]
            assert error["name"] == "SyntaxError" and "asyncio.run" in error["message"], error
        indented = fresh(s, w, "    x = 6\n    print(x * 7)\n")
        assert indented["stdout"] == "42\n", indented
        outside = run(s, w, "  x = 1\ny = 2")["error"]
        assert outside["name"] == "IndentationError" and outside["message"].startswith("unexpected indent"), outside


def unfit_forms():
    """of a result only the form that does not fit is left out, and it is said why; text/plain stays"""
    with python as s:
        w = s.open_workspace(pool="python")["id"]
        c = make(s, w)
        cases = (("[2**64]", "64 bits"), ("[-2**63 - 1]", "64 bits"), ("[10**309]", "64 bits"), ("{'a': float('nan')}", "NaN"), ("[float('-inf')]", "Infinity"),
                 ("['\\udcff']", "surrogate"), ("{'a\\0': 1}", "NUL"), ("list(range(100001))", "100000 values"), ("{1: 2, '1': 3}", "twice"),
                 ("x = 1\nfor _ in range(60): x = [x]\nx", "deep"), ("x = []; x.append(x)\nx", "deep"))
        for code, reason in cases:
            for where in ({"context": c}, {}):
                result = run(s, w, code, **where)
                [first] = [each["mime"] for each in result["results"] if each["main"]]
                assert "application/json" not in first and first["text/plain"], (code, result)
                assert "application/json" in json.dumps(result["results"]) and reason in json.dumps(result["results"]), (code, result)
        for code in ("[2**64 - 1, -2**63, 1.5, 'é', None, True, [{}]]", "{str(i): i for i in range(1000)}", "{1: 2, None: 3, 2.5: [4]}"):
            [first] = [each["mime"] for each in run(s, w, code, context=c)["results"]]
            assert first["application/json"] == json.loads(json.dumps(eval(code))), (code, first)
        assert len(run(s, w, "[{1}, object]", context=c)["results"]) == 1  # was no JSON, and nobody said that it was
        bundle = ("import base64\nclass A:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n        return {'text/html': b'<b>', 'text/x-none': 'x',"
                  " 'application/json': {'k': b'x'}, 'image/png': base64.encodebytes(b'p' * 100).decode(), 'image/jpeg': '%%', 'text/latex': 3}\n    def __repr__(self): return 'A'\nA()")
        result = run(s, w, bundle, context=c)
        [first] = [each["mime"] for each in result["results"] if each["main"]]
        assert first["text/html"] == "<b>" and first["text/plain"] == "A" and set(first) == {"text/html", "text/plain", "image/png"}, first
        assert first["image/png"].isalnum() or set(first["image/png"]) <= set("=+/") | set(map(chr, range(48, 123))), first
        for kind, reason in (("text/x-none", "no such type"), ("application/json", "bytes"), ("image/jpeg", "not base64"), ("text/latex", "no text")):
            assert any(kind in text and reason in text for text in map(json.dumps, result["results"])), (kind, result["results"])
        error = run(s, w, "raise ValueError('\\udcff\\0' + '\U0001f600' * 9000)", context=c)["error"]
        assert error["name"] == "ValueError" and error["message"].startswith("\\udcff\0") and "\U0001f600" * 400 in error["message"], error


def ends():
    """the server of these tests leaves nothing behind"""
    python.end()


TESTS = [has_its_file, processes, frames, errors, encodings, shadows, notebook, lines_of_notebooks, unfit_forms, ends]
for each in TESTS:
    each.only = "oci"  # what Python does there does not depend on the runtime

if __name__ == "__main__":
    try:
        main("server", TESTS)
    finally:
        python.clean_up()
