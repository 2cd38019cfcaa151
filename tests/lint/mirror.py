"""Unit tests mirror the source: tests/unit/<room>/<File>Test.cpp, of this room or of tests/<room>. A test of a subject may
have another name, but not that of a file in another room."""

import os
import sys

UNIT = "tests/unit"


def main():
    paths = [path for path in open(sys.argv[1], encoding="utf-8").read().splitlines() if path.endswith((".h", ".cpp"))]
    rooms, places = set(), {}
    for path in paths:
        room, name = os.path.split(os.path.splitext(path)[0])
        if path.startswith(UNIT + "/"):
            continue
        while room and room not in rooms:
            rooms.add(room)
            room = os.path.dirname(room)
        places.setdefault(name, set()).add(os.path.dirname(path).removeprefix("tests/"))
    faults = []
    for path in paths:
        room, name = os.path.split(path.removeprefix(UNIT + "/"))
        if not path.startswith(UNIT + "/") or path.endswith(".h") or not room:
            continue
        if not name.endswith("Test.cpp"):
            faults.append(f"{path}:1: a file of tests is called <File>Test.cpp")
            continue
        if room not in rooms and f"tests/{room}" not in rooms:
            faults.append(f"{path}:1: there is no folder {room}; tests stand in that of what they test")
        tested = places.get(name.removesuffix("Test.cpp"), {room})
        if room not in tested:
            faults.append(f"{path}:1: {name.removesuffix('Test.cpp')} is in {min(tested)}; move the test to {UNIT}/{min(tested)}, or name it after its subject")
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


main()
