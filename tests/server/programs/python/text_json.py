# JSON: an encoder of one's own, order, NaN, duplicates, errors with a position.
# Also as a cell of a context.
import datetime
import json


class Encoder(json.JSONEncoder):
    def default(self, value):
        return value.isoformat() if isinstance(value, datetime.date) else super().default(value)


print(json.dumps({"d": datetime.date(2024, 1, 5), "é": [float("nan"), 1e100, 2**70, "\ud800"]}, cls=Encoder, indent=1))
print(json.loads('{"a": 1, "a": 2, "f": 1E3, "big": 123456789012345678901234567890}', parse_float=str))
try:
    json.loads('{"a": [1, 2,]}')
except json.JSONDecodeError as error:
    print(error)
json.dumps({1, 2}, cls=Encoder)
