# A signal from a thread is handled in the main thread, also while that sleeps.
import os
import signal
import threading
import time

signal.signal(signal.SIGUSR1, lambda *_: print("in", threading.current_thread().name))
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
time.sleep(0.3)
print("end")
