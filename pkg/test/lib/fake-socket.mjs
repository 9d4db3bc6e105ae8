// A WebSocket whose other side is played by the test.
export class FakeSocket {
  static CONNECTING = 0;
  static OPEN = 1;
  static CLOSED = 3;
  /** All sockets, oldest first. */
  static made = [];

  readyState = FakeSocket.CONNECTING;
  sent = [];

  constructor(url) {
    this.url = String(url);
    FakeSocket.made.push(this);
  }

  static get last() {
    return FakeSocket.made.at(-1);
  }

  /** Opens the connection. */
  open() {
    this.readyState = FakeSocket.OPEN;
    this.onopen();
  }

  /** Sends a message from the other side: text and bytes as they are, anything else as JSON. */
  say(what) {
    this.onmessage({ data: typeof what === 'string' || ArrayBuffer.isView(what) ? what : JSON.stringify(what) });
  }

  send(text) {
    if (this.readyState !== FakeSocket.OPEN) throw new Error('not open');
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.readyState = FakeSocket.CLOSED;
  }
}
