"""Names of file scope: file_scope.py FILES, a file with the files that git knows, one a line.

Files are compiled together (HEARTH_UNITS in CMakeLists.txt), so a name in the anonymous namespace of one is seen by those after it. Two files of a wing
or of a unit program with one name do not compile as soon as they fall into one unit. Where a header declares another function of that name in the same namespace or in one
around it, the files after it call the wrong one, without a word from the compiler. Names are read by ctags (universal-ctags)."""

import collections
import json
import re
import subprocess
import sys

INSIDE = "pool/agent/program"  # its files are compiled one by one
TOGETHER = [r"^tests/bench/program/"]  # besides the wings
KINDS = ("variable", "struct", "class", "enum", "typedef", "function")


def tags(paths):
    found = subprocess.run(["ctags", "-f", "-", "--output-format=json", "--fields=+nsSK", "--language-force=C++", "--kinds-C++=+px", "-L", "-"],
                           input="\n".join(paths), capture_output=True, text=True, check=True)
    for line in found.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("scopeKind") == "namespace" and tag["kind"] != "namespace":
            tag["scope"] = tag["scope"].replace("hearth::agent::client", "hearth::agent")  # inline, AgentTypes.h
            yield tag


def of_file_scope(paths):
    """Yields the names in anonymous namespaces, each with the namespaces around it."""
    for tag in tags(paths):
        parts = tag["scope"].split("::")
        around = [part for part in parts if not part.startswith("__anon")]
        if len(around) < len(parts) and tag["kind"] != "prototype":
            yield tag, around


def usings(path):
    """Yields the lines with `using …::NAME;`, each with the name and the namespaces around it, as far as its file has one."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    around = re.findall(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
    for found in re.finditer(r"^using [\w:]+::(\w+);", text, re.MULTILINE):
        if len(around) == 1:
            yield text[:found.start()].count("\n") + 1, found[1], around[0].split("::")


def unit_programs():
    """Returns a pattern of the files of each unit program. One that leaves rooms out comes after the program that has them."""
    with open("tests/CMakeLists.txt", encoding="utf-8") as file:
        programs = re.findall(r"^hearth_unit\(\w+ ROOMS (.*?)( WITHOUT [^)]*?)?(?: LINK [^)]*)?\)$", file.read(), re.MULTILINE | re.DOTALL)
    return [f"^tests/unit/({'|'.join(rooms.split())})/" for rooms, _ in sorted(programs, key=lambda program: bool(program[1]))]


def wings():
    with open("CMakeLists.txt", encoding="utf-8") as file:
        listed = re.search(r"^set\(WINGS(.*?)\)\n\n", file.read(), re.MULTILINE | re.DOTALL)
    return [*TOGETHER, *unit_programs(), *re.findall(r'"(.*?)"', listed[1])]


def main():
    with open(sys.argv[1], encoding="utf-8") as listed:
        paths = [path for path in listed.read().split() if not path.startswith(INSIDE)]
    declared = collections.defaultdict(dict)
    for tag in tags([path for path in paths if path.endswith(".h") and not path.startswith("tests/")]):
        declared[tag["name"]].setdefault(tag["scope"], f"{tag['path']}:{tag['line']}")
    found, once = [], {}
    patterns = wings()
    for tag, around in of_file_scope([path for path in paths if path.endswith(".cpp")]):
        place = f"{tag['path']}:{tag['line']}"
        hidden = next((there for end in range(len(around), 0, -1) if (there := declared[tag["name"]].get("::".join(around[:end])))), None)
        if hidden:
            found.append(f"{place}: '{tag['name']}' hides that of {hidden}; give it another name")
        wing = next((number for number, pattern in enumerate(patterns) if re.search(pattern, tag["path"])), None)
        if wing is None or tag["kind"] not in KINDS:
            continue
        key = (wing, *around, tag["name"], tag["kind"], tag.get("signature") if tag["kind"] == "function" else "")
        other = once.setdefault(key, tag)
        if other["path"] != tag["path"]:
            found.append(f"{place}: '{tag['name']}' is in {other['path']}:{other['line']} of the same wing or unit program, too; give it another name, or put it once into a header")
    names = {(wing, tuple(around), name): tag for (wing, *around, name, kind, _), tag in once.items() if kind in ("function", "variable")}
    for path in (path for path in paths if path.endswith(".cpp")):
        wing = next((number for number, pattern in enumerate(patterns) if re.search(pattern, path)), None)
        for line, name, around in usings(path):
            other = names.get((wing, tuple(around), name))
            if other and other["path"] != path:
                found.append(f"{path}:{line}: '{name}' is a name of {other['path']}:{other['line']}, too; write it out")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
