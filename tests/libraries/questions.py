"""What is asked of Python libraries: the list of libraries.json, and the programs in which a library's `use` runs. A `use` sets `result`, prints nothing
and is the same each time; a `draw` prints random numbers. Standard library only."""

import json
import os
import re

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libraries.json")
# Runs a use in two forked processes, in two threads, and in the run itself, in this order: a fork after threads is another question.
USE = """
import concurrent.futures, multiprocessing
def use(_=None):
    names = {{"__name__": "__main__"}}
    exec({use!r}, names)
    return repr(names["result"])
if __name__ == "__main__":
"""
WAYS = {
    "processes": "    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context('fork')) as pool:\n        print(*pool.map(use, range(2)))\n",
    "threads": "    with concurrent.futures.ThreadPoolExecutor(2) as pool:\n        print(*pool.map(use, range(2)))\n",
    "same": "    print(use())\n",
}


def load():
    with open(DATA, encoding="utf-8") as f:
        return json.load(f)


def store(name, measured):
    """Writes one measurement into the file as it is now, which may have changed since the start."""
    libraries = load()
    libraries[name]["measured"] = measured
    with open(DATA + ".new", "w", encoding="utf-8") as f:
        json.dump(libraries, f, indent=1, ensure_ascii=False)
        f.write("\n")
    os.replace(DATA + ".new", DATA)


def packages(library):
    """Returns what a pool needs to have this library."""
    return [library["pin"], *library.get("with", [])]


def normal(name):
    """Returns the name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def program(use, ways=WAYS):
    """Returns the program that runs the use in these ways."""
    return USE.format(use=use) + "".join(text for way, text in WAYS.items() if way in ways)
