"""No function is longer than 70 lines, counted from the line of its name to the line of its closing brace: a constructor's
list of members counts. Functions are found by ctags (universal-ctags)."""

import json
import re
import subprocess
import sys

MOST_LINES = 70
SERVER = r"^(base|metrics|pool|controller|api)/.*\.(h|cpp)$"


def functions(paths):
    found = subprocess.run(["ctags", "-f", "-", "--output-format=json", "--fields=+ne", "--language-force=C++", "--kinds-C++=f", "-L", "-"],
                           input="\n".join(paths), capture_output=True, text=True, check=True)
    return [tag for tag in map(json.loads, found.stdout.splitlines()) if "end" in tag]


def main():
    with open(sys.argv[1], encoding="utf-8") as listed:
        paths = [path for path in listed.read().splitlines() if re.search(SERVER, path)]
    faults = []
    for tag in functions(paths):
        lines = tag["end"] - tag["line"] + 1
        if lines > MOST_LINES:
            faults.append(f"{tag['path']}:{tag['line']}: {tag['name']} has {lines} lines, more than {MOST_LINES}; give its steps names")
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
