# The exit codes of processes: a status, a text, an error, a signal.
import multiprocessing
import os
import signal
import sys


def killed():
    os.kill(os.getpid(), signal.SIGTERM)


codes = []
for function, args in ((sys.exit, (3,)), (sys.exit, ("a text",)), (int, ("x",)), (killed, ()), (print, ("from the child",))):
    process = multiprocessing.Process(target=function, args=args, name="child")
    process.start()
    process.join()
    codes.append(process.exitcode)
print(codes)
