import { ponder } from 'ponder:registry';
import { attempt, transfer } from 'ponder:schema';

ponder.on('Token:Transfer', async ({ event, context }) => {
  const { id, args, block, transactionReceipt } = event;
  await context.db.insert(transfer).values({ id, block: block.hash, gas: transactionReceipt.gasUsed, value: args.value });
});

ponder.on('Token.transfer()', async ({ event, context }) => {
  await context.db.insert(attempt).values({ id: event.id, block: event.block.hash });
});
