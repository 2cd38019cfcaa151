# threading.excepthook takes what a thread did not catch.
# Also as a cell of a context.
import threading

before = threading.excepthook
threading.excepthook = lambda args: print("hook:", args.exc_type.__name__, args.exc_value, args.thread.name)
thread = threading.Thread(target=int, args=("x",), name="t")
thread.start()
thread.join()
threading.excepthook = before
