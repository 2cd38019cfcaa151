env | grep -c HEARTH
python3 -c 'print(open("/dev/null").fileno())'
