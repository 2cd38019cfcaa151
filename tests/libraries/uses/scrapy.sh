# Follows links of a site on the loopback.
mkdir site
for i in 1 2 3; do echo "<title>page $i</title><a href=$((i % 3 + 1)).html>next</a>" >"site/$i.html"; done
python3 -m http.server 8124 --bind 127.0.0.1 --directory site >log 2>&1 &
for _ in $(seq 50); do (: </dev/tcp/127.0.0.1/8124) 2>/dev/null && break || sleep 0.1; done
cat >spider.py <<'PY'
import scrapy
class Pages(scrapy.Spider):
    name = "pages"
    start_urls = ["http://127.0.0.1:8124/1.html"]
    def parse(self, response):
        yield {"title": response.css("title::text").get()}
        yield from response.follow_all(css="a")
PY
scrapy runspider spider.py --output out.csv --loglevel ERROR
tr -d '\r' <out.csv | sort
kill %1
