# A broker on the loopback: one client publishes, another hears.
nats-server --addr 127.0.0.1 --port 4222 --jetstream --store_dir store >log 2>&1 &
cat >client.py <<'PY'
import asyncio, nats
async def main():
    one, two = [await nats.connect("nats://127.0.0.1:4222", max_reconnect_attempts=50, reconnect_time_wait=0.1) for _ in range(2)]
    heard = await two.subscribe("news")
    await two.flush()
    await one.publish("news", b"hello")
    print((await heard.next_msg(timeout=10)).data)
    stream = one.jetstream()
    await stream.add_stream(name="S", subjects=["kept"])
    print((await stream.publish("kept", b"x")).seq)
    await one.close(), await two.close()
asyncio.run(main())
PY
for _ in $(seq 50); do (: </dev/tcp/127.0.0.1/4222) 2>/dev/null && break || sleep 0.1; done
python3 client.py
kill -INT %1
wait %1 || echo "status $?"
