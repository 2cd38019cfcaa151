# The program, not the library: a table into a Parquet file and back.
duckdb -c "copy (select i, i % 7 as g from range(100000) t(i)) to 'a.parquet'"
duckdb -csv -c "select g, count(*) as n, sum(i) as s from 'a.parquet' group by g order by g"
