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

import ctypes
import gc
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


def reseed():
    """Random numbers must not be those of a sister; the standard library's own sees to it itself."""
    numbers = sys.modules.get("numpy.random")
    if hasattr(numbers, "seed"):
        numbers.seed()


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
    """Goes the whole way of a run with its output going nowhere."""
    saved = [os.dup(number) for number in (1, 2)]
    interpreter.leave_output()
    program.channel.fd = 1
    env = interpreter.environment()
    fields = [b"0", b"run", b".", b"main.py", b"", b"%d" % len(env), *env, REHEARSED, b""]
    for _ in range(2):
        work = interpreter.Work(b"\0".join(fields))
        source = program.Source(work.name, work.code, "/" + work.name)
        module = program.main_module(source)
        before = interpreter.processor_time()
        interpreter.begin(work)
        program.run(source, module)
        interpreter.done(interpreter.finalize(module, rehearsal=True), before)
    for number, fd in zip((1, 2), saved):
        os.dup2(fd, number)
        os.close(fd)
    program.channel.fd = CHANNEL
    gc.freeze()


def be_child(label, fds, mark_filter):
    signal.pthread_sigmask(signal.SIG_BLOCK, interpreter.INTERRUPT)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    channel, *standard = fds
    for number, fd in enumerate(standard):
        os.dup2(fd, number)
    interpreter.open_channel(channel)
    os.closerange(3, CHANNEL)
    be_found(label, mark_filter)
    reseed()
    if not select.select([CHANNEL], [], [], 0)[0]:  # nobody waits for it
        rehearse()
    program.channel.send(b"ready", b"")
    select.select([CHANNEL], [], [])
    kind, folder = interpreter.glance()
    if interpreter.outdated() or interpreter.shadowed(folder):
        interpreter.give_way(kind)
    work = interpreter.wait_for_work()
    if work is not None:
        interpreter.take_up(work)


class Zygote:
    def __init__(self):
        self.socket = socket.socket(fileno=SOCKET)
        self.filter = load_filter()
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_read, False)
        os.set_blocking(self.wake_write, False)

    def prepare(self, modules):
        gc.disable()
        for name in modules:
            try:
                __import__(name)
            except BaseException as error:
                self.say(b"failed", "%s: %s: %s" % (name, type(error).__name__, error))
        gc.collect()
        gc.freeze()
        gc.enable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        self.say(b"ready")

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
                be_child(label, fds, self.filter)
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
    sys.path[0] = ""
    program.set_up()
    zygote = Zygote()
    before = interpreter.imported_packages()  # by what each interpreter reads at its start
    zygote.prepare(sys.argv[1:])
    program.forget({name for name in sys.modules if not name.startswith("hearth_")})
    interpreter.ahead = interpreter.could_shadow(PLAIN)
    interpreter.known_modules = frozenset(sys.modules)
    interpreter.known_packages = interpreter.imported_packages() - before
    interpreter.known_environment = interpreter.environment()
    zygote.serve()


if __name__ == "__main__":
    main()
