# doctest finds the examples of the program itself.
def add(a, b):
    """
    >>> add(1, 2)
    3
    >>> add("a", "b")
    'ab'
    >>> add(1, "b")
    Traceback (most recent call last):
    TypeError: unsupported operand type(s) for +: 'int' and 'str'
    >>> add(2, 2)
    5
    """
    return a + b


if __name__ == "__main__":
    import doctest
    print(doctest.testmod())
