import atexit
import os
import threading
import time

atexit.register(os.write, 1, b" exit")


def later():
    time.sleep(0.1)
    os.write(1, b" thread")


threading.Thread(target=later).start()
print("main", end="")
