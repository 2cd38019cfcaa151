# sys.exit() in a thread ends the thread only, silently.
import sys
import threading


def work():
    print("in the thread")
    sys.exit(5)


thread = threading.Thread(target=work)
thread.start()
thread.join()
print("main goes on")
