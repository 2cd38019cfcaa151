# A pool of threads that nobody shuts down finishes its work at the end.
import threading
from concurrent.futures import ThreadPoolExecutor

turns = [threading.Event() for _ in range(4)]


def task(number):
    turns[number].wait()
    print("task", number)
    turns[number + 1].set()


pool = ThreadPoolExecutor(2)
for number in range(3):
    pool.submit(task, number)
print("main has ended")
turns[0].set()
