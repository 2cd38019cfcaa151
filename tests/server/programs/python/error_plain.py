# The traceback of an uncaught error: each frame with its line and its carets.
# Also as a cell of a context.
def divide(a, b):
    return a / b


def average(values):
    return divide(sum(values), len(values))


print(average([1, 2, 3]))
print(average([]))
