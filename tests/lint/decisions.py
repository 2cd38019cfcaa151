"""A file of decisions has few entries, so that somebody reads it, and the one of the root leads to each."""

import re
import sys

NAME = "DECISIONS.md"
MOST_ENTRIES = 25


def main():
    paths = [path for path in open(sys.argv[1], encoding="utf-8").read().splitlines() if path.split("/")[-1] == NAME]
    with open(NAME, encoding="utf-8") as root:
        linked = set(re.findall(r"\]\(([^)\s]+)\)", root.read()))
    faults = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            entries = sum(line.startswith("- 20") for line in file)
        if entries > MOST_ENTRIES:
            faults.append(f"{path}:1: {entries} decisions; more than {MOST_ENTRIES} are two files, each beside its code")
        if path != NAME and path not in linked:
            faults.append(f"{path}:1: {NAME} does not link to it; give it a line in the table there")
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


main()
