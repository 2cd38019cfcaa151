# A handler runs between two instructions of the main thread.
# Also as a cell of a context.
import os
import signal

seen = []
before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append((number == signal.SIGUSR1, frame.f_code.co_name)))
print(before == signal.SIG_DFL)
os.kill(os.getpid(), signal.SIGUSR1)
print(seen)
signal.signal(signal.SIGUSR1, before)
