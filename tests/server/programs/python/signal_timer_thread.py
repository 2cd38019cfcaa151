# A signal from a thread is handled in the main thread, also while that sleeps.
import os
import signal
import threading
import time

handled = []
signal.signal(signal.SIGUSR1, lambda *_: handled.append(threading.current_thread().name))
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1)).start()
for _ in range(500):
    if handled:
        break
    time.sleep(0.02)
print("in", handled)
