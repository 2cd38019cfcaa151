# Names, counts and identities of threads.
# Also as a cell of a context.
import threading

print(threading.current_thread().name, threading.active_count(), [t.name for t in threading.enumerate()])
thread = threading.Thread(target=lambda: print(threading.current_thread().name, threading.current_thread().daemon))
print(thread.name, thread.ident, thread.is_alive())
thread.start()
thread.join()
print(threading.main_thread() is threading.current_thread(), thread.is_alive())
