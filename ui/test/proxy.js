// The smallest possible reverse proxy, for tests behind one.
import { createServer, request } from 'node:http';
import { connect } from 'node:net';

/**
 * If its member `says` is not 0, the proxy answers this status by itself.
 * @param {number} port of the server behind it
 */
export async function proxy(port) {
  const server = createServer((q, a) => {
    if (front.says) {
      a.writeHead(front.says, { 'Content-Type': 'text/html' });
      a.end('<h1>There is nothing behind this proxy</h1>');
      return;
    }
    const on = request({ host: '127.0.0.1', port, method: q.method, path: q.url, headers: q.headers }, (r) => {
      a.writeHead(r.statusCode, r.headers);
      r.pipe(a);
    });
    on.on('error', () => a.destroy());
    q.pipe(on);
  });
  server.on('upgrade', (q, socket, head) => {
    if (front.says) {
      socket.end(`HTTP/1.1 ${front.says} No\r\nConnection: close\r\n\r\n`);
      return;
    }
    const on = connect(port, '127.0.0.1', () => {
      on.write(`${q.method} ${q.url} HTTP/1.1\r\n${Object.entries(q.headers).map(([k, v]) => `${k}: ${v}`).join('\r\n')}\r\n\r\n`);
      on.write(head);
      on.pipe(socket).pipe(on);
    });
    for (const s of [on, socket]) s.on('error', () => { on.destroy(); socket.destroy(); });
  });
  await new Promise((done) => { server.listen(0, '127.0.0.1', done); });
  const front = { port: server.address().port, says: 0, stop: () => { server.close(); server.closeAllConnections(); } };
  return front;
}
