// Rendered on the server. The balance is proven in the browser: a server that proved it would have to be trusted.
import Balance from './balance';

export default function Page() {
  return (
    <main>
      <h1>A proven balance</h1>
      <Balance />
    </main>
  );
}
