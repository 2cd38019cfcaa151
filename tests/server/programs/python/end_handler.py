import os
import signal
import sys

signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))


class Last:
    def __del__(self, kill=os.kill, pid=os.getpid()):
        kill(pid, 15)


last = Last()
