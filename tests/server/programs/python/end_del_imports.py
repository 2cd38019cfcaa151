# At the end, __del__ still reaches modules by its globals.
import os


class Guard:
    def __del__(self):
        print("sep is", os.sep, __name__)


guard = Guard()
print("body")
