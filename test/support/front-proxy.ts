// envoy/envoy.yaml as the tests run it: the file itself, with other addresses and nothing else changed.
import { readFileSync } from "node:fs";
import { type Document, isMap, isScalar, parseDocument, visit, type YAMLMap } from "yaml";

export interface Address {
  readonly host: string;
  readonly port: number;
}

const FILE = new URL("../../envoy/envoy.yaml", import.meta.url);

/** Every `socket_address` of the file as `host:port`, in its order. */
export function frontProxyAddresses(): readonly string[] {
  const found: string[] = [];
  eachSocketAddress(readDocument(), (written) => found.push(written));
  return found;
}

/**
 * The bootstrap with each `socket_address` replaced by what `addresses` has for it, under `host:port` as in the file.
 * Throws when one is not listed or listed in vain, so that the tests notice a change of the file.
 */
export function frontProxyConfig(addresses: Readonly<Record<string, Address>>): object {
  const document = readDocument();
  const unused = new Set(Object.keys(addresses));
  eachSocketAddress(document, (written, node) => {
    const address = addresses[written];
    if (address === undefined) throw new Error(`no address given for ${written} of envoy.yaml`);
    unused.delete(written);
    node.set("address", address.host);
    node.set("port_value", address.port);
  });
  if (unused.size > 0) throw new Error(`not in envoy.yaml: ${[...unused].join(", ")}`);
  return document.toJS() as object;
}

function readDocument(): Document {
  return parseDocument(readFileSync(FILE, "utf8"));
}

function eachSocketAddress(document: Document, act: (written: string, node: YAMLMap) => void): void {
  visit(document, {
    Pair(_, { key, value }) {
      if (!isScalar(key) || key.value !== "socket_address" || !isMap(value)) return;
      act(`${value.get("address")}:${value.get("port_value")}`, value);
    },
  });
}
