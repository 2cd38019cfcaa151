#!/usr/bin/env python3
# suite: seconds=180 sanitizers=no
"""Short programs of people, models and judges do in Hearth what they do in the same image without it: the same output,
status and files, by every way to run them. programs/differences.json lists what differs on purpose, with the reason."""

import base64
import difflib
import glob
import io
import json
import os
import queue
import re
import sys
import threading
import time
import tokenize

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import plain  # noqa: E402
from harness import Shared, main, pool_yaml  # noqa: E402

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
LANGUAGES = {"py": "python", "js": "javascript", "mjs": "javascript", "ts": "typescript", "sh": "bash"}
PLAINLY = {
    "py": ["python3", "main.py"], "js": ["node", "main.js"], "mjs": ["node", "main.mjs"], "sh": ["bash", "main.sh"],
    "ts": ["sh", "-c", "esbuild main.ts --outfile=main.ts.js --platform=node --format=cjs --log-level=warning </dev/null && exec node main.ts.js"],
}
ALSO_A_CELL = r"^(?:#|//) Also as a cell of a context\.$"
# The program's own path, and its name in a context: Hearth's text has no file of that name in the workspace.
PID = re.compile(r"\(node:\d+\)")
ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
OWN_PATH = re.compile(r"(?:file://|\.\.)?/[\w./-]*/main\.(?:py|js|mjs|ts\.js|ts|sh)\b|\bcell[ -]1\b|(?:/proc/\d+/fd/\d+|/tmp/\.context\.\w+)(?=: line )")
LANES = 2
PREWARM = {"fresh": "{languages: [python, sh], timeout: 60s}", "ahead": "{languages: [python, sh], imports: [json, numpy, pandas, multiprocessing], timeout: 60s}", "cold": None}
SAME = ("stdout", "stderr", "exitCode", "signal", "files")


class Program:
    def __init__(self, path):
        self.name = os.path.relpath(path, PROGRAMS)
        self.kind = path.rpartition(".")[2]
        self.language, self.file = LANGUAGES[self.kind], f"main.{self.kind}"
        with open(path, "rb") as file:
            self.data = file.read()
        encoding = tokenize.detect_encoding(io.BytesIO(self.data).readline)[0] if b"coding: latin-1" in self.data else "utf-8"
        self.text = self.data.decode(encoding)
        self.stdin = ""
        if os.path.exists(stdin := path.rpartition(".")[0] + ".stdin"):
            with open(stdin, encoding="utf-8", newline="") as file:
                self.stdin = file.read()
        self.files = {}
        for each in glob.glob(glob.escape(path.rpartition(".")[0]) + ".files/*"):
            with open(each, "rb") as file:
                self.files[os.path.basename(each)] = file.read()
        self.cell = bool(re.search(ALSO_A_CELL, self.text, re.MULTILINE))


def programs(folder):
    found = sorted(path for path in glob.glob(os.path.join(PROGRAMS, folder, "*")) if not path.endswith((".stdin", ".files")))
    return [Program(path) for path in found if os.environ.get("HEARTH_TEST_PROGRAM", "") in path]


def pools():
    texts = []
    for name, prewarm in PREWARM.items():
        text = pool_yaml(name, image="python", warm=LANES, memory="1Gi")
        text = re.sub(r"    resources: .*\n", '    resources: {cpu: "2", memory: 1Gi, pids: 256, workspace: 256Mi, tmp: 64Mi}\n', text)
        texts.append(text.replace("  template:\n", f"  template:\n    prewarm: {prewarm}\n", 1) if prewarm else text)
    return "---\n".join(texts)


def normal(result, program):
    """The result without what no program can rely on: the place of its own file, and compiled modules' bytes."""
    texts = {key: PID.sub("(node:…)", ADDRESS.sub("0x…", OWN_PATH.sub(program.file, result[key]))) for key in ("stdout", "stderr")}
    files = result["files"]
    if files is not None:
        files = {name: [each[0], None if name.endswith(".pyc") else each[1]] for name, each in files.items()
                 if name not in (program.file, f"{program.file}.js")}
    return {**result, **texts, "files": files}


def archive(server, workspace):
    answer = server.get(f"/v1/workspaces/{workspace}/archive")
    assert answer.status == 200, answer
    return plain.unpacked(answer.body)


class Lane:
    """One workspace of each pool and one world without Hearth; runs programs one after the other."""

    def __init__(self, server):
        self.server = server
        self.workspaces = {pool: server.open_workspace(pool=pool, idleTimeoutSeconds=3600)["id"] for pool in PREWARM}
        self.plain = plain.like(server, self.workspaces["cold"])

    def execute(self, pool, **fields):
        answer = self.server.post(f"/v1/workspaces/{self.workspaces[pool]}/executions", fields, timeout=120)
        assert answer.status == 200, (fields, answer)
        return answer.json

    def put(self, pool, files):
        if files:
            answer = self.server.call("PUT", f"/v1/workspaces/{self.workspaces[pool]}/archive", raw=plain.packed(files))
            assert answer.status == 200, answer

    def empty(self, pool):
        done = self.execute(pool, command="find . -mindepth 1 -delete")
        assert done["exitCode"] == 0, done

    def command(self, program):
        """An argument vector in a workspace that has the file."""
        self.put("fresh", {program.file: program.data, **program.files})
        done = self.execute("fresh", argv=PLAINLY[program.kind], stdin=program.stdin)
        done["files"] = archive(self.server, self.workspaces["fresh"])
        self.empty("fresh")
        return done

    def code(self, program, pool):
        """Code in a forked interpreter if one is ready, which a burst may find not; files named like modules ask for a cold one."""
        for _ in range(10):
            self.put(pool, program.files)
            done = self.execute(pool, code=program.text, language=program.language, stdin=program.stdin)
            done["files"] = archive(self.server, self.workspaces[pool])
            self.empty(pool)
            if done["interpreter"] == "zygote" or pool == "cold" or program.kind != "py" or program.files:
                break
        return done

    def one_shot(self, program):
        files = [{"path": name, "base64": base64.b64encode(data).decode()} for name, data in program.files.items()]
        answer = self.server.post("/v1/executions", {"code": program.text, "language": program.language, "stdin": program.stdin, "pool": "fresh", "files": files},
                                  timeout=120)
        assert answer.status == 200, (program.name, answer)
        return {**answer.json, "files": None}

    def context(self, program):
        workspace = self.workspaces["fresh"]
        made = self.server.post(f"/v1/workspaces/{workspace}/contexts", {"language": program.language})
        assert made.status == 201, made
        done = self.execute("fresh", code=program.text, language=program.language, context=made.json["id"])
        done["files"] = archive(self.server, workspace)
        assert self.server.call("DELETE", f"/v1/contexts/{made.json['id']}").status in (200, 204)
        self.empty("fresh")
        return done

    def ways(self, program):
        """Yields the name of each way that fits the program, and its result."""
        yield "command", self.command(program)
        yield "run", self.code(program, "fresh")
        if program.kind == "py":
            yield "imports ahead", self.code(program, "ahead")
            yield "cold", self.code(program, "cold")
        yield "one shot", self.one_shot(program)
        if program.cell:
            yield "context", self.context(program)

    def close(self):
        self.plain.close()
        for workspace in self.workspaces.values():
            self.server.call("DELETE", f"/v1/workspaces/{workspace}")


def shown(key, without, got):
    """A difference as a person reads it."""
    if key in ("stdout", "stderr"):
        lines = difflib.unified_diff(without.splitlines(), got.splitlines(), "plain", "Hearth", n=1, lineterm="")
        return "\n".join(f"    {line[:300]}" for line in list(lines)[:30])
    if key == "files":
        names = sorted(name for name in without.keys() | got.keys() if without.get(name) != got.get(name))
        return "\n".join(f"    {name!r}: plain {str(without.get(name))[:120]}, Hearth {str(got.get(name))[:120]}" for name in names[:8])
    return f"    plain {without!r}, Hearth {got!r}"


def compare(lane, program):
    """Returns the differences by way: {way: {key: text}}."""
    files = plain.packed({program.file: program.data, **program.files})
    without = normal(lane.plain.run(PLAINLY[program.kind], files, program.stdin), program)
    found = {}
    for way, result in lane.ways(program):
        result = normal(result, program)
        differ = {key: shown(key, without[key], result[key]) for key in SAME if without[key] != result[key] and (key, result[key]) != ("files", None)}
        if differ:
            found[way] = differ
    return found


def known_differences():
    """Returns the table: {program: {way: keys}}. A key of it names ways, with commas between."""
    with open(os.path.join(PROGRAMS, "differences.json"), encoding="utf-8") as file:
        table = json.load(file)
    known = {}
    for each in table:
        assert len(each["reason"]) > 20, each
        for name, differs in each["programs"].items():
            for ways, keys in differs.items():
                for way in ways.split(", "):
                    known.setdefault(name, {}).setdefault(way, set()).update(keys.split())
    return known


def work(lane, waiting, outcomes):
    while True:
        try:
            program = waiting.get_nowait()
        except queue.Empty:
            return
        begun = time.monotonic()
        try:
            outcomes[program.name] = compare(lane, program)
        except Exception as error:  # of one program, told with the others
            outcomes[program.name] = {"no result": {"error": f"    {type(error).__name__}: {str(error)[:1500]}"}}
        if time.monotonic() - begun > 10:
            print(f"      {program.name} takes {time.monotonic() - begun:.0f} s", flush=True)
        if len(outcomes) % 50 == 0:
            print(f"      {len(outcomes)} programs", flush=True)


def differences(folder):
    """Runs a folder's programs in lanes. Returns {program: {way: {key: text}}}."""
    waiting, outcomes = queue.Queue(), {}
    chosen = programs(folder)
    for program in chosen:
        waiting.put(program)
    with shared as server:
        lanes = [Lane(server) for _ in range(LANES)]
        try:
            threads = [threading.Thread(target=work, args=(lane, waiting, outcomes)) for lane in lanes]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for lane in lanes:
                lane.close()
    return {program.name: outcomes[program.name] for program in chosen}


def same(folder):
    known = known_differences()
    wrong = []
    for name, found in differences(folder).items():
        listed = known.get(name, {})
        for way in found.keys() | listed.keys():
            keys, right = set(found.get(way, ())), listed.get(way, set())
            if keys == right:
                continue
            wrong.append(name)
            print(f"DIFFERS {name} by {way}" + (f"; no longer: {' '.join(sorted(right - keys))}" if right - keys else ""))
            for key in sorted(keys - right):
                print(f"  {key}:\n{found[way][key]}")
    assert not wrong, f"{len(wrong)} differences that the table does not have as they are: {' '.join(sorted(set(wrong)))}"


def python_programs():
    """Python programs give by command, forked interpreter, with imports ahead, cold, one shot and context what they give without Hearth"""
    same("python")


def node_programs():
    """JavaScript and TypeScript programs give by command, code, one shot and context what they give without Hearth"""
    same("node")


def bash_programs():
    """bash scripts give by command, code, one shot and context what they give without Hearth"""
    same("bash")


def ends():
    """the server of these programs leaves nothing behind"""
    shared.end()


if __name__ == "__main__":
    tests = [python_programs, node_programs, bash_programs, ends]
    for each in tests:
        each.only = "oci"  # it tests languages, not runtimes
    shared = Shared(pools=pools())
    try:
        main("server", tests)
    finally:
        shared.clean_up()
