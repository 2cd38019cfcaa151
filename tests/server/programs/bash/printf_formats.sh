# printf: widths, padding, numbers, repeats, escapes, %b, %q and the date.
# Also as a cell of a context.
printf '%5s|%-5s|%05d|%x|%o|%e|%.3f|%c\n' ab cd 42 255 8 12345.678 3.14159 xyz
printf '%s-%s\n' 1 2 3
printf '%b\n' 'a\tb\x41\u00e9'
printf '%q %q\n' "it's" $'new\nline'
printf '%d %d\n' "'A" 0x10
printf '%(%Y-%m-%d)T\n' 0
printf '%d\n' abc
echo "$?"
