# A web server with files, compression and a proxy.
mkdir site
echo 'hello from a file' >site/a.txt
cat >Caddyfile <<'CADDY'
{
	admin off
	auto_https off
}
http://127.0.0.1:8080 {
	root * site
	file_server
}
http://127.0.0.1:8081 {
	reverse_proxy 127.0.0.1:8080
}
CADDY
caddy run --config Caddyfile 2>log &
for _ in $(seq 100); do (: </dev/tcp/127.0.0.1/8081) 2>/dev/null && break || sleep 0.1; done
python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:8081/a.txt").read())'
kill -TERM %1
wait %1 && echo "ended well"
