"""Names of file scope that hide a header's: hiding.py FILES, a file with the files that git knows, one a line.

Files are compiled together (CMakeLists.txt, HEARTH_UNITS), so a function in the anonymous namespace of one is seen by those after it: where a header
declares another of that name in the same namespace or in one around it, they would call the wrong one, without a word from the compiler.
Names are read by ctags (universal-ctags)."""

import collections
import json
import subprocess
import sys

INSIDE = "pool/agent/program"  # compiled file by file


def tags(paths):
    found = subprocess.run(["ctags", "-f", "-", "--output-format=json", "--fields=+nsK", "--language-force=C++", "--kinds-C++=+p", "-L", "-"],
                           input="\n".join(paths), capture_output=True, text=True, check=True)
    for line in found.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("scopeKind") == "namespace" and tag["kind"] != "namespace":
            yield tag


def main():
    with open(sys.argv[1], encoding="utf-8") as listed:
        paths = [path for path in listed.read().split() if not path.startswith(("tests/", INSIDE))]
    declared = collections.defaultdict(dict)
    for tag in tags([path for path in paths if path.endswith(".h")]):
        declared[tag["name"]].setdefault(tag["scope"], f"{tag['path']}:{tag['line']}")
    found = 0
    for tag in tags([path for path in paths if path.endswith(".cpp")]):
        around = [part for part in tag["scope"].split("::") if not part.startswith("__anon")]
        if len(around) == len(tag["scope"].split("::")):
            continue
        for end in range(len(around), 0, -1):
            if there := declared[tag["name"]].get("::".join(around[:end])):
                print(f"{tag['path']}:{tag['line']}: '{tag['name']}' hides that of {there}; give it another name")
                found += 1
                break
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
