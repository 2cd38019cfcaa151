"""What a fresh interpreter does with the work that the agent gives it: one run, or one after the other
as a context. PROTOCOL.md (Drivers) has the form of the messages.
"""

import atexit
import builtins
import ctypes
import gc
import os
import resource
import socket
import sys
import time

import _imp
import _signal as signal  # whose Python around it needs the builtins that a program may replace
import hearth_program as program
from hearth_program import CHANNEL

__builtins__ = program.__builtins__

PR_SET_DUMPABLE = 4
OWN_MODULES = (os.environ.get("HOME", "/workspace") + "/", "/tmp/")  # of the program, not of a library
CANNOT_BEGIN = 126  # as a shell says of what it cannot execute
INTERRUPT = {signal.SIGINT}
ENCODING = sys.getfilesystemencoding()

libc = ctypes.PyDLL(None)
# Modules that were there before any program: what they hold is not the program's.
known_modules = frozenset()
# Packages that a zygote has imported for its children.
known_packages = frozenset()
# Modules that it has imported and that an interpreter finds in its program's folder first.
ahead = frozenset()
# The entries of the environment as it is now, while nothing has changed it.
known_environment = None


class Work:
    """NUL-terminated texts, the first of them the length of all."""

    def __init__(self, data):
        fields = data.split(b"\0")
        texts = [field.decode(ENCODING, "surrogateescape") for field in fields[1:5]]
        self.kind, self.cwd, self.name, self.file = texts
        entries = 6 + int(fields[5])
        self.env = fields[6:entries]
        self.code = fields[entries]


def open_channel(fd):
    os.dup2(fd, CHANNEL, inheritable=False)
    if fd != CHANNEL:
        os.close(fd)
    program.channel.fd = CHANNEL


def receive():
    """The next work; None when the agent has gone."""
    data = os.read(CHANNEL, 4096)  # a larger buffer would be memory not yet touched
    while data:
        head = data.find(b"\0")
        total = int(data[:head]) if head >= 0 else 0
        if total and len(data) >= total:
            return Work(data[:total])
        more = os.read(CHANNEL, 1 << 20)
        if not more:
            return None
        data += more
    return None


def wait_for_work():
    """receive() with the interrupt signal held back: one that came too late is of no run, one that
    comes from now on is of the next."""
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
    while signal.SIGINT in signal.sigpending():
        signal.sigwait(INTERRUPT)
    return receive()


def let_interrupts_in():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPT)


def environment():
    """As it is now, in the agent's order."""
    return list(map(b"%b=%b".__mod__, sorted(os.environb.items())))


def set_environment(entries):
    """Changes only what differs, which is little: os.environ is slow to write."""
    if entries == known_environment:
        return
    now = os.environb
    wanted = set(entries)
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
    if not USER_PACKAGES or USER_PACKAGES in sys.path or not os.access(USER_PACKAGES, os.F_OK):
        return
    site = sys.modules["site"]
    before = len(sys.path)
    site.addsitedir(site.USER_SITE)
    added = sys.path[before:]
    del sys.path[before:]
    shared = [at for at, path in enumerate(sys.path) if path in site.getsitepackages() or path.startswith(LAYER)]
    first = shared[0] if shared else before
    sys.path[first:first] = added  # they go before the pool's and the image's


LAYER = "/.hearth/layer"  # what all sandboxes of the pool have installed
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
    try:
        entries = os.listdir(USER_PACKAGES) if USER_PACKAGES else ()
    except OSError:
        return False
    return any(entry.partition(".")[0] in known_packages for entry in entries)


def could_shadow(known):
    """The names of modules that are imported now and not in `known`, but for those that no file stands for."""
    names = {name for name in sys.modules if "." not in name} - known - set(sys.builtin_module_names)
    return frozenset(name for name in names if not _imp.is_frozen(name))


def shadowed(folder):
    """Whether a file of the program's folder has the name of a module that was imported ahead."""
    try:
        entries = os.listdir(folder)
    except OSError:
        return False
    for entry in entries:
        name, _, ending = entry.partition(".")
        if name not in ahead:
            continue
        if ending in ("py", "pyc", "so") or ending.endswith(".so"):
            return True
        if not ending and os.access("%s/%s/__init__.py" % (folder, entry), os.F_OK):
            return True
    return False


def glance():
    """Kind and folder of the work that has come, which stays unread."""
    waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, CHANNEL)
    head = waiting.recv(8192, socket.MSG_PEEK)
    waiting.detach()
    kind, folder = (head.split(b"\0", 3) + [b""] * 3)[1:3]
    return kind, os.fsdecode(folder)


def give_way(kind):
    """Leaves work that has come to an interpreter that has imported nothing yet. Does not return."""
    if kind == b"context":  # which stays this process
        os.dup2(CHANNEL, 3)
        os.execv(sys.executable, [sys.executable, "-B", program.OWN + "context.py"])
    os._exit(0)  # without having taken its work: the agent starts a cold one


def begin(work):
    """Takes over where and with what the program runs; False, and said why, where it cannot."""
    set_environment(work.env)
    try:
        os.chdir(work.cwd)
    except OSError as error:
        reason = {2: "not found", 13: "permission denied", 20: "not a directory"}
        text = "hearth: %s: %s\n" % (work.cwd, reason.get(error.errno, "cannot be entered"))
        os.write(2, text.encode("utf-8", "surrogateescape"))
        return False
    find_user_packages()
    return True


def flush():
    """The exit status of an interpreter that could not write its last output, else 0."""
    status = 0
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            status = 120
    libc.fflush(None)
    return status


def finalize(module, rehearsal=False):
    """What an interpreter does at its end, except taking itself apart: waits for threads, runs exit
    functions, lets go of what the program held, so that files are written and objects closed."""
    threading = sys.modules.get("threading")
    if threading is not None and (threading.active_count() > 1 or threading._threading_atexits):
        threading._shutdown()
    if atexit._ncallbacks() > 0 and not rehearsal:
        atexit._run_exitfuncs()
    module.__dict__.clear()
    gc.collect()
    for name in sys.modules.keys() - known_modules:
        namespace = getattr(sys.modules.get(name), "__dict__", {})
        if str(namespace.get("__file__", "")).startswith(OWN_MODULES):
            namespace.clear()
    return flush()


def exit_status(error):
    """Of a SystemExit."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF if -(1 << 63) <= error.code < 1 << 63 else 0xFF  # as of a C long
    print(error.code, file=sys.stderr)
    return 1


def processor_time():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def had_no_children(below):
    """Whether no other process can have our output open: we have none and have waited for none."""
    if below.ru_minflt > 0 or signal.getsignal(signal.SIGCHLD) is not signal.SIG_DFL:
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def done(status, before, last=False):
    """Says how a run ended, the `last` one of this process or not. Only then it matters who else has
    the output open."""
    now = resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = now.ru_utime + now.ru_stime + below.ru_utime + below.ru_stime - before
    peak = max(now.ru_maxrss, below.ru_maxrss)
    alone = last and had_no_children(below)
    if last and not alone:
        leave_output()  # the agent waits for the end of what others have open
    program.channel.send(b"done", b"%d %d %d %d" % (status, used * 1000000, peak, alone))


def leave_output():
    """Sends what is written from now on nowhere."""
    try:
        nowhere = os.open("/dev/null", os.O_RDWR)
    except OSError:  # the program has every descriptor that it may have
        os.close(1)
        nowhere = os.open("/dev/null", os.O_RDWR)
    for number in (1, 2):
        if nowhere != number:
            os.dup2(nowhere, number)
        else:
            os.set_inheritable(number, True)
    if nowhere > 2:
        os.close(nowhere)


def wait_until_answered():
    """To take a process apart is a millisecond's work, which would come before the answer's."""
    try:
        os.read(CHANNEL, 1)  # the agent closes it
    except OSError:
        pass


def run_once(work, module, source):
    """The one run of a fresh interpreter. Does not return."""
    before = processor_time()
    status = CANNOT_BEGIN
    interrupted = False
    if begin(work):
        program.place_itself(source.name)
        status = 0
        error = program.run(source, module)
        if isinstance(error, SystemExit):
            status = exit_status(error)
        elif error is not None:
            interrupted = isinstance(error, KeyboardInterrupt)
            program.tell_uncaught(source, error)
            status = 1
        error = None
        status = finalize(module) or status
    if interrupted:  # ends by the signal, as an interpreter does
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    done(status, before, last=True)
    wait_until_answered()
    os._exit(status)


def run_context(work):
    """One run after the other in one namespace, until the agent closes the channel."""
    sys.argv = [work.name]
    module = program.main_module(program.Source(work.name, b""))
    if not begin(work):
        os._exit(CANNOT_BEGIN)
    program.place_itself()
    cells = program.Cells()
    while work is not None:
        before = processor_time()
        source = cells.source(work.code)
        try:
            find_user_packages()
            let_interrupts_in()
            error = program.run(source, module, cells)
        except KeyboardInterrupt as between:  # it came between the program and us
            error = between
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPT)
        status = 0
        if isinstance(error, SystemExit):
            status = exit_status(error)
            os._exit(finalize(module) or status)  # not done: the context is over
        if error is not None:
            program.tell_uncaught(source, error)
            status = 1
        error = None
        status = flush() or status
        done(status, before)
        work = wait_for_work()
    os._exit(0)


def take_up(work):
    """Does what it has been sent. Does not return."""
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    if work.kind == "context":
        run_context(work)
    source = program.Source(work.name, work.code, work.file or None)
    module = program.main_module(source)
    let_interrupts_in()
    run_once(work, module, source)
