#!/usr/bin/env python3
"""Lists the tests, and makes plans for those that are asked for. ./test runs the printed plan.

    plan.py list [PART]                stages and suites; with PART the cases whose names hold it
    plan.py names [--in STAGE] NAME... the plan for stages, suites and parts of cases' names
    plan.py changed [REF]              the plan for what was changed since REF, and why on standard error
    plan.py needs STAGE... <PLAN       the needs of its suites of these stages: programs of the build, `node`, `chromium`, `polyglot`

A plan has a line for each suite: stage, suite and, where not all of them run, its cases, with tabs between.
"""

import ast
import glob
import os
import re
import signal
import subprocess
import sys

REPO = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFAULT = ["lint", "unit", "kernel", "server", "crash", "security"]
SANITIZED = ["agent", "sandbox", "gpu", "runtime", "kubernetes", "egress", "controller", "http", "mcp"]  # unit programs: where threads and bytes meet
RELEASED = ["cli_daily"]  # server suites for the programs of `./run`, which no other stage builds
ON_REQUEST = ["server-release", "unit-asan", "unit-tsan", "server-asan", "server-tsan", "tidy", "gpu", "cluster"]
DEFAULT_SECONDS = 30  # for a suite without a time of its own that has not run here

# Server suites that can see a change in one of these rooms, or in a room below it; all of them if a room is not here.
SEEN_BY = {
    "api/cli": "access artifacts cli conformance docker docs image layer limits packages seeds start top",
    "api/cli/doctor": "docker start",
    "api/cli/top": "cli docs top",
    "api/command": "bench cli docs start",
    "api/console": "console",
    "api/mcp": "mcp/clients conformance packages rest_audit seeds docs",
    "api/mcp/seeds": "mcp/clients conformance seeds",
    "api/mcp/stdio": "mcp/clients",
    "api/rest/docs": "rest_contract docs",
    "base/http/client": "bench cli docs mcp/clients",
    "controller/egress": "credentials egress image layer ondemand packages seeds",
    "controller/egress/credentials": "credentials egress",
    "controller/egress/images": "image ondemand",
    "controller/egress/mirror/npm": "egress packages",
    "controller/egress/mirror/pypi": "egress layer packages seeds",
    "controller/layers": "layer",
    "pool/gpu": "gpus start",
    "pool/gpu/cdi": "gpus start",
    "controller/packages": "layer packages seeds",
    "tests/bench/program": "bench docker",
    "tests/conformance": "conformance",
}
SERVER = ["api", "pool/agent/program", "pool/gpu/program"]  # the rooms at the top of a server
KERNEL = ["pool/runtime/docker", "pool/runtime/oci", "pool/agent/client", "pool/agent/program"]

# Files outside the rooms, with the stages, or stage/suite, that can see their change. The first line that fits
# counts.
FILES = [
    (r"^docs/on-call\.md$", "server/docs server/faults"),
    (r"^docs/|\.md$|^LICENSE$|\.svg$", "server/docs"),
    (r"^(\.ci/|\.clang-|\.gitignore$|tests/(lint|bench|gpu)/|tests/plan\.py$|(run|test)$|sandbox_images/(lock|setup\.sh)$)", ""),
    (r"^(ROOMS|tests/catch_results\.py|tests/unit/main\.cpp)$", "unit"),
    (r"^tests/CMakeLists\.txt$", "unit kernel"),
    (r"^tests/(kernel|crash|security|cluster)/", r"\1"),
    (r"^helm/", "cluster"),
    (r"^tests/server/faults/", "server/faults"),
    (r"^tests/server/harness\.py$", "kernel server crash security"),
    (r"^tests/(second_try|reasons)\.py$", "unit server/start"),
    (r"^tests/server/mcp/conformance/", "server/conformance"),
    (r"^tests/server/mcp/", "server/mcp/clients"),
    (r"^tests/server/programs/", "server/differential"),
    (r"^tests/libraries/", "server/programs"),
    (r"^tests/server/notebook\.txt$", "server/notebook"),
    (r"^tests/server/run$", "server"),
    (r"^sandbox_images/polyglot/", "server/polyglot"),
    (r"^sandbox_images/", "kernel server crash security"),
]


def read(path):
    with open(os.path.join(REPO, path), encoding="utf-8") as file:
        return file.read()


def files(pattern):
    found = glob.glob(pattern, root_dir=REPO, recursive=True)
    return sorted(path for path in found if "/node_modules/" not in path and os.path.isfile(os.path.join(REPO, path)))


class Unit:
    """A test program: the rooms whose tests it contains, and every room that it is made of."""

    def __init__(self, name, holds, without, links, table):
        self.stage, self.name, self.seconds, self.needs = "unit", name, DEFAULT_SECONDS, [f"unit_{name}"]
        self.holds, self.without = holds, without
        own = [room for room in table for held in holds if under(room, held) or under(room, f"tests/{held}")]
        self.rooms = made_of(links + [room for room in own if not any(under(room, other) for other in without)], table)

    def sources(self):
        found = [path for room in self.holds for path in files(f"tests/unit/{room}/**/*")]
        return [path for path in found if not any(under(path, f"tests/unit/{room}") for room in self.without)]

    def cases(self):
        return catch_cases(self.sources())


class Kernel:
    stage = name = "kernel"
    seconds = DEFAULT_SECONDS
    needs = ["kernel_tests"]

    def cases(self):
        return catch_cases(files("tests/kernel/*.cpp"))


class Script:
    """A suite in Python. A line in it has its facts: `# suite: seconds=90 needs=node sanitizers=no`."""

    def __init__(self, stage, name, path):
        self.stage, self.name, self.path = stage, name, path
        said = re.search(r"^# suite: *(.*)$", read(path), re.MULTILINE)
        said = dict(word.split("=", 1) for word in said[1].split()) if said else {}
        self.seconds = float(said.pop("seconds", DEFAULT_SECONDS))
        self.needs = ["hearth", *filter(None, said.pop("needs", "").split(","))]
        self.named = list(filter(None, said.pop("cases", "").split(",")))  # if its cases are not functions of its own
        self.sanitizers = said.pop("sanitizers", "yes") == "yes"
        if said:
            raise SystemExit(f"{path}: `# suite:` knows seconds, needs, cases and sanitizers, not {', '.join(said)}")

    def cases(self):
        """Returns the functions with a docstring that are named outside of all functions, but not called: those that
        main() is given."""
        if self.named:
            return [(name, "") for name in self.named]
        tree = ast.parse(read(self.path))
        functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef) and ast.get_docstring(each)}
        top = [node for each in tree.body if not isinstance(each, (ast.FunctionDef, ast.ClassDef)) for node in ast.walk(each)]
        called = {id(node.func) for node in top if isinstance(node, ast.Call)}
        named = {node.id for node in top if isinstance(node, ast.Name) and id(node) not in called}
        return [(name, ast.get_docstring(each).splitlines()[0]) for name, each in functions.items() if name in named]


def under(path, folder):
    return path == folder or path.startswith(folder + "/")


def catch_cases(paths):
    text = "".join(read(path) for path in paths if path.endswith(".cpp"))
    named = re.findall(r'^TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)(?!,\s*"\[\.)', text, re.MULTILINE)
    titles = ("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', each)).replace('\\"', '"') for each in named)
    return [(title, "") for title in titles]


def rooms():
    """Returns the table ROOMS: the rooms that each room includes."""
    lines = re.findall(r"^([a-z/]+):(.*) -- ", read("ROOMS"), re.MULTILINE)
    return {room: includes.split() for room, includes in lines}


def made_of(tops, table):
    """Returns these rooms and all rooms that they depend on."""
    found, rest = set(), list(tops)
    while rest:
        room = rest.pop()
        if room not in found:
            found.add(room)
            rest += table[room]
    return found


def suites(table):
    """Returns every suite of the stages that have suites."""
    call = re.compile(r"^hearth_unit\((\w+) ROOMS ([^)]*?)(?: WITHOUT ([^)]*?))? LINK ([^)]*)\)", re.MULTILINE)
    found = [Unit(name, holds.split(), without.split(), links.split(), table)
             for name, holds, without, links in call.findall(read("tests/CMakeLists.txt"))]
    found.append(Kernel())
    for path in files("tests/server/**/*_test.py"):
        name = path[len("tests/server/"):-len("_test.py")]
        found.append(Script("server", "seeds" if name == "seeds/seeds" else name, path))
    return found + [Script(name, name, f"tests/{name}/run") for name in ("crash", "security", "gpu", "cluster")]


def measured():
    """Returns the seconds that the suites last took here, by stage and suite."""
    try:
        lines = [line.split() for line in read("build/test-logs/times").splitlines()]
        return {(stage, suite): float(seconds) for seconds, stage, suite in lines}
    except (OSError, ValueError):
        return {}


def note_time(stage, suite, seconds, cases=()):
    """Notes a time for ./test, which shows the slowest suites and keeps the times of whole ones for the next run."""
    if "HEARTH_TEST_TIMES" in os.environ:
        with open(os.environ["HEARTH_TEST_TIMES"], "a", encoding="utf-8") as file:
            file.write(f"{seconds:.1f} {stage} {suite}{' ' + str(len(cases)) if cases else ''}\n")


def server_suites(stage="server"):
    """Returns the suites of a server stage, the longest first, by the times of the last run."""
    known = measured()
    return sorted(of_stage(stage, suites(rooms())).values(), key=lambda each: -known.get((stage, each.name), each.seconds))


def of_stage(stage, known):
    """Returns the suites of a stage by name. A stage of another preset has those of its plain stage."""
    plain, _, preset = stage.partition("-")
    found = {each.name: each for each in known if each.stage == plain}
    return {name: each for name, each in found.items() if preset not in ("asan", "tsan") or getattr(each, "sanitizers", True)}


def by_name(names, known, stages):
    """Returns the plan for names: of a stage, a suite (also STAGE/SUITE), or a part of the names of cases."""
    plan = {}
    for name in names:
        short = re.sub(r"^unit_|_test(\.py)?$", "", name)
        exact = []
        if name in ("unit-asan", "unit-tsan"):
            exact = [(name, suite) for suite in SANITIZED]
        if name == "server-release":
            exact = [(name, suite) for suite in RELEASED]
        for stage in [] if exact else dict.fromkeys([*stages, *ON_REQUEST]):
            here, plain = of_stage(stage, known), stage.partition("-")[0]
            if name == stage or stage in stages and name == plain:
                exact += [(stage, suite) for suite in here or [stage]]
            exact += [(stage, suite) for suite in here if short == f"{stage}/{suite}"
                      or stage in stages and short in (suite, f"{plain}/{suite}")]
        if exact:
            plan.update(dict.fromkeys(exact, []))
            continue
        found = False
        for stage in stages:
            for suite, each in of_stage(stage, known).items():
                parts = [case for case, title in each.cases() if name.lower() in f"{case}\n{title}".lower()]
                if parts and plan.get((stage, suite)) != []:
                    plan.setdefault((stage, suite), []).extend(parts)
                found |= bool(parts)
        if not found:
            raise SystemExit(f"test: no stage, suite or case has '{name}' in its name; ./test --list shows what there is")
    return plan


def of_file(path, known, table):
    """Returns the stages and suites ("stage", "stage/suite") that can see a change of the file; None if that is
    unknown."""
    folder = os.path.dirname(path)
    if not path.endswith(".md") and (folder in table or under(path, "pool/agent/drivers")):
        room = folder if folder in table else "pool/agent/program"
        seen = [f"unit/{each.name}" for each in known if each.stage == "unit" and room in each.rooms]
        if room in made_of(KERNEL, table):
            seen.append("kernel")
        narrow = [key for key in SEEN_BY if under(room, key)]
        if narrow:
            server = SEEN_BY[max(narrow, key=len)].split()
            seen += [f"server/{each.name}" for each in known if each.stage == "server" and each.name in server]
        elif room in made_of(SERVER, table):
            seen += ["server", "crash", "security"]
        return seen
    for each in known:
        if each.stage == "unit" and path in each.sources():
            return [f"unit/{each.name}"]
        if isinstance(each, Script) and path == each.path:
            return [f"{each.stage}/{each.name}"]
    if path.startswith("tests/support/"):
        return [f"unit/{each.name}" for each in known if each.stage == "unit"
                and any('"tests/support/' in read(source) for source in each.sources())]
    for pattern, seen in FILES:
        if match := re.search(pattern, path):
            return match.expand(seen).split()
    module = re.fullmatch(r"tests/server/(\w+)\.py", path)
    if module:  # a module that several suites use
        return [f"server/{each.name}" for each in known if each.stage == "server"
                and re.search(rf"^(from|import) {module[1]}\b", read(each.path), re.MULTILINE)]
    return None


def by_change(paths, known, table):
    """Returns the plan, and for each stage/suite the files for which it was chosen."""
    why = {("lint", "lint"): []}
    for path in paths:
        seen = of_file(path, known, table)
        for name in DEFAULT if seen is None else seen:
            stage, _, suite = name.partition("/")
            for one in [suite] if suite else of_stage(stage, known) or [stage]:
                if (stage, one) in why or one == stage or one in of_stage(stage, known):
                    why.setdefault((stage, one), []).append(path)
    return why


def git(*words):
    done = subprocess.run(["git", "-c", "safe.directory=*", *words], cwd=REPO, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"test: git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.split("\n")[:-1]


def base_of_main():
    """Returns the commit where this branch left main."""
    for main in ("main", "origin/main"):
        if subprocess.run(["git", "-c", "safe.directory=*", "rev-parse", "-q", "--verify", main], cwd=REPO, capture_output=True,
                          check=False).returncode == 0:
            return git("merge-base", main, "HEAD")[0]
    raise SystemExit("test: this checkout has no branch main to compare with; name a commit: ./test --changed REF")


def changed_files(base):
    """Returns the files changed since the commit, whether committed, staged or neither, and new files that git does
    not ignore."""
    return sorted(set(git("diff", "--name-only", "--no-renames", base) + git("ls-files", "--others", "--exclude-standard")))


def say_why(why, paths, base, known):
    say = [f"==> changed since {base[:10]}: {len(paths)} files; what can see it, and one such file each:"]
    for stage in DEFAULT:
        chosen = {suite: files for (one, suite), files in why.items() if one == stage}
        everything = of_stage(stage, known)
        if len(chosen) == len(everything) > 1:
            seen_by_all = set.intersection(*map(set, chosen.values())) or set(paths)
            say.append(f"    {stage:9} all {len(chosen)}: {min(seen_by_all)}")
            continue
        by_file = {}
        for suite, files in chosen.items():
            by_file.setdefault(files[0] if files else "always", []).append(suite)
        for file, suites in by_file.items():
            say.append(f"    {stage:9} {'' if suites == [stage] else ', '.join(suites) + ': '}{file}")
    print("\n".join(say), file=sys.stderr)


def show(part, known):
    """Prints all suites with their times; for the name of a suite, its cases; for any other part, the cases that
    contain it."""
    times = measured()
    exact = any(part in (each.name, f"{each.stage}/{each.name}") for each in known)
    for stage in DEFAULT:
        if not part:
            print(stage)
        for suite, each in of_stage(stage, known).items():
            cases = each.cases()
            if not part:
                print(f"    {suite:16} {len(cases):4} cases  {times.get((stage, suite), each.seconds):5.0f} s")
                continue
            whole = part in (suite, f"{stage}/{suite}")
            found = [(case, title) for case, title in cases
                     if whole or not exact and part.lower() in f"{case}\n{title}".lower()]
            print("\n".join([f"{stage}/{suite}"] * bool(found) + [f"    {case}{': ' + title if title else ''}" for case, title in found]),
                  end="\n" if found else "")
    if not part:
        print(f"only when named: {' '.join(ON_REQUEST)}")


def main():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `./test --list | head` ends quietly
    what, words = sys.argv[1], sys.argv[2:]
    table = rooms()
    known = suites(table)
    if what == "list":
        show(" ".join(words), known)
        return
    if what == "needs":
        lines = [line.rstrip("\n").split("\t") for line in sys.stdin]
        needs = [need for stage, suite, *_ in lines if stage in words and stage not in ("lint", "tidy")
                 for need in of_stage(stage, known)[suite].needs]
        print("\n".join(dict.fromkeys(needs)))
        return
    if what == "changed":
        base = git("rev-parse", "--verify", f"{words[0]}^{{commit}}")[0] if words else base_of_main()
        paths = changed_files(base)
        plan = by_change(paths, known, table)
        say_why(plan, paths, base, known)
        plan = dict.fromkeys(plan, [])
    else:
        stages = DEFAULT
        if words[0] == "--in":
            stages, words = words[1].split(","), words[2:]
        plan = by_name(words, known, stages)
    order = DEFAULT + ON_REQUEST
    for (stage, suite), cases in sorted(plan.items(), key=lambda each: order.index(each[0][0])):
        print("\t".join([stage, suite, *cases]))


if __name__ == "__main__":
    main()
