import threading
import time


def loop():
    while True:
        time.sleep(0.01)


threading.Thread(target=loop, daemon=True).start()
kept = open("kept.txt", "w")
kept.write("kept\n")
print("on")
