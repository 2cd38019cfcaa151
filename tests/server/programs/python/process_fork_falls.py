# A forked child that falls off its end flushes and runs its exit functions, like its parent.
import atexit
import os
import sys

atexit.register(lambda: print("exit of", who, flush=True))
who = "parent"
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    who = "child"
    print("child's work")
else:
    os.waitpid(pid, 0)
    print("parent's work")
