// The package's worker, which ends when a page tells it to.
import '../../worker.js';

const end = ({ data }) => data === 'end' && globalThis.close();

if ('onconnect' in globalThis) globalThis.addEventListener('connect', ({ ports: [port] }) => port.addEventListener('message', end));
else globalThis.addEventListener('message', end);
