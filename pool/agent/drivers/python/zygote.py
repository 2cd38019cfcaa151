"""Keeps fresh interpreters ready: imports what is asked, then forks a child for each run ahead of need.

`python3 zygote.py [MODULE ...]` with descriptor 3 a stream socket to the agent (PROTOCOL.md,
Drivers). Each request on it is a line `fork LABEL` with four descriptors: the child's channel, its
standard input, output and errors. What is said back are messages as on a channel: `child` with a pid,
and `dead` when one has ended.

A child marks itself with the label, so that the agent finds every process it will start, goes once
through a run while nobody waits for it, so that the memory a run writes to is its own already, and
then waits for its work. Nothing that runs later can reach this process: it is not dumpable, and the
filter that each child adds keeps the mark on. At its start no file of the tenant's is read: it begins
in / with a HOME where nothing is (the true one in HEARTH_HOME), so there are no packages of the user's.
A tenant who takes it over all the same, while it starts and can be written to, can lie about its own
children and keep processes that no deadline finds, until the workspace's end; nothing else.
"""

import sys

PLAIN = frozenset(sys.modules)

import gc

# How many collections an interpreter has made when its program begins, since the last of older objects.
COLLECTIONS = gc.get_count()[1]

import ctypes
import os
import resource
import select
import signal
import socket

if "HEARTH_HOME" in os.environ:
    os.environ["HOME"] = os.environ.pop("HEARTH_HOME")

import hearth_interpreter as interpreter
import hearth_program as program
from hearth_interpreter import PR_SET_DUMPABLE, libc
from hearth_program import CHANNEL

SOCKET = 3
PR_SET_SECCOMP, MODE_FILTER = 22, 2
RLIMIT_LOCKS = 10
HEAD = 16384  # of work, with the environment of nearly every run
FILTER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/mark.bpf"
REHEARSED = b"""
import sys
numbers = [str(n) for n in range(99)]
print(numbers, len(numbers))
print({1: 'a'}, file=sys.stderr)
None
"""


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def load_filter():
    """The filter that keeps a mark on; none in a test outside a sandbox."""
    try:
        with open(FILTER, "rb") as file:
            code = file.read()
    except OSError:
        return None
    return Filter(len(code) // 8, code)


def be_found(label, mark_filter):
    """Puts the mark on, for good."""
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # while not dumpable, the file belongs to root
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    resource.setrlimit(RLIMIT_LOCKS, (label, label))
    if mark_filter is not None:
        if libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(mark_filter), 0, 0) != 0:
            os._exit(125)


def rehearse():
    """Goes the way of a run with its output going nowhere, but for what would outlast it."""
    saved = [os.dup(number) for number in (1, 2)]
    interpreter.leave_output()
    program.channel.use(1)
    env = interpreter.environment()
    fields = [b"0", b"run", b".", b"main.py", b"", b"%d" % len(env), *env, REHEARSED, b""]
    user_packages, interpreter.USER_PACKAGES = interpreter.USER_PACKAGES, program.OWN + "none"
    for _ in range(2):
        work = interpreter.Work(b"\0".join(fields))
        source = program.Source(work.name, work.code, "/" + work.name)
        program.main_module(source)
        before = interpreter.processor_time()
        interpreter.is_for_another(b"\0".join(fields))
        interpreter.begin(work)
        program.place_itself(source.name)
        interpreter.run(source, sys.modules["__main__"])
        interpreter.hold_interrupts()
        interpreter.flush_output()
        sys.path[0] = ""
        shown = sys.meta_path, sys.stdin, sys.stdout, sys.stderr
        aliases = {name: sys.modules[name] for name in interpreter.aliases_of_main()}
        program.stack.each(interpreter.take_apart())
        sys.modules.update(aliases)
        sys.meta_path, sys.stdin, sys.stdout, sys.stderr = shown
        interpreter.had_no_children(resource.getrusage(resource.RUSAGE_CHILDREN))
        interpreter.done(interpreter.flush(), before)
    interpreter.USER_PACKAGES = user_packages
    take_memory()
    for number, fd in zip((1, 2), saved):
        os.dup2(fd, number)
        os.close(fd)
    program.channel.use(CHANNEL)
    freeze()


def freeze():
    """Takes what there is out of the collector's sight, so that it changes no memory that is shared."""
    program.let_main_thaw()
    gc.collect()
    gc.freeze()


def take_memory():
    """Writes to the memory that a run's messages fill and whose reference counts the calls after it change: the kernel
    copies it from the zygote's now, while nobody waits."""
    for module in (interpreter, program):
        codes = [each.__code__ for each in vars(module).values() if hasattr(each, "__code__")]
        for code in codes:
            _ = [*code.co_consts, *code.co_names]
    _ = b"x" * HEAD, b"x" * interpreter.PIECE


def be_new():
    """Renews what modules took for the zygote's whole life and an interpreter has of its own."""
    thread = sys.modules.get("threading")
    if hasattr(getattr(thread, "_main_thread", None), "_set_native_id"):
        thread._main_thread._set_native_id()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.current_process().authkey = os.urandom(32)
    if "uuid" in sys.modules:
        sys.modules["uuid"]._node = None


def be_child(label, fds, zygote):
    interpreter.hold_interrupts()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, zygote.child_handler)
    os.setsid()
    channel, *standard = fds
    for number, fd in enumerate(standard):
        os.dup2(fd, number)
    program.channel.open(channel)
    os.closerange(3, CHANNEL)
    be_found(label, zygote.filter)
    be_new()
    if zygote.generators is not None:
        zygote.generators.reseed()
    if not select.select([CHANNEL], [], [], 0)[0]:  # nobody waits for it
        rehearse()
    program.prepare_main(COLLECTIONS)
    interpreter.look_ahead(interpreter.WORKSPACE)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, CHANNEL)
    program.channel.send(b"ready", b"")
    head = channel.recv(HEAD, socket.MSG_PEEK)
    if interpreter.is_for_another(head):
        interpreter.give_way(head)
    work = interpreter.receive()
    if work is not None:
        interpreter.take_up(work)


class Zygote:
    def __init__(self, generators):
        self.generators = generators
        self.socket = socket.socket(fileno=SOCKET)
        self.filter = load_filter()
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)

    def prepare(self, modules):
        gc.disable()
        interpreter.known_environment = interpreter.environment()
        variables = set()
        look_up = os._Environ.__getitem__

        def noted_look_up(environ, name):
            variables.add(os.fsencode(name) if isinstance(name, str) else name)
            return look_up(environ, name)

        os._Environ.__getitem__ = noted_look_up
        self.import_all(modules)
        os._Environ.__getitem__ = look_up
        interpreter.read_variables = frozenset(variables)
        interpreter.note_environment()
        if self.generators is not None:
            self.generators.settle()
        self.child_handler = signal.getsignal(signal.SIGCHLD) or signal.SIG_DFL
        interpreter.interrupt_handler = signal.getsignal(signal.SIGINT) or signal.default_int_handler
        freeze()
        gc.enable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        self.say(b"ready")

    def import_all(self, modules):
        for name in modules:
            try:
                __import__(name)
            except BaseException as error:
                self.say(b"failed", "%s: %s: %s" % (name, type(error).__name__, error))

    def say(self, kind, text=""):
        payload = text.encode("utf-8", "replace")[:4000]
        self.socket.sendall(b"%s %d\n%s" % (kind, len(payload), payload))

    def serve(self):
        """Until the agent has gone."""
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        ready.register(self.wake_read, select.POLLIN)
        while True:
            for fd, _ in ready.poll():
                if fd == self.wake_read:
                    self.bury()
                elif not self.fork():
                    return

    def fork(self):
        try:
            line, fds, _, _ = socket.recv_fds(self.socket, 64, 4)
        except ConnectionResetError:
            return False
        if not line:
            return False
        label = int(line.split()[1])
        try:
            pid = os.fork()
        except OSError as error:
            self.say(b"failed", "fork: %s" % error.strerror)
            pid = None
        if pid == 0:
            try:
                be_child(label, fds, self)
            finally:
                os._exit(125)
        for fd in fds:
            os.close(fd)
        self.say(b"child", "%d" % (pid or 0))
        return True

    def bury(self):
        try:
            os.read(self.wake_read, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            times = used.ru_utime * 1000000, used.ru_stime * 1000000, used.ru_maxrss
            self.say(b"dead", "%d %d %d %d %d" % (pid, status, *times))


def main():
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    modules = sys.argv[1:]
    generators = None
    if modules:
        from hearth_generators import Generators

        generators = Generators()
    sys.argv = [""]
    sys.path[0] = ""
    program.set_up()
    zygote = Zygote(generators)
    before = interpreter.imported_packages()  # by what each interpreter reads at its start
    program.set_main_aside()
    zygote.prepare(modules)
    program.forget({name for name in sys.modules if not name.startswith("hearth_")})
    interpreter.ahead = interpreter.could_shadow(PLAIN)
    interpreter.last_known_module = list(sys.modules)[-1]
    interpreter.known_packages = interpreter.imported_packages() - before
    program.results_code()
    zygote.serve()


if __name__ == "__main__":
    main()
