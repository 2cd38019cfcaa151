# The limit of recursion counts the program's frames and nobody else's.
import sys

sys.setrecursionlimit(150)
deepest = 0


def down(n):
    global deepest
    deepest = n
    down(n + 1)


try:
    down(1)
except RecursionError:
    print(deepest)
