# A file named random.py is taken instead of the standard module, with what follows from it.
import pathlib

pathlib.Path("random.py").write_text("def random():\n    return 'mine'\n")
import random

print(random.random())
print(random.randint(1, 6))
