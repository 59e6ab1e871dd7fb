// The numbers that every transport keeps to, whatever it is built on.

/**
 * Calls that a client may have open on one connection. A smaller number fails open in Envoy, which sends the first
 * burst on a new connection before it has read this.
 */
export const MAX_CONCURRENT_STREAMS = 1024;

/** Data that a client may send ahead on one call, bytes. */
export const STREAM_WINDOW_BYTES = 1 << 20;

/** Data that a client may send ahead on one connection, bytes. */
export const CONNECTION_WINDOW_BYTES = 16 << 20;

/**
 * Most handlers that may wait on one connection. Only a client that resets its calls gets past the number of
 * concurrent ones; this bounds what that can cost, and leaves room for an Envoy that gives up on slow answers.
 */
export const MAX_RUNNING = 8192;

/** Unfinished messages of the largest size that a server holds at a time, over all its connections. */
export const MAX_UNFINISHED_MESSAGES = 16;

/** Bytes that a streaming call may hold back for a caller that does not read. */
export const MAX_UNSENT_BYTES = 65_536;

/** Time for a new connection to begin speaking HTTP/2, milliseconds. */
export const HANDSHAKE_MS = 20_000;

/** Silence after which TCP asks whether the client is still there, milliseconds. */
export const KEEP_ALIVE_MS = 60_000;
