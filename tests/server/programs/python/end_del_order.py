# An interpreter's end takes objects apart in an order: owners before what they own, lists from their end.


class Account:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("closing", self.name)


class Bank:
    def __init__(self):
        self.accounts = [Account(name) for name in ("a", "b")]
        self.by_name = {each.name: each for each in [Account("c"), Account("d")]}

    def __del__(self):
        print("bank closed")


class Node:
    def __init__(self, value, following=None):
        self.value, self.following, self.owner = value, following, None

    def __del__(self):
        print("node", self.value)


bank = Bank()
items = [Account(number) for number in range(3)]
chain = Node(1, Node(2, Node(3)))
ring = Node("x", Node("y"))
ring.following.following = ring
print("end")
