# Enums, flags, and a match statement over classes.
# Also as a cell of a context.
import enum


class Color(enum.StrEnum):
    RED = enum.auto()
    BLUE = enum.auto()


class Mode(enum.Flag):
    R, W, X = 4, 2, 1


def describe(value):
    match value:
        case Color.RED | Color.BLUE as color:
            return f"color {color}"
        case {"type": "point", "at": (x, y), **rest} if x == y:
            return f"diagonal {x} {rest}"
        case [first, *_, last]:
            return f"from {first} to {last}"
        case Mode(value=v):
            return f"mode {v}"
    return "other"


print([describe(v) for v in (Color("red"), {"type": "point", "at": (2, 2), "z": 1}, [1, 2, 3], Mode.R | Mode.X, "text")], Mode.R | Mode.W, list(Color))
Color("green")
