# An error in a decorated function shows the wrapper's frame as well.
# Also as a cell of a context.
import functools


def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        print("calling", function.__name__)
        return function(*args)
    return wrapper


@logged
def first(values):
    return values[0]


first([])
