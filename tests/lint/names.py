"""No two headers define a class of one name in one namespace: the linker keeps one of their functions for both."""

import collections
import re
import sys

OPEN = re.compile(r"^(?:inline )?namespace ([\w:]+) *\{")
CLOSE = re.compile(r"^\}  // (?:inline )?namespace")
CLASS = re.compile(r"^(?:template.*)?(?:class|struct) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :.*)? ?\{")
INSIDE = "pool/agent/program"  # a program of its own, linked with nothing above it


def main():
    found = collections.defaultdict(list)
    for path in open(sys.argv[1], encoding="utf-8").read().splitlines():
        if not path.endswith(".h") or path.startswith((INSIDE, "tests/")):
            continue
        spaces = []
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            if opened := OPEN.match(line):
                spaces.append(opened[1])
            elif CLOSE.match(line) and spaces:
                spaces.pop()
            elif (defined := CLASS.match(line)) and spaces:
                found["::".join([*spaces, defined[1]])].append(f"{path}:{number}")
    faults = [f"{places[1]}: {name} is defined in {places[0]}, too; give it a name of its own" for name, places in found.items() if len(places) > 1]
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


main()
