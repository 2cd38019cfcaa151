# The order of the end: threads, exit functions, then objects.
import atexit
import threading
import time


class Thing:
    def __del__(self):
        print("3 object")


thing = Thing()
atexit.register(print, "2 exit function")
threading.Thread(target=lambda: (time.sleep(0.1), print("1 thread"))).start()
