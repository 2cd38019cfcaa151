# An uncaught error in a thread is printed with the thread's name; the program ends with 0.
import threading

thread = threading.Thread(target=lambda: 1 / 0, name="worker-1")
thread.start()
thread.join()
print("still here")
