// The light client in a worker. `createProvider` starts this worker, unless you start it and pass it as the option `worker`.
import { serve } from './host.js';
import { openClient } from './light-module.js';

serve({ client: openClient });
