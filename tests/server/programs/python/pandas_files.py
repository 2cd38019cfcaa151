# pandas writes and reads CSV, JSON and Excel.
import pandas as pd

frame = pd.DataFrame({"n": [1, 2], "t": ["é", 'q"'], "d": pd.to_datetime(["2024-01-01", None])})
frame.to_csv("f.csv", index=False)
frame.to_json("f.json", orient="records", lines=True, force_ascii=False)
frame.to_excel("f.xlsx", sheet_name="S")
print(pd.read_csv("f.csv", parse_dates=["d"]).equals(frame), pd.read_excel("f.xlsx", index_col=0).shape, pd.read_json("f.json", lines=True).to_dict("list"))
import os

os.unlink("f.xlsx")
pd.read_csv("none.csv")
