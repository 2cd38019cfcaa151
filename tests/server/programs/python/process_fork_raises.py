# A forked child with an uncaught error prints its traceback and has status 1.
import os

pid = os.fork()
if pid == 0:
    raise ValueError("in the child")
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
