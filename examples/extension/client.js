// The one client of the extension: opened by the first request, and again after it has ended.

/** The code of `disconnect` when a client has ended; with any other code it comes back by itself. */
export const ENDED = 4900;

/** @param {() => Promise<{on: Function, close: () => void}>} open */
export function clientOf(open) {
  /** A promise of the client. */
  let opening;
  return {
    /** The client. A failed attempt, and a client that has ended, are followed by another one at the next request. */
    provider() {
      if (opening) return opening;
      const mine = open();
      // Another one may have taken its place meanwhile.
      const forget = () => {
        if (opening === mine) opening = undefined;
      };
      mine.then((client) => client.on('disconnect', ({ code }) => code === ENDED && forget()), forget);
      opening = mine;
      return mine;
    },
    /** Closes the client, as soon as it is open; the next request opens another one. */
    end() {
      void opening?.then((client) => client.close(), () => {});
      opening = undefined;
    },
  };
}
