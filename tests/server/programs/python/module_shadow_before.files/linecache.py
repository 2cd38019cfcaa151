print('my linecache')
