# Compiles a module's code into a program.
printf 'def f(n):\n    return sum(i * i for i in range(n))\n\nprint(f(1000))\n' >a.py
python3 -m nuitka --quiet --jobs=2 a.py
./a.bin
