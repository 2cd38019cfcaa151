# An uncaught KeyboardInterrupt prints its traceback and ends the program by the signal.
import signal


def work():
    signal.raise_signal(signal.SIGINT)


print("before", flush=True)
work()
