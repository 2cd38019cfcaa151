printf 'name,age\nAda,36\nAlan,41\n' >people.csv
sqlite-utils insert base.db people people.csv --csv --silent
sqlite-utils query base.db 'select name, age * 2 as double from people order by age desc'
