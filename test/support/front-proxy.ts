// envoy/envoy.yaml as the tests run it: the file itself, with other addresses and nothing else changed.
import { readFileSync } from "node:fs";
import { isMap, parseDocument, visit } from "yaml";

export interface Address {
  readonly host: string;
  readonly port: number;
}

const FILE = new URL("../../envoy/envoy.yaml", import.meta.url);

/**
 * The bootstrap with each `socket_address` replaced by what `addresses` has for it, under `host:port` as in the file.
 * Throws when one is not listed or listed in vain, so that the tests notice a change of the file.
 */
export function frontProxyConfig(addresses: Readonly<Record<string, Address>>): object {
  const document = parseDocument(readFileSync(FILE, "utf8"), { merge: true });
  const unused = new Set(Object.keys(addresses));
  visit(document, {
    Pair(_, pair) {
      if (String(pair.key) !== "socket_address" || !isMap(pair.value)) return;
      const written = `${pair.value.get("address")}:${pair.value.get("port_value")}`;
      const address = addresses[written];
      if (address === undefined) throw new Error(`no address given for ${written} of envoy.yaml`);
      unused.delete(written);
      pair.value.set("address", address.host);
      pair.value.set("port_value", address.port);
    },
  });
  if (unused.size > 0) throw new Error(`not in envoy.yaml: ${[...unused].join(", ")}`);
  return document.toJS() as object;
}
