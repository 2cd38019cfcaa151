"""Runs a piece of code as the program of this process, as `python3 FILE` would, and tells its channel
what came of it.

The channel is described in PROTOCOL.md (Drivers): messages `<kind> <bytes>\\n<payload>`. What
the code is told apart from an ordinary program: the value of its last expression is a result,
tracebacks show its own lines only, text is UTF-8 whatever the locale says.
"""

import os
import sys
from builtins import compile, exec

import _ast

OWN = __file__.rpartition("/")[0] + "/"
ERROR_LIMITS = {"name": 200, "message": 2000, "traceback": 8000}  # as JSON, below 64 KiB
CHANNEL = 900  # its descriptor: out of the way of those that programs open
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without importing ast
PRINTED_FRAMES = 1000  # so many of a traceback, the last ones, Python itself prints
FUTURE_FLAGS = 0x1FE0000  # every `from __future__ import …` that code objects carry


class Channel:
    """Where results go. Silent until it is opened, and in every process that the program forks."""

    fd = None
    owner = None

    def open(self, fd):
        os.dup2(fd, CHANNEL, inheritable=False)
        if fd != CHANNEL:
            os.close(fd)
        self.fd = CHANNEL
        self.owner = os.getpid()
        if hasattr(os, "register_at_fork"):  # not in Python 3.6
            os.register_at_fork(after_in_child=self.leave)

    def leave(self):
        self.fd = None
        try:
            os.close(CHANNEL)
        except OSError:  # the program has closed it
            pass

    def of_fork(self):
        """Whether this is a child that the program has forked: it ends as any process, and nobody waits for it."""
        return self.owner not in (None, os.getpid())

    def send(self, kind, payload):
        if self.fd is None or self.of_fork():  # C code forks without calling `leave`
            return
        data = b"%s %d\n%s" % (kind, len(payload), payload)
        try:
            while data:
                data = data[os.write(self.fd, data) :]
        except OSError:  # nobody listens any more: the output is still the program's
            self.fd = None


channel = Channel()


class Source:
    """The text of a program, and the loader that tracebacks and inspect ask for it."""

    def __init__(self, name, text):
        self.name = name
        self.text = text

    def get_source(self, module_name):
        return self.text.decode("utf-8", "replace")

    def lines(self):
        return self.get_source(None).splitlines(keepends=True)


def own_frames(frames):
    """A traceback from the first frame on that is not of these files."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(OWN):
        frames = frames.tb_next
    return frames


def last_frames(frames, count):
    end = frames
    for _ in range(count):
        if end is None:
            return frames
        end = end.tb_next
    while end is not None:
        frames, end = frames.tb_next, end.tb_next
    return frames


def describe(source, error):
    import linecache
    import traceback

    linecache.cache[source.name] = (len(source.text), None, source.lines(), source.name)
    limit = getattr(sys, "tracebacklimit", PRINTED_FRAMES)
    limit = max(limit, 0) if isinstance(limit, int) else PRINTED_FRAMES
    frames = last_frames(own_frames(error.__traceback__), limit)
    text = traceback.format_exception(type(error), error, frames, limit=-limit)
    return "".join(text)


def clip(text, limit):
    """Head and tail of a text that is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n... %d characters left out ...\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def report(error, text):
    import json

    try:
        message = str(error)
    except Exception as failure:  # a program's own __str__ may do anything
        message = "<no message: __str__ raised %s>" % type(failure).__name__
    parts = {"name": type(error).__name__, "message": message, "traceback": text}
    parts = {key: clip(value, ERROR_LIMITS[key]) for key, value in parts.items()}
    channel.send(b"error", json.dumps(parts).encode("ascii"))


def displayhook(value):
    """The value of a last expression becomes a result."""
    if value is not None:
        results().send_value(value, main=True)


def results():
    """results.py, which costs time to load and is needed only where there is something to show."""
    module = sys.modules.get("hearth_results")
    if module is None:
        from importlib.util import module_from_spec, spec_from_file_location

        spec = spec_from_file_location("hearth_results", OWN + "results.py")
        module = module_from_spec(spec)
        sys.modules["hearth_results"] = module
        spec.loader.exec_module(module)
    return module


def compiled(source):
    """Code objects that run the program; the last, if it shows a value, is of its own."""
    tree = compile(source.text, source.name, "exec", ONLY_AST, dont_inherit=True)
    last = None
    if tree.body and isinstance(tree.body[-1], _ast.Expr):
        last = tree.body.pop()
    codes = [compile(tree, source.name, "exec", dont_inherit=True)]
    if last is not None:
        flags = codes[0].co_flags & FUTURE_FLAGS
        shown = _ast.Interactive([last])
        codes.append(compile(shown, source.name, "single", flags, dont_inherit=True))
    return codes


class Hooks:
    """Finds what can show something when the program imports it, so that showing makes a result."""

    NAMES = ("matplotlib.pyplot", "PIL.Image")

    def find_spec(self, name, path=None, target=None):
        if name not in self.NAMES:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and hasattr(spec.loader, "exec_module"):
                self.after_loading(spec.loader, name)
            if spec is not None:
                return spec
        return None

    @staticmethod
    def after_loading(loader, name):
        load = loader.exec_module

        def exec_module(module):
            load(module)
            results().hook(name, module)

        loader.exec_module = exec_module


def run(source, module):
    """Runs it in the module's namespace; the exception that ended it, or None."""
    ended_by = None
    try:
        for code in compiled(source):
            exec(code, module.__dict__)
    except BaseException as error:
        ended_by = error
    if "matplotlib.pyplot" in sys.modules and not channel.of_fork():
        results().send_open_figures()
    return ended_by


def main_module(source, path=None):
    """A new __main__."""
    module = type(sys)("__main__")
    if path is not None:
        module.__file__ = path
    module.__loader__ = source
    module.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = module
    return module


def set_up():
    """What differs from a plain interpreter, before any code runs."""
    sys.displayhook = displayhook
    sys.meta_path.insert(0, Hooks())
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
