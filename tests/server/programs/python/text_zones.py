# Time zones: summer time, a repeated hour, TZ of the environment and tzset.
import os
import time
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

berlin = ZoneInfo("Europe/Berlin")
start = datetime(2024, 10, 27, 1, 30, tzinfo=ZoneInfo("UTC")) - timedelta(hours=1)
for hours in range(3):
    print((start + timedelta(hours=hours)).astimezone(berlin).isoformat())
print(datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=berlin).utcoffset(), time.tzname, time.timezone)
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
print(time.tzname, time.strftime("%H:%M", time.localtime(0)), datetime.fromtimestamp(0))
ZoneInfo("No/Where")
