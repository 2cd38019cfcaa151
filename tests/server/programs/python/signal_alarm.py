# An alarm interrupts a sleep by an exception of its handler.
# Also as a cell of a context.
import signal
import time


class TooLong(Exception):
    pass


def ring(number, frame):
    raise TooLong("after a moment")


signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    time.sleep(30)
except TooLong as error:
    print("stopped:", error)
