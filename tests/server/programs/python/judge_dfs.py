# A depth-first search of ten thousand levels by recursion.
import sys

sys.setrecursionlimit(100_000)
size = 10_000
children = {n: [n + 1] for n in range(size)}
order = []


def visit(n):
    order.append(n)
    for child in children.get(n, ()):
        visit(child)


visit(0)
print(len(order), order[-1])
