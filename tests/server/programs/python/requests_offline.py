# requests without a network: its own errors, and a prepared request.
import requests

request = requests.Request("POST", "http://example.invalid/a", params={"q": "é x"}, json={"a": 1}).prepare()
print(request.url, request.headers["Content-Type"], request.body)
try:
    requests.get("no-scheme/path")
except requests.exceptions.MissingSchema as error:
    print(error)
