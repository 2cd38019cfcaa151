printf 'SELECT a,b from t\n' >a.sql
sqlfluff lint --dialect ansi --disable-progress-bar --nocolor a.sql || echo "status $?"
sqlfluff fix --dialect ansi --disable-progress-bar --quiet a.sql
cat a.sql
