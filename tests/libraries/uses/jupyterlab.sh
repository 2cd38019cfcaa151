# The server answers, and a kernel that it starts computes, by its REST API and web socket.
jupyter lab --no-browser --ip 127.0.0.1 --port 8888 --IdentityProvider.token=abc --ServerApp.log_level=ERROR >log 2>&1 &
cat >ask.py <<'PY'
import json, time, urllib.request, websocket
def ask(path, data=None):
    request = urllib.request.Request(f"http://127.0.0.1:8888{path}", data=data, headers={"Authorization": "token abc"})
    return urllib.request.urlopen(request, timeout=60).read()
for _ in range(900):
    try:
        print(sorted(json.loads(ask("/api/status")))[:2])
        break
    except OSError:
        time.sleep(0.2)
print(b"jupyter-config-data" in ask("/lab"))
kernel = json.loads(ask("/api/kernels", b"{}"))["id"]
socket = websocket.create_connection(f"ws://127.0.0.1:8888/api/kernels/{kernel}/channels?token=abc", timeout=60)
header = {"msg_id": "1", "msg_type": "execute_request", "username": "", "session": "1", "version": "5.3", "date": "2020-01-01T00:00:00Z"}
socket.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "buffers": [],
                        "content": {"code": "print(6 * 7)", "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}}))
while (message := json.loads(socket.recv()))["header"]["msg_type"] != "stream":
    pass
print(message["content"]["text"].strip())
PY
python3 ask.py
kill %1
