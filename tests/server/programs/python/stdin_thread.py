# A thread reads standard input while the main thread waits for its queue.
import queue
import sys
import threading

lines = queue.Queue()


def reader():
    for line in sys.stdin:
        lines.put(line.strip())
    lines.put(None)


threading.Thread(target=reader, daemon=True).start()
while (line := lines.get()) is not None:
    print("got", line)
