# A thread that is no daemon is waited for at the end.
import threading
import time

threading.Thread(target=lambda: (time.sleep(0.2), print("late"))).start()
print("main has ended")
