# The main thread's ids are those of the process.
import os
import signal
import threading

print(threading.main_thread().native_id == os.getpid(), threading.get_native_id() == os.getpid())
signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
