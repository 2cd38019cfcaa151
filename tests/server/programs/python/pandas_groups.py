# pandas: groups, a pivot, a join, missing values, as text.
# Also as a cell of a context.
import pandas as pd

sales = pd.DataFrame({"shop": list("aabbb"), "item": ["x", "y", "x", "x", None], "n": [1, 2, 3, 4, 5], "price": [1.5, 2, None, 4, 5]})
print(sales.groupby("shop").agg(total=("n", "sum"), mean=("price", "mean")))
print(sales.pivot_table(index="shop", columns="item", values="n", aggfunc="sum", fill_value=0))
print(sales.merge(pd.DataFrame({"shop": ["a", "c"], "city": ["Rom", "Köln"]}), how="outer", on="shop", indicator=True).to_string())
sales.info()
print(sales.describe(), sales.isna().sum().to_dict(), sales.dtypes, sep="\n")
