# A recursion without end: the repeated lines are counted, not printed.
# Also as a cell of a context.
def down(n):
    return down(n + 1)


try:
    down(0)
except RecursionError as error:
    print(error)
import traceback

try:
    down(0)
except RecursionError as error:
    lines = traceback.format_exception(error)
    print(lines[0], lines[-1], [line.startswith("  [Previous line repeated") for line in lines].count(True))
