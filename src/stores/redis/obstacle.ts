// Reads from an error of Redis whether a call surely did not run, and what is in its way. Every other error leaves the
// outcome open, and such a call must never be sent again.
import { type HostAndPort, looseHostAndPort } from "./address.ts";

export type Obstacle =
  /** The server does not know the script: a restart, SCRIPT FLUSH. */
  | { readonly kind: "script" }
  /** The server does not take writes now: it was made a replica, or it still loads its data. */
  | { readonly kind: "standby"; readonly reason: string }
  /** Another node holds the slot. */
  | { readonly kind: "moved"; readonly to: HostAndPort }
  /** The slot is on its way to another node, and the keys of this call are there already. */
  | { readonly kind: "ask"; readonly to: HostAndPort }
  /** The slot is on its way to another node, and only some keys of this call are still here. */
  | { readonly kind: "split" };

/**
 * What kept a call from running; `undefined` when nothing is known about that.
 *
 * @param askedHost the host of the server that said so, for answers that leave it out
 */
export function obstacleOf(error: unknown, askedHost: string): Obstacle | undefined {
  if (!(error instanceof Error)) return undefined;
  const [code, , address = ""] = error.message.split(" ");
  switch (code) {
    case "NOSCRIPT":
      return { kind: "script" };
    case "READONLY":
    case "LOADING":
      return { kind: "standby", reason: error.message };
    case "TRYAGAIN":
      return { kind: "split" };
    case "MOVED":
    case "ASK": {
      const to = looseHostAndPort(/^:\d+$/.test(address) ? `${askedHost}${address}` : address);
      return to === undefined ? undefined : { kind: code === "MOVED" ? "moved" : "ask", to };
    }
    default:
      return undefined;
  }
}
