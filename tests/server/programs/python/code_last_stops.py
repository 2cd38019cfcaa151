class Shown:
    def __del__(self):
        print("gone")


def numbers():
    yield 1


each = numbers()
Shown(), next(each)
Shown(), next(each)
