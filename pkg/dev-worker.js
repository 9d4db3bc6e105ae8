// The light client and the development chain in a worker. `createProvider` and `createDevChain` of dev.js start it.
import { openChain, openClient } from './dev-module.js';
import { serve } from './host.js';

serve({ client: openClient, chain: openChain });
