mkdir -p a/b
printf 'one\ntwo needle\n' >a/b/c.txt
printf 'needle\n' >a/ignored.log
printf '*.log\n' >a/.ignore
rg --sort path --line-number needle a
rg absent a || echo "status $?"
