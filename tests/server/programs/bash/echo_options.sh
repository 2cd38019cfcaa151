# echo and its options; xpg_echo.
echo -n "no line end"; echo
echo -e 'a\tb\\n' -n
echo -E 'a\tb' '-e'
echo -- --
shopt -s xpg_echo; echo 'x\ty'
