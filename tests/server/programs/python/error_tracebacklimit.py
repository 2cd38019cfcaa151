# sys.tracebacklimit cuts the traceback.
import sys


def a():
    b()


def b():
    raise KeyError("deep")


sys.tracebacklimit = 1
a()
