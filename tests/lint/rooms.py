"""Includes are those of the table ROOMS, which has no circle: a room names only rooms above its own line."""

import os
import re
import sys

TABLE = "ROOMS"
MOST_FILES = 40
LINE = re.compile(r"^([a-z/]+):(.*) -- (.+)$")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')


def read_table():
    """Returns the rooms that each room may include, in the order of the table, with its line."""
    rooms, faults = {}, []
    for number, line in enumerate(open(TABLE, encoding="utf-8"), 1):
        if line.startswith("#") or not line.strip():
            continue
        match = LINE.match(line)
        if not match or match[1] in rooms:
            faults.append(f"{TABLE}:{number}: not a line of the table, or a second one; write `room: rooms -- what it is for`")
            continue
        for other in match[2].split():
            if other not in rooms:
                faults.append(f"{TABLE}:{number}: {other} does not stand above {match[1]}; a room includes only rooms above it")
        rooms[match[1]] = (number, set(match[2].split()))
    return rooms, faults


def main():
    rooms, faults = read_table()
    files, used = {}, {}
    for path in open(sys.argv[1], encoding="utf-8").read().splitlines():
        room = os.path.dirname(path)
        if not path.endswith((".h", ".cpp")) or (path.startswith("tests/") and room not in rooms):
            continue
        if room not in rooms:
            faults.append(f"{path}:1: {room} is in no line of {TABLE}; give the room one, or move the file")
            continue
        files[room] = files.get(room, 0) + 1
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            other = os.path.dirname(match[1])
            if other != room and other not in rooms[room][1]:
                faults.append(f'{path}:{number}: {room} may not include "{match[1]}"; its line in {TABLE} says what it may')
            used.setdefault(room, set()).add(other)
    for room, (number, allowed) in rooms.items():
        if room not in files:
            faults.append(f"{TABLE}:{number}: {room} has no files; take the line out")
        elif files[room] > MOST_FILES:
            faults.append(f"{TABLE}:{number}: {room} has {files[room]} files; more than {MOST_FILES} are two rooms")
        for other in sorted(allowed - used.get(room, set())):
            faults.append(f"{TABLE}:{number}: {room} does not include {other}; take it out")
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


main()
