# Two worker processes of uvicorn's kind behind gunicorn, a reload by a signal, a graceful end.
cat >app.py <<'PY'
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"hello " + scope["path"].encode()})
PY
gunicorn app:app --bind 127.0.0.1:8000 --workers 2 --worker-class uvicorn_worker.UvicornWorker --pid pid --log-level error 2>log &
get() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8000/" + sys.argv[1]).read().decode())' "$1"; }
for _ in $(seq 100); do get x >/dev/null 2>&1 && break || sleep 0.1; done
get one
kill -HUP "$(cat pid)"
sleep 2
get two
kill -TERM "$(cat pid)"
wait %1 && echo "ended well"
