"""No function is longer than 70 lines, counted from the line of its name to the line of its closing brace: a constructor's
list of members counts. Functions are found by ctags (universal-ctags)."""

import json
import re
import subprocess
import sys

MOST_LINES = 70
SERVER = r"^(base|metrics|pool|controller|api)/.*\.(h|cpp)$"

# Longer ones that are being split.
BEING_SPLIT = {
    ("api/mcp/seeds/SeedS0.cpp", "s0Tools"),
    ("api/mcp/seeds/SeedS1.cpp", "s1Tools"),
    ("api/mcp/server/McpServer.cpp", "callTool"),
    ("api/mcp/tools/WorkspaceTools.cpp", "workspaceTools"),
    ("api/serve/HearthServer.cpp", "HearthServer"),
    ("controller/executions/ExecutionStarter.cpp", "launch"),
    ("controller/executions/LiveExecution.cpp", "viewUpTo"),
    ("controller/reconcile/PoolReconciler.cpp", "reconcile"),
}


def functions(paths):
    found = subprocess.run(["ctags", "-f", "-", "--output-format=json", "--fields=+ne", "--language-force=C++", "--kinds-C++=f", "-L", "-"],
                           input="\n".join(paths), capture_output=True, text=True, check=True)
    return [tag for tag in map(json.loads, found.stdout.splitlines()) if "end" in tag]


def main():
    with open(sys.argv[1], encoding="utf-8") as listed:
        paths = [path for path in listed.read().splitlines() if re.search(SERVER, path)]
    faults, long = [], set()
    for tag in functions(paths):
        lines = tag["end"] - tag["line"] + 1
        if lines <= MOST_LINES:
            continue
        long.add((tag["path"], tag["name"]))
        if (tag["path"], tag["name"]) not in BEING_SPLIT:
            faults.append(f"{tag['path']}:{tag['line']}: {tag['name']} has {lines} lines, more than {MOST_LINES}; give its steps names")
    for path, name in sorted(BEING_SPLIT - long):
        faults.append(f"{path}:1: {name} is not too long any more; take it out of BEING_SPLIT in tests/lint/functions.py")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
