# Dates: arithmetic, ISO forms, leap years, a calendar.
# Also as a cell of a context.
import calendar
from datetime import date, datetime, timedelta, timezone

moment = datetime(2024, 2, 28, 23, 30, tzinfo=timezone.utc)
print(moment + timedelta(hours=1), (date(2024, 3, 1) - date(2023, 3, 1)).days, moment.isoformat(), moment.strftime("%A %d %B %Y, week %V"))
print(datetime.fromisoformat("2024-01-05T10:00:00+02:00").astimezone(timezone.utc), datetime.strptime("5 Jan 24", "%d %b %y"), calendar.isleap(1900))
print(calendar.month(2024, 2), timedelta(seconds=-1), moment.timestamp(), date.max - date.min)
date(2023, 2, 29)
