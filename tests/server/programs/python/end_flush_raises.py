import sys


class Broken:
    def write(self, text):
        sys.__stdout__.write(text)

    def flush(self):
        raise SystemExit(9)

    def __repr__(self):
        return "<Broken>"


sys.stdout = Broken()
print("out")
