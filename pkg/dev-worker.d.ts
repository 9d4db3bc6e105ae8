// The worker of `createProvider` and `createDevChain` of dev.js, for their option `worker`. It exports nothing.
export {};
