# A thread that starts another while the program ends: both are waited for.
import threading
import time


def first():
    time.sleep(0.1)
    threading.Thread(target=second).start()


def second():
    time.sleep(0.1)
    print("second")


threading.Thread(target=first).start()
