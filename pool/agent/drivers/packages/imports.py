"""Finds out which distributions the imports of a piece of Python code need, by reading it: nothing of it, and nothing that it
names, is run. distributions.json says what an import comes from; what stands there not is told, and never guessed."""

import ast
import importlib.util
import json
import os
import site
import sys

FORGIVING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def places():
    """Where modules are looked for by the code of a run, which stands in the directory that this is started in."""
    user = site.getusersitepackages()
    rest = [place for place in sys.path if place != os.path.dirname(os.path.abspath(__file__))]
    # What was the first to be installed for the user lies where nobody looked at the start.
    return rest if user in rest else [user, *rest]


class Finder(ast.NodeVisitor):
    """Names of the packages that are imported, without those the code can do without."""

    def __init__(self):
        self.names = set()

    def visit_Import(self, node):
        self.names.update(each.name.partition(".")[0] for each in node.names)

    def visit_ImportFrom(self, node):
        if node.level == 0 and node.module:
            self.names.add(node.module.partition(".")[0])

    def visit_Try(self, node):
        if any(self.forgives(handler.type) for handler in node.handlers):
            for each in [*node.handlers, *node.orelse, *node.finalbody]:
                self.visit(each)
        else:
            self.generic_visit(node)

    visit_TryStar = visit_Try

    def visit_If(self, node):
        test = node.test
        if getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING":
            for each in node.orelse:
                self.visit(each)
        else:
            self.generic_visit(node)

    @staticmethod
    def forgives(kind):
        kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        return any(each is None or getattr(each, "id", None) in FORGIVING for each in kinds)


def imported(code):
    """Of code that is none, nothing: its run says why."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    finder = Finder()
    try:
        finder.visit(tree)
    except RecursionError:
        pass
    return finder.names


def absent(names):
    standard = getattr(sys, "stdlib_module_names", sys.builtin_module_names)
    before, sys.path = sys.path, ["", *places()]
    importlib.invalidate_caches()
    try:
        for name in sorted(names):
            if name in standard or name in sys.builtin_module_names or name == "__future__":
                continue
            try:
                found = importlib.util.find_spec(name) is not None
            except (ImportError, ValueError):
                found = False
            if not found:
                yield name
    finally:
        sys.path = before


def missing(code):
    """Distributions to be installed, and imports of which none is known, with a word about each."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "distributions.json"), encoding="utf-8") as f:
        known = json.load(f)
    same = set(known["same"])
    wanted, unknown = [], {}
    for name in absent(imported(code)):
        if name in known["renamed"] or name in same:
            wanted.append(known["renamed"].get(name, name))
        else:
            unknown[name] = f"no distribution is known for import {name}; name it in packages"
    return list(dict.fromkeys(wanted)), unknown
