import threading

print(threading.MARK)
