# email, base64, quoted-printable, urllib.parse, shlex and html.
# Also as a cell of a context.
import base64
import email.message
import html
import shlex
import urllib.parse

message = email.message.EmailMessage()
message["Subject"], message["To"] = "Grüße", "a@example.org"
message.set_content("Zeile é\n")
print(message.as_string(), base64.urlsafe_b64encode(b"\xfb\xff"), html.unescape("&eacute;&lt;"), html.escape("<'>"))
print(urllib.parse.urlencode({"q": "a b&c", "é": [1]}, doseq=True), urllib.parse.urlsplit("http://u:p@h:8/p;x?q#f"), urllib.parse.unquote("%C3%A9+"))
print(shlex.split("a 'b c' \"d\\\"e\" # f", comments=True), shlex.quote("it's"), urllib.parse.urljoin("http://h/a/b", "../c"))
