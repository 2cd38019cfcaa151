# JSON, one object a line, is filtered like a Unix tool does.
import json
import sys

for line in sys.stdin:
    record = json.loads(line)
    if record["ok"]:
        print(json.dumps(record, ensure_ascii=False, sort_keys=True))
