# An error deep inside pandas shows the program's line first and the library's after it.
import pandas as pd

frame = pd.DataFrame({"a": [1]})
print(frame["b"])
