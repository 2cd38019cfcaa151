#!/bin/bash
# anthropic 2.10.0: its http_client must be a client of the package httpx2; one of httpx is refused, though both look alike.
# A good guess: httpx.Client, which openai 3.57.0 takes although it comes with httpx2 too; seen: a TypeError when the client is made.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install anthropic==2.10.0 httpx==0.28.1
expect "TypeError
hi" "$(python3 -c '
import anthropic, httpx, httpx2
answer = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [{"type": "text", "text": "hi"}],
          "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
def client(package):
    transport = package.MockTransport(lambda request: package.Response(200, json=answer))
    return anthropic.Anthropic(api_key="k", http_client=package.Client(transport=transport))
try:
    client(httpx)
except TypeError as error:
    print(type(error).__name__)
print(client(httpx2).messages.create(model="x", max_tokens=9, messages=[{"role": "user", "content": "hi"}]).content[0].text)')"
