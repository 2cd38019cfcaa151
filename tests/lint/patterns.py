"""Words that have no place in this code, each with its replacement."""

import re
import sys
from typing import NamedTuple


class Rule(NamedTuple):
    pattern: str        # a regular expression; may span lines
    where: str          # a regular expression: the paths to search
    unless: str         # the paths where it is allowed; "" for none
    advice: str


SERVER = r"^(base|metrics|pool|controller|api)/.*\.(h|cpp)$"
CODE = r"\.(h|cpp)$"
SLEEP = r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|\bpoll\s*\(\s*nullptr"

# A thread that sleeps answers nobody and sees no stop. Each place that sleeps has its reason here.
SLEEPS = {
    "api/cli/commands/ImageCommand.cpp": "once, in a command: the server's list may be a moment older than the import",
    "api/cli/remote/ExecutionFollower.cpp": "in a command, between tries to reach a server that is away",
    "base/host/Instance.cpp": "flock has no wait with a limit, and the holder that removes the folder is done in milliseconds",
    "controller/egress/ProxyConnection.cpp": "once, in the connection's own thread: a refused client is answered late",
    "controller/executions/ArtifactCollector.cpp": "once: file times move with the kernel's tick, and nothing tells of the next one",
    "pool/agent/program/main.cpp": "before the event loop runs; inotify tells when a socket is bound, which is before it listens",
    "pool/gpu/scrub/MemoryScrub.cpp": "NVML does not tell when a process has left a device",
    "pool/launcher/DiskWorkspace.cpp": "a loop device does not tell when it is free",
    "pool/launcher/Launcher.cpp": "flock has no wait with a limit, and the launcher has one thread",
    "pool/runtime/docker/DockerRuntime.cpp": "once: a daemon does not tell that nothing of a killed server is still to come",
    "tests/fake/runtime/FakeRuntime.cpp": "a runtime of tests that is told to be slow",
    "pool/sys/Cgroups.cpp": "cgroup v1 does not tell when the last process has left a group",
    "pool/sys/Freezer.cpp": "cgroup v1 does not tell when all processes are frozen",
}

# Searched in code without its comments and the contents of its strings.
CODE_RULES = [
    Rule(r"\bstd::(cout|cerr|clog)\b|\bf?printf\s*\(", SERVER,
         r"^(api/cli/|pool/agent/program/|pool/gpu/program/)",
         "the server speaks through metrics/Log.h only"),
    Rule(r"(\.|->)detach\s*\(\s*\)", CODE, r"^pool/agent/program/",  # no threads
         "nothing is detached: keep a jthread as the last member"),
    Rule(r"\bcatch\s*\(\s*\.\.\.\s*\)\s*\{\s*\}", CODE, "",
         "an error may not vanish: count it, or let it rise to the thread's top"),
    Rule(r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|\bsleep\s*\(", r"^tests/unit/.*\.(h|cpp)$", "",
         "unit tests do not sleep: move a FakeClock, or wait for a condition"),
    Rule(SLEEP, SERVER, "^(" + "|".join(map(re.escape, SLEEPS)) + ")$",
         "wait for a timer, a condition or a work key; where nothing tells, give the reason in SLEEPS of tests/lint/patterns.py"),
    Rule(r"\bstd::(mutex|(shared|recursive|timed)_\w*mutex|lock_guard|scoped_lock|unique_lock|shared_lock|condition_variable\w*)\b",
         SERVER, r"^base/Mutex\.h$",
         "the checker knows only the mutexes, locks and conditions of base/Mutex.h"),
    Rule(r"\[=\s*[\],]", CODE, "", "a lambda names what it captures"),
    Rule(r"\[[^\[\]]+\]\s*(\([^()]*\)\s*)?(mutable\s*)?->\s*(hearth::)?Task<", CODE, "",
         "no coroutine is a lambda with captures: they die before it ends; write a function with parameters"),
    Rule(r"\b(Unique)?(Mutex|Writer|Reader)Lock\s+\w+\s*[({][^;]*;[^{}]*(\{[^{}]*\}[^{}]*)*\{?[^{}]*\bco_await\b", CODE, "",
         "no lock is held across co_await: another thread may go on with the task"),
]

# Searched in everything, comments included.
TEXT_RULES = [
    Rule(r"(?<![\w./-])/(work|home/\w+|Users/\w+|root)/(?=\w)", r".", "",
         "a path of one machine; derive it, or let it be configured"),
    Rule(r"\b(TODO|FIXME|XXX)\b", r".", r"^tests/lint/", "finish it, or file an issue"),
    Rule(r"\bDESIGN\b(?!=)|\b(API|HOUSE|STYLE|SEEDS|MCP|OPS|SECURITY|RELIABILITY|PERFORMANCE|KUBERNETES)\.md\b", r".",
         r"^tests/lint/", "a page that readers of the repository do not have; name one of docs/, ARCHITECTURE or PROTOCOL"),
    Rule(r"(//|/\*)[/<!*]*\s+(What|Who|Whose|Whom|Those|Of|Whether)\b", r"\.(h|cpp|js)$", r"^tests/(unit|kernel|bench|fake)/",
         "a comment begins with its subject or its verb: The limits of ..., Returns ..., True if ..."),
    Rule(r"^(<{7}|>{7}) ", r".", "", "a merge was left unfinished"),
]


def blank(match):
    """Replaces a comment or the inside of a string by spaces. Lines stay where they are."""
    text = match.group(0)
    hollow = re.sub(r"[^\n]", " ", text)
    return text[0] + hollow[1:-1] + text[-1] if text[0] in "\"'" else hollow


TOKENS = re.compile(
    r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)


def main():
    found = False
    sleeping = set()
    for path in open(sys.argv[1], encoding="utf-8").read().splitlines():
        try:
            text = open(path, encoding="utf-8").read()
        except UnicodeDecodeError:
            continue
        rules = [(rule, text) for rule in TEXT_RULES]
        if re.search(CODE, path):
            code = TOKENS.sub(blank, text)
            if re.search(SLEEP, code):
                sleeping.add(path)
            rules += [(rule, code) for rule in CODE_RULES]
        for rule, searched in rules:
            if not re.search(rule.where, path) or (rule.unless and re.search(rule.unless, path)):
                continue
            for match in re.finditer(rule.pattern, searched, re.MULTILINE):
                found = True
                line = searched.count("\n", 0, match.start()) + 1
                print(f"{path}:{line}: {' '.join(match.group(0).split())}: {rule.advice}")
    for path in sorted(SLEEPS.keys() - sleeping):
        found = True
        print(f"{path}:1: nothing sleeps here any more; take it out of SLEEPS in tests/lint/patterns.py")
    sys.exit(found)


main()
