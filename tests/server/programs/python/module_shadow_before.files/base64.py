print('my base64')
