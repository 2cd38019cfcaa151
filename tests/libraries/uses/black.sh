printf "x = { 'a':1 }\ndef f( a ):\n  return a\n" >bad.py
cp bad.py worse.py
black --quiet --workers 2 bad.py worse.py
cat bad.py
printf 'def f(:\n' | black --quiet - || echo "status $?"
