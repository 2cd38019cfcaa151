# Keeps two processes, starts one that died again, and stops them.
cat >super.conf <<'CONF'
[supervisord]
logfile=/workspace/super.log
pidfile=/workspace/super.pid
[unix_http_server]
file=/workspace/super.sock
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix:///workspace/super.sock
[program:one]
command=sleep 1000
[program:two]
command=sleep 1000
CONF
supervisord -c super.conf 2>/dev/null
control() { supervisorctl -c super.conf "$@" 2>/dev/null || true; }
for _ in $(seq 50); do [[ $(control status | grep -c RUNNING) == 2 ]] && break || sleep 0.2; done
control status | awk '{ print $1, $2 }'
before=$(control pid one)
kill -KILL "$before"
for _ in $(seq 50); do now=$(control pid one); [[ $now != 0 && $now != "$before" ]] && break || sleep 0.2; done
[[ $now != "$before" ]] && echo "started again"
control shutdown
