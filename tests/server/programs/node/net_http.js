// A server of http on the loopback answers fetch and http.get.
const http = require('http');
const server = http.createServer((request, response) => {
  response.setHeader('X-Path', request.url);
  request.pipe(response);
});
server.listen(0, '127.0.0.1', async () => {
  const url = `http://127.0.0.1:${server.address().port}/a?b=c`;
  const answer = await fetch(url, { method: 'POST', body: 'echo' });
  console.log(answer.status, answer.headers.get('x-path'), await answer.text());
  http.get(url, (response) => { response.resume().on('end', () => { console.log(response.statusCode); server.close(() => console.log('closed')); server.closeAllConnections?.(); }); });
});
