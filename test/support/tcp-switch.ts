// An address whose server changes, as a name, a balancer or a virtual address in front of Redis does.
import { connect, createServer, type Socket } from "node:net";

export interface TcpSwitch {
  readonly port: number;
  /** Where new connections go from now on; those that are there stay where they are. */
  turnTo(port: number): void;
  stop(): Promise<void>;
}

export async function startTcpSwitch(firstPort: number): Promise<TcpSwitch> {
  let target = firstPort;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => undefined);
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    turnTo: (port) => {
      target = port;
    },
    stop: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
