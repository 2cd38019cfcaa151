# A child that outlives its parent still writes; the run's status is the parent's.
import os
import sys
import time

sys.stdout.flush()
if os.fork() == 0:
    time.sleep(1.5)
    print("child, later", flush=True)
    os._exit(0)
print("parent", flush=True)
sys.exit(5)
