"""tests/server/seeds/TABLE.md names the tests for each row of the seeds' documents. Every row must be there once, and
every named test must exist. A test's name belongs to the file before it, up to the next semicolon; without a file, to
seeds_test."""

import glob
import os
import re
import sys

SEEDS = "tests/server/seeds"
TABLE = f"{SEEDS}/TABLE.md"
# The number of rows of each document, and of rows that only its code has.
ROWS = {"S0": (43, 3), "S1": (62, 3), "S2": (32, 1), "S3": (25, 0)}
WORD = re.compile(r'(?P<end>;)|(?P<unit>\bunit:)|(?P<folder>\btests/[\w/]+(?:\.mjs)?)|(?P<file>\b(?:[A-Z]\w*Test|\w+_test)\b)'
                  r'|`(?P<code>[a-z]\w*)`|`[^`]*`|"(?P<case>[^"…]*)…?"|(?P<bare>\b[a-z]\w*_\w+\b(?!/))')


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def rows_of(cell):
    """Yields the ids that a first cell names: "S0-05, S0-26 GPU", "S0-41 to S0-43 licence"."""
    for seed, mark, first, last in re.findall(r"(S\d)-(x?)(\d+)(?: to S\d-(\d+))?", cell):
        for number in range(int(first), int(last or first) + 1):
            yield f"{seed}-{mark}{number}" if mark else f"{seed}-{number:02}"


def problems_of(cell, cited):
    """Yields the names in a second cell that do not exist. Adds its names of seeds_test to `cited`."""
    ours = read(f"{SEEDS}/seeds_test.py")
    folder, text = "", None
    for word in WORD.finditer(cell):
        kind, name = word.lastgroup, word.group(word.lastgroup) if word.lastgroup else ""
        if kind == "end":
            text = None
        elif kind == "unit":
            text = read("tests/unit/api/mcp/seeds/SeedsTest.cpp")
        elif kind == "folder":
            folder = name
            if not os.path.exists(folder):
                yield f"there is no {folder}"
        elif kind == "file":
            paths = glob.glob(f"tests/server/{name}.py") + glob.glob(f"{folder}/{name}.cpp")
            text = read(paths[0]) if paths else ""
            if not paths:
                yield f"there is no file {name}"
        elif kind == "code" and text is not None and f"def {name}(" not in text:
            yield f"there is no test {name}"
        elif kind == "case" and text is not None and f'TEST_CASE("{name}' not in text:
            yield f'there is no case "{name}"'
        elif kind == "bare" and f"def {name}(" not in ours and not glob.glob(f"{folder}/{name}.*"):
            yield f"there is no test {name}"
    cited |= {name for name in re.findall(r"\w+", cell) if f"def {name}(" in ours}


def main():
    found, rows, cited = [], [], set()
    for number, line in enumerate(read(TABLE).splitlines(), 1):
        cells = [cell.strip() for cell in line.split(" | ")]
        if not line.startswith("| ") or len(cells) < 2:
            continue
        rows += rows_of(cells[0])
        found += [(number, problem) for problem in problems_of(" | ".join(cells[1:]), cited)]
    wanted = [f"{seed}-{n:02}" for seed, (count, _) in ROWS.items() for n in range(1, count + 1)]
    wanted += [f"{seed}-x{n}" for seed, (_, more) in ROWS.items() for n in range(1, more + 1)]
    found += [(1, f"row {row} is there {rows.count(row)} times") for row in wanted if rows.count(row) != 1]
    found += [(1, f"no document has a row {row}") for row in rows if row not in wanted]
    tests = re.search(r"^TESTS = \[(.*?)\]", read(f"{SEEDS}/seeds_test.py"), re.DOTALL | re.MULTILINE)[1]
    found += [(1, f"no row names {test}") for test in re.findall(r"\w+", tests) if test not in cited | {"ends"}]
    for number, problem in found:
        print(f"{TABLE}:{number}: {problem}; fix the table")
    sys.exit(bool(found))


main()
