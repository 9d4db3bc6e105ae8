// The pages with addresses of their own (router.ts). The bundler makes one file of them, which main.ts loads last, or earlier when an address
// names one of them. The import of further.ts lets the bundler put code that both share into that file, instead of into small ones.
import '../further.ts';

export { addressPage } from './address.ts';
export { blockPage } from './block.ts';
export { logsPage } from './logs.ts';
export { tokenPage } from './token.ts';
export { transactionPage } from './transaction.ts';
