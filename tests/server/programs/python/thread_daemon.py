# A daemon thread is not waited for.
import threading
import time

threading.Thread(target=lambda: (time.sleep(30), print("never")), daemon=True).start()
print("main has ended")
