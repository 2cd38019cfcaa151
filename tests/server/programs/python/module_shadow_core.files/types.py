print('my types')
