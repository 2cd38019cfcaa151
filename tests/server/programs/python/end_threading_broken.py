import threading

threading.active_count = None
threading._shutdown = None
print("body")
