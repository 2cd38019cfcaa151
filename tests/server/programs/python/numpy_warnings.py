# NumPy's warnings name the program's line; errstate makes them errors.
# Also as a cell of a context.
import numpy as np

print(np.array([1.0, 0.0]) / 0)
print(np.int8(100) + np.int8(100))
with np.errstate(all="raise"):
    try:
        np.log(np.array([0.0]))
    except FloatingPointError as error:
        print(error)
with np.printoptions(precision=2, suppress=True):
    print(np.array([1 / 3, 1e-9]))
