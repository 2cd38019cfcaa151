# sys.exit() waits for threads too, then exit functions run.
import atexit
import sys
import threading
import time

atexit.register(print, "exit function")
threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
print("body")
sys.exit(4)
