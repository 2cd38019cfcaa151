# A syntax error: in a text that is evaluated, and in a script, which runs until there.
echo before
eval 'if true; then'
echo "status $?"
printf 'echo first\nif true; then\n' >broken.sh
bash broken.sh; echo "status $?"
