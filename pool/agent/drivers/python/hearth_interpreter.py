"""What a fresh interpreter does with the work that the agent gives it: one run, or one after the other
as a context. PROTOCOL.md (Drivers) has the form of the messages.
"""

import ctypes
import os
import posix
import resource
import sys
import time
from _functools import partial
from _operator import methodcaller
from _signal import pthread_sigmask, signal as set_handler  # without the enums of `signal`
from _weakref import ref
from atexit import _ncallbacks as count_exit_functions, _run_exitfuncs as run_exit_functions
from gc import callbacks as collector_callbacks, collect, get_referrers
from resource import getrusage
from select import select
from sys import _current_frames as frames_of_threads

try:
    from _contextvars import copy_context
except ImportError:  # before Python 3.7
    copy_context = None

import _imp
import _signal as signal  # whose Python around it needs the builtins that a program may replace
import hearth_program as program
from hearth_program import CHANNEL

__builtins__ = program.__builtins__

PR_SET_DUMPABLE = 4
WORKSPACE = os.environ.get("HOME", "/workspace")
OWN_MODULES = (WORKSPACE + "/", "/tmp/", "/.hearth/run/")  # of the program, not of a library
STREAMS = tuple((name, "__%s__" % name) for name in ("stdin", "stdout", "stderr"))
CLOCK_TICK_NS = 100_000_000  # more than the 10 ms of the kernel's slowest clock
PIECE = 4096  # of work; a larger buffer would be memory not yet touched
CANNOT_BEGIN = 126  # as a shell says of what it cannot execute
SIGINT = int(signal.SIGINT)
OTHER_SIGNALS = [number for number in range(1, signal.NSIG) if number != SIGINT]
SIGNALS = signal.valid_signals() if hasattr(signal, "valid_signals") else range(1, 32)
ENCODING = sys.getfilesystemencoding()

libc = ctypes.PyDLL(None)
modules = sys.modules  # which a program may replace, but not for the interpreter
# The last of the modules that were there before any program: what they hold is not the program's.
last_known_module = None
# Packages that a zygote has imported for its children.
known_packages = frozenset()
# Names of files that stand for what it has imported, if they lie in the program's folder.
ahead = frozenset()
# The folder where most programs run and its time of change, if it had no file of such a name then.
unshadowed = None
# The entries of the environment before any import ahead; a run that is given these finds the environment as it is now.
known_environment = None
# The entries that those imports have set, and the names of all variables that they have set or removed, as in the run itself.
set_ahead = frozenset()
touched_ahead = frozenset()
# Names of variables that those packages have looked for.
read_variables = frozenset()
# The handler of the interrupt signal that a program finds.
interrupt_handler = signal.default_int_handler


class Work:
    """NUL-terminated texts, the first of them the length of all."""

    def __init__(self, data):
        fields = data.split(b"\0")
        texts = [field.decode(ENCODING, "surrogateescape") for field in fields[1:5]]
        self.kind, self.cwd, self.name, self.file = texts
        entries = 6 + int(fields[5])
        self.env = fields[6:entries]
        self.code = fields[entries]


def receive(pieces=None):
    """The next work, of which `pieces` have come already; None when the agent has gone."""
    pieces = [] if pieces is None else pieces
    while True:
        # In one step of C: a handler that raises loses nothing of it.
        pieces.extend(map(posix.read, (CHANNEL,), (1 << 20 if pieces else PIECE,)))
        if not pieces[-1]:
            return None
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        head = data.find(b"\0")
        total = int(data[:head]) if head >= 0 else 0
        if total and len(data) >= total:
            return Work(data[:total])


class Interrupts:
    """The interrupt signal while no program runs; any thread may get it, so no mask holds it back."""

    came = False

    def note(self, *_):
        self.came = True


interrupts = Interrupts()


def hold_interrupts():
    """From here on the signal only leaves a note; the program's handler."""
    while True:
        try:
            return set_handler(SIGINT, interrupts.note)
        except KeyboardInterrupt:
            interrupts.came = True


def interruptible(handler, call):
    """Calls it with this handler of interrupts; what it has raised, or None."""
    raised = None
    try:
        set_handler(SIGINT, signal.SIG_DFL if handler is None else handler)
        call()
    except BaseException as error:
        raised = error
    hold_interrupts()
    return raised


def run(source, module, cells=None):
    """Runs a program that can be interrupted, whatever an earlier one has done to the signal; what ended it, or None."""
    try:
        set_handler(SIGINT, interrupt_handler)
        pthread_sigmask(signal.SIG_UNBLOCK, (SIGINT,))
        if interrupts.came:
            raise KeyboardInterrupt
        find_user_packages()
        return program.run(source, module, cells)
    except BaseException as outside:  # of the program: an interrupt, or a package's .pth file
        return outside


def hold_signals():
    """Blocks all, so that no handler of the program's runs in what its driver does next; those that were before, or
    None where it has none."""
    while handles_signals():
        try:
            return pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        except BaseException as error:  # of a handler, for what has come already
            tell_between(error)


def handles_signals():
    """Whether the program, or a library, may have set a handler: `_signal` is in every interpreter, and nobody's."""
    return "signal" in modules


def tell_between(error):
    program.tell_unraisable("a signal's handler between two runs", error)


def wait_for_work(mask):
    """receive() for another run, with these signals blocked: an interrupt that comes before its work is one that came
    too late for the last."""
    pieces = []
    while True:
        try:
            if mask is not None:
                pthread_sigmask(signal.SIG_SETMASK, mask)
            select([CHANNEL], [], [])
            interrupts.came = False
            return receive(pieces)
        except BaseException as error:
            tell_between(error)


def environment():
    """As it is now, in the agent's order."""
    return list(map(b"%b=%b".__mod__, sorted(os.environb.items())))


def note_environment():
    """Notes what the imports made ahead have changed."""
    global set_ahead, touched_ahead
    now, before = frozenset(environment()), frozenset(known_environment)
    set_ahead = now - before
    touched_ahead = frozenset(entry.partition(b"=")[0] for entry in now ^ before)


def set_environment(entries):
    """Changes only what differs, which is little: os.environ is slow to write."""
    if entries == known_environment:
        return
    now = os.environb
    # A variable that an import read before it set it has its known value here: with another one the run is cold.
    wanted = set_ahead.union(entry for entry in entries if entry.partition(b"=")[0] not in touched_ahead)
    given = set(map(b"%b=%b".__mod__, now._data.items()))
    for entry in given - wanted:
        del now[entry.partition(b"=")[0]]
    for entry in wanted - given:
        name, _, value = entry.partition(b"=")
        now[name] = value
    if b"TZ" in now:
        time.tzset()


def user_packages():
    """Where the user's packages are, if they are looked at."""
    site = sys.modules.get("site")
    if site is None or not site.ENABLE_USER_SITE:
        return None
    site.USER_BASE = site.USER_SITE = None
    return site.getusersitepackages()


def find_user_packages():
    """What is installed in the user's packages now: the zygote has started without them."""
    if not USER_PACKAGES or USER_PACKAGES in sys.path or not posix.access(USER_PACKAGES, posix.F_OK):
        return
    site = sys.modules["site"]
    before = len(sys.path)
    site.addsitedir(site.USER_SITE)
    added = sys.path[before:]
    del sys.path[before:]
    shared = [at for at, path in enumerate(sys.path) if path in site.getsitepackages() or path.startswith(LAYER)]
    first = shared[0] if shared else before
    sys.path[first:first] = added  # they go before the pool's and the image's


LAYER = "/.hearth/layer/site-packages"  # what all sandboxes of the pool have installed
USER_PACKAGES = user_packages()


def imported_packages():
    """The names of what is imported and lies behind the user's packages, so neither the standard library nor ours."""
    site = sys.modules.get("site")
    shared = tuple(place + "/" for place in site.getsitepackages()) if site else ()
    first = (os.path.dirname(os.__file__) + "/", program.OWN)
    files = ((name, str(getattr(module, "__file__", None) or "")) for name, module in list(sys.modules.items()))
    return frozenset(name for name, file in files
                     if file and "." not in name and (file.startswith(shared) or not file.startswith(first)))


def outdated():
    """Whether a package that was imported ahead would be another one now: the user's."""
    if not USER_PACKAGES or not posix.access(USER_PACKAGES, posix.F_OK):
        return False
    try:
        entries = posix.listdir(USER_PACKAGES)
    except OSError:
        return False
    return any(entry.partition(".")[0] in known_packages for entry in entries)


def could_shadow(known):
    """Names of files that an interpreter would take for modules that are imported now and not in `known`."""
    names = {name for name in sys.modules if "." not in name} - known - set(sys.builtin_module_names)
    endings = ("", ".py", ".pyc", *_imp.extension_suffixes())
    return frozenset(name + ending for name in names if not _imp.is_frozen(name) for ending in endings)


def look_ahead(folder):
    """Looks while nobody waits for files that shadow modules, so that a run finds out by the folder's time of change."""
    global unshadowed
    unshadowed = None
    try:
        changed = posix.stat(folder).st_mtime_ns
        # A change within the same tick of the kernel's clock would leave the time as it is.
        if time.time_ns() - changed > CLOCK_TICK_NS and not ahead.intersection(posix.listdir(folder)):
            unshadowed = folder, changed
    except OSError:
        pass


def shadowed(folder):
    """Whether a file of the program's folder has the name of a module that was imported ahead."""
    try:
        if unshadowed is not None and unshadowed == (folder, posix.stat(folder).st_mtime_ns):
            return False
        found = ahead.intersection(posix.listdir(folder))
    except OSError:
        return False
    return any("." in name or posix.access("%s/%s/__init__.py" % (folder, name), posix.F_OK) for name in found)


def differs(head):
    """Whether a variable that was read ahead has another value in the work that begins so."""
    fields = head.split(b"\0")
    entries = fields[6:-1]
    if len(fields) < 7 or len(entries) < int(fields[5]):
        return bool(read_variables)  # too many to see
    variables = entries[:int(fields[5])]
    if variables == known_environment:
        return False
    changed = set(variables).symmetric_difference(known_environment)
    return not read_variables.isdisjoint([entry.partition(b"=")[0] for entry in changed])


def is_for_another(head):
    """Whether the work that begins so is for an interpreter that has imported nothing yet."""
    fields = head.split(b"\0", 3)
    folder = fields[2].decode(ENCODING, "surrogateescape") if len(fields) > 3 else "/"
    return shadowed(folder) or known_packages and outdated() or read_variables and differs(head)


def give_way(head):
    """Leaves work that has come to an interpreter that has imported nothing yet. Does not return."""
    if head.split(b"\0")[1:2] == [b"context"]:  # which stays this process
        posix.dup2(CHANNEL, 3)
        posix.execv(sys.executable, [sys.executable, "-B", program.OWN + "context.py"])
    posix._exit(0)  # without having taken its work: the agent starts a cold one


def begin(work):
    """Takes over where and with what the program runs; False, and said why, where it cannot."""
    set_environment(work.env)
    try:
        posix.chdir(work.cwd)
    except OSError as error:
        reason = {2: "not found", 13: "permission denied", 20: "not a directory"}
        text = "hearth: %s: %s\n" % (work.cwd, reason.get(error.errno, "cannot be entered"))
        posix.write(2, text.encode("utf-8", "surrogateescape"))
        return False
    return True


def flush_output():
    """Does what an interpreter does when its program's code has ended: before threads, exit functions and its error's
    text. True if the interpreter's own streams have taken all that the code has written."""
    written = True
    for name, original in reversed(STREAMS[1:]):
        try:
            stream = getattr(sys, name)
            stream.flush()
            written = written and stream is getattr(sys, original)
        except BaseException:
            written = False  # an interpreter says nothing either
    return written


def is_closed(stream):
    """As an interpreter sees it: a stream that cannot tell is open."""
    try:
        return bool(stream.closed)
    except BaseException:
        return False


def flush_streams(silent=False):
    """The exit status of an interpreter that could not write its last output, else 0."""
    status = 0
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None or is_closed(stream):
            continue
        try:
            stream.flush()
        except BaseException as error:
            if name == "stdout" and not silent:
                program.tell_unraisable(stream, error)
            status = 120
    return status


def flush(silent=False):
    """Writes what is left, that of C code last, as at an interpreter's exit; the exit status as flush_streams()."""
    status = flush_streams(silent)
    libc.fflush(None)
    return status


def is_own(module):
    """Whether it is the program's, not a library's."""
    file = str(getattr(module, "__dict__", {}).get("__file__", ""))
    return file.startswith(OWN_MODULES) and not file.startswith(USER_PACKAGES or "\0")


def aliases_of_main():
    """Other names of the program's module: multiprocessing gives it one."""
    return ["__mp_main__"] if "__mp_main__" in modules and modules["__mp_main__"] is modules.get("__main__") else []


def own_modules():
    """The names of the program's modules, in the order of import. Names of others are not looked at: that would write
    to memory that is shared with the zygote."""
    own = []
    for name in reversed(list(modules)) if sys.version_info < (3, 8) else reversed(modules):
        if name == last_known_module:
            break
        if is_own(modules[name]):
            own.insert(0, name)
    if "__main__" not in modules:
        return own
    return ["__main__", *(name for name in aliases_of_main() if name not in own), *own]


def loader_of(module):
    """A reference to what only the module's namespace has, if it can be referred to."""
    try:
        return ref(vars(module).get("__loader__"))
    except TypeError:
        return partial(bool)


def namespaces_left(module, loader):
    """The module's namespace, if it lives on: a library that keeps a function or a class keeps all that its module has, and
    that may be a file with something left to write."""
    if module is not None:
        return [vars(module)]
    return [each for each in get_referrers(loader) if type(each) is dict and each.get("__loader__") is loader] if loader else []


def is_public(name):
    """An interpreter's end forgets the others first, those with one underscore."""
    return name[:1] != "_" or name[1:2] == "_"


def take_apart():
    """The steps that let go of what the program held, in the order of an interpreter's end. Libraries stay: to free them
    takes time, and the process ends anyway. Nothing new can be imported afterwards."""
    yield collect
    yield collector_callbacks.clear  # an interpreter's next collections call none
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            yield partial(setattr, sys, name, None)
    for name, original in STREAMS:
        if getattr(sys, name, None) is not getattr(sys, original):
            yield partial(setattr, sys, name, getattr(sys, original))
    alone = len(frames_of_threads()) == 1  # another thread goes on, as in no interpreter that ends
    if alone:
        sys.meta_path = None
    names = own_modules()
    left = [(ref(modules[name]), loader_of(modules[name])) for name in names if isinstance(modules[name], type(sys))]
    for name in names:
        yield partial(modules.__setitem__, name, None)
    for name in names:
        yield partial(modules.pop, name, None)
    yield collect
    for module, loader in reversed(left if alone else []):
        for namespace in namespaces_left(module(), loader()):
            names = [name for name in namespace if isinstance(name, str) and name != "__builtins__"]
            yield partial(namespace.update, dict.fromkeys(sorted(names, key=is_public)))
            yield collect


def has_threads(threading):
    """Whether an interpreter's end has something to do there; also if it is another module, which it takes for that one."""
    try:
        return count_exit_functions() or threading.active_count() > 1 or getattr(threading, "_threading_atexits", True)
    except BaseException:
        return True


def finalize(handler, written):
    """Does the work of an interpreter's end, so that files are written and objects closed; output is `written` already or
    not. Returns the exit status if a part of it fails, else 0."""
    threading = modules.get("threading")
    if threading is not None and has_threads(threading):
        written = False
        error = interruptible(handler, partial(program.stack.call, methodcaller("_shutdown"), threading))
        if error is not None:  # an interrupt ends the wait, not what comes after it
            program.tell_unraisable(threading, error)
    if count_exit_functions():
        written = False
        interruptible(handler, partial(program.stack.call, run_exit_functions))  # which says what goes wrong
    status = 0 if written else flush_streams()
    if handles_signals():
        forget_handlers()
    program.stack.each(take_apart())
    flush(silent=True)
    return status


def forget_handlers():
    """Lets signals do what they do by default, as an interpreter does before it takes itself apart; but interrupts are
    held back until the end."""
    if not any(map(callable, map(signal.getsignal, OTHER_SIGNALS))):
        return
    for number in OTHER_SIGNALS:
        if callable(signal.getsignal(number)):
            set_handler(number, signal.SIG_DFL)


def exit_status(error):
    """Of a SystemExit."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF if -(1 << 63) <= error.code < 1 << 63 else 0xFF  # as of a C long
    try:
        text = str(error.code)
    except BaseException:
        text = ""
    if not program.print_error(text + "\n"):
        posix.write(2, program.printable(text + "\n").encode())
    return 1


def processor_time():
    used = getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def had_no_children(below):
    """Whether no other process can have our output open: we have none and have waited for none."""
    if below.ru_minflt > 0 or signal.getsignal(signal.SIGCHLD) is not signal.SIG_DFL:
        return False
    try:
        posix.waitid(posix.P_ALL, 0, posix.WEXITED | posix.WNOHANG | posix.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def done(status, before, last=False):
    """Says how a run ended, the `last` one of this process or not. Only then it matters who else has
    the output open."""
    now = getrusage(resource.RUSAGE_SELF)
    below = getrusage(resource.RUSAGE_CHILDREN)
    used = now.ru_utime + now.ru_stime + below.ru_utime + below.ru_stime - before
    peak = max(now.ru_maxrss, below.ru_maxrss)
    alone = last and had_no_children(below)
    if last and not alone:
        leave_output()  # the agent waits for the end of what others have open
    program.channel.send(b"done", b"%d %d %d %d" % (status, used * 1000000, peak, alone))
    return alone


def leave_output():
    """Sends what is written from now on nowhere."""
    try:
        nowhere = posix.open("/dev/null", posix.O_RDWR)
    except OSError:  # the program has every descriptor that it may have
        posix.close(1)
        nowhere = posix.open("/dev/null", posix.O_RDWR)
    for number in (1, 2):
        if nowhere != number:
            posix.dup2(nowhere, number)
        else:
            posix.set_inheritable(number, True)
    if nowhere > 2:
        posix.close(nowhere)


def wait_until_answered():
    """To take a process apart is a millisecond's work, which would come before the answer's."""
    try:
        posix.read(CHANNEL, 1)  # the agent closes it
    except OSError:
        pass


def end(source, error):
    """Ends the program of this process, which `error` or nothing has stopped, and tells its exit status. An interrupted
    one ends by the signal, as an interpreter does."""
    handler = hold_interrupts()
    interrupted = type(error) is KeyboardInterrupt
    written = flush_output() and error is None
    status = status_of(source, error)
    del error
    status = finalize(handler, written) or status
    hold_signals()
    if interrupted:
        pthread_sigmask(signal.SIG_UNBLOCK, (SIGINT,))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        posix.kill(posix.getpid(), signal.SIGINT)
    return status


def status_of(source, error):
    """The exit status of a program that `error` or nothing has ended, which is told."""
    if error is None:
        return 0
    if not isinstance(error, SystemExit):
        try:
            program.tell_uncaught(source, error)
            return 1
        except SystemExit as leaving:  # of sys.excepthook
            error = leaving
    return exit_status(error)


def run_once(work, source):
    """The one run of a fresh interpreter. Does not return."""
    before = processor_time()
    status = CANNOT_BEGIN
    if begin(work):
        program.place_itself(source.name)
        status = end(source, run(source, sys.modules["__main__"]))
    if not program.channel.of_fork() and done(status, before, last=True):
        wait_until_answered()
    posix._exit(status)


def run_context(work):
    """One run after the other in one namespace, until the agent closes the channel."""
    module = program.main_module(program.Source(work.name, b""))
    program.keep_input_open()
    if not begin(work):
        posix._exit(CANNOT_BEGIN)
    program.place_itself(work.name, False)
    cells = program.Cells(copy_context)
    while work is not None:
        before = processor_time()
        program.channel.release_results()
        source = cells.source(work.code)
        ended_by = [run(source, module, cells)]
        if program.channel.of_fork():
            del module
            posix._exit(end(source, ended_by.pop()))
        hold_interrupts()
        mask = hold_signals()
        flush_output()
        status = status_of(source, ended_by.pop())  # SystemExit ends the cell, as in a notebook
        status = flush() or status
        program.channel.hold_results()
        done(status, before)
        work = wait_for_work(mask)
    posix._exit(0)


def take_up(work):
    """Does what it has been sent. Does not return."""
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    logging = sys.modules.get("logging")
    if hasattr(logging, "_startTime"):  # that of the zygote
        logging._startTime = time.time_ns() if isinstance(logging._startTime, int) else time.time()
    if work.kind == "context":
        run_context(work)
    source = program.Source(work.name, work.code, work.file or None)
    program.main_module(source)
    run_once(work, source)
