# A generator that was left suspended is closed at the end.
def work():
    try:
        yield 1
        yield 2
    finally:
        print("generator closed")


g = work()
print(next(g))
