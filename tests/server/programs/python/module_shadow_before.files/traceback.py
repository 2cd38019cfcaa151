print('my traceback')
