from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(1) as pool:
    future = pool.submit(lambda: {}["k"])
raise ValueError("of the future") from future.exception()
