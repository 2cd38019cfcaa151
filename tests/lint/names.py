"""No two headers define a class of one name in one namespace: the linker keeps one of their functions for both. And no
name of the outermost namespace comes again in an inner one: which of the two is meant would depend on what a file includes."""

import collections
import re
import sys

OPEN = re.compile(r"^(?:inline )?namespace ([\w:]+) *\{")
CLOSE = re.compile(r"^\}  // (?:inline )?namespace")
CLASS = re.compile(r"^(?:template.*)?(?:class|struct) (?:HEARTH_\w+(?:\([^)]*\))? )?(?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :.*)? ?\{")
ALIAS = re.compile(r"^using (\w+) =")
OUTERMOST = "hearth"
INSIDE = "pool/agent/program"  # a program of its own, not linked with anything above it


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
            elif (defined := CLASS.match(line) or ALIAS.match(line)) and spaces:
                found["::".join([*spaces, defined[1]])].append(f"{path}:{number}")
    faults = [f"{places[1]}: {name} is defined in {places[0]}, too; give it a name of its own" for name, places in found.items() if len(places) > 1]
    for name, places in found.items():
        outer = found.get(f"{OUTERMOST}::{name.rpartition('::')[2]}")
        if outer and outer != places:
            faults.append(f"{places[0]}: {name} hides that of {outer[0]}; give it a name of its own")
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


main()
