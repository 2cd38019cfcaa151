# A SystemExit with several arguments prints their tuple.
raise SystemExit("a", 2)
