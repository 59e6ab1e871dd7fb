// One server at a time holds all keys: a single Redis, or the master behind sentinels.
import type { ConnectionState, RedisConnection } from "./connection.ts";
import type { Passable, Topology } from "./topology.ts";

export class OneServer implements Topology {
  readonly slotOf = undefined;
  readonly #connection: RedisConnection;

  readonly #onClose: () => void;

  /** @param onClose ends what was opened together with the connection */
  constructor(connection: RedisConnection, onClose: () => void = () => undefined) {
    this.#connection = connection;
    this.#onClose = onClose;
  }

  get state(): ConnectionState {
    return this.#connection.state;
  }

  serverOf(): RedisConnection {
    return this.#connection;
  }

  async wayAround(
    obstacle: Passable,
    _slot: number,
    from: RedisConnection,
    untilMs: number,
  ): Promise<RedisConnection | undefined> {
    // Behind a name, an address that moves or sentinels, a new connection finds the server that took over.
    if (obstacle.kind !== "standby" || !from.renew(obstacle.reason)) return undefined;
    await from.whenReady(untilMs);
    return from;
  }

  close(): void {
    this.#onClose();
    this.#connection.close();
  }
}
