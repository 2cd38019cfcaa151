"""Folders are levels: code includes its own folder's level and lower ones only (ARCHITECTURE.md)."""

import re
import sys

# Lowest first; folders of one line do not see each other. The longest prefix of a file's path decides.
LEVELS = [
    ["base"],
    ["metrics"],
    ["pool/sys", "pool/spec", "pool/tar"],
    ["pool/agent", "pool/image", "pool/gpu"],
    ["pool/launcher"],
    ["pool/runtime"],
    ["pool"],
    ["controller/broker"],
    ["controller"],
    ["api/http"],
    ["api/auth"],
    ["api/mcp/protocol"],
    ["api/mcp/tools"],
    ["api/mcp/resources"],
    ["api/rest", "api/mcp"],
    ["api/mcp/http", "api/mcp/stdio"],
    ["api/cli"],
]
RANK = {folder: rank for rank, folders in enumerate(LEVELS) for folder in folders}
SEES_ALL = ("controller/main.cpp", "controller/program/", "tests/")  # where the object graph is built, and what tests it
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def room_of(path):
    folder = path.rpartition("/")[0]
    while folder and folder not in RANK:
        folder = folder.rpartition("/")[0]
    return folder


def wrong_include(path, target):
    """What is wrong with an include of `target` in `path`, or None."""
    if target.startswith(".") or "/" not in target:
        return f'"{target}" is not a path from the root of the repository; write it as one'
    if target.startswith("tests/"):
        return f'"{target}" is a test; move what is needed out of tests/'
    here, there = room_of(path), room_of(target)
    if not there:
        return f'"{target}" is in no room of the house; include libraries with <>'
    if target.startswith("pool/agent/program/") and not path.startswith("pool/agent/program/"):
        return f'"{target}" belongs to the program inside the sandbox; only pool/agent itself is shared'
    if here == there or RANK[there] < RANK[here]:
        return None
    direction = "beside" if RANK[there] == RANK[here] else "above"
    return f"{here} includes {there}, which is {direction} it; turn it round with an interface in {here}"


def main():
    found = False
    for path in open(sys.argv[1], encoding="utf-8").read().splitlines():
        if not path.endswith((".h", ".cpp")) or path.startswith(SEES_ALL) or not room_of(path):
            continue
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            match = INCLUDE.match(line)
            wrong = match and wrong_include(path, match[1])
            if wrong:
                found = True
                print(f"{path}:{number}: {wrong}")
    sys.exit(found)


main()
