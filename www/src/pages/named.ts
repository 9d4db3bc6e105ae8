// The pages with addresses of their own, as one file that is loaded last, or when an address names one of them.
// The bundler puts what the files share into that one, instead of small files.
import '../further.ts';

export { addressPage } from './address.ts';
export { blockPage } from './block.ts';
export { logsPage } from './logs.ts';
export { tokenPage } from './token.ts';
export { transactionPage } from './transaction.ts';
