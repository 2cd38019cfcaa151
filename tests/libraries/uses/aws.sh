# Asks a server on the loopback that answers as S3 does.
cat >fake.py <<'PY'
import http.server
class S3(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'<?xml version="1.0"?><ListAllMyBucketsResult><Buckets><Bucket><Name>one</Name><CreationDate>2020-01-01T00:00:00Z</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>'
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", 9000), S3).serve_forever()
PY
python3 fake.py &
for _ in $(seq 50); do (: </dev/tcp/127.0.0.1/9000) 2>/dev/null && break || sleep 0.1; done
AWS_ACCESS_KEY_ID=a AWS_SECRET_ACCESS_KEY=b AWS_DEFAULT_REGION=us-east-1 aws --endpoint-url http://127.0.0.1:9000 s3api list-buckets --query 'Buckets[].Name' --output text
kill %1
