"""Runs a piece of code as the program of this process, as `python3 FILE` would, and tells its channel
what came of it.

The channel is described in PROTOCOL.md (Drivers): messages `<kind> <bytes>\\n<payload>`. What
the code is told apart from an ordinary program: the value of its last expression is a result, what a
program shows is a result too (`display`, figures), text is UTF-8 whatever the locale says.

A program may replace any module and any builtin, and files of the workspace are found before the
library's. So what a driver needs later it has imported before, and it has builtins of its own.
"""

import builtins
import os
import posix
import sys
from _io import StringIO
from _io import open as open_file
from builtins import compile, eval, exec

import _ast
from _json import encode_basestring_ascii
from _thread import get_ident
from _weakref import ref

import hearth_frames

__builtins__ = dict(vars(builtins))

OWN = __file__.rpartition("/")[0] + "/"
ERROR_LIMITS = {"name": 200, "message": 2000, "traceback": 8000}  # with what JSON makes of them below 64 KiB
CHANNEL = 900  # its descriptor: out of the way of those that programs open
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without importing ast
TOP_LEVEL_AWAIT = 0x2000
COROUTINE = 0x80  # inspect.CO_COROUTINE
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
                data = data[posix.write(self.fd, data) :]
        except OSError:  # nobody listens any more: the output is still the program's
            self.fd = None


channel = Channel()
excepthook = sys.__excepthook__
stack = hearth_frames.Stack()


class Source:
    """The text of a program: of a file that has it, or without a file as a cell of a notebook."""

    def __init__(self, title, text, path=None):
        self.title = title
        self.path = path
        self.name = path or title  # that code objects have
        self.text = text
        self.encoding = declared_encoding(text) or "utf-8"

    def code(self):
        """For compile(): a cell is text already, whatever encoding a comment names."""
        return self.text if self.path else self.text.decode("utf-8-sig")

    def save(self):
        """Makes a comment true that names another encoding than UTF-8, in which the text came."""
        try:
            saved = self.text.decode("utf-8").encode(self.encoding)
            if saved != self.text:
                with open_file(self.path, "wb") as file:
                    file.write(saved)
                self.text = saved
        except (UnicodeError, LookupError, OSError):
            pass  # the interpreter says what is wrong with it

    def is_plain(self):
        """Whether compile() and an interpreter that reads the file take it for the same."""
        try:
            self.text.decode(self.encoding)
        except (UnicodeError, LookupError):
            return False
        return b"\0" not in self.text


def declared_encoding(text):
    """Returns the encoding that a comment in the first two lines names (PEP 263)."""
    for line in text.split(b"\n", 2)[:2]:
        comment = line.lstrip(b" \t\f")
        if not comment.startswith(b"#"):
            if comment.strip():
                return None
            continue
        for mark in (b"coding:", b"coding="):
            before, found, after = comment.partition(mark)
            words = after.split()
            if found and words:
                return words[0].decode("ascii", "replace")
    return None


def program_frames(source, frames):
    """A traceback from the program's first frame on, without the driver's."""
    first = frames
    while first is not None and first.tb_frame.f_code.co_filename != getattr(source, "name", None):
        first = first.tb_next
    rest = []
    each = first or frames
    while each is not None:
        if not each.tb_frame.f_code.co_filename.startswith(OWN):
            rest.append(each)
        else:  # of Hooks, called by an import, whose frames the interpreter takes out
            while rest and rest[-1].tb_frame.f_code.co_filename.startswith("<frozen importlib"):
                rest.pop()
        each = each.tb_next
    for at, each in enumerate(rest):
        following = rest[at + 1] if at + 1 < len(rest) else None
        if each.tb_next is not following:  # to set it walks the whole chain
            each.tb_next = following
    return rest[0] if rest else None


def without_driver(source, error):
    """Takes the driver's frames out of an exception and of those behind it."""
    seen = set()
    rest = [error]
    while rest:
        each = rest.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = program_frames(source, each.__traceback__)
        rest += [each.__cause__, each.__context__, *(getattr(each, "exceptions", None) or ())]


class Report:
    """Stands for sys.stderr while the interpreter itself says what has ended a program."""

    def __init__(self, stream):
        self.stream = stream
        self.thread = get_ident()
        self.parts = []

    def write(self, text):
        if get_ident() == self.thread:
            self.parts.append(text)
        elif self.stream is not None:
            self.stream.write(text)

    def flush(self):
        pass


def interpreters_own(error):
    """Returns the interpreter's own text about an uncaught exception, which needs no module."""
    stream = getattr(sys, "stderr", None)
    sys.stderr = said = Report(stream)
    try:
        excepthook(type(error), error, error.__traceback__)
    finally:
        sys.stderr = stream
    return "".join(said.parts)


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
    text = None
    if source.path is None:  # cells have no file for the interpreter to read
        try:
            import traceback

            limit = getattr(sys, "tracebacklimit", PRINTED_FRAMES)
            limit = max(limit, 0) if isinstance(limit, int) else PRINTED_FRAMES
            frames = last_frames(error.__traceback__, limit)
            if isinstance(error, SyntaxError) and error.text is None and error.filename == source.name:
                error.text = traceback.linecache.getline(source.name, error.lineno)
            text = "".join(traceback.format_exception(type(error), error, frames, limit=-limit))
        except Exception:
            text = None  # it may have replaced what that needs
    if text is None:
        text = interpreters_own(error)
    return text.replace('"%s"' % source.path, '"%s"' % source.title) if source.path else text


def printable(text):
    """The text with what UTF-8 cannot say escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def quoted(text):
    """As a JSON string."""
    return encode_basestring_ascii(printable(text))


def clip(text, limit):
    """Head and tail of a text that is too long."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n... %d characters left out ...\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def clip_as_json(text, limit):
    """clip(), and shorter if JSON makes it much longer."""
    most = 6 * limit
    while len(quoted(clip(text, limit))) > most + 100:
        limit //= 2
    return quoted(clip(text, limit))


def report(error, text):
    try:
        message = str(error)
    except Exception as failure:  # a program's own __str__ may do anything
        message = "<no message: __str__ raised %s>" % type(failure).__name__
    parts = {"name": type(error).__name__, "message": message, "traceback": text}
    members = ('"%s":%s' % (key, clip_as_json(value, ERROR_LIMITS[key])) for key, value in parts.items())
    channel.send(b"error", ("{%s}" % ",".join(members)).encode("ascii"))


def print_error(text):
    """False if there is no sys.stderr that takes it."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
        return True
    except Exception:
        return False


def tell_uncaught(source, error):
    """Reports and prints what ended a program, as the interpreter does."""
    without_driver(source, error)
    text = describe(source, error)
    report(error, text)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", None)
    if hook is excepthook:
        if not print_error(text):
            hook(type(error), error, error.__traceback__)  # knows what to do then
    elif hook is None:
        print_error("sys.excepthook is missing\n" + text)
    else:
        try:
            stack.call(hook, (type(error),), (error,), (error.__traceback__,))
        except Exception as failure:
            without_driver(source, failure)
            print_error("Error in sys.excepthook:\n%s\nOriginal exception was:\n%s" % (describe(source, failure), text))


def displayhook(value):
    """The value of a last expression becomes a result."""
    if value is not None:
        results().send_value(value, main=True)


def display(*values, **options):
    """Makes a result of each value, as notebooks do: the builtin of this name."""
    return results().display(*values, **options)


def results():
    """results.py, which costs time to load and is needed only where there is something to show."""
    module = loaded.get("results")
    if module is None:
        module = loaded["results"] = type(sys)("hearth_results")
        module.__dict__.update(__builtins__=__builtins__, program=this)
        with open_file(OWN + "results.py", "rb") as file:
            exec(compile(file.read(), file.name, "exec", dont_inherit=True), module.__dict__)
    return module


this = sys.modules[__name__]
loaded = {}


def parsed(source, flags):
    """The tree of a program. What is indented as a whole is taken as it is meant; notebooks do the same."""
    try:
        return compile(source.code(), source.name, "exec", ONLY_AST | flags, dont_inherit=True)
    except IndentationError as error:
        tree = parsed_indented(source, flags) if error.msg == "unexpected indent" else None
        if tree is None:
            raise
        return tree


def parsed_indented(source, flags):
    code = source.code()
    try:
        tree = compile((b"if 1:\n" if source.path else "if 1:\n") + code, source.name, "exec", ONLY_AST | flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    if len(tree.body) != 1 or tree.body[0].orelse:
        return None
    tree.body = tree.body[0].body
    rest = [*tree.body]
    while rest:
        node = rest.pop()
        for name in ("lineno", "end_lineno"):
            if isinstance(getattr(node, name, None), int):
                setattr(node, name, getattr(node, name) - 1)
        for field in node._fields:
            value = getattr(node, field, None)
            rest += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, _ast.AST)]
    return tree


def compiled(source, flags):
    """Code objects that run the program; the last, if it has a value to show, is of its own."""
    try:
        return codes_of(source, flags)
    except SyntaxError as error:
        results().explain(source, error)
        raise


def codes_of(source, flags):
    tree = parsed(source, flags)
    last = None
    if tree.body and isinstance(tree.body[-1], _ast.Expr):
        last = _ast.Expression(tree.body.pop().value)
    codes = []
    future = 0
    if tree.body or last is None:
        codes.append(compile(tree, source.name, "exec", flags, dont_inherit=True))
        future = codes[0].co_flags & FUTURE_FLAGS
    if last is not None:
        codes.append(compile(last, source.name, "eval", flags | future, dont_inherit=True))
    return codes


def run_unread(source, module):
    """Has the interpreter read the file itself, of which compile() would say something else: NUL, a wrong encoding."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    run_file = ctypes.pythonapi.PyRun_FileExFlags
    run_file.restype = ctypes.py_object
    run_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p]
    name = source.path.encode("utf-8", "surrogateescape")
    file_input = 257
    run_file(libc.fopen(name, b"rb"), name, file_input, module.__dict__, module.__dict__, 1, None)


class Hooks:
    """Finds what can show something when the program imports it, so that showing makes a result."""

    NAMES = frozenset(("linecache", "matplotlib.pyplot", "PIL.Image", "webbrowser", "plotly.io._renderers",
                       "plotly.basedatatypes", "altair", "IPython.core.display_functions"))

    def find_spec(self, name, path=None, target=None):
        if name not in self.NAMES or name == "linecache" and not cell_texts:
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
            if name == "linecache":
                if hasattr(module, "cache"):  # not a file of the workspace with this name
                    give_lines(module, cell_texts)
            else:
                results().hook(name, module)

        loader.exec_module = exec_module


class Cells:
    """The texts of all cells of a context, and the loop for cells that await at their top."""

    def __init__(self):
        self.count = 0
        self.run_coroutine = None

    def source(self, text):
        self.count += 1
        source = Source("cell %d" % self.count, text)
        cell_texts[source.name] = text
        if hasattr(sys.modules.get("linecache"), "cache"):
            give_lines(sys.modules["linecache"], [source.name])
        return source

    def run_in_loop(self, codes, namespace):
        """A cell that awaits at its top runs in a loop, which goes on with the next one."""
        import asyncio

        if self.run_coroutine is None:
            new = asyncio.Runner().run if hasattr(asyncio, "Runner") else asyncio.new_event_loop().run_until_complete
            self.run_coroutine = new

        async def cell():
            for code in codes:
                value = eval(code, namespace)
                if code.co_flags & COROUTINE:
                    value = await value
            return value

        return self.run_coroutine(cell())


cell_texts = {}  # by the names that code objects have


def give_lines(linecache, names):
    """Cells are in no file, but tracebacks and inspect quote them. Lines end where they end for the interpreter."""
    for name in names:
        text = cell_texts[name].decode("utf-8", "replace")
        linecache.cache[name] = (len(text), None, list(StringIO(text, None)), name)


def run(source, module, cells=None):
    """Runs it in the module's namespace; the exception that ended it, or None."""
    ended_by = None
    try:
        if source.path is not None:
            if source.encoding != "utf-8":
                source.save()
            if not source.is_plain():
                run_unread(source, module)
        codes = compiled(source, TOP_LEVEL_AWAIT if cells else 0)
        if cells and any(code.co_flags & COROUTINE for code in codes):
            value = cells.run_in_loop(codes, module.__dict__)
        else:
            value = stack.call(eval, codes, (module.__dict__,) * len(codes))
        if value is not None:
            hook = sys.displayhook
            (displayhook if hook is sys.__displayhook__ else hook)(value)
    except BaseException as error:
        ended_by = error
    if "matplotlib.pyplot" in sys.modules and not channel.of_fork():
        results().end_run()
    return ended_by


def main_ahead():
    """The module that was __main__ while others were imported ahead, if somebody keeps it."""


def set_main_aside():
    """Puts a module in the driver's place: what is imported from now on may keep __main__ for the program's, as dill does."""
    global main_ahead
    module = type(sys)("__main__")
    module.__file__ = sys.modules["__main__"].__file__
    module.__builtins__ = builtins
    sys.modules["__main__"] = module
    main_ahead = ref(module)  # one that nobody keeps must end as an interpreter's does


def main_module(source):
    """A new __main__: of a file as the interpreter makes it, or of a notebook."""
    module = main_ahead()
    if module is None:
        module = type(sys)("__main__")
    else:
        vars(module).clear()
        module.__init__("__main__")
    if source.path is not None:
        module.__loader__ = sys.modules["_frozen_importlib_external"].SourceFileLoader("__main__", source.path)
        module.__annotations__ = {}
    module.__builtins__ = builtins
    if source.path is not None:
        module.__file__ = source.path
        module.__cached__ = None
    sys.modules["__main__"] = module
    return module


def place_itself(name, has_file=True):
    """Sets the names and paths of its program, as an interpreter does at its start."""
    here = posix.getcwd()
    sys.argv = [name]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [*sys.orig_argv[:1], name]
    if has_file and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = here
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None:  # imported ahead, elsewhere
        processes.ORIGINAL_DIR = here


def forget(modules):
    """Leaves a program to import itself what the driver has imported, perhaps from files of its own."""
    for name in sys.modules.keys() - modules - {"__main__"}:
        del sys.modules[name]


def set_up():
    """What differs from a plain interpreter, before any code runs."""
    builtins.display = display
    sys.meta_path.insert(0, Hooks())
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors=stream.errors)
    sys.stdout.reconfigure(line_buffering=True)
