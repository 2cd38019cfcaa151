# A generator that raises StopIteration, and one that is closed early.
# Also as a cell of a context.
def numbers():
    try:
        yield 1
        yield 2
    finally:
        print("closed")


for number in numbers():
    print(number)
    break


def wrong():
    yield 1
    raise StopIteration


list(wrong())
