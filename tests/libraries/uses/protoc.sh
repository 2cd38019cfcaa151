# Generates code, and calls a server on the loopback with it.
cat >echo.proto <<'PROTO'
syntax = "proto3";
service Echo { rpc Say (Text) returns (Text); }
message Text { string text = 1; }
PROTO
python3 -m grpc_tools.protoc -I. --python_out=. --grpc_python_out=. echo.proto
cat >call.py <<'PY'
import concurrent.futures, grpc, echo_pb2 as messages, echo_pb2_grpc as calls
class Echo(calls.EchoServicer):
    def Say(self, request, context):
        return messages.Text(text=request.text.upper())
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
calls.add_EchoServicer_to_server(Echo(), server)
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    print(calls.EchoStub(channel).Say(messages.Text(text="hello")).text)
server.stop(0).wait()
PY
python3 call.py
