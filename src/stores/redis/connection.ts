// One connection to one Redis server: checks the server, loads the script, tries again until it is closed.
import type { Redis } from "ioredis";
import type { Script } from "./scripts.ts";
import { checkServer } from "./server-check.ts";

export type ConnectionState =
  | { readonly kind: "connecting"; readonly reason: string }
  | { readonly kind: "ready"; readonly server: string }
  | { readonly kind: "closed" };

/** What happened that an operator may act on. */
export interface ConnectionEvents {
  readonly onState: (state: ConnectionState) => void;
  readonly onWarning: (message: string) => void;
}

export class RedisConnection {
  readonly #client: Redis;
  readonly #script: Script;
  readonly #events: ConnectionEvents;
  #state: ConnectionState = { kind: "connecting", reason: "not connected yet" };

  constructor(client: Redis, script: Script, events: ConnectionEvents) {
    this.#client = client;
    this.#script = script;
    this.#events = events;
    let lastError = "the connection was closed";
    client.on("error", (error: Error) => {
      lastError = error.message;
    });
    client.on("ready", () => void this.#prepare());
    client.on("close", () => {
      if (this.#state.kind === "closed") return;
      this.#set({ kind: "connecting", reason: lastError });
      lastError = "the connection was closed";
    });
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** Starts to connect; success and failure show in the state. */
  open(): void {
    // The rejection says what the "error" event said already.
    this.#client.connect().catch(() => undefined);
  }

  close(): void {
    this.#set({ kind: "closed" });
    this.#client.disconnect();
  }

  /**
   * Runs the script. A script that the server does not know (a restart, SCRIPT FLUSH) surely did not run, so it is
   * loaded and called once more; anything else is never sent twice.
   */
  async call(keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    try {
      return await this.#client.evalsha(this.#script.sha1, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith("NOSCRIPT")) throw error;
      return await this.#client.eval(this.#script.text, keys.length, ...keys, ...args);
    }
  }

  async delete(key: string): Promise<void> {
    await this.#client.unlink(key);
  }

  async #prepare(): Promise<void> {
    try {
      const report = checkServer(await this.#client.info());
      if (report.refused !== undefined) {
        this.#set({ kind: "connecting", reason: report.refused });
        this.#client.disconnect(true);
        return;
      }
      if (report.warning !== undefined) this.#events.onWarning(report.warning);
      await this.#client.script("LOAD", this.#script.text);
      await this.call([], [""]);
      if (this.#state.kind !== "closed") this.#set({ kind: "ready", server: report.server });
    } catch (error) {
      this.#set({ kind: "connecting", reason: error instanceof Error ? error.message : String(error) });
      this.#client.disconnect(true);
    }
  }

  #set(state: ConnectionState): void {
    if (this.#state.kind === "closed") return;
    this.#state = state;
    this.#events.onState(state);
  }
}
