#!/bin/bash
# Faker 40.63.0 and mimesis 22.2.0: objects made before a fork draw the same people in each child, though plain random does not.
# A good guess: the children differ, as CPython gives the module random a new seed after a fork; seen: "1 1 2" (names of Faker, of mimesis,
# numbers of random, each counted over two children). CPython's hook knows only the module's own generator; both make theirs.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install faker==40.63.0 mimesis==22.2.0
cat >children.py <<'PYTHON'
import os, random
import faker, mimesis
fake, person = faker.Faker(), mimesis.Person()
draws = []
for _ in range(2):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, "\n".join([fake.name() + fake.name(), person.full_name() + person.full_name(), str(random.random())]).encode())
        os._exit(0)
    os.wait()
    draws.append(os.read(read, 4096).decode().split("\n"))
print(*(len(set(each)) for each in zip(*draws)))
PYTHON
expect "1 1 2" "$(python3 children.py)"
