# A data analysis as models write it: build, clean, group, test, report.
import numpy as np
import pandas as pd
from scipy import stats

rng = np.random.default_rng(2024)
frame = pd.DataFrame({"group": rng.choice(["control", "treated"], 200), "age": rng.integers(18, 80, 200)})
frame["score"] = np.where(frame["group"] == "treated", 55, 50) + rng.normal(0, 8, 200)
frame.loc[frame.sample(10, random_state=1).index, "score"] = np.nan
clean = frame.dropna()
print("=" * 30, f"Rows: {len(frame)} -> {len(clean)}", sep="\n")
print(clean.groupby("group")["score"].describe().round(2))
print(clean.groupby(pd.cut(clean["age"], [0, 30, 60, 100]), observed=True)["score"].mean().round(3))
result = stats.ttest_ind(*(part["score"] for _, part in clean.groupby("group")))
print(f"t = {result.statistic:.4f}, p = {result.pvalue:.3g}")
print(np.polyfit(clean["age"], clean["score"], 1).round(5))
