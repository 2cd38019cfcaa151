# A project with a seed, a model and a test, over DuckDB.
mkdir -p models seeds
printf 'name: trial\nversion: "1.0.0"\nprofile: trial\n' >dbt_project.yml
printf 'trial:\n  target: dev\n  outputs:\n    dev: {type: duckdb, path: base.duckdb, threads: 2}\n' >profiles.yml
printf 'i,s\n1,a\n2,b\n' >seeds/letters.csv
printf "select i * 2 as double, s from {{ ref('letters') }}\n" >models/doubles.sql
printf 'models:\n  - name: doubles\n    columns:\n      - {name: double, data_tests: [unique]}\n' >models/schema.yml
DBT_SEND_ANONYMOUS_USAGE_STATS=false dbt --quiet --no-use-colors build --profiles-dir . && echo built
python3 -c 'import duckdb; print(duckdb.connect("base.duckdb").sql("select * from doubles order by 1").fetchall())'
