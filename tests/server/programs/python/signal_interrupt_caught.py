# KeyboardInterrupt can be caught, and the program ends well.
# Also as a cell of a context.
import os
import signal
import time

try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    print("interrupted, cleaning up")
print("done")
