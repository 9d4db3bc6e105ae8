import { Hono } from 'hono';
import { replaceBigInts } from 'ponder';
import { db } from 'ponder:api';
import { attempt, transfer } from 'ponder:schema';

const app = new Hono();

app.get('/rows', async (context) => {
  const rows = { transfers: await db.select().from(transfer), attempts: await db.select().from(attempt) };
  return context.json(replaceBigInts(rows, (value) => `0x${value.toString(16)}`));
});

export default app;
