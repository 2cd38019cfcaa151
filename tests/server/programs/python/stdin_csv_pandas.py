# pandas reads a table from standard input.
import sys

import pandas as pd

frame = pd.read_csv(sys.stdin)
print(frame)
print(frame.groupby("team")["points"].agg(["sum", "mean", "max"]))
