# pandas: dates, time zones, resampling, rolling windows.
# Also as a cell of a context.
import pandas as pd

times = pd.date_range("2024-02-28", periods=6, freq="12h", tz="Europe/Berlin")
series = pd.Series(range(6), times)
print(series.resample("D").sum(), series.rolling(2).mean().tolist(), times[0].tz_convert("Asia/Tokyo"), sep="\n")
print(pd.to_datetime(["2024-01-05", "05/01/2024"], format="mixed", dayfirst=True), pd.Timedelta("1 days 3h"), pd.Period("2024Q1").end_time)
pd.to_datetime("no date")
