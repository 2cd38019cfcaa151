# NumPy: shapes, broadcasting, a seeded generator, printing.
# Also as a cell of a context.
import numpy as np

a = np.arange(12).reshape(3, 4)
rng = np.random.default_rng(42)
print(a.T @ a, a[:, ::2].sum(axis=0), (a % 3 == 0).nonzero())
print(rng.normal(size=3), rng.permutation(5), np.linspace(0, 1, 5), np.array([1.5, np.nan, np.inf]))
print(np.linalg.solve([[3, 1], [1, 2]], [9, 8]), np.linalg.eigvalsh([[2, 1], [1, 2]]), np.round(np.fft.fft([1, 2, 3]), 3))
np.ones(3) + np.ones(4)
