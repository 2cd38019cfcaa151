# Dataclasses: order, frozen, fields, slots, a default that is shared by mistake.
# Also as a cell of a context.
from dataclasses import asdict, dataclass, field, replace


@dataclass(order=True, frozen=True, slots=True)
class Version:
    major: int
    minor: int = 0
    tags: list = field(default_factory=list, compare=False, repr=False)


a = Version(1, 2, ["x"])
print(a, a < Version(1, 3), asdict(a), replace(a, minor=9), hash(Version(1)) == hash(Version(1)))
try:
    a.major = 2
except Exception as error:
    print(type(error).__name__, error)


@dataclass
class Wrong:
    shared: list = []
