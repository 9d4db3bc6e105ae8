// The light client in a worker. `createProvider` starts it, or your own code does for its option `worker`.
import { serve } from './host.js';
import { openClient } from './light-module.js';

serve({ client: openClient });
