printf '%%module trial\nint twice(int a);\n' >trial.i
swig -python trial.i
grep -c 'def twice' trial.py
swig -nothing 2>/dev/null || echo "status $?"
