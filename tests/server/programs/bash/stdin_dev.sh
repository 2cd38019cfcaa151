# /dev/stdin, /dev/stdout and /dev/stderr are files for every program.
grep -c o /dev/stdin
echo direct > /dev/stdout
echo error > /dev/stderr
echo through tee | tee /dev/stderr
