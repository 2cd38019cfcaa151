# nohup, disown and setsid children outlive the script's own commands.
(sleep 0.2; echo done >flag) &
disown
setsid sh -c 'echo session >session'
for _ in $(seq 500); do [ -s flag ] && [ -s session ] && break; sleep 0.02; done
cat flag session
