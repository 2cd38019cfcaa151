# A server and a client of asyncio over the loopback and over a Unix socket.
import asyncio
import os


async def serve(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def ask(opening):
    reader, writer = await opening
    writer.write(b"hello\n")
    answer = await reader.read()
    writer.close()
    return answer


async def main():
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        print(await ask(asyncio.open_connection(*server.sockets[0].getsockname())))
    async with await asyncio.start_unix_server(serve, "socket"):
        print(await ask(asyncio.open_unix_connection("socket")))


asyncio.run(main())
os.unlink("socket")
