# Metaclasses, descriptors, __init_subclass__, slots, abstract classes.
# Also as a cell of a context.
import abc


class Meta(type):
    def __new__(cls, name, bases, namespace):
        print("creates", name, sorted(k for k in namespace if not k.startswith("__")))
        return super().__new__(cls, name, bases, namespace)


class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, thing, owner):
        return getattr(thing, self.name, 0)

    def __set__(self, thing, value):
        if value < 0:
            raise ValueError(f"{self.name[1:]} must be positive")
        setattr(thing, self.name, value)


class Account(metaclass=Meta):
    balance = Positive()


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


account = Account()
account.balance = 5
print(account.balance, Account.__mro__, Account.__module__, Account.__qualname__)
try:
    Shape()
except TypeError as error:
    print(error)
account.balance = -1
