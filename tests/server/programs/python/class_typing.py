# Type hints at run time: generics, protocols, typed dicts, forward references.
# Also as a cell of a context.
import typing
from typing import Generic, NamedTuple, Protocol, TypedDict, TypeVar, runtime_checkable

T = TypeVar("T")


class Tree(Generic[T]):
    left: "Tree[T] | None"


@runtime_checkable
class Sized(Protocol):
    def __len__(self) -> int: ...


class Row(TypedDict, total=False):
    name: str


class Pair(NamedTuple):
    a: int
    b: str = "x"


print(typing.get_type_hints(Tree), isinstance([], Sized), Row(name="r"), Pair(1), Row.__optional_keys__, Tree[int], typing.get_args(dict[str, int]))
