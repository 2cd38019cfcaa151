# __del__ of a global runs at the end, and can still print.
class Thing:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("del", self.name)


first = Thing("first")
second = Thing("second")
first.other = second
print("body")
