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
  readonly #handshakeMs: number;
  #state: ConnectionState = { kind: "connecting", reason: "not connected yet" };
  /** Why the attempt under way failed, once it has. */
  #failure: string | undefined;
  /** The attempt under way was given up; what still fails because of that means nothing. */
  #givenUp = false;
  #handshake: NodeJS.Timeout | undefined;

  /** @param handshakeMs how long a server that was reached may take until it can be used */
  constructor(client: Redis, script: Script, handshakeMs: number, events: ConnectionEvents) {
    this.#client = client;
    this.#script = script;
    this.#handshakeMs = handshakeMs;
    this.#events = events;
    client.on("error", (error: Error) => {
      this.#failure ??= error.message;
    });
    client.on("connecting", () => {
      this.#failure = undefined;
      this.#givenUp = false;
    });
    client.on("connect", () => {
      this.#handshake = setTimeout(
        () => this.#giveUp(`the server did not answer within ${this.#handshakeMs} ms`),
        this.#handshakeMs,
      );
    });
    client.on("ready", () => void this.#prepare());
    client.on("close", () => {
      clearTimeout(this.#handshake);
      this.#set({ kind: "connecting", reason: this.#failure ?? "the connection was closed" });
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
    clearTimeout(this.#handshake);
    this.#set({ kind: "closed" });
    this.#client.disconnect();
  }

  /** Runs the script by its name, or by its text for a server that does not know it yet. */
  async call(keys: readonly string[], args: readonly (string | number)[], by: "name" | "text"): Promise<unknown> {
    if (by === "name") return await this.#client.evalsha(this.#script.sha1, keys.length, ...keys, ...args);
    return await this.#client.eval(this.#script.text, keys.length, ...keys, ...args);
  }

  async delete(key: string): Promise<void> {
    await this.#client.unlink(key);
  }

  async #prepare(): Promise<void> {
    try {
      const report = checkServer(await this.#client.info());
      if (report.refused !== undefined) throw new Error(report.refused);
      if (report.warning !== undefined) this.#events.onWarning(report.warning);
      await this.#client.script("LOAD", this.#script.text);
      await this.call([], [""], "name");
      clearTimeout(this.#handshake);
      this.#set({ kind: "ready", server: report.server });
    } catch (error) {
      this.#giveUp(error instanceof Error ? error.message : String(error));
    }
  }

  /** Ends this attempt to connect; the next one follows. */
  #giveUp(reason: string): void {
    clearTimeout(this.#handshake);
    if (this.#givenUp) return;
    this.#givenUp = true;
    this.#failure = reason;
    this.#client.disconnect(true);
  }

  #set(state: ConnectionState): void {
    if (this.#state.kind === "closed") return;
    this.#state = state;
    this.#events.onState(state);
  }
}

/** The server does not know the script (a restart, SCRIPT FLUSH), so nothing ran and the call may be sent again. */
export function isScriptMissing(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}
