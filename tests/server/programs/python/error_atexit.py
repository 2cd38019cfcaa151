# An error in an exit function is printed; the others still run, and the status is 0.
import atexit

atexit.register(print, "the other one")


@atexit.register
def broken():
    raise OSError("too late")
