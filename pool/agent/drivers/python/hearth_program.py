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
from _functools import partial
from _json import encode_basestring_ascii
from _thread import RLock, get_ident
from _weakref import ref
from gc import collect
from itertools import repeat

import hearth_frames

__builtins__ = dict(vars(builtins))

OWN = __file__.rpartition("/")[0] + "/"
LIBRARY = os.__file__.rpartition("/")[0]
FINDERS = [*sys.meta_path]
SourceFileLoader = sys.modules["_frozen_importlib_external"].SourceFileLoader
# Names of the standard library's modules; sys has them from Python 3.10 on.
STANDARD = getattr(sys, "stdlib_module_names", None) or {entry.partition(".")[0] for entry in posix.listdir(LIBRARY)}
MARKS = "_extract_caret_anchors_from_line_segment"  # of traceback: finds which part of a line it underlines
ERROR_LIMITS = {"name": 200, "message": 2000, "traceback": 8000}  # with what JSON makes of them below 64 KiB
CHANNEL = 900  # its descriptor: out of the way of those that programs open
ONLY_AST = 0x400  # ast.PyCF_ONLY_AST, without importing ast
TOP_LEVEL_AWAIT = 0x2000
COROUTINE = 0x80  # inspect.CO_COROUTINE
STORE = _ast.Store()
MISSING = object()
STATEMENTS = {b"assert", b"del", b"elif", b"except", b"for", b"if", b"raise", b"return", b"while", b"with"}
FIRST_LINE = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 1}
VALUE = "<value>"  # where the last expression of a program leaves its value; no name that a program can write
PIECE = 32768  # of a message: the kernel takes one whole or not at all
CLOSED = (32, 104, 9, 88)  # EPIPE, ECONNRESET, EBADF, ENOTSOCK: nobody listens any more
SHOWN_TEXT = 64 << 10  # characters of a value that nothing else can show
MOST_RESULTS = 1000  # that wait: the agent counts those that it does not keep
PRINTED_FRAMES = 1000  # so many of a traceback, the last ones, Python itself prints
FUTURE_FLAGS = 0x1FE0000  # every `from __future__ import …` that code objects carry


class Channel:
    """Where results go. Silent until it is opened, and in every process that the program forks. Messages stay whole and
    in order, whatever thread sends them, and also if a signal's handler raises, or sends one itself, in their middle."""

    fd = None
    place = None  # what its descriptor is (inode, device): a program may close it and open another file there
    owner = None

    def __init__(self):
        self.results = None  # those that come between two runs of a context, for the second
        self.waiting = []
        self.lock = RLock()
        self.sender = None

    def open(self, fd):
        posix.dup2(fd, CHANNEL, inheritable=False)
        if fd != CHANNEL:
            posix.close(fd)
        self.use(CHANNEL)
        self.owner = posix.getpid()
        if hasattr(posix, "register_at_fork"):  # not in Python 3.6
            posix.register_at_fork(after_in_child=self.leave)

    def use(self, fd):
        self.fd = fd
        self.place = self.place_of(fd)

    @staticmethod
    def place_of(fd):
        try:
            return posix.fstat(fd)[1:3]
        except OSError:
            return None

    def leave(self):
        if self.place == self.place_of(CHANNEL):
            posix.close(CHANNEL)
        self.fd = None

    def of_fork(self):
        """Whether this is a child that the program has forked: it ends as any process, and nobody waits for it."""
        return self.owner not in (None, posix.getpid())

    def send(self, kind, payload):
        if self.fd is None or self.owner != posix.getpid():  # C code forks without calling `leave`
            return
        if kind == b"result" and self.results is not None:
            if len(self.results) < MOST_RESULTS:
                self.results.append(payload)
            return
        self.waiting.append(b"%s %d\n%s" % (kind, len(payload), payload))
        if self.sender == get_ident():
            return  # called by a handler in the middle of a message, which this one follows
        with self.lock:
            self.sender = get_ident()
            try:
                self.flush()
            finally:
                self.sender = None

    def hold_results(self):
        self.results = []

    def release_results(self):
        results, self.results = self.results or (), None
        for each in results:
            self.send(b"result", each)

    def flush(self):
        raised = None
        while self.waiting and self.fd is not None:
            message = self.waiting[0]
            pieces = [message]
            if len(message) > PIECE:
                pieces = [message[at : at + PIECE] for at in range(0, len(message), PIECE)]
            written = []
            while len(written) < len(pieces) and self.fd is not None:
                try:
                    if self.place == posix.fstat(self.fd)[1:3]:
                        written.extend(map(posix.write, repeat(self.fd), pieces[len(written) :]))
                    else:
                        self.fd = None
                except BaseException as error:
                    if isinstance(error, OSError) and error.errno in CLOSED:
                        self.fd = None
                    else:
                        raised = raised or error
            del self.waiting[0]
        if raised is not None:
            raise raised


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
        self.encoding = path and (declared_encoding(text) or "utf-8")

    def code(self):
        """For compile(): a cell is text already, whatever encoding a comment names."""
        if self.path:
            return self.text
        text = self.text.decode()
        return text[1:] if text[:1] == "\ufeff" else text

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
    """A traceback without the driver's frames; from the program's first frame on, if `source` is given."""
    first = frames if source else None
    while first is not None and first.tb_frame.f_code.co_filename != source.name:
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
        # The others have been raised and caught below the program, perhaps in a library's frame.
        each.__traceback__ = program_frames(source if each is error else None, each.__traceback__)
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


class OwnImports:
    """While it is entered, imports find the standard library, whatever files and modules the program has instead. The
    program's modules are the same before and after."""

    def __init__(self):
        self.own = {}
        self.modules = None

    def __enter__(self):
        self.paths = sys.path, sys.meta_path
        self.modules = sys.modules.copy()
        sys.path, sys.meta_path = [LIBRARY, LIBRARY + "/lib-dynload"], FINDERS
        for name, module in self.modules.items():
            if name.partition(".")[0] in STANDARD and not is_standard(module):
                del sys.modules[name]
        sys.modules.update(self.own)

    def __exit__(self, *_):
        sys.path, sys.meta_path = self.paths
        self.own.update((name, sys.modules[name]) for name in sys.modules.keys() - self.modules.keys())
        sys.modules.update(self.modules)
        forget(self.modules.keys())
        self.modules = None  # lets go of the program's


own_imports = OwnImports()


def with_own_imports(function):
    def call(*arguments):
        with own_imports:
            return function(*arguments)

    return call


def is_standard(module):
    file = getattr(module, "__file__", None)
    if file is None:
        return getattr(module, "__spec__", None) is not None  # the interpreter itself has it
    return str(file).startswith(LIBRARY + "/")


def own_traceback():
    """The module of this name, which quotes cells, and the lines of code that libraries make."""
    if "traceback" not in loaded:
        with own_imports:
            import traceback
        if hasattr(traceback, MARKS):  # imports `ast` each time
            setattr(traceback, MARKS, with_own_imports(getattr(traceback, MARKS)))
        loaded["traceback"] = traceback
    lines = loaded["traceback"].linecache
    cache = getattr(sys.modules.get("linecache"), "cache", None)
    if isinstance(cache, dict):
        lines.cache = cache
    give_lines(lines, cell_texts.keys() - lines.cache.keys())
    return loaded["traceback"]


def describe(source, error):
    text = None
    if source.path is None:  # cells have no file for the interpreter to read
        try:
            traceback = own_traceback()
            limit = getattr(sys, "tracebacklimit", PRINTED_FRAMES)
            limit = max(limit, 0) if isinstance(limit, int) else PRINTED_FRAMES
            frames = last_frames(error.__traceback__, limit)
            if isinstance(error, SyntaxError) and error.text is None and error.filename == source.name:
                error.text = traceback.linecache.getline(source.name, error.lineno)
            text = "".join(traceback.format_exception(type(error), error, frames, limit=-limit))
        except BaseException:
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
    except BaseException as failure:  # a program's own __str__ may do anything
        message = "<no message: __str__ raised %s>" % type(failure).__name__
    parts = {"name": type(error).__name__, "message": message, "traceback": text}
    members = ('"%s":%s' % (key, clip_as_json(value, ERROR_LIMITS[key])) for key, value in parts.items())
    channel.send(b"error", ("{%s}" % ",".join(members)).encode("ascii"))


def print_error(text):
    """False if there is no sys.stderr that takes it."""
    stream = getattr(sys, "stderr", None)
    try:
        if stream is None:
            return False
        stream.write(text)
    except BaseException:
        return False
    try:
        stream.flush()
    except BaseException:
        pass  # nor does an interpreter say so
    return True


def tell_unraisable(thing, error):
    """As an interpreter says of what it cannot raise any more."""
    without_driver(None, error)
    print_error("Exception ignored in: %r\n%s" % (thing, interpreters_own(error)))


def tell_uncaught(source, error):
    """Reports and prints what ended a program, as the interpreter does."""
    without_driver(source, error)
    text = describe(source, error)
    report(error, text)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    hook = getattr(sys, "excepthook", MISSING)
    if hook is excepthook:
        if not print_error(text):
            hook(type(error), error, error.__traceback__)  # knows what to do then
    elif hook is MISSING:
        print_error("sys.excepthook is missing\n" + text)
    else:
        try:
            # `call` says what is wrong with a hook that cannot be called.
            stack.call(*filter(None, [hearth_frames.call]), hook, type(error), error, error.__traceback__)
        except SystemExit:
            raise
        except BaseException as failure:
            without_driver(source, failure)
            print_error("Error in sys.excepthook:\n%s\nOriginal exception was:\n%s" % (describe(source, failure), text))


def displayhook(value):
    """The value of a last expression becomes a result."""
    if value is None:
        return
    try:
        ways = results()
    except OSError:  # the program has every descriptor that it may have
        text = quoted(clip(repr(value), SHOWN_TEXT))
        channel.send(b"result", ('{"main":true,"mime":{"text/plain":%s}}' % text).encode("ascii"))
    else:
        ways.send_value(value, main=True)


def display(*values, **options):
    """Makes a result of each value, as notebooks do: the builtin of this name."""
    return results().display(*values, **options)


def results():
    """results.py, which costs time to load and is needed only where there is something to show."""
    module = loaded.get("results")
    if module is None:
        with loading:
            module = loaded.get("results") or type(sys)("hearth_results")
            if "results" not in loaded:
                module.__dict__.update(__builtins__=__builtins__, program=this)
                with own_imports:
                    exec(results_code(), module.__dict__)
                loaded["results"] = module
    return module


def results_code():
    """results.py, compiled: a zygote has it for its children, whose program may leave no descriptor to read it."""
    code = loaded.get("code")
    if code is None:
        code = loaded["code"] = SourceFileLoader("hearth_results", OWN + "results.py").get_code("hearth_results")
    return code


modules = sys.modules  # which a program may replace, but not for the interpreter
this = modules[__name__]
loaded = {}
loading = RLock()


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


def compiled(source, module, flags):
    """The program's code, and its last expression if that has a value to show, which the code leaves as VALUE. Code of
    a program that is one call returns its value instead."""
    refusal = None
    try:
        return with_value(source, flags)
    except RecursionError:
        pass  # of the tree: the program itself may not be too deep
    except SyntaxError as error:
        refusal = error
        if results().explain(source, error) or source.path is None:
            raise
    if refusal is None:
        return compile(source.code(), source.name, "exec", flags, dont_inherit=True), None
    if run_unread(source, module):
        raise SystemExit(0)
    raise refusal


def with_value(source, flags):
    try:
        if is_call(source.text):
            return compile(source.code(), source.name, "eval", flags, dont_inherit=True), None
    except (SyntaxError, RecursionError):
        pass  # it only looks like one
    tree = parsed(source, flags)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, _ast.Expr) or is_muted(source, last):
        last = None
    else:
        # One frame from the first line to the last, as tracers and debuggers see it.
        target = _ast.Name(VALUE, STORE)
        vars(target).update(vars(last), value=None)
        tree.body[-1] = _ast.Assign([target], last.value)
        vars(tree.body[-1]).update(vars(last))
    return compile(tree, source.name, "exec", flags, dont_inherit=True), last


def is_call(text):
    """Whether the text looks like a line with nothing but a call: a tree of it would cost more than the rest of its run."""
    line = text[:-1] if text[-1:] == b"\n" else text
    if line[-1:] != b")" or b"\n" in line or b"\\" in line or b";" in line:
        return False
    name = line.partition(b"(")[0]
    return name.replace(b".", b"").replace(b"_", b"").isalnum() and name not in STATEMENTS


def release(source, last, namespace):
    """Lets go of the value of the last expression where an interpreter does, on its line: what then warns names it."""
    target = _ast.Name(**dict(vars(last), id=VALUE, ctx=_ast.Del(), value=None))
    tree = _ast.Module(body=[_ast.Delete(**dict(vars(last), targets=[target], value=None))], type_ignores=[])
    stack.each([partial(eval, compile(tree, source.name, "exec", dont_inherit=True), namespace)])


def is_muted(source, last):
    """Whether a semicolon follows the last expression, by which notebooks hide its value."""
    if b";" not in source.text or not isinstance(getattr(last, "end_lineno", None), int):
        return False
    text = source.text.decode("utf-8", "replace").lstrip("\ufeff")  # "utf-8-sig" would be a module to import
    lines = list(StringIO(text, None))
    rest = lines[last.end_lineno - 1].encode("utf-8", "replace")[last.end_col_offset :]
    return rest.lstrip(b" \t\f").startswith(b";")


def run_unread(source, module):
    """Has the interpreter read the file itself, of which compile() says something else: NUL, a wrong encoding, an end
    that comes too early. False if it cannot be read."""
    import ctypes

    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    run_file = ctypes.pythonapi.PyRun_FileExFlags
    run_file.restype = ctypes.py_object
    run_file.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p]
    name = source.path.encode("utf-8", "surrogateescape")
    file_input = 257
    file = libc.fopen(name, b"rb")
    if file:
        run_file(file, name, file_input, module.__dict__, module.__dict__, 1, None)
    return bool(file)


class Hooks:
    """Finds what can show something when the program imports it, so that showing makes a result."""

    NAMES = frozenset(("linecache", "matplotlib.pyplot", "PIL.ImageShow", "webbrowser", "plotly.io._renderers",
                       "plotly.basedatatypes", "plotly.offline.offline", "altair", "bokeh.io.notebook",
                       "IPython.core.display_functions"))

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
    """The texts of all cells of a context, and the loop for cells that await at their top. `copy_context` is that of
    contextvars, if there is one."""

    def __init__(self, copy_context):
        self.count = 0
        self.flags = TOP_LEVEL_AWAIT  # and what `from __future__` has switched on
        self.loop = None
        self.shown = None  # the last value, which is `_` unless the program has one of its own
        self.context = copy_context() if copy_context else None

    def source(self, text):
        self.count += 1
        source = Source("cell %d" % self.count, text)
        cell_texts[source.name] = text
        if hasattr(sys.modules.get("linecache"), "cache"):
            give_lines(sys.modules["linecache"], [source.name])
        return source

    def run(self, code, namespace):
        """Runs one; all share one context of variables (contextvars)."""
        namespace.pop("__warningregistry__", None)  # another cell's line of the same number may warn again
        self.flags |= code.co_flags & FUTURE_FLAGS
        if code.co_flags & COROUTINE:
            return self.run_in_loop(eval(code, namespace))
        if self.context is not None:
            return stack.call(self.context.run, eval, code, namespace)
        return stack.call(eval, code, namespace)

    def run_in_loop(self, coroutine):
        """A cell that awaits at its top runs in a loop, which goes on with the next one."""
        import asyncio

        if hasattr(asyncio, "Runner"):
            self.loop = self.loop or asyncio.Runner()
            return self.loop.run(coroutine, context=self.context)
        self.loop = self.loop or asyncio.new_event_loop()
        return self.loop.run_until_complete(coroutine)

    def keep(self, namespace):
        """Notebooks have the last value as `_`. What the one before it warns of when it goes names no file of Hearth's."""
        if namespace.get("_", self.shown) is self.shown:
            value = namespace[VALUE]
            stack.each([partial(setattr, self, "shown", value), partial(namespace.__setitem__, "_", value)])


cell_texts = {}  # by the names that code objects have


def give_lines(linecache, names):
    """Cells are in no file, but tracebacks and inspect quote them. Lines end where they end for the interpreter."""
    for name in names:
        text = cell_texts[name].decode("utf-8", "replace")
        lines = list(StringIO(text, None))
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"  # as linecache has those of files
        linecache.cache[name] = (len(text), None, lines, name)


def run(source, module, cells=None):
    """Runs it in the module's namespace; the exception that ended it, or None."""
    ended_by = None
    try:
        if source.path is not None:
            if source.encoding != "utf-8":
                source.save()
            if not source.is_plain() and run_unread(source, module):
                raise SystemExit(0)
        code, last = compiled(source, module, cells.flags if cells else 0)
        namespace = module.__dict__
        value = cells.run(code, namespace) if cells else stack.call(eval, code, namespace)
        if value is not None:
            last = _ast.Expr(None, **FIRST_LINE)
            namespace[VALUE] = value
            del value
        if last is not None and namespace.get(VALUE) is not None:
            show_last(source, last, namespace, cells)
        namespace.pop(VALUE, None)
    except BaseException as error:
        ended_by = error
    if "matplotlib.pyplot" in modules and not channel.of_fork():
        results().end_run()
    return ended_by


def show_last(source, last, namespace, cells):
    """Shows the value of the last expression, then lets go of it."""
    hook = sys.displayhook if cells else sys.__displayhook__
    value = namespace.pop(VALUE)  # `globals()` shows no name of Hearth's
    try:
        (displayhook if hook is sys.__displayhook__ else hook)(value)
        namespace[VALUE] = value
        if cells:
            cells.keep(namespace)
    finally:
        namespace[VALUE] = value
        del value
        release(source, last, namespace)


def main_ahead():
    """The module that was __main__ while others were imported ahead, if somebody keeps it."""


def set_main_aside():
    """Puts a module in the driver's place: what is imported from now on may keep __main__ for the program's, as dill does."""
    global main_ahead
    module = type(sys)("__main__")
    module.__file__ = sys.modules["__main__"].__file__
    sys.modules["__main__"] = module
    main_ahead = ref(module)  # one that nobody keeps must end as an interpreter's does


def let_main_thaw():
    """Leaves nothing in that module which the collector tracks, so that its next full collection forgets the namespace:
    one that is frozen with the imports made ahead would never be taken apart."""
    if main_ahead() is not None:
        vars(main_ahead()).pop("__builtins__", None)


def prepare_main(collections):
    """Makes the module of a program ahead. After so many collections it is as old as an interpreter's own is when its
    program begins: the collector takes the program's objects apart in an order that depends on that."""
    global main_ahead
    module = main_ahead()
    if module is None:
        sys.modules["__main__"] = module = type(sys)("__main__")
        main_ahead = ref(module)
    module.__builtins__ = builtins
    for _ in range(collections):
        collect(0)


def main_module(source):
    """A new __main__: of a file as the interpreter makes it, or of a notebook."""
    module = main_ahead()
    if module is None:
        module = type(sys)("__main__")
    else:
        vars(module).clear()
        module.__init__("__main__")
    if source.path is not None:
        module.__loader__ = SourceFileLoader("__main__", source.path)
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


def keep_input_open():
    """`exit()` closes standard input, as it ends an interpreter; in a context it ends a cell."""

    def leave(self, code=None):
        raise SystemExit(code)

    for name in ("exit", "quit"):
        if type(getattr(builtins, name, None)).__name__ == "Quitter":
            type(getattr(builtins, name)).__call__ = leave


def set_up():
    """What differs from a plain interpreter, before any code runs."""
    builtins.display = display
    sys.meta_path.insert(0, Hooks())
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors=stream.errors)
    sys.stdout.reconfigure(line_buffering=True)
