# SciPy: a fit, a root, an integral, a test, a sparse system.
# Also as a cell of a context.
import numpy as np
from scipy import integrate, optimize, sparse, stats

x = np.linspace(0, 4, 20)
(a, b), _ = optimize.curve_fit(lambda x, a, b: a * np.exp(-b * x), x, 2.5 * np.exp(-1.3 * x))
print(round(a, 6), round(b, 6), round(optimize.brentq(np.cos, 0, 3), 9), round(integrate.quad(np.sin, 0, np.pi)[0], 9))
print(np.round(stats.ttest_ind([1, 2, 3, 4], [2, 4, 6, 9]), 6), stats.norm.ppf(0.975).round(6))
print(sparse.linalg.spsolve(sparse.csc_matrix([[2.0, 0], [1, 4]]), [2, 9]), optimize.linprog([-1, -2], [[1, 1]], [4]).x)
