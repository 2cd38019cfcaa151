from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(2) as pool:
    futures = [pool.submit(int, text) for text in ("a", "b")]
raise ExceptionGroup("both", [future.exception() for future in futures])
