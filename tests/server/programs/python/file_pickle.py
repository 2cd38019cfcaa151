# Pickle of classes of the program, to a file and to a child that runs the program's text.
# Also as a cell of a context.
import pickle
from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int = 0


data = pickle.dumps([Point(1, 2), Point, {"p": Point(3)}])
print(pickle.loads(data), b"__main__" in data)
try:
    pickle.dumps(lambda: 1)
except (pickle.PicklingError, AttributeError) as error:
    print(type(error).__name__, error)
