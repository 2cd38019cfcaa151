# A database of SQLite on disk: a transaction, a rollback, an error, a function of Python.
import sqlite3

with sqlite3.connect("shop.db") as db:
    db.execute("create table item (id integer primary key, name text unique, price real)")
    db.executemany("insert into item (name, price) values (?, ?)", [("pen", 1.5), ("ink", 7), ("päper", None)])
db.create_function("double", 1, lambda x: None if x is None else x * 2)
print(db.execute("select name, double(price) from item order by name desc").fetchall())
try:
    with db:
        db.execute("delete from item")
        db.execute("insert into item (id, name) values (1, 'a'), (1, 'b')")
except sqlite3.IntegrityError as error:
    print(error)
print(db.execute("select count(*), sum(price), typeof(price) from item").fetchone())
db.close()
