# With a small limit of recursion an uncaught error still has its traceback.
import sys

sys.setrecursionlimit(60)
1 / 0
