// Ports for servers that cannot pick one themselves.
import { createServer } from "node:net";

/** A TCP port on 127.0.0.1 that was free a moment ago. Whoever binds it must be ready to try another. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve, reject) => {
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", resolve);
  });
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
