// The worker of `createProvider`, for its option `worker`. It exports nothing.
export {};
