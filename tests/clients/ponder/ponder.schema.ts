import { onchainTable } from 'ponder';

/** The transfers of the token, by their logs. */
export const transfer = onchainTable('transfer', (t) => ({
  id: t.text().primaryKey(),
  block: t.hex().notNull(),
  gas: t.bigint().notNull(),
  value: t.bigint().notNull(),
}));

/** The calls of `transfer`, by traces; those that failed have no log. */
export const attempt = onchainTable('attempt', (t) => ({
  id: t.text().primaryKey(),
  block: t.hex().notNull(),
}));
