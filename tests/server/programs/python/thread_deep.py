# A thread with a large stack recurses deeper than the main thread may, as judges' solutions do.
import sys
import threading


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


def main():
    print(depth(100_000))


sys.setrecursionlimit(1 << 20)
threading.stack_size(256 << 20)
thread = threading.Thread(target=main)
thread.start()
thread.join()
