#!/usr/bin/env python3
# suite: seconds=110 sanitizers=no
"""The twenty Python libraries that had broken in forked interpreters, all in one pool and imported ahead: no answer is worse than its row in
docs/libraries.md says. `tests/libraries/table` measures the rows, each library in a pool of its own."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = HERE, os.path.join(os.path.dirname(HERE), "libraries")
from harness import Shared, main, pool_yaml, wait_for  # noqa: E402
from libraries_test import with_real_mirror  # noqa: E402
from questions import WAYS, load, packages, program  # noqa: E402

TWENTY = ("altair", "bokeh", "dask", "duckdb", "factory-boy", "faker", "grpcio", "joblib", "mimesis", "numba", "ortools", "pandas", "plotly", "polars",
          "pyzmq", "scikit-learn", "seaborn", "statsmodels", "sympy", "zarr")
ROWS = {name: library for name, library in load().items() if name in TWENTY}
# Prints what each use gives, each in its own namespace of one interpreter.
PLAIN = """
import json
for name, use in {uses!r}.items():
    names = {{"__name__": "__main__"}}
    exec(use, names)
    print(json.dumps([name, repr(names["result"])]))
"""
DRAWS = """
import contextlib, io, json
for name, draw in {draws!r}.items():
    with contextlib.redirect_stdout(io.StringIO()) as drawn:
        exec(draw, {{"__name__": "__main__"}})
    print(json.dumps([name, drawn.getvalue()]))
"""


def yes(name, question):
    """Whether the row of this library has a plain yes there; another answer cannot become worse."""
    return ROWS[name]["measured"][question] == "yes"


def pool():
    """Returns a pool that begins without packages, so that the server is ready at once, and the one with all of them."""
    modules = ", ".join(library["module"] for library in ROWS.values())
    wheels = ", ".join(f'"{wheel}"' for library in ROWS.values() for wheel in packages(library))
    return (pool_yaml(name="twenty", image="python", warm=1, memory="3Gi").replace("pids: 128, workspace: 64Mi, tmp: 16Mi", "pids: 512, workspace: 1Gi, tmp: 256Mi")
            .replace("  template:\n", f"  template:\n    prewarm: {{languages: [python], timeout: 120s, imports: [{modules}], packages: [{wheels}]}}\n", 1))


def workspace(server):
    """Opens one where all are imported."""
    def status():
        return server.get("/v1/pools/twenty").json["status"]

    def prewarmed():
        return next((each for each in status()["conditions"] if each["type"] == "Prewarmed"), None)
    wait_for("a warm sandbox with all packages", lambda: status()["ready"] > 0 and prewarmed(), 600)
    assert prewarmed()["status"] == "True", prewarmed()
    return server.open_workspace(pool="twenty")["id"]


def execute(server, workspace_id, **fields):
    answer = server.post(f"/v1/workspaces/{workspace_id}/executions", dict(fields, timeoutSeconds=120), timeout=150)
    assert answer.status == 200, answer
    return answer.json


def lines(ran):
    assert ran["status"] == "ok", ran
    return dict(json.loads(line) for line in ran["stdout"].splitlines())


def results():
    """a use of each of twenty libraries imported ahead prints in a fresh run what it prints under python3: alone, in threads and in forked processes"""
    with shared as s:
        w = workspace(s)
        assert s.call("PUT", f"/v1/workspaces/{w}/files/use.py", raw=PLAIN.format(uses={n: each["use"] for n, each in ROWS.items()}).encode()).status == 200
        expected = lines(execute(s, w, command="python3 use.py"))
        worse = []
        for name, library in ROWS.items():
            ways = [way for way in WAYS if yes(name, way)]
            ran = execute(s, w, code=program(library["use"], ways), language="python")
            shown = [expected[name] if way == "same" else f"{expected[name]} {expected[name]}" for way in ways]
            if (ran["status"], ran["interpreter"], ran["stdout"].splitlines()) != ("ok", "zygote", shown):
                worse.append((name, ways, ran["status"], ran["interpreter"], ran["stdout"][:300], shown, ran["stderr"][-300:]))
        assert not worse, worse


def random_numbers():
    """two fresh runs draw different numbers with each of the twenty libraries that has a generator of its own"""
    draws = {name: library["draw"] for name, library in ROWS.items() if "draw" in library and yes(name, "random")}
    assert len(draws) > 5
    with shared as s:
        w = workspace(s)
        one, two = (execute(s, w, code=DRAWS.format(draws=draws), language="python") for _ in range(2))
        assert one["interpreter"] == two["interpreter"] == "zygote", (one, two)
        one, two = lines(one), lines(two)
        assert one.keys() == two.keys() == draws.keys()
        assert not [name for name in draws if one[name] == two[name]], (one, two)


def interrupts():
    """after the use of each of the twenty libraries in one context an interrupt ends a busy cell, and the results are still there"""
    with shared as s:
        w = workspace(s)
        context = s.post(f"/v1/workspaces/{w}/contexts", {"language": "python"}).json["id"]
        assert execute(s, w, code="results = {}", language="python", context=context)["status"] == "ok"
        for name, library in ROWS.items():
            if not yes(name, "interrupt"):
                continue
            used = execute(s, w, code=f"{library['use']}\nresults[{name!r}] = repr(result)", language="python", context=context)
            assert used["status"] == "ok", (name, used)
            busy = s.post(f"/v1/workspaces/{w}/executions", {"code": "print('on', flush=True)\nwhile True: pass", "language": "python", "context": context,
                                                             "background": True}).json["id"]
            # An interrupt before the cell's own code runs ends nothing.
            wait_for("a busy cell", lambda: s.get(f"/v1/executions/{busy}").json["stdout"], 60)
            interrupted = s.post(f"/v1/contexts/{context}/interrupt")
            assert interrupted.status == 204, (name, interrupted)
            end = wait_for("the end", lambda: (e := s.get(f"/v1/executions/{busy}").json)["status"] not in ("running", "queued") and e, 60)
            assert ((end["error"] or {}).get("name"), end["contextKept"]) == ("KeyboardInterrupt", True), (name, end)
        kept = execute(s, w, code="print(*results)", language="python", context=context)
        assert kept["stdout"].split() == [name for name in ROWS if yes(name, "interrupt")], kept


# Processes that joblib starts itself: from a run imported ahead, with its own exit functions and threads.
PARALLEL = """
import joblib
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
print(joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(-i) for i in range(4)))
print(GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2, n_jobs=-1).fit([[0], [1], [2], [3]], [1, 3, 5, 8]).best_params_)
"""


def processes_of_joblib():
    """joblib's processes, and scikit-learn's search that uses them, give in fresh runs and contexts what they give under python3"""
    with shared as s:
        w = workspace(s)
        assert s.call("PUT", f"/v1/workspaces/{w}/files/parallel.py", raw=PARALLEL.encode()).status == 200
        expected = execute(s, w, command="python3 parallel.py")
        assert expected["stdout"].startswith("[0, 1, 2, 3]\n{'alpha': "), expected
        context = s.post(f"/v1/workspaces/{w}/contexts", {"language": "python"}).json["id"]
        for where in ({}, {"context": context}, {"context": context}):
            ran = execute(s, w, code=PARALLEL, language="python", **where)
            assert (ran["status"], ran["stdout"]) == ("ok", expected["stdout"]), (where, ran)


def ends():
    """the server of these tests leaves nothing behind"""
    shared.end()


if __name__ == "__main__":
    tests = [results, random_numbers, interrupts, processes_of_joblib, ends]
    mirror, tests = with_real_mirror(tests, tests)
    shared = Shared(pools=pool(), args=mirror)
    try:
        main("server", tests)
    finally:
        shared.clean_up()
