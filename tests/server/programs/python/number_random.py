# Seeded random numbers are the same everywhere.
# Also as a cell of a context.
import random

random.seed(42)
print(random.random(), random.randint(1, 100), random.choice("abc"), random.sample(range(100), 5), random.gauss(0, 1))
other = random.Random("text")
print(other.getrandbits(64), other.shuffle(items := list(range(6))), items, random.Random(7).choices([1, 2], [1, 9], k=5))
