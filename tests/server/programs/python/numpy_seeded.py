# NumPy's old global generator, seeded, and a copy of its state.
# Also as a cell of a context.
import numpy as np

np.random.seed(7)
state = np.random.get_state()
first = np.random.rand(3)
np.random.set_state(state)
print(first, (np.random.rand(3) == first).all(), np.random.randint(0, 10, 5), np.random.choice(["a", "b"], 3))
